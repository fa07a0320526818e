/*
 * listen.h - the collector's listening socket. Used by main.c.
 */
#ifndef COLLECTOR_LISTEN_H
#define COLLECTOR_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Opens the socket of a daemon: a path, or @ and an abstract name. Replaces a socket file without a listener. Who may
 * connect to a path: all users, or only ours and a group (NULL: none). Returns a descriptor, or -errno with one line in
 * `reason`.
 */
int server_listen(const char *name, bool for_all_users, const gid_t *group, char *reason, size_t reason_bytes);

#endif
