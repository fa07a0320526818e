/*
 * listen.h - the collector's listening socket. Used by main.c.
 */
#ifndef COLLECTOR_LISTEN_H
#define COLLECTOR_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Opens the socket of a daemon: a path, or @ and an abstract name. Replaces a socket file without a listener. Returns a
 * descriptor, or -errno with one line in `reason`.
 */
int server_listen(const char *name, bool for_all_users, char *reason, size_t reason_bytes);

#endif
