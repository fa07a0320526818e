/* network.h - a way to the session's collector from another network namespace than its own. */
#ifndef PRELOAD_NETWORK_H
#define PRELOAD_NETWORK_H

/*
 * Makes a socket in the network namespace of the named socket, as far as a process of the session is there and we may
 * enter where it is, which takes rights (CAP_SYS_ADMIN). Returns a descriptor or -errno.
 */
int network_socket(const char *name);

#endif
