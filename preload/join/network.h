/* network.h - reaches the session's collector from another network namespace. */
#ifndef PRELOAD_NETWORK_H
#define PRELOAD_NETWORK_H

/*
 * Creates a socket in the network namespace of the named socket. This needs a process of the session there, and the
 * right to enter its namespace (CAP_SYS_ADMIN). Returns a descriptor or -errno.
 */
int network_socket(const char *name);

#endif
