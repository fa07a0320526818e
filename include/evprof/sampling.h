/*
 * sampling.h - where the sampler finds the stacks of a process that is sampled instead of hooked.
 *
 * EVPROF_EVENTS=sample sets no hook. The library finds out once where its Python keeps threads, frames, code objects
 * and text, and fills one struct sampling in the memory of the process. For the shared memory of every image (ring.h)
 * it starts a sampler: `evprof-collector --sample PID:ADDRESS`. The sampler inherits the memfd as descriptor
 * SAMPLING_RING_FD and the process's own /proc/self/mem, opened for reading by the process itself, as
 * SAMPLING_MEMORY_FD. It needs no other permission, and reads end with the image: after an exec or a death no address
 * is readable.
 *
 * The sampler reads the struct at each interval and takes samples while ready is SAMPLING_READY. It never writes to the
 * process. It claims slots of the ring, one for each thread, and writes calls, returns and lines there. The process
 * runs meanwhile, so a stack that does not look like one is read again, and then skipped.
 *
 * `evprof attach --sample` loads no library. It finds the same fields from outside (tools/stack/layout.h), makes a
 * ring, joins with it in place of the process ("outside" in control.h), and starts `evprof-collector --sample PID`.
 * This sampler reads the struct from the socket SAMPLING_TOOL_FD, once. It ends when the tool shuts down or ends.
 *
 * Offsets are in bytes. Addresses are those of the process.
 */
#ifndef EVPROF_SAMPLING_H
#define EVPROF_SAMPLING_H

#include <stdint.h>

#define SAMPLING_RING_FD 3
#define SAMPLING_MEMORY_FD 4
#define SAMPLING_TOOL_FD 5
#define SAMPLING_READY 0x6c706d73u

/*
 * A byte of the memfd. The sampler holds a lock on it (F_SETLK) while it lives, which shows the collector that it does.
 */
#define SAMPLING_LOCK_BYTE 0

#define SAMPLING_RATE_DEFAULT 100 /* samples a second of each thread */
#define SAMPLING_RATE_MAX 10000

/* The table of a Python version that maps instructions to lines. */
enum sampling_lines {
	SAMPLING_LINES_LNOTAB = 0, /* until 3.9: co_lnotab */
	SAMPLING_LINES_RANGES = 1, /* 3.10: co_linetable, PEP 626 */
	SAMPLING_LINES_PLACES = 2, /* from 3.11 on: co_linetable, Objects/locations.md of CPython */
};

struct sampling {
	uint32_t ready;	    /* SAMPLING_READY once the rest is filled */
	uint32_t rate;	    /* samples a second */
	uint32_t cpu;	    /* 1: CPU times of threads are recorded, too */
	uint32_t lines;	    /* enum sampling_lines */
	uint64_t recording; /* address of a uint32_t; samples are taken while it has the next value */
	uint64_t recording_value;
	uint64_t ready_ticks; /* time at which the rest was filled, in ticks as in ring.h */

	uint64_t state;	      /* a PyThreadState that lives as long as Python does */
	uint64_t interpreter; /* the PyInterpreterState of all sampled threads */
	uint64_t code_type;   /* PyCode_Type */

	/* PyThreadState */
	uint32_t state_previous, state_next, state_interpreter;
	uint32_t state_thread; /* pthread_t */
	uint32_t thread_tid;   /* in the memory that pthread_t points to: the kernel's thread id */
	uint32_t state_frame;
	uint32_t
	    frame_holder; /* 1 + offset of the frame pointer in what state_frame points to; 0: it points to the frame */

	/* The interpreter's frame; until 3.10 PyFrameObject */
	uint32_t frame_back, frame_code;
	uint32_t frame_instruction; /* the last instruction */
	uint32_t instruction_unit;  /* it is an int in units of this many bytes; 0: it is an address */
	uint32_t frame_owner;	    /* offset of a byte, 0: none. A frame where it equals ... */
	uint32_t frame_owner_c;

	uint32_t object_type; /* PyObject */

	/* PyCodeObject; pointers except the line, the flags and the instructions, which are inline */
	uint32_t code_file, code_name;
	uint32_t code_qualified_name; /* 0: none */
	uint32_t code_line, code_flags;
	uint32_t code_instructions; /* until 3.10: 0 */
	uint32_t code_lines;	    /* a bytes object */

	/* PyBytesObject and PyUnicodeObject */
	uint32_t size, bytes_data; /* both have their size at the same offset */
	uint32_t text_state;	   /* a uint32_t: from bit text_kind on three bits of kind, then compact, then ASCII */
	uint32_t text_kind;
	uint32_t text_ascii_data, text_data;
};

#endif
