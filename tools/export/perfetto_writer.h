/*
 * perfetto_writer.h - packets and tracks of Perfetto's format (perfetto.protos.Trace), for perfetto.c.
 *
 * The field numbers are those of Perfetto's protos/perfetto/trace/trace_packet.proto and of the files that it includes.
 * The writer has the packet under construction; functions that return int return 0 or -ENOMEM. All times are
 * CLOCK_MONOTONIC in ns.
 */
#ifndef EVPROF_TOOLS_EXPORT_PERFETTO_WRITER_H
#define EVPROF_TOOLS_EXPORT_PERFETTO_WRITER_H

#include <stdbool.h>
#include <string.h>

#include "export/protobuf.h"
#include "trace/reader.h"
#include "util/output.h"

/* Field numbers, by message. */
enum {
	TRACE_PACKET = 1,
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_CLOCK = 58,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK = 60,
	PACKET_FIRST = 87,
	DEFAULTS_EVENT = 11,
	DEFAULTS_CLOCK = 58,
	EVENT_CATEGORY_IID = 3,
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK = 11,
	EVENT_COUNTER_VALUE = 30,
	EVENT_SOURCE_IID = 34,
	EVENT_COUNTER_DOUBLE = 44,
	EVENT_FLOW = 47,
	INTERNED_CATEGORY = 1,
	INTERNED_NAME = 2,
	INTERNED_ANNOTATION = 3,
	INTERNED_SOURCE = 4,
	INTERNED_STRING = 29,
	ENTRY_IID = 1,
	ENTRY_TEXT = 2,
	ENTRY_LINE = 4,
	ANNOTATION_NAME_IID = 1,
	ANNOTATION_BOOL = 2,
	ANNOTATION_NUMBER = 3,
	ANNOTATION_INT = 4,
	ANNOTATION_DOUBLE = 5,
	ANNOTATION_TEXT = 6,
	ANNOTATION_NAME = 10,
	ANNOTATION_STRING_IID = 17,
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	PROCESS_PID = 1,
	PROCESS_ARGUMENT = 2,
	PROCESS_NAME = 6,
	PROCESS_LABEL = 8,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5,
	COUNTER_UNIT = 3,
	SNAPSHOT_CLOCK = 1,
	SNAPSHOT_PRIMARY = 2,
	CLOCK_ID = 1,
	CLOCK_TIMESTAMP = 2,
	CLOCK_INCREMENTAL = 3,
};

enum perfetto_packet_flags { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };

enum perfetto_event_type { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };

enum perfetto_counter_unit { UNIT_NONE = 0, UNIT_COUNT = 2, UNIT_BYTES = 3 };

/* CLOCK_SEQUENCE is defined by evprof, one for each sequence. */
enum perfetto_clock { CLOCK_REAL = 1, CLOCK_MONOTONIC_NS = 3, CLOCK_SEQUENCE = 64 };

/* Each length in a packet with an event is one byte. The whole room of an event is always copied, without a loop. */
#define EVENT_MAX_BYTES 48
#define PACKET_MAX_BYTES 128

_Static_assert(2 + 2 * (1 + PROTOBUF_VARINT_MAX_BYTES) + 3 + 6 + 2 + EVENT_MAX_BYTES < PACKET_MAX_BYTES,
	       "the longest packet fits");

/* A sequence of packets: its names are interned once, and its times are differences. */
struct perfetto_sequence {
	uint32_t id;
	uint32_t iids;	/* iids of names given out */
	int64_t now_ns; /* CLOCK_MONOTONIC, of the last packet with a relative time */
};

struct perfetto_writer {
	struct output *output;
	const struct trace *trace;
	struct protobuf packet; /* for all packets except calls */
};

/* --- uuids of tracks, which include the session so that two traces differ --- */

enum perfetto_track_kind { KIND_PROCESS, KIND_THREAD, KIND_HEAP, KIND_LOST };

/* The half of a uuid that is the session's. */
uint64_t perfetto_session_bits(const struct perfetto_writer *writer);
/* The uuid of a process's or thread's track. Numbers are below 2^24. */
uint64_t perfetto_uuid(const struct perfetto_writer *writer, enum perfetto_track_kind kind, uint32_t number);
/* The uuid of a greenlet's or task's track: a hash, because their numbers, counted for each thread, would not fit. */
uint64_t perfetto_uuid_within(const struct perfetto_writer *writer, uint32_t thread, bool is_task, uint32_t number);

/* The uuid of one more track: of a lane of spans in a context (replay/spans.h), or of a counter of a process. */
uint64_t perfetto_uuid_hashed(const struct perfetto_writer *writer, uint64_t context, uint64_t number);

/* --- packets --- */

void perfetto_begin_packet(struct perfetto_writer *writer, uint32_t sequence, unsigned flags);
/* Ends the open messages, and writes the packet. */
int perfetto_end_packet(struct perfetto_writer *writer);

/*
 * Writes a track event. If the time decreases (see replay/call_walk.h), the packet has the absolute time. Inline,
 * because this is all the work for a call.
 */
static inline __attribute__((always_inline)) void perfetto_put_event(struct perfetto_writer *writer,
								     struct perfetto_sequence *sequence, int64_t ns,
								     const uint8_t event[EVENT_MAX_BYTES],
								     size_t length)
{
	uint8_t *packet = (uint8_t *)output_room(writer->output, PACKET_MAX_BYTES);
	uint8_t *contents = packet + 2, *at = contents;

	if (__builtin_expect(ns >= sequence->now_ns, 1)) {
		at = protobuf_put_number(at, PACKET_TIMESTAMP, (uint64_t)(ns - sequence->now_ns));
		sequence->now_ns = ns;
	} else {
		at = protobuf_put_number(at, PACKET_TIMESTAMP, (uint64_t)ns);
		at = protobuf_put_number(at, PACKET_CLOCK, CLOCK_MONOTONIC_NS);
	}
	at = protobuf_put_number(at, PACKET_SEQUENCE, sequence->id);
	at = protobuf_put_number(at, PACKET_FLAGS, FLAG_NEEDS_STATE);
	*at++ = PACKET_EVENT << 3 | PROTOBUF_LENGTH;
	*at++ = (uint8_t)length;
	memcpy(at, event, EVENT_MAX_BYTES);
	at += length;
	packet[0] = TRACE_PACKET << 3 | PROTOBUF_LENGTH;
	packet[1] = (uint8_t)(at - contents);
	output_take(writer->output, (size_t)(at - packet));
}

/* Adds an interned text to the packet. line: of an INTERNED_SOURCE only. */
void perfetto_put_entry(struct protobuf *packet, uint32_t field, uint64_t iid, struct text text, uint32_t line);

/*
 * Begins a sequence and its first packet, which has the defaults: the clock, which counts differences from ns on, and
 * the track of its events. iids: the next free one. The caller may add to the packet, and ends it.
 */
void perfetto_begin_sequence(struct perfetto_writer *writer, struct perfetto_sequence *sequence, uint32_t id,
			     uint32_t iids, int64_t ns, uint64_t uuid);

/* --- packets that describe a track, or the clocks --- */

int perfetto_describe_process(struct perfetto_writer *writer, uint32_t sequence, int64_t ns,
			      const struct trace_process *process);
int perfetto_describe_thread(struct perfetto_writer *writer, uint32_t sequence, int64_t ns, int64_t pid,
			     const struct trace_thread *thread);
/* A track below another one, valid at all times: of a greenlet or a task, or with a unit that of a counter. */
int perfetto_describe_child(struct perfetto_writer *writer, uint32_t sequence, uint64_t uuid, uint64_t parent,
			    const char *name, enum perfetto_counter_unit unit);
/* The same moment by each clock of the trace. */
int perfetto_describe_clocks(struct perfetto_writer *writer);

#endif
