/* rejoin.h - a process whose collector is gone joins the one that has taken its place. */
#ifndef PRELOAD_REJOIN_H
#define PRELOAD_REJOIN_H

#include <stdbool.h>

/* Between two looks at whether the collector is still there: so many words of a thread, and so much time. */
#define REJOIN_EVERY_WORDS 8192
#define REJOIN_EVERY_US 500000

enum rejoin_when {
	REJOIN_AT_TIMES, /* if it is time to look again */
	REJOIN_NOW,	 /* a thread has waited for it in vain */
	REJOIN_AT_END,	 /* the image ends */
};

/*
 * Called by writers on their slow path, with or without the GIL, and when the image ends. Cheap, and at most once
 * a second more than a look at the time. kind: of the event that is about to be written; a kind that is made with the
 * GIL held may have all ids given anew. True: there is another collector, which reads the rings from here on. errno may
 * change.
 */
bool rejoin_if_lost(unsigned kind, enum rejoin_when when);

/*
 * Exchanges the shared memory for new memory with the same content at the same address, while other threads write.
 * Afterwards every event that has been published or is about to be is in the new memory, once. The lock is held, and
 * the status is PROCESS_MOVING; threads find no room until it is set anew. all_definitions: from the first one on.
 * Returns a descriptor of the new memory, or -errno with nothing changed.
 */
int rejoin_exchange_memory(bool all_definitions);

#endif
