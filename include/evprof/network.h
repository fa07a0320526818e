/*
 * network.h - the network namespace of a private collector, in the name of its socket.
 *
 * An abstract name is one of a network namespace: in another one it is nobody's. So the names of private collectors end
 * with '.' and the inode of their own (/proc/self/ns/net), and who finds nobody there can tell why.
 */
#ifndef EVPROF_NETWORK_H
#define EVPROF_NETWORK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The inode; 0 where it is not known. */
static inline unsigned long network_here(void)
{
	struct stat status;

	return stat("/proc/self/ns/net", &status) ? 0 : (unsigned long)status.st_ino;
}

#define NETWORK_NAME_BYTES 64

/*
 * A new name for a private collector here. Anybody can read it (/proc/net/unix), so no part of it is a secret; it is
 * unlikely enough that nobody has it before.
 */
static inline void network_name(char name[NETWORK_NAME_BYTES])
{
	struct timespec now;
	uint64_t random;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random)) { /* a machine that has just begun */
		clock_gettime(CLOCK_REALTIME, &now);
		random = (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec;
	}
	snprintf(name, NETWORK_NAME_BYTES, "@evprof-%d-%016llx.%lu", (int)getpid(), (unsigned long long)random,
		 network_here());
}

/* The inode that a socket's name tells; 0: none. */
static inline unsigned long network_of(const char *name)
{
	const char *dot = name[0] == '@' ? strrchr(name, '.') : NULL;

	return dot ? strtoul(dot + 1, NULL, 10) : 0;
}

/* Whether the socket is one of a network namespace that is not ours. */
static inline bool network_is_another(const char *name)
{
	unsigned long here = network_here();

	return here && network_of(name) && network_of(name) != here;
}

#endif
