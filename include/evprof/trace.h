/*
 * trace.h - the trace file, *.evp.
 *
 * Owns the layout on disk. The collector writes it; evprof(1) and any other program may read it. The complete
 * description is here, in wire.h (definitions, event heads) and in docs/trace.md. Little-endian.
 *
 *   struct trace_header
 *   chunk, chunk, chunk, ...           struct trace_chunk + payload, padded with zeros to a multiple of 8
 *   struct trace_end                   only when the file is complete
 *
 * The file only grows, and each chunk is complete before the next begins. So a reader may follow a growing file, and a
 * crash damages the last chunk at most. Definitions precede the first event that uses them.
 *
 * A reader refuses a file with unknown bits in `incompatible`. It ignores unknown bits in `compatible` and skips
 * unknown chunk types.
 */
#ifndef EVPROF_TRACE_H
#define EVPROF_TRACE_H

#include <stdint.h>

/* clang-format off */
#define TRACE_MAGIC "\x89" "EVP\r\n\x1a\n" /* 8 bytes; detects transfers that were not binary */
/* clang-format on */
#define TRACE_VERSION 3u			     /* that of the events (wire.h) and of the ring */
#define TRACE_CHUNK_MAGIC 0x4b435645u		     /* "EVCK" */
#define TRACE_END_MAGIC 0x444e4545u		     /* "EEND" */
#define TRACE_PAYLOAD_MAX_BYTES (UINT32_C(16) << 20) /* of stored_bytes and raw_bytes; more is damage */
#define TRACE_CHUNK_EVENTS_MAX 131072u		     /* most events in one EVENTS chunk */

struct trace_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes;
	uint32_t compatible;
	uint32_t incompatible;
	uint64_t created_ns; /* CLOCK_REALTIME */
	uint8_t session[16];
	uint32_t reserved[3];
	uint32_t crc; /* CRC-32 (zlib's) of the bytes before */
};

enum trace_chunk_type {
	TRACE_CHUNK_META = 1,	     /* one JSON object: see below */
	TRACE_CHUNK_DEFINITIONS = 2, /* struct wire_definition records of one process, one after the other */
	TRACE_CHUNK_EVENTS = 3,	     /* events of one thread */
	TRACE_CHUNK_CLOCK = 4,	     /* struct trace_clock records */
	TRACE_CHUNK_INDEX = 5,	     /* struct trace_index_entry records for the chunks since the previous index */
};

enum trace_codec { TRACE_CODEC_NONE = 0, TRACE_CODEC_ZSTD = 1 };

struct trace_chunk {
	uint32_t magic;
	uint16_t type;
	uint16_t codec;
	uint32_t stored_bytes; /* size of the payload in the file, without padding */
	uint32_t raw_bytes;    /* size of the decompressed payload */
	uint32_t process;      /* number of the process image in this file, from 0; TRACE_NOBODY: none */
	uint32_t thread;       /* number of the thread in this file, from 0; TRACE_NOBODY: none */
	uint64_t first_ticks;  /* EVENTS: time before the first event (its delta counts from here) */
	uint64_t last_ticks;   /* EVENTS: time of the last event */
	uint32_t events;       /* EVENTS: number of events; INDEX: number of entries */
	uint32_t extras;       /* EVENTS: number of extra words */
	uint64_t previous;     /* INDEX: offset of the previous index, 0 for none. EVENTS: 0 */
	uint32_t payload_crc;  /* CRC-32 of the stored bytes */
	uint32_t crc;	       /* CRC-32 of this header up to here */
};

#define TRACE_NOBODY UINT32_MAX

/*
 * The raw payload of EVENTS, for n events and m extra words (wire.h says how many an event has). Columns of similar
 * bytes compress best.
 *
 *   uint32_t head[n]         wire_head of each event
 *   uint8_t  ticks[4][n]     ticks since the previous event, plane by plane, lowest byte first
 *   uint8_t  extra[8][m]     extra words in the order of their events, plane by plane, lowest byte first
 */

/*
 * A clock record has the same moment in ticks and on the system's clocks. Ticks are those of the processes (clock >>
 * clock_shift). A reader interpolates linearly between the first and the last record of a kind. Processes of one host
 * with the same clock_kind share the clock.
 */
struct trace_clock {
	uint32_t clock_kind; /* ring.h: enum ring_clock */
	uint32_t clock_shift;
	uint64_t ticks;	       /* shifted */
	uint64_t monotonic_ns; /* CLOCK_MONOTONIC */
	uint64_t realtime_ns;  /* CLOCK_REALTIME */
};

struct trace_index_entry {
	uint64_t offset; /* of the chunk in the file */
	uint64_t first_ticks;
	uint64_t last_ticks;
	uint32_t process;
	uint32_t thread;
	uint32_t events;
	uint16_t type;
	uint16_t reserved;
};

static inline struct trace_index_entry trace_index_entry_of(const struct trace_chunk *chunk, uint64_t offset)
{
	return (struct trace_index_entry){.offset = offset,
					  .first_ticks = chunk->first_ticks,
					  .last_ticks = chunk->last_ticks,
					  .process = chunk->process,
					  .thread = chunk->thread,
					  .events = chunk->events,
					  .type = chunk->type};
}

/* The last bytes of a complete file. */
struct trace_end {
	uint32_t magic;
	uint32_t reserved;
	uint64_t index_offset; /* of the last INDEX chunk */
	uint64_t events;
	uint64_t lost;
	uint32_t processes;
	uint32_t crc; /* CRC-32 of the bytes before */
};

/*
 * META objects, distinguished by "type":
 *
 *   {"type":"kinds","kinds":[{"kind":11,"name":"malloc","words":1,"fields":"domain and size; address and size"},...]}
 *       the first object: the kinds that may occur, for readers that do not know all of them
 *   {"type":"process","process":0,"pid":1,"ppid":0,"start":"exec","python":"3.11.2","argv":["..."],"exe":"...",
 *    "cwd":"...","host":"...","program":"...","clock_kind":1,"clock_shift":3,"start_ticks":N,"events":["call",...]}
 *       pid and ppid are those of its own pid namespace; "seen_pid":N is there only if it has another one in the
 *       collector's, 0: none. "native":true where native stacks of allocations are recorded, "filtered":true where
 *       functions are filtered
 *   {"type":"title","process":0,"title":"..."|null}
 *       from now on the system shows this command line instead of argv (setproctitle); null: argv again
 *   {"type":"thread","process":0,"thread":0,"tid":1,"start_ticks":N[,"sampled":true]}
 *       sampled: the sampler wrote its events. What the thread itself writes is another thread with the same tid
 *   {"type":"thread_end","thread":0,"events":{"call":N,...},"lost":{"call":N,...}}
 *   {"type":"process_end","process":0,"how":"exit"|"exec"|"killed"|"detached","status":N|null,"signal":N|null,
 *    "end_ticks":N,"lost":{...}[,"sampler":"killed"]}      lost: events of threads that never had a ring
 *
 * Event counts do not include bookkeeping kinds (wire_is_bookkeeping). Unknown members are ignored.
 */

_Static_assert(sizeof(struct trace_header) == 64, "the header of a trace is 64 bytes");
_Static_assert(sizeof(struct trace_chunk) == 64, "the header of a chunk is 64 bytes");
_Static_assert(sizeof(struct trace_clock) == 32, "a clock record is 32 bytes");
_Static_assert(sizeof(struct trace_index_entry) == 40, "an index entry is 40 bytes");
_Static_assert(sizeof(struct trace_end) == 40, "the end is 40 bytes");

#endif
