/*
 * queue.c - see queue.h.
 */
#include "push/queue.h"

#include "util/jitter.h"

#define FIRST_WAIT_MS 500
#define LAST_WAIT_MS 30000

static int64_t min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

enum push_outcome push_queue_outcome(long status)
{
	switch (status) {
	case 0:
	case 429:
	case 502:
	case 503:
	case 504:
		return PUSH_AGAIN;
	default:
		return status >= 200 && status < 300 ? PUSH_SENT : PUSH_REJECTED;
	}
}

static int64_t wait_after_failure(struct push_queue *queue, int64_t retry_after_ms)
{
	int64_t own_ms, asked_ms = 0;

	queue->wait_ms = min(max(queue->wait_ms * 2, FIRST_WAIT_MS), LAST_WAIT_MS);
	own_ms = jitter_around(&queue->random, queue->wait_ms);
	if (retry_after_ms > 0)
		asked_ms = retry_after_ms + jitter_below(&queue->random, min(retry_after_ms, LAST_WAIT_MS));
	return max(own_ms, asked_ms);
}

static int64_t wait_after_success(struct push_queue *queue)
{
	queue->wait_ms /= 2;
	if (queue->wait_ms < FIRST_WAIT_MS)
		queue->wait_ms = 0;
	return jitter_around(&queue->random, queue->wait_ms);
}

enum push_outcome push_queue_answered(struct push_queue *queue, long status, int64_t retry_after_ms, int64_t *wait_ms)
{
	enum push_outcome outcome = push_queue_outcome(status);

	if (outcome == PUSH_AGAIN) {
		push_spool_keep(&queue->spool);
		*wait_ms = wait_after_failure(queue, retry_after_ms);
	} else {
		push_spool_remove(&queue->spool, true); /* a rejected one is counted as such */
		*wait_ms = wait_after_success(queue);
	}
	return outcome;
}

void push_queue_hurry(struct push_queue *queue)
{
	queue->wait_ms = 0;
}
