/*
 * answers.h - what evprof serve answers to a request: parts of the page, its data, reports of snapshots. Called in the
 * thread of HTTP.
 */
#ifndef EVPROF_TOOLS_SERVE_ANSWERS_H
#define EVPROF_TOOLS_SERVE_ANSWERS_H

#include <pthread.h>
#include <stdint.h>

#include "serve/history.h"
#include "serve/http.h"
#include "serve/snapshots.h"
#include "watch/host.h"

/* A function that a page looks at has a slot of host->foci until nobody asks for it any more. */
struct serve_look {
	uint64_t asked; /* refresh in which it was asked for last */
	uint64_t since; /* refresh after which it has been counted; 0: the slot is free */
};

struct serve_state {
	char token[SERVE_TOKEN_DIGITS + 1];
	const char *target;
	int interval_ms;
	pthread_mutex_t lock; /* for all below */
	struct watch_host host;
	struct history history;
	struct snapshots snapshots;
	struct serve_look looks[WATCH_FOCI];
	uint64_t number;  /* of the last refresh, from 1 */
	int64_t at_ms;	  /* since 1970 */
	int64_t since_ms; /* when it was, of CLOCK_MONOTONIC */
	char *collectors; /* the status of all, as a JSON array; NULL: none yet */
	bool failed;	  /* out of memory in the last refresh */
};

/* Frees the slots that nobody asks for. Between two refreshes. */
void serve_look_away(struct serve_state *state);

/* An http_handler; owner: a struct serve_state. */
void serve_answer(void *owner, const struct serve_message *message, struct http_answer *answer);

#endif
