/*
 * requests.h - control requests that wait for their answer. Used by collector.c.
 */
#ifndef COLLECTOR_REQUESTS_H
#define COLLECTOR_REQUESTS_H

#include "base/control.h"
#include "base/peer.h"

#define REQUESTS_MAX 64u /* waiting at a time; each holds a descriptor */

struct request {
	struct request *next;
	enum control_type type;
	int fd; /* the connection, owned */
	struct peer_rights rights;
	char target[CONTROL_TARGET_MAX_BYTES];
	enum control_action action; /* of a CONTROL_SWITCH */
	char name[RING_REQUEST_NAME_BYTES];
	uint32_t hold_ms;    /* of a CONTROL_SNAPSHOT; 0: of a hold that is given up */
	uint64_t hold;	     /* number of that hold */
	uint64_t start_time; /* of a CONTROL_SNAPSHOT; 0: not known */
	uint64_t wanted_ns;  /* likewise: what was recorded before is read first; 0: not begun */
};

/* All zeros: none. */
struct requests {
	struct request *first; /* oldest first */
	unsigned count;
};

/* Takes over the connection. It is answered at once, by an error, where no place is left. */
void requests_add(struct requests *requests, const struct control_message *message, int fd,
		  const struct peer_rights *rights);

/* Removes the one at the link; the caller answers it and frees it. */
struct request *requests_take(struct requests *requests, struct request **link);

/* Closes the connections of those that are not answered. */
void requests_done(struct requests *requests);

#endif
