/*
 * fake_target.h - a small producer, written from ring.h and control.h alone: what the preloaded library is to the
 * collector, without Python. For tests of the collector.
 */
#ifndef TESTS_FAKE_TARGET_H
#define TESTS_FAKE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "evprof/ring.h"

struct fake_target {
	int memfd;
	uint8_t *map;
	struct ring_header *header;
	struct ring_slot *slots;
	uint64_t emitted; /* events, without bookkeeping */
};

/* What a join message says; zero and NULL mean a sensible value. */
struct fake_join {
	const char *session; /* 32 digits */
	const char *start;
	const char *program;
	const char *output;
	const char *events; /* as in JSON */
	pid_t pid;
	pid_t ppid;
	unsigned long long start_time;
	bool native;
};

#define FAKE_SESSION "00112233445566778899aabbccddeeff"

/* All give 0 or -errno unless said otherwise. */
int fake_target_new(struct fake_target *target, uint64_t ring_bytes, uint32_t slot_count);
void fake_target_free(struct fake_target *target);

/* A listening abstract socket; its name is written to name. Gives the descriptor. */
int fake_listen(char *name, size_t name_bytes);
/* Connects to it. Gives the descriptor. */
int fake_connect(const char *name);
/* Sends text with descriptors (none when count is 0). */
int fake_send(int socket, const char *text, size_t bytes, const int *fds, unsigned count);

/* The text of a join, in static memory. */
const char *fake_join_text(const struct fake_join *join);
/* Connects, joins, closes. */
int fake_target_join(struct fake_target *target, const char *name, const struct fake_join *join);

/* Takes the slot for a thread. */
void fake_thread_start(struct fake_target *target, unsigned slot, uint32_t tid, uint64_t start_ticks);
void fake_thread_end(struct fake_target *target, unsigned slot);

/* Whether `words` words fit. */
bool fake_has_room(const struct fake_target *target, unsigned slot, unsigned words);
/* An event and its extra words, published. There must be room. */
void fake_event(struct fake_target *target, unsigned slot, uint64_t word, const uint64_t *extra);
void fake_call(struct fake_target *target, unsigned slot, unsigned kind, uint32_t id, uint32_t ticks);

/* Appends bytes to the definitions, as they are. */
void fake_definition_bytes(struct fake_target *target, const void *bytes, size_t count);
void fake_definition(struct fake_target *target, unsigned type, uint32_t id, uint32_t number,
		     const char *const strings[WIRE_DEFINITION_STRINGS]);

uint32_t fake_collector_state(const struct fake_target *target);

#endif
