/*
 * consumer.c - the collector's side of the stress programs: drain.c itself, with the trace replaced by checks.
 *
 * The thread sanitizer sees neither what pread(2) reads nor that two mappings are the same memory. Under it the
 * producers' mapping is read with memcpy(), so that each word that the collector reads is a read that must come after
 * the write, and before the write that overwrites it. Without it the collector's own mapping and pread(2) are used, as
 * in real life.
 */
#include "tests/stress/consumer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define SHARED_MAPPING 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SHARED_MAPPING 1
#endif
#endif

#ifdef SHARED_MAPPING
static uint8_t *shared;

static ssize_t read_shared(int fd, void *to, size_t bytes, off_t offset)
{
	(void)fd;
	memcpy(to, shared + offset, bytes);
	return (ssize_t)bytes;
}

/* The hole is a write of zeros; the rest of the page stays. */
static int punch_shared(int fd, int mode, off_t offset, off_t bytes)
{
	memset(shared + offset, 0, (size_t)bytes);
	return fallocate(fd, mode, offset, bytes);
}

#define pread read_shared
#define fallocate punch_shared
#endif

#include "collector/base/clock.h"
#include "collector/ring/ring_read.c"
#include "collector/session/drain.c"

#define MARKS_MAX (1u << 22)
#define CORES_APART_TICKS (1u << 16) /* what the counters of two cores may differ by */

struct life {
	uint64_t number; /* of the last event; 0: none yet */
	uint64_t ticks;	 /* of the last event */
	uint64_t in_gaps;
	uint64_t reported; /* of these, by collectors before */
	bool started, ended;
};

static struct process *target;
static struct trace_output trace;
static struct drain_tools tools;
static struct consumer_counts counts;
static bool defined[MARKS_MAX];
static struct life *lives;
static size_t lives_capacity;
static struct life inherited[RING_SLOTS]; /* in the slots, from the collector before */
static bool is_inherited[RING_SLOTS];

static void fail(uint32_t thread, const char *what, uint64_t found, uint64_t expected)
{
	if (counts.failures++ < 20)
		fprintf(stderr, "stress: life %u: %s: %llx, not %llx\n", thread, what, (unsigned long long)found,
			(unsigned long long)expected);
}

static void expect(uint32_t thread, const char *what, uint64_t found, uint64_t expected)
{
	if (found != expected)
		fail(thread, what, found, expected);
}

static bool begins_with(const uint8_t *bytes, const struct wire_definition *record, const char *text)
{
	return record->length[1] >= strlen(text) && memcmp(bytes + sizeof(*record), text, strlen(text)) == 0;
}

/* Names that were replaced in the process's table are defined anew, until there are too many. */
static void check_definition_order(const uint8_t *bytes, size_t count)
{
	struct wire_definition record;
	char name[32];

	for (size_t at = 0; at < count; at += record.size_bytes) {
		memcpy(&record, bytes + at, sizeof(record));
		if (record.type != WIRE_DEFINE_MARK)
			continue;
		expect(0, "the mark id", record.id, ++counts.definitions);
		snprintf(name, sizeof(name), "mark-%u", record.id); /* only how long it may be */
		if (!begins_with(bytes + at, &record, "mark-") &&
		    (record.id < WIRE_NAMES_MAX || !begins_with(bytes + at, &record, WIRE_NAMES_OTHER)))
			fail(0, "the mark's name", record.length[1], strlen(name));
		if (record.id < MARKS_MAX)
			defined[record.id] = true;
	}
}

static uint64_t extra_at(const uint8_t *planes, size_t extras, size_t at)
{
	uint64_t word = 0;

	for (unsigned plane = 0; plane < 8; plane++)
		word |= (uint64_t)planes[plane * extras + at] << (8 * plane);
	return word;
}

static void check_numbered(uint32_t thread, struct life *life, uint32_t head, const uint64_t extra[WIRE_EXTRA_MAX])
{
	uint64_t number = ++life->number;

	counts.events++;
	switch (wire_head_kind(head)) {
	case WIRE_CALL:
		expect(thread, "the call", wire_head_arg(head), number & WIRE_ARG_MAX);
		break;
	case WIRE_MALLOC:
		expect(thread, "the size", head, wire_memory_head(WIRE_MALLOC, 0, number & 0xffff));
		expect(thread, "the address", extra[0], number & STRESS_ADDRESS_MASK);
		break;
	case WIRE_REALLOC:
		expect(thread, "the address", extra[0], number & STRESS_ADDRESS_MASK);
		expect(thread, "the old address", extra[1], ~number & STRESS_ADDRESS_MASK);
		break;
	default:
		if (wire_argument(head, extra) >= MARKS_MAX || !defined[wire_argument(head, extra)])
			fail(thread, "a mark before its definition", wire_argument(head, extra), counts.definitions);
	}
}

static void check_event(uint32_t thread, uint32_t head, const uint64_t extra[WIRE_EXTRA_MAX])
{
	struct life *life = &lives[thread];

	expect(thread, "an event after the end", life->ended, false);
	switch (wire_head_kind(head)) {
	case WIRE_THREAD_START:
		expect(thread, "a second start", life->started, false);
		life->started = true;
		break;
	case WIRE_THREAD_END:
		life->ended = true;
		break;
	case WIRE_SWITCH:
		expect(thread, "a second base", life->number, 0);
		expect(thread, "the base", extra[0], ~extra[1]);
		life->number = extra[0];
		break;
	case WIRE_GAP:
		life->number += extra[0];
		life->in_gaps += extra[0];
		counts.in_gaps += extra[0];
		break;
	case WIRE_CALL:
	case WIRE_MALLOC:
	case WIRE_REALLOC:
	case WIRE_MARK:
		check_numbered(thread, life, head, extra);
		break;
	case WIRE_TIME:
	case WIRE_STACK:
		break;
	default:
		fail(thread, "a kind that nobody wrote", wire_head_kind(head), WIRE_CALL);
	}
	/* A thread that was held up before its first event begins with the time. */
	if (wire_head_kind(head) != WIRE_TIME)
		expect(thread, "begun", life->started, true);
}

/*
 * Times only go forward, and never past this moment. That at the beginning of a chunk is that at the end of the one
 * before, also where the memory was exchanged in between and the process has reported it.
 */
static void check_times(const struct trace_chunk *chunk)
{
	struct life *life = &lives[chunk->thread];
	uint64_t now = clock_ticks(target->layout.clock_kind) >> target->layout.clock_shift;

	if (life->ticks)
		expect(chunk->thread, "the time at which it goes on", chunk->first_ticks, life->ticks);
	if (chunk->last_ticks < chunk->first_ticks)
		fail(chunk->thread, "a time before the last one", chunk->last_ticks, chunk->first_ticks);
	if (chunk->last_ticks > now + CORES_APART_TICKS)
		fail(chunk->thread, "a time to come", chunk->last_ticks, now);
	life->ticks = chunk->last_ticks;
}

static void check_events(const struct trace_chunk *chunk, const uint8_t *raw)
{
	const uint8_t *planes = raw + (size_t)chunk->events * 8;
	size_t next = 0;

	for (size_t i = 0; i < chunk->events; i++) {
		uint64_t extra[WIRE_EXTRA_MAX] = {0};
		uint32_t head;

		memcpy(&head, raw + 4 * i, sizeof(head));
		for (unsigned k = 0; k < wire_extra_words(head); k++)
			extra[k] = extra_at(planes, chunk->extras, next++);
		check_event(chunk->thread, head, extra);
	}
}

/* What drain.c asks of a trace. */

int trace_output_chunk(struct trace_output *output, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes)
{
	(void)output;
	if (chunk->type == TRACE_CHUNK_DEFINITIONS)
		check_definition_order(raw, raw_bytes);
	else {
		check_times(chunk);
		check_events(chunk, raw);
	}
	return 0;
}

/* What a thread lost at its very end: no event of its own. It includes what a collector before has reported. */
int trace_output_last(struct trace_output *output, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes)
{
	uint32_t head;

	(void)output;
	(void)raw_bytes;
	memcpy(&head, raw, sizeof(head));
	if (wire_head_kind(head) == WIRE_GAP)
		counts.in_gaps += extra_at((const uint8_t *)raw + (size_t)chunk->events * 8, chunk->extras, 0) -
				  lives[chunk->thread].reported;
	return 0;
}

/* A thread that a collector before has seen the beginning of. */
static void inherit(uint32_t thread)
{
	for (unsigned i = 0; i < target->reader_count; i++) {
		if (!target->readers[i] || target->readers[i]->thread != thread || !is_inherited[i])
			continue;
		lives[thread] = inherited[i];
		lives[thread].reported = lives[thread].in_gaps;
		is_inherited[i] = false;
		counts.threads--;
		counts.lives_moved++;
	}
}

/* A thread is first seen. */
static void begin_life(uint32_t thread)
{
	if (thread >= lives_capacity) {
		lives_capacity = lives_capacity ? lives_capacity * 2 : 1024;
		lives = realloc(lives, lives_capacity * sizeof(*lives));
		if (!lives)
			abort();
	}
	lives[thread] = (struct life){0};
	counts.threads++;
	inherit(thread);
}

/* Descriptions come when a thread is first seen, and at its end. */
void trace_output_json(struct trace_output *output, uint32_t process, uint32_t thread, char *text, enum kept_kind kind)
{
	(void)output;
	(void)kind;
	(void)process;
	if (thread != TRACE_NOBODY && strstr(text, "\"thread_end\""))
		counts.ended++;
	else if (thread != TRACE_NOBODY)
		begin_life(thread);
	free(text);
}

uint32_t trace_output_thread(struct trace_output *output)
{
	return output->thread_count++;
}

uint64_t trace_output_count_events(struct trace_output *output, const uint32_t kinds[WIRE_KINDS])
{
	(void)output;
	(void)kinds;
	return 0;
}

void process_note_fork(struct process *process, pid_t child)
{
	(void)process;
	fail(0, "a fork that nobody made", (uint64_t)child, 0);
}

static uint8_t *collectors_mapping(uint8_t *base, uint64_t bytes, int memfd)
{
#ifdef SHARED_MAPPING
	(void)bytes;
	(void)memfd;
	return shared = base;
#else
	(void)base;
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (base == MAP_FAILED)
		abort();
	return base;
#endif
}

/* What stands where the process gives it memory. */
static void attach(uint8_t *base, int memfd)
{
	uint64_t bytes = ((struct ring_layout *)(void *)base)->size_bytes;

	target = calloc(1, sizeof(*target));
	trace = (struct trace_output){0};
	tools = (struct drain_tools){.events = malloc(sizeof(struct events_buffer)),
				     .definitions = malloc(DRAIN_DEFINITIONS_BYTES)};
	if (!target || !tools.events || !tools.definitions)
		abort();
	base = collectors_mapping(base, bytes, memfd);
	target->trace = &trace;
	target->drain = &tools;
	target->memfd = memfd;
	target->header = (struct ring_header *)(void *)base;
	memcpy(&target->layout, base, sizeof(target->layout));
	target->slots = (struct ring_slot *)(void *)(base + target->layout.slots_offset);
	target->slots_map = base;
	/* After a rejoin the first bytes may have been read by another collector. */
	target->definitions_tail = atomic_load(&target->header->definitions_tail);
}

static void detach(void)
{
#ifndef SHARED_MAPPING
	munmap(target->slots_map, target->layout.size_bytes);
#endif
	for (unsigned i = 0; i < target->reader_count; i++)
		free(target->readers[i]);
	free(target->readers);
	free(target->forked);
	free(target);
	free(tools.definitions);
	free(tools.events);
	counts.lost += trace.lost;
}

void consumer_open(uint8_t *base, int memfd)
{
	counts = (struct consumer_counts){0};
	memset(defined, 0, sizeof(defined));
	memset(is_inherited, 0, sizeof(is_inherited));
	attach(base, memfd);
}

void consumer_move(uint8_t *base, int memfd)
{
	for (unsigned i = 0; i < target->reader_count; i++) {
		/* One that was inherited and has not been looked at is handed on. */
		if (!target->readers[i])
			continue;
		inherited[i] = lives[target->readers[i]->thread];
		is_inherited[i] = true;
	}
	detach();
	attach(base, memfd);
	counts.moves++;
	if (target->definitions_tail > 0)
		return;
	/* All definitions are written anew, with the ids that they have. */
	counts.from_start++;
	counts.definitions = 0;
	memset(defined, 0, sizeof(defined));
}

void consumer_round(bool last)
{
	struct drain_result result = {0};
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	counts.rounds++;
	drain_process(target, last ? DRAIN_LAST : DRAIN_GATHER, UINT64_MAX,
		      (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, &result);
	if (last)
		drain_end(target, target->last_ticks);
	if (target->definitions_bad)
		fail(0, "damaged definitions", target->definitions_tail, 0);
}

struct consumer_counts consumer_close(void)
{
	detach();
	return counts;
}
