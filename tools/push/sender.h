/*
 * sender.h - sends requests to the endpoint, in a thread of its own, so that a server that is slow or away delays
 * nothing else. For push.c.
 * What is sent again, and when: queue.h. Each loss is counted.
 */
#ifndef EVPROF_TOOLS_PUSH_SENDER_H
#define EVPROF_TOOLS_PUSH_SENDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/post.h"
#include "push/queue.h"
#include "push/settings.h"

struct sender_counts {
	uint64_t sent, sent_bytes;
	uint64_t rejected;	    /* requests that the server did not take */
	uint64_t rejected_profiles; /* of requests that it took in part */
	uint64_t tried_again;
	uint64_t dropped; /* requests for which the spool had no room, and what was left in memory at the end */
	uint64_t left;	  /* in the folder */
};

struct sender {
	const struct push_settings *settings;
	struct post post;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	pthread_t thread;
	struct push_queue queue;
	struct sender_counts counts;
	int64_t deadline_ms; /* CLOCK_MONOTONIC, after which nothing is sent again; 0: none, there may come more */
	volatile bool stop;
	bool is_failing; /* the last request is to be sent again */
	long rejection;	 /* the last status that was reported */
	uint8_t body[POST_ANSWER_BYTES];
};

/* folder, limit_bytes: as for push_spool_open(). False after one line in `why`. */
bool sender_start(struct sender *sender, const struct push_settings *settings, const char *folder, size_t limit_bytes,
		  char *why, size_t why_bytes);
/* Queues a request. Returns 0 or -errno: then it is dropped, and counted. */
int sender_add(struct sender *sender, const void *body, size_t bytes);
/* Sends what is left, until that time at most; sender_stop() ends it earlier. */
void sender_finish(struct sender *sender, int64_t deadline_ms);
/* Whether all is sent or the deadline has passed. */
bool sender_is_done(struct sender *sender);
/* Ends the thread, and frees everything. Returns what happened. */
struct sender_counts sender_stop(struct sender *sender);

/* The number of rejected profiles in the answer, an ExportProfilesServiceResponse. For the unit tests, too. */
uint64_t sender_rejected(const uint8_t *answer, size_t length);

#endif
