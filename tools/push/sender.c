/*
 * sender.c - see sender.h.
 */
#include "push/sender.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/jitter.h"
#include "util/output.h"

#define LOOK_MS 100

/* --- answers --- */

static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
		uint8_t byte = *(*at)++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Finds a field by number: a number, or the begin of its contents with their length. */
static bool find_field(const uint8_t **at, const uint8_t *end, uint64_t field, uint64_t *value)
{
	uint64_t head;

	while (take_varint(at, end, &head) && take_varint(at, end, value)) {
		bool is_bytes = (head & 7) == 2;

		if (((head & 7) != 0 && !is_bytes) || (is_bytes && *value > (uint64_t)(end - *at)))
			return false;
		if (head >> 3 == field)
			return true;
		*at += is_bytes ? *value : 0;
	}
	return false;
}

uint64_t sender_rejected(const uint8_t *answer, size_t length)
{
	const uint8_t *at = answer;
	uint64_t bytes, rejected;

	if (!find_field(&at, answer + length, 1, &bytes) || bytes > length)
		return 0;
	return find_field(&at, at + bytes, 1, &rejected) ? rejected : 0;
}

/* --- messages --- */

static void describe(const struct post_answer *answer, char *text, size_t bytes)
{
	if (answer->status)
		snprintf(text, bytes, "the server answers %ld", answer->status);
	else
		snprintf(text, bytes, "%s", answer->reason);
}

/* A line when something begins or ends, not for each request. */
static void report(struct sender *sender, const struct post_answer *answer, enum push_outcome outcome)
{
	char text[340];
	bool fails = outcome == PUSH_AGAIN;

	describe(answer, text, sizeof(text));
	if (fails && !sender->is_failing && !sender->stop)
		output_message("evprof push: %s; profiles wait, and are sent again", text);
	if (!fails && sender->is_failing)
		output_message("evprof push: the server takes profiles again");
	if (outcome == PUSH_REJECTED && sender->rejection != answer->status)
		output_message("evprof push: %s, and rejects profiles%s", text,
			       answer->status != 404		     ? ""
			       : sender->settings->form == PUSH_OTLP ? "; is it OpenTelemetry's, with profiles enabled?"
								     : "; has it another path, or a prefix?");
	sender->is_failing = fails;
	sender->rejection = outcome == PUSH_REJECTED ? answer->status : 0;
}

/* --- the thread --- */

/*
 * Waits; ends early to stop. False: there is nothing to wait for. can_hurry: a deadline that is set meanwhile ends it,
 * too. With the lock.
 */
static bool wait_for(struct sender *sender, int64_t ms, bool can_hurry)
{
	int64_t until_ms = time_ms(CLOCK_MONOTONIC) + ms, deadline_ms = sender->deadline_ms;

	while (!sender->stop) {
		int64_t now_ms = time_ms(CLOCK_MONOTONIC),
			at_ms = now_ms + LOOK_MS < until_ms ? LOOK_MS : until_ms - now_ms;
		int64_t real_ns;
		struct timespec at;

		if (at_ms <= 0 || (can_hurry && sender->deadline_ms != deadline_ms))
			return true;
		if (sender->deadline_ms && until_ms >= sender->deadline_ms)
			return false;
		real_ns = time_ns(CLOCK_REALTIME) + at_ms * 1000000;
		at = (struct timespec){.tv_sec = real_ns / 1000000000, .tv_nsec = real_ns % 1000000000};
		pthread_cond_timedwait(&sender->wake, &sender->lock, &at);
	}
	return false;
}

/* Sends it without the lock. */
static void send_body(struct sender *sender, const uint8_t *body, size_t bytes, struct post_answer *answer)
{
	answer->body = sender->body;
	pthread_mutex_unlock(&sender->lock);
	post_send(&sender->post, body, bytes, answer);
	pthread_mutex_lock(&sender->lock);
}

static void count(struct sender *sender, const struct post_answer *answer, enum push_outcome outcome, size_t bytes)
{
	report(sender, answer, outcome);
	if (outcome == PUSH_SENT) {
		sender->counts.sent++;
		sender->counts.sent_bytes += bytes;
		if (sender->settings->form == PUSH_OTLP)
			sender->counts.rejected_profiles += sender_rejected(answer->body, answer->length);
	}
	sender->counts.rejected += outcome == PUSH_REJECTED;
}

/* False: nothing is to be sent again. With the lock. */
static bool wait_again(struct sender *sender, int64_t wait_ms, bool can_hurry)
{
	int64_t deadline_ms = sender->deadline_ms;

	if (!wait_for(sender, wait_ms, can_hurry))
		return false;
	if (sender->deadline_ms != deadline_ms) /* it is not for long any more */
		push_queue_hurry(&sender->queue);
	sender->counts.tried_again++;
	return true;
}

/* False: all is sent, or nothing is to be sent any more. With the lock. */
static bool send_first(struct sender *sender)
{
	struct post_answer answer;
	enum push_outcome outcome;
	int64_t wait_ms;
	uint8_t *body;
	size_t bytes;

	if (!push_spool_first(&sender->queue.spool, &body, &bytes)) {
		if (sender->deadline_ms)
			return false;
		pthread_cond_wait(&sender->wake, &sender->lock);
		return true; /* there may be one, whatever else has changed meanwhile */
	}
	send_body(sender, body, bytes, &answer);
	free(body);
	outcome = push_queue_answered(&sender->queue, answer.status, answer.retry_after_ms, &wait_ms);
	count(sender, &answer, outcome, bytes);
	if (outcome == PUSH_AGAIN)
		return wait_again(sender, wait_ms, answer.retry_after_ms <= 0);
	if (wait_ms && !sender->deadline_ms)
		wait_for(sender, wait_ms, true);
	return true;
}

static void *send_always(void *owner)
{
	struct sender *sender = owner;

	pthread_mutex_lock(&sender->lock);
	while (!sender->stop && send_first(sender))
		;
	sender->stop = true;
	pthread_mutex_unlock(&sender->lock);
	return NULL;
}

/* --- for the owner --- */

bool sender_start(struct sender *sender, const struct push_settings *settings, const char *folder, size_t limit_bytes,
		  char *why, size_t why_bytes)
{
	int error;

	*sender = (struct sender){.settings = settings, .queue.random = jitter_seed()};
	pthread_mutex_init(&sender->lock, NULL);
	pthread_cond_init(&sender->wake, NULL);
	if (!post_open(&sender->post, settings, &sender->stop, why, why_bytes))
		return false;
	if (!push_spool_open(&sender->queue.spool, folder, push_form_name(settings->form), limit_bytes, why,
			     why_bytes)) {
		post_close(&sender->post);
		return false;
	}
	error = pthread_create(&sender->thread, NULL, send_always, sender);
	if (!error)
		return true;
	snprintf(why, why_bytes, "no thread: %s", strerror(error));
	push_spool_close(&sender->queue.spool);
	post_close(&sender->post);
	return false;
}

int sender_add(struct sender *sender, const void *body, size_t bytes)
{
	uint64_t dropped;
	int error;

	pthread_mutex_lock(&sender->lock);
	dropped = sender->queue.spool.dropped;
	error = push_spool_add(&sender->queue.spool, body, bytes);
	if (sender->queue.spool.dropped != dropped && !dropped)
		output_message("evprof push: the spool is full%s%s; the oldest profiles are dropped", error ? ": " : "",
			       error ? strerror(-error) : "");
	pthread_cond_signal(&sender->wake);
	pthread_mutex_unlock(&sender->lock);
	return error;
}

void sender_finish(struct sender *sender, int64_t deadline_ms)
{
	pthread_mutex_lock(&sender->lock);
	sender->deadline_ms = deadline_ms;
	pthread_cond_signal(&sender->wake);
	pthread_mutex_unlock(&sender->lock);
}

bool sender_is_done(struct sender *sender)
{
	bool done;

	pthread_mutex_lock(&sender->lock);
	done = sender->stop;
	pthread_mutex_unlock(&sender->lock);
	return done;
}

struct sender_counts sender_stop(struct sender *sender)
{
	pthread_mutex_lock(&sender->lock);
	sender->stop = true;
	pthread_cond_signal(&sender->wake);
	pthread_mutex_unlock(&sender->lock);
	pthread_join(sender->thread, NULL);
	if (sender->queue.spool.folder_fd >= 0)
		sender->counts.left = sender->queue.spool.count - sender->queue.spool.first;
	push_spool_close(&sender->queue.spool);
	sender->counts.dropped = sender->queue.spool.dropped;
	post_close(&sender->post);
	return sender->counts;
}
