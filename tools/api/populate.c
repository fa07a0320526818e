/*
 * populate.c - see populate.h. Used for the table of all events.
 */
#include "api/populate.h"

#include <sys/mman.h>
#include <unistd.h>

#include "util/second_thread.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* The whole pages of these rows. False: the kernel does not do that. */
static bool make_rows(const struct table_column *column, uint64_t from, uint64_t to)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), data = (uintptr_t)column->data;
	uintptr_t first = (data + from * table_value_bytes(column->field->type)) & ~(page - 1);
	uintptr_t end = (data + to * table_value_bytes(column->field->type)) & ~(page - 1);

	return first >= end || madvise((void *)first, end - first, MADV_POPULATE_WRITE) == 0;
}

static void *make_all(void *owner)
{
	struct populate *populate = owner;

	pthread_mutex_lock(&populate->lock);
	while (!populate->ends) {
		uint64_t from = populate->from, to = populate->to;
		bool made = true;

		if (!populate->busy) {
			pthread_cond_wait(&populate->changed, &populate->lock);
			continue;
		}
		pthread_mutex_unlock(&populate->lock);
		for (uint32_t i = 0; i < populate->table->column_count && made; i++)
			if (populate->columns >> i & 1)
				made = make_rows(&populate->table->columns[i], from, to);
		pthread_mutex_lock(&populate->lock);
		populate->busy = false;
		populate->ends |= !made;
		pthread_cond_signal(&populate->changed);
	}
	pthread_mutex_unlock(&populate->lock);
	return NULL;
}

void populate_begin(struct populate *populate, const struct evprof_table *table, uint32_t columns)
{
	*populate = (struct populate){.table = table, .columns = columns, .useless = !second_thread_helps()};
	pthread_mutex_init(&populate->lock, NULL);
	pthread_cond_init(&populate->changed, NULL);
}

void populate_ask(struct populate *populate, uint64_t row)
{
	uint64_t from = row > populate->asked ? row : populate->asked, to = from + POPULATE_ROWS;

	if (!populate->started && !populate->useless) {
		populate->started = second_thread_start(&populate->thread, make_all, populate) == 0;
		populate->useless = !populate->started;
	}
	to = to < populate->table->allocated ? to : populate->table->allocated;
	if (populate->useless || from >= to)
		return;
	pthread_mutex_lock(&populate->lock);
	populate->useless = populate->ends;
	if (!populate->busy && !populate->ends) {
		populate->from = from;
		populate->to = populate->asked = to;
		populate->busy = true;
		pthread_cond_signal(&populate->changed);
	}
	pthread_mutex_unlock(&populate->lock);
}

void populate_wait(struct populate *populate)
{
	if (!populate || !populate->started)
		return;
	pthread_mutex_lock(&populate->lock);
	while (populate->busy)
		pthread_cond_wait(&populate->changed, &populate->lock);
	pthread_mutex_unlock(&populate->lock);
}

void populate_end(struct populate *populate)
{
	if (populate->started) {
		pthread_mutex_lock(&populate->lock);
		populate->ends = true;
		pthread_cond_signal(&populate->changed);
		pthread_mutex_unlock(&populate->lock);
		pthread_join(populate->thread, NULL);
	}
	pthread_cond_destroy(&populate->changed);
	pthread_mutex_destroy(&populate->lock);
}
