/* watch.h - whether the collector of this image is still there: one rule for all who wait for it or want another. */
#ifndef PRELOAD_WATCH_H
#define PRELOAD_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What one who waits has seen of the heartbeat. */
struct watch {
	uint32_t beat;
	uint64_t since_us; /* when it was seen to change */
	uint64_t again_us; /* not looked closer before */
};

struct watch watch_begin(void);

/* Who listened when this image connected: all that is known of a collector that has not looked at it yet. */
struct watch_listener {
	pid_t pid; /* in our pid namespace; 0: not known */
	uint64_t met_ns;
};

struct watch_listener watch_listener(int connection);

/*
 * Whether the collector is gone: it is silent, and either its process is no more or, where that cannot be told, nobody
 * listens in its place. Cheap as long as the heartbeat goes on. errno may change.
 */
bool watch_is_gone(struct watch *watch);

/* Whether its process is known to be no more, however short the silence. errno may change. */
bool watch_has_ended(void);

/* Field 22 of /proc/PID/stat, of this process where pid is 0; 0 where it cannot be read. state: its letter, or NULL. */
uint64_t watch_start_time(pid_t pid, char *state);

#endif
