/*
 * host.h - what the recorded processes of this host did in the last stretch, refreshed: the data of evprof top and of
 * evprof serve.
 *
 * Each refresh asks the collectors for a snapshot, which makes them write what they have (evprof/control.h), follows
 * the traces that they name (trace_follow()), and counts them here. So the collectors do nothing for each event that
 * they would not do anyway.
 */
#ifndef EVPROF_TOOLS_WATCH_HOST_H
#define EVPROF_TOOLS_WATCH_HOST_H

#include "watch/model.h"

struct control_collectors;

/*
 * The two halves of a refresh. The first one waits for the collectors, some seconds at most, and changes nothing in
 * host. Returns 0 or -ENOMEM. The caller calls control_collectors_done() in both cases.
 */
int watch_host_ask(const struct watch_host *host, struct control_collectors *collectors);
/* Returns the number of processes, or -ENOMEM. With 0 processes `problem` says why. */
int watch_host_take(struct watch_host *host, const struct control_collectors *collectors);

/* Takes one stretch, by both. Returns the number of processes, or -ENOMEM. With 0 processes `problem` says why. */
int watch_host_refresh(struct watch_host *host);
void watch_host_done(struct watch_host *host);

#endif
