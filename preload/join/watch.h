/*
 * watch.h - whether the collector of this image still exists: one rule for all threads that wait for it or replace it.
 */
#ifndef PRELOAD_WATCH_H
#define PRELOAD_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A waiting thread's view of the heartbeat. */
struct watch {
	uint32_t beat;
	uint64_t since_us; /* when it last changed */
	uint64_t again_us; /* the time of the next closer check */
};

struct watch watch_begin(void);

/*
 * The process that listened when this image connected: the only knowledge of a collector that has not read its ring
 * yet.
 */
struct watch_listener {
	pid_t pid; /* in this pid namespace; 0: not known */
	uint64_t met_ns;
};

struct watch_listener watch_listener(int connection);

/*
 * Whether the collector is gone: it is silent, and its process has ended or, if that is unknown, no process listens in
 * its place. Cheap while the heartbeat moves. errno may change.
 */
bool watch_is_gone(struct watch *watch);

/* Whether the collector's process is known to have ended, however short the silence. errno may change. */
bool watch_has_ended(void);

/* Field 22 of /proc/PID/stat; pid 0: of this process; 0: it cannot be read. state: gets the state letter, or NULL. */
uint64_t watch_start_time(pid_t pid, char *state);

#endif
