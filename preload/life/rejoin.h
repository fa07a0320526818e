/* rejoin.h - moves a process whose collector is gone to the collector that has replaced it. */
#ifndef PRELOAD_REJOIN_H
#define PRELOAD_REJOIN_H

#include <stdbool.h>

/* Between two checks whether the collector still exists: words of a thread, and time. */
#define REJOIN_EVERY_WORDS 8192
#define REJOIN_EVERY_US 500000

enum rejoin_when {
	REJOIN_AT_TIMES, /* if the next check is due */
	REJOIN_NOW,	 /* a thread has waited for the collector in vain */
	REJOIN_AT_END,	 /* the image ends */
};

/*
 * Joins the new collector if the present one is gone. Called by writers on their slow path, with or without the GIL,
 * and at the end of the image. Cheap: it reads the clock and, at most twice a second, checks the collector. kind: of
 * the event that is about to be written; ids can be assigned anew only under a kind whose hook holds the GIL. True:
 * another collector reads the rings from here on. errno may change.
 */
bool rejoin_if_lost(unsigned kind, enum rejoin_when when);

#endif
