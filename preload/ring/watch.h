/*
 * watch.h - whether the collector of this image still exists: one rule for all threads that wait for it or replace it.
 */
#ifndef PRELOAD_WATCH_H
#define PRELOAD_WATCH_H

#include <stdbool.h>

#include "ring/process.h"

struct watch watch_begin(void);

/* The process that listens at the other end of a connection. */
struct watch_listener watch_listener(int connection);

/*
 * Whether the collector is gone: it has said so, or it is silent, and its process has ended or, if that is unknown, no
 * process listens in its place. Cheap while the heartbeat moves. errno may change.
 */
bool watch_is_gone(struct watch *watch);

/* Whether the collector's process is known to have ended, however short the silence. errno may change. */
bool watch_has_ended(void);

#endif
