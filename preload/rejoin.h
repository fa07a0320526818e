/* rejoin.h - a process whose host's collector is gone joins the one that has taken its place. */
#ifndef PRELOAD_REJOIN_H
#define PRELOAD_REJOIN_H

#include <stdbool.h>

/* Events between two looks at whether the collector is still there, for processes of a host's collector. */
#define REJOIN_EVERY_WORDS 8192

/*
 * Called by writers on their slow path, with or without the GIL, and (last) when the image ends. Cheap, and at most once
 * a second more than a look at the time. kind: of the event that is about to be written; a kind that is made with the
 * GIL held may have all ids given anew. errno may change.
 */
void rejoin_if_lost(unsigned kind, bool last);

#endif
