/*
 * resolver.h - symbolizes native frames with evprof-symbols (symbols.h), while a trace is written.
 *
 * Called by the session with the definitions of its processes. Nothing here waits: requests are kept in a bounded
 * queue, and answers arrive through the loop, between rounds. Without evprof-symbols, or once it is gone, addresses
 * have no symbols; readers show the module and the offset in it.
 */
#ifndef COLLECTOR_RESOLVER_H
#define COLLECTOR_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/loop.h"
#include "base/users.h"

struct resolver;
struct resolver_client;

/* NULL: no memory. evprof-symbols is started at the first request. */
struct resolver *resolver_new(struct loop *loop);
void resolver_free(struct resolver *resolver);

/*
 * Adds a process whose native stacks are recorded. who: its credentials as the collector sees them; its files are read
 * with the rights of that user. user: charged for the memory. found(): receives SYMBOL definitions. The root directory
 * of the process is opened now, while the process lives. NULL: no memory.
 */
struct resolver_client *resolver_add(struct resolver *resolver, const struct ucred *who, struct user *user, int pidfd,
				     bool same_namespace,
				     void (*found)(void *owner, const void *definitions, size_t bytes), void *owner);
/* client may be NULL. */
void resolver_remove(struct resolver *resolver, struct resolver_client *client);

/* Takes checked definitions of the process, in order: those of modules and native frames are used. */
void resolver_note(struct resolver_client *client, const uint8_t *definitions, size_t bytes);

/* Sends pending requests. Called once a round. */
void resolver_work(struct resolver *resolver, uint64_t now_ns);

/* Whether requests of the client are pending. */
bool resolver_is_busy(const struct resolver_client *client);

#endif
