/* network.h - reaches the session's collector from another network namespace. */
#ifndef PRELOAD_NETWORK_H
#define PRELOAD_NETWORK_H

#include <sys/types.h>

/*
 * Creates a socket in the network namespace of the named socket. This needs a process of the session there, one of
 * members, and the right to enter its namespace (CAP_SYS_ADMIN). Returns a descriptor or -errno.
 */
int network_socket(const char *name, const pid_t members[2]);

#endif
