/*
 * trace.h - the trace file, *.evp.
 *
 * Owns the layout on disk. Written by the collector, read by evprof(1) and by anybody who likes: everything needed is
 * here, in wire.h (definitions, event heads) and in docs/trace.md. Little-endian.
 *
 *   struct trace_header
 *   chunk, chunk, chunk, ...           struct trace_chunk + payload, padded with zeros to a multiple of 8
 *   struct trace_end                   only when the file is complete
 *
 * The file only grows, and each chunk is whole when the next begins: a reader may follow it, and after a crash keeps
 * all but the last chunk. Definitions stand before the first event that uses them.
 *
 * A reader refuses a file with a bit in `incompatible` that it does not know, and ignores those in `compatible`; it
 * skips chunk types that it does not know.
 */
#ifndef EVPROF_TRACE_H
#define EVPROF_TRACE_H

#include <stdint.h>

/* clang-format off */
#define TRACE_MAGIC "\x89" "EVP\r\n\x1a\n" /* 8 bytes; shows up transfers that were not binary */
/* clang-format on */
#define TRACE_VERSION 1u
#define TRACE_CHUNK_MAGIC 0x4b435645u		     /* "EVCK" */
#define TRACE_END_MAGIC 0x444e4545u		     /* "EEND" */
#define TRACE_PAYLOAD_MAX_BYTES (UINT32_C(16) << 20) /* stored or raw; a larger one is damage */
#define TRACE_CHUNK_EVENTS_MAX 131072u		     /* events in one EVENTS chunk */

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
	TRACE_CHUNK_META = 1,	     /* JSON, one object: see below */
	TRACE_CHUNK_DEFINITIONS = 2, /* struct wire_definition records of one process, one after the other */
	TRACE_CHUNK_EVENTS = 3,	     /* events of one thread */
	TRACE_CHUNK_CLOCK = 4,	     /* struct trace_clock records */
	TRACE_CHUNK_INDEX = 5,	     /* struct trace_index_entry records for the chunks since the index before it */
};

enum trace_codec { TRACE_CODEC_NONE = 0, TRACE_CODEC_ZSTD = 1 };

struct trace_chunk {
	uint32_t magic;
	uint16_t type;
	uint16_t codec;
	uint32_t stored_bytes; /* of the payload as it follows, without the padding */
	uint32_t raw_bytes;    /* of the payload when unpacked */
	uint32_t process;      /* number of the process image in this file, from 0; TRACE_NOBODY where none */
	uint32_t thread;       /* number of the thread in this file, from 0; TRACE_NOBODY where none */
	uint64_t first_ticks;  /* EVENTS: time before the first event (its delta counts from here) */
	uint64_t last_ticks;   /* EVENTS: time of the last event */
	uint32_t events;       /* EVENTS: how many; INDEX: how many entries */
	uint32_t extras;       /* EVENTS: how many extra words */
	uint64_t previous;     /* INDEX: offset of the index before it, 0 for none. EVENTS: 0 */
	uint32_t payload_crc;  /* CRC-32 of the stored bytes */
	uint32_t crc;	       /* CRC-32 of this header up to here */
};

#define TRACE_NOBODY UINT32_MAX

/*
 * The raw payload of EVENTS, for n events and m extra words (wire.h tells how many an event has). Like goes with like,
 * which is what the compressor wants:
 *
 *   uint32_t head[n]         wire_head of each event
 *   uint8_t  ticks[4][n]     the ticks since the event before, plane by plane, lowest byte first
 *   uint8_t  extra[8][m]     the extra words in the order of their events, plane by plane, lowest byte first
 */

/*
 * Clock: pairs of the same moment. Ticks are the processes' (clock >> clock_shift). A reader draws a line through the
 * first and the last pair of a kind. Processes of one host with the same clock_kind share the clock.
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
 * META objects, told apart by "type":
 *
 *   {"type":"process","process":0,"pid":1,"ppid":0,"start":"exec","python":"3.11.2","argv":["..."],"exe":"...",
 *    "cwd":"...","host":"...","program":"...","clock_kind":1,"clock_shift":3,"start_ticks":N,"events":["call",...]}
 *       "native":true where native stacks of allocations are recorded, "filtered":true where functions are left out
 *   {"type":"title","process":0,"title":"..."|null}
 *       the system shows another command line than argv (setproctitle) from now on, or argv again
 *   {"type":"thread","process":0,"thread":0,"tid":1,"start_ticks":N[,"sampled":true]}
 *       sampled: its events are the sampler's. What the thread itself writes is another thread with the same tid
 *   {"type":"thread_end","thread":0,"events":{"call":N,...},"lost":{"call":N,...}}
 *   {"type":"process_end","process":0,"how":"exit"|"exec"|"killed"|"detached","status":N|null,"signal":N|null,
 *    "end_ticks":N,"lost":{...}[,"sampler":"killed"]}      lost: events of threads that never had a ring
 *
 * Event counts do not hold bookkeeping kinds (wire_is_bookkeeping). Unknown members are ignored.
 */

_Static_assert(sizeof(struct trace_header) == 64, "the header of a trace is 64 bytes");
_Static_assert(sizeof(struct trace_chunk) == 64, "the header of a chunk is 64 bytes");
_Static_assert(sizeof(struct trace_clock) == 32, "a clock record is 32 bytes");
_Static_assert(sizeof(struct trace_index_entry) == 40, "an index entry is 40 bytes");
_Static_assert(sizeof(struct trace_end) == 40, "the end is 40 bytes");

#endif
