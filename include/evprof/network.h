/*
 * network.h - the network namespace of a private collector, as part of the name of its socket.
 *
 * Abstract names are separate in each network namespace. So the name of a private collector ends with '.' and the inode
 * of its namespace (/proc/self/ns/net). A client that finds no listener there can give the reason.
 */
#ifndef EVPROF_NETWORK_H
#define EVPROF_NETWORK_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "evprof/system_calls.h"

/* The inode of our network namespace; 0: not known. */
static inline unsigned long network_here(void)
{
	struct stat status;

	return stat("/proc/self/ns/net", &status) ? 0 : (unsigned long)status.st_ino;
}

#define NETWORK_NAME_BYTES 64

/*
 * Makes a new name for a private collector in this namespace. Names are public (/proc/net/unix), so no part is a
 * secret; the random part makes a collision unlikely.
 */
static inline void network_name(char name[NETWORK_NAME_BYTES])
{
	struct timespec now;
	uint64_t random;

	if (system_getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random)) { /* shortly after boot */
		clock_gettime(CLOCK_REALTIME, &now);
		random = (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec;
	}
	snprintf(name, NETWORK_NAME_BYTES, "@evprof-%d-%016llx.%lu", (int)getpid(), (unsigned long long)random,
		 network_here());
}

/* The address of a socket with that name: a path, or '@' and an abstract name. 0 or -ENAMETOOLONG. */
static inline int network_address(const char *name, struct sockaddr_un *address, socklen_t *length)
{
	size_t count = strlen(name);

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (count == 0 || count >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	memcpy(address->sun_path, name, count);
	*length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + count + (name[0] != '@'));
	if (name[0] == '@')
		address->sun_path[0] = 0;
	return 0;
}

/* The inode in a socket's name; 0: none. */
static inline unsigned long network_of(const char *name)
{
	const char *dot = name[0] == '@' ? strrchr(name, '.') : NULL;

	return dot ? strtoul(dot + 1, NULL, 10) : 0;
}

/* Whether the socket belongs to another network namespace than ours. */
static inline bool network_is_another(const char *name)
{
	unsigned long here = network_here();

	return here && network_of(name) && network_of(name) != here;
}

#endif
