/*
 * populate.h - a second thread has the kernel make the memory of a table's next rows while the caller fills those
 * before.
 *
 * The kernel clears every page that is touched first, which takes as long as reading the events. Without a second
 * processor, before Linux 5.14 (MADV_POPULATE_WRITE), and for small tables nothing is done ahead.
 *
 * Threads: one caller. The second thread reads where the columns are, and only between populate_ahead() and
 * populate_wait(). At most 2 * POPULATE_ROWS rows are made that the table does not use in the end.
 */
#ifndef EVPROF_TOOLS_API_POPULATE_H
#define EVPROF_TOOLS_API_POPULATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/table.h"

#define POPULATE_ROWS (UINT64_C(1) << 19)

struct populate {
	const struct evprof_table *table;
	uint32_t columns; /* bits: which of them are written in most rows */
	uint64_t asked;	  /* rows up to here were asked for */
	pthread_t thread;
	bool started, useless;
	pthread_mutex_t lock;	/* protects the rest */
	pthread_cond_t changed; /* busy or ends has changed */
	uint64_t from, to;	/* rows */
	bool busy;		/* the thread makes these rows */
	bool ends;
};

void populate_begin(struct populate *populate, const struct evprof_table *table, uint32_t columns);
void populate_end(struct populate *populate);
/* The slow path of populate_ahead(). */
void populate_ask(struct populate *populate, uint64_t row);
/* Waits until the thread is done, so that the columns may be moved. */
void populate_wait(struct populate *populate);

/* The caller has filled the rows up to this one. populate NULL: nothing is done ahead. */
static inline void populate_ahead(struct populate *populate, uint64_t row)
{
	if (populate && row + POPULATE_ROWS > populate->asked && row >= POPULATE_ROWS)
		populate_ask(populate, row);
}

#endif
