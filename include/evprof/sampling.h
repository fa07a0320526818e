/*
 * sampling.h - where the sampler finds the stacks of a process that is sampled instead of hooked.
 *
 * EVPROF_EVENTS=sample sets no hook. The library looks, once, where its Python keeps threads, frames, code objects and
 * text, and fills one struct sampling in the memory of the process. For the shared memory that every image makes
 * (ring.h) it starts a sampler: `evprof-collector --sample PID:ADDRESS`, with the memfd as descriptor SAMPLING_RING_FD
 * and the process's own /proc/self/mem, opened for reading by the process itself, as SAMPLING_MEMORY_FD. No other
 * permission is needed, and a read ends with the image: after an exec or a death there is nothing at any address.
 *
 * The sampler looks at the struct at each turn and takes samples while ready is SAMPLING_READY. It never writes to the
 * process; what it finds goes into slots of the ring that it claims, one for each thread, as calls, returns and lines.
 * What it reads is changing meanwhile, so whatever does not look like a stack is read again, and then left out.
 *
 * Offsets are in bytes, addresses those of the process.
 */
#ifndef EVPROF_SAMPLING_H
#define EVPROF_SAMPLING_H

#include <stdint.h>

#define SAMPLING_RING_FD 3
#define SAMPLING_MEMORY_FD 4
#define SAMPLING_READY 0x6c706d73u

/*
 * Of the memfd: the sampler holds a lock on it (F_SETLK) as long as it lives, by which the collector sees whether it
 * does.
 */
#define SAMPLING_LOCK_BYTE 0

#define SAMPLING_RATE_DEFAULT 100 /* samples a second of each thread */
#define SAMPLING_RATE_MAX 10000

/* How a version says which line an instruction belongs to. */
enum sampling_lines {
	SAMPLING_LINES_LNOTAB = 0, /* until 3.9: co_lnotab */
	SAMPLING_LINES_RANGES = 1, /* 3.10: co_linetable, PEP 626 */
	SAMPLING_LINES_PLACES = 2, /* from 3.11 on: co_linetable, Objects/locations.md of CPython */
};

struct sampling {
	uint32_t ready;	    /* SAMPLING_READY once the rest is filled */
	uint32_t rate;	    /* samples a second */
	uint32_t cpu;	    /* 1: CPU times of threads are wanted, too */
	uint32_t lines;	    /* enum sampling_lines */
	uint64_t recording; /* address of an uint32_t that has the next value while samples are wanted */
	uint64_t recording_value;
	uint64_t ready_ticks; /* when the rest was filled, as ring.h has times */

	uint64_t state;	      /* one PyThreadState that lives as long as Python does */
	uint64_t interpreter; /* the PyInterpreterState of all that are sampled */
	uint64_t code_type;   /* PyCode_Type */

	/* PyThreadState */
	uint32_t state_previous, state_next, state_interpreter;
	uint32_t state_thread; /* pthread_t */
	uint32_t thread_tid;   /* of what pthread_t points to: the kernel's id */
	uint32_t state_frame;
	uint32_t
	    frame_holder; /* 1 + the offset of the frame in what state_frame points to; 0: it points to the frame */

	/* The interpreter's frame; until 3.10 PyFrameObject */
	uint32_t frame_back, frame_code;
	uint32_t frame_instruction; /* where the last instruction is told */
	uint32_t instruction_unit;  /* as an int, in so many bytes; 0: as an address */
	uint32_t frame_owner;	    /* of one byte, 0: none. C code entered where that is ... */
	uint32_t frame_owner_c;

	uint32_t object_type; /* PyObject */

	/* PyCodeObject; pointers but for the line and the instructions, which stand there */
	uint32_t code_file, code_name;
	uint32_t code_qualified_name; /* 0: none */
	uint32_t code_line, code_flags;
	uint32_t code_instructions; /* until 3.10: 0 */
	uint32_t code_lines;	    /* a bytes object */

	/* PyBytesObject and PyUnicodeObject */
	uint32_t size, bytes_data; /* both have their size at the same place */
	uint32_t text_state;	   /* an uint32_t with three bits of kind from text_kind on, then compact, then ASCII */
	uint32_t text_kind;
	uint32_t text_ascii_data, text_data;
};

#endif
