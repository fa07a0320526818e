/*
 * resolver.h - finds out what native addresses mean, by evprof-symbols (symbols.h), while a trace is written.
 *
 * Called by the session with the definitions of its processes. Nothing here waits: what is to be looked up is kept in a
 * bounded queue, and what was found comes back through the loop, in between rounds. Without evprof-symbols, or once it
 * is gone, addresses have no names; readers show them as their module and the offset in it.
 */
#ifndef COLLECTOR_RESOLVER_H
#define COLLECTOR_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "loop.h"
#include "users.h"

struct resolver;
struct resolver_client;

/* NULL: no memory. The program is started when it is first needed. */
struct resolver *resolver_new(struct loop *loop);
void resolver_free(struct resolver *resolver);

/*
 * A process whose native stacks are recorded. found() gets definitions, which are SYMBOLs. who: as the collector sees
 * it; its files are read with the rights of that user. user: to whom its memory counts. Where its files are is looked
 * up now, while it is there. NULL: no memory.
 */
struct resolver_client *resolver_add(struct resolver *resolver, const struct ucred *who, struct user *user, int pidfd,
				     bool same_namespace,
				     void (*found)(void *owner, const void *definitions, size_t bytes), void *owner);
/* client may be NULL. */
void resolver_remove(struct resolver *resolver, struct resolver_client *client);

/* Checked definitions of the process, in order: of modules and native frames are taken note of. */
void resolver_note(struct resolver_client *client, const uint8_t *definitions, size_t bytes);

/* Sends what can be sent. Once a round. */
void resolver_work(struct resolver *resolver, uint64_t now_ns);

/* Whether something of the client's is still to be found. */
bool resolver_is_busy(const struct resolver_client *client);

#endif
