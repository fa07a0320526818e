/*
 * wire.h - the words and records that the preloaded library writes and everybody else reads.
 *
 * Owns the layout of events and definitions. The same bytes stand in shared memory (ring.h) and, regrouped, in the
 * trace file (trace.h). No behaviour here beyond packing and unpacking. Prose: docs/wire.md.
 *
 * Byte order is the host's; evprof runs on little-endian machines only (x86-64, aarch64), which trace.h records.
 */
#ifndef EVPROF_WIRE_H
#define EVPROF_WIRE_H

#include <stddef.h>
#include <stdint.h>

/*
 * An event is one 64-bit word, followed by as many extra words as its kind says:
 *
 *    63                              32 31                        5 4        0
 *   +----------------------------------+---------------------------+----------+
 *   | ticks since the event before     | argument                  | kind     |
 *   +----------------------------------+---------------------------+----------+
 *                 32 bits                        27 bits              5 bits
 *
 * "The event before" is the one before it in the same thread. A longer pause than 32 bits of ticks is bridged by
 * WIRE_TIME, whose extra word is the absolute time. Ticks are those of the process's clock (ring.h: clock_kind),
 * shifted right by clock_shift.
 *
 * Where CPU times are recorded, WIRE_TIME stands before each event that comes after a pause of more than some 25 us, at
 * the beginning of a thread and now and then, and tells how long the thread has run. Its ticks, which say nothing
 * otherwise, hold the low half of that (wire_cpu_word()). In shorter pauses the thread is taken to have run.
 *
 * Where the cost of the hooks is measured, WIRE_TIME with WIRE_TIME_OF_CALL tells of a call that is no event (of a
 * class, of whatever is no function), which the hook was told of all the same (from 3.12 on). WIRE_TIME with
 * WIRE_TIME_OF_FAR says that the next event, or the call of it, was told with an offset in its code for which the
 * interpreter had to make an integer; its time is that of the event before. The end of a function of C, and of a call
 * that is no event, is where the call was. With WIRE_TIME_OF_PLACE it likewise tells where in its code, in bytes, the
 * next event is (3.10; not told of the first instruction).
 *
 * Where lines are recorded, WIRE_TIME with WIRE_TIME_OF_LINE follows a resume or throw, and each frame and open: at
 * which line the frame that was named stands. Its time is that of the event before.
 *
 * Where native stacks are recorded, WIRE_TIME stands before each allocation and tells, beside its time, which one it
 * has (wire_native_head()): the id of a NATIVE_FRAME, the innermost one. The allocation comes next, with no ticks.
 *
 * Memory events keep the size in three places, so that any size below 2^41 bytes is exact:
 *
 *    31                     7 6      5 4    0        63             48 47                        0
 *   +------------------------+--------+------+      +-----------------+---------------------------+
 *   | size, low 25 bits      | domain | kind |      | size, high bits | address                   |
 *   +------------------------+--------+------+      +-----------------+---------------------------+
 *               low half of the first word                          second word
 *
 * The third word of WIRE_REALLOC is the old address.
 *
 * Greenlets are stacks of one thread that take turns. WIRE_SWITCH tells two addresses, which are numbers without
 * meaning but for being different while both live. A stack that has ended is empty, so an address may come again.
 *
 * A coroutine that no other coroutine awaits is what an event loop calls a task. WIRE_TASK tells which one takes a
 * step: the call, resume or throw that follows it is the step's beginning, and what ends that ends the step. The word
 * is an address, different for all that have not ended; an address with a call is a new task. What the program calls
 * that (asyncio.Task.get_name()) is defined as a mark is, and its id stands above the address then: 0 is none.
 *
 * WIRE_OPEN events, which stand one after the other, with lines in between where those are recorded, name the Python
 * functions that run: what a reader of everything before knows already, for those who begin to read in the middle. They
 * do not change the call stack.
 */
enum wire_kind {
	WIRE_NONE = 0,	      /* never written; what an unwritten word looks like */
	WIRE_CALL = 1,	      /* code id: a Python function starts */
	WIRE_RESUME = 2,      /* code id: a generator or coroutine goes on */
	WIRE_THROW = 3,	      /* code id: ... goes on with an exception thrown into it */
	WIRE_RETURN = 4,      /* code id: the last return of the call */
	WIRE_YIELD = 5,	      /* code id: a generator or coroutine suspends */
	WIRE_UNWIND = 6,      /* code id: the frame ends by an exception */
	WIRE_C_CALL = 7,      /* function id */
	WIRE_C_RETURN = 8,    /* function id */
	WIRE_C_EXCEPTION = 9, /* function id: the C function raised */
	WIRE_EXCEPTION = 10,  /* type id: raised here (3.12 and later) */
	WIRE_MALLOC = 11,     /* size, domain; address. Address 0: the allocation failed */
	WIRE_CALLOC = 12,     /* as malloc; size is the product */
	WIRE_REALLOC = 13,    /* as malloc; old address */
	WIRE_FREE = 14,	      /* domain; address */
	WIRE_TIME = 15,	      /* 0, a CPU time, WIRE_TIME_OF_* or a native stack; extra word: its time, in ticks */
	WIRE_GAP = 16,	      /* extra word: how many events are missing here; the call stack is unknown after it */
	WIRE_STACK = 17,      /* argument: how many WIRE_FRAME follow, WIRE_STACK_CUT; they replace the call stack */
	WIRE_FRAME = 18,      /* code id: one frame of the stack, outermost first */
	WIRE_THREAD_START = 19,
	WIRE_THREAD_END = 20,
	WIRE_PROCESS_START = 21, /* argument: enum wire_start */
	WIRE_FORK = 22,		 /* argument: pid of the child (0: fork failed) */
	WIRE_EXEC = 23,		 /* about to replace the image; EXEC_FAILED follows if that failed */
	WIRE_EXEC_FAILED = 24,	 /* argument: errno */
	WIRE_EXIT = 25,		 /* argument: WIRE_EXIT_KNOWN and the status, or 0 */
	WIRE_MARK = 26,		 /* mark id: evprof_mark() */
	WIRE_PAUSE = 27,	 /* argument: 1 recording was stopped by the program, 0 started again */
	WIRE_LINE = 28,		 /* line number: the function on top of the call stack comes to that line */
	WIRE_SWITCH = 29,	 /* extra words: the greenlet that goes on, and the one that stops */
	WIRE_TASK = 30,		 /* code id; extra word: the task that takes a step with the next event */
	WIRE_OPEN = 31,		 /* code id: this frame is on the stack, outermost first */
	WIRE_KINDS = 32,	 /* kinds known to this version; none is free */
};

#define WIRE_TIME_OF_CALL 2u /* that of a CPU time is odd, that of a native stack a multiple of four */
#define WIRE_TIME_OF_FAR 6u
#define WIRE_TIME_OF_PLACE 10u /* in the low bits; the place is in those above */
#define WIRE_TIME_OF_LINE 14u  /* likewise: the line at which the innermost frame stands */
#define WIRE_PLACE_SHIFT 4
#define WIRE_PLACE_MAX (WIRE_ARG_MAX >> WIRE_PLACE_SHIFT) /* of places and of lines */
#define WIRE_NATIVE_SHIFT 2
#define WIRE_NATIVE_MAX (WIRE_ARG_MAX >> WIRE_NATIVE_SHIFT) /* the largest id of a native frame */
#define WIRE_STACK_CUT (1u << 26) /* there are frames below the first, which had no place in the ring */
#define WIRE_EXIT_KNOWN 0x100u	  /* the low 8 bits are what the process exits with */

#define WIRE_KIND_BITS 5
#define WIRE_KIND_SLOTS (1u << WIRE_KIND_BITS)
#define WIRE_ARG_BITS 27
#define WIRE_ARG_MAX ((1u << WIRE_ARG_BITS) - 1)
#define WIRE_DOMAIN_BITS 2
#define WIRE_SIZE_LOW_BITS (WIRE_ARG_BITS - WIRE_DOMAIN_BITS)
#define WIRE_ADDRESS_BITS 48
#define WIRE_SIZE_MAX ((UINT64_C(1) << (WIRE_SIZE_LOW_BITS + 64 - WIRE_ADDRESS_BITS)) - 1)
#define WIRE_EXTRA_MAX 2 /* extra words of the longest event */

enum wire_domain { WIRE_DOMAIN_RAW = 0, WIRE_DOMAIN_MEM = 1, WIRE_DOMAIN_OBJ = 2 };

enum wire_start {
	WIRE_START_EXEC = 0,   /* a new image: the first process, or a child after exec */
	WIRE_START_FORK = 1,   /* the child of a fork: the stack of its parent goes on */
	WIRE_START_REJOIN = 2, /* the same image with another collector */
};

/* Python's own words for the kinds, as they stand in every output. Index: enum wire_kind. */
#define WIRE_KIND_NAMES                                                                                                \
	{                                                                                                              \
		"none", "call", "resume", "throw", "return", "yield", "unwind", "c_call", "c_return", "c_exception",   \
		    "exception", "malloc", "calloc", "realloc", "free", "time", "gap", "stack", "frame",               \
		    "thread_start", "thread_end", "process_start", "fork", "exec", "exec_failed", "exit", "mark",      \
		    "pause", "line", "switch", "task", "open"                                                          \
	}

static inline unsigned wire_extra_words(unsigned kind)
{
	const uint32_t one = 1u << WIRE_MALLOC | 1u << WIRE_CALLOC | 1u << WIRE_FREE | 1u << WIRE_TIME |
			     1u << WIRE_GAP | 1u << WIRE_TASK;
	const uint32_t two = 1u << WIRE_REALLOC | 1u << WIRE_SWITCH;

	return (one >> kind & 1) + (two >> kind & 1) * 2;
}

/* Bookkeeping of the stream itself: not an event that the program caused, not counted as one. */
static inline int wire_is_bookkeeping(unsigned kind)
{
	return kind == WIRE_NONE || (kind >= WIRE_TIME && kind <= WIRE_FRAME) || kind >= WIRE_OPEN;
}

static inline int wire_is_memory(unsigned kind)
{
	return kind >= WIRE_MALLOC && kind <= WIRE_FREE;
}

static inline uint32_t wire_head(unsigned kind, uint32_t arg)
{
	return (uint32_t)kind | arg << WIRE_KIND_BITS;
}

static inline unsigned wire_head_kind(uint32_t head)
{
	return head & (WIRE_KIND_SLOTS - 1);
}

static inline uint32_t wire_head_arg(uint32_t head)
{
	return head >> WIRE_KIND_BITS;
}

static inline uint64_t wire_word(uint32_t head, uint32_t ticks)
{
	return (uint64_t)ticks << 32 | head;
}

/* The first word of a WIRE_TIME that tells the CPU time of its thread: ns, exact below 2^58. */
static inline uint64_t wire_cpu_word(uint64_t cpu_ns)
{
	return wire_word(wire_head(WIRE_TIME, ((uint32_t)(cpu_ns >> 32) << 1 | 1) & WIRE_ARG_MAX), (uint32_t)cpu_ns);
}

static inline int wire_has_cpu(uint32_t time_head)
{
	return wire_head_arg(time_head) & 1;
}

static inline uint64_t wire_cpu_ns(uint32_t time_head, uint32_t ticks)
{
	return (uint64_t)(wire_head_arg(time_head) >> 1) << 32 | ticks;
}

/* The head of a WIRE_TIME that tells the native stack of the allocation that follows. */
static inline uint32_t wire_native_head(uint32_t frame)
{
	return wire_head(WIRE_TIME, frame << WIRE_NATIVE_SHIFT);
}

/* The head of a WIRE_TIME with a number: meaning is WIRE_TIME_OF_PLACE or WIRE_TIME_OF_LINE. */
static inline uint32_t wire_number_head(uint32_t meaning, uint32_t number)
{
	return wire_head(WIRE_TIME, meaning | (number < WIRE_PLACE_MAX ? number : WIRE_PLACE_MAX) << WIRE_PLACE_SHIFT);
}

/* The number that a WIRE_TIME has for that meaning; 0: none. */
static inline uint32_t wire_number(uint32_t meaning, uint32_t time_head)
{
	uint32_t argument = wire_head_arg(time_head);

	return (argument & ((1u << WIRE_PLACE_SHIFT) - 1)) == meaning ? argument >> WIRE_PLACE_SHIFT : 0;
}

/* The head of a WIRE_TIME with the place of the event that follows, in bytes from the beginning of its code. */
static inline uint32_t wire_place_head(uint32_t bytes)
{
	return wire_number_head(WIRE_TIME_OF_PLACE, bytes);
}

/* The place in a WIRE_TIME; 0: none. */
static inline uint32_t wire_place(uint32_t time_head)
{
	return wire_number(WIRE_TIME_OF_PLACE, time_head);
}

/*
 * The head of a WIRE_TIME with the line at which the innermost frame stands. It follows the event that put the frame
 * there: resume, throw, frame or open. No line event, as the line does not begin.
 */
static inline uint32_t wire_line_head(uint32_t line)
{
	return wire_number_head(WIRE_TIME_OF_LINE, line);
}

/* The line in a WIRE_TIME; 0: none. */
static inline uint32_t wire_line(uint32_t time_head)
{
	return wire_number(WIRE_TIME_OF_LINE, time_head);
}

/* Whether a word only says where the event that follows is: WIRE_TIME_OF_FAR or WIRE_TIME_OF_PLACE. */
static inline int wire_is_mark(uint32_t head)
{
	return wire_head_kind(head) == WIRE_TIME && (wire_head_arg(head) == WIRE_TIME_OF_FAR || wire_place(head));
}

/* The id of the innermost native frame that a WIRE_TIME tells; 0: none. */
static inline uint32_t wire_native_frame(uint32_t time_head)
{
	uint32_t argument = wire_head_arg(time_head);

	return argument & ((1u << WIRE_NATIVE_SHIFT) - 1) ? 0 : argument >> WIRE_NATIVE_SHIFT;
}

static inline uint32_t wire_memory_head(unsigned kind, unsigned domain, uint64_t size_bytes)
{
	return (uint32_t)kind | (uint32_t)domain << WIRE_KIND_BITS |
	       (uint32_t)size_bytes << (WIRE_KIND_BITS + WIRE_DOMAIN_BITS);
}

static inline uint64_t wire_memory_word(uint64_t address, uint64_t size_bytes)
{
	return (address & ((UINT64_C(1) << WIRE_ADDRESS_BITS) - 1)) | size_bytes >> WIRE_SIZE_LOW_BITS
											<< WIRE_ADDRESS_BITS;
}

#define WIRE_TASK_ADDRESS_BITS 47
#define WIRE_TASK_NAME_MAX ((1u << (64 - WIRE_TASK_ADDRESS_BITS)) - 1)

static inline uint64_t wire_task_word(uint64_t address, uint32_t name)
{
	return (address & ((UINT64_C(1) << WIRE_TASK_ADDRESS_BITS) - 1)) | (uint64_t)name << WIRE_TASK_ADDRESS_BITS;
}

static inline uint64_t wire_task_address(uint64_t word)
{
	return word & ((UINT64_C(1) << WIRE_TASK_ADDRESS_BITS) - 1);
}

static inline uint32_t wire_task_name(uint64_t word)
{
	return (uint32_t)(word >> WIRE_TASK_ADDRESS_BITS);
}

static inline unsigned wire_memory_domain(uint32_t head)
{
	return head >> WIRE_KIND_BITS & ((1u << WIRE_DOMAIN_BITS) - 1);
}

static inline uint64_t wire_memory_size(uint32_t head, uint64_t word)
{
	return (uint64_t)(head >> (WIRE_KIND_BITS + WIRE_DOMAIN_BITS)) | word >> WIRE_ADDRESS_BITS
										     << WIRE_SIZE_LOW_BITS;
}

static inline uint64_t wire_memory_address(uint64_t word)
{
	return word & ((UINT64_C(1) << WIRE_ADDRESS_BITS) - 1);
}

/*
 * A definition gives an id its meaning. Definitions have a ring of their own, so a lost event never loses a name, and
 * one is always published before the first event that uses it.
 *
 *   +--------------+-------+-------+--------------+--------------+
 *   | size_bytes   | type  | flags | id           | number       |  40 bytes with the lengths
 *   +--------------+-------+-------+--------------+--------------+
 *   | address                                     |
 *   +---------------------------------------------+
 *   | length[0] .. length[WIRE_DEFINITION_STRINGS-1]             |  uint32_t each
 *   +------------------------------------------------------------+
 *   | the bytes of the strings, one after the other, no NUL      |
 *   +------------------------------------------------------------+
 *   | zeros up to a multiple of 8                                |
 *   +------------------------------------------------------------+
 *
 * Strings are Python's text in UTF-8; a lone surrogate is encoded like any other code point (WTF-8).
 *
 *   type          id             number            address          strings 0..3
 *   CODE          code id        co_firstlineno    size             co_filename, co_name, co_qualname or "", __name__
 *   C_FUNCTION    function id    0                 ml_meth          class or "", ml_name, "", module or ""
 *   TYPE          type id        0                 0                "", __name__, __qualname__, __module__
 *   THREAD_NAME   tid (kernel)   0                 0                "", name, "", ""
 *   MARK          mark id        0                 0                "", name, "", ""
 *   CALIBRATION   1              0                 0                "", costs, "", ""
 *   MODULE        module id      size, in 4 KiB    address          path, build id in hexadecimal digits, "", ""
 *   NATIVE_FRAME  frame id       caller's id or 0  return address   "", "", "", ""
 *   SYMBOL        frame id       line or 0         return address   source file or "", function, mangled name or "",
 *                                                                   module
 *
 * The size of a code is that of its instructions in bytes; 0: not known.
 *
 * Code, function, type, mark, module and native frame ids are counted apart, from 1, for one process image; 0 means
 * "not known". An id is never used again for something else.
 *
 * Native frames are a tree, so that what stacks have in common is told once: a frame is a return address, that is the
 * place behind a call, and the frame of its caller, up to the function that runs Python's instructions, which is not
 * told. Its module is the one of the last MODULE that covers the address. What is covered by a later one is no more.
 *
 * SYMBOL is the collector's: the place of a return address, for the frame with that id and those with that address that
 * are told after it. Where the function is inlined into another one, WIRE_INLINED says that the next record goes on
 * with that.
 *
 * Costs of events, measured in the process, in ns: words and numbers, "slow S call A B C entry A B C ...". Whoever does
 * not know a word passes over it and its numbers.
 *
 *   A         what the hooks add to a call and its end, without what S tells
 *   B         what lies between the two time stamps of a function that does nothing
 *   C         the call of that without hooks
 *   slow      S: time of the interpreter's instructions without hooks, as a part of that with hooks
 *   call      a call of a Python function by an instruction
 *   entry     ... by an operator or an attribute: a special method, a property (WIRE_ENTERED)
 *   callback  ... by a function of C, which has an event of its own
 *   init      ... of __init__ for a new object
 *   generator ... of a generator, the first of its frame
 *   resume    ... of a generator, later; pull: by a function of C, as for a callback
 *   c_call    a function of C; method: a method of a C type
 *   other O   a call that is no event (WIRE_TIME_OF_CALL); with it, init has that of the class in it
 *   work W N  by how much the hooks slow the program between events, as a part of its time without them, after the
 *             first N ns from an event
 *   far L F   what an event costs more at an instruction that is more than L bytes from the first one of its code
 *   walk W    what an event costs more for each byte between it and the one before it in the same run of the same code,
 *             or the first instruction
 *   marked 1  WIRE_TIME_OF_FAR and WIRE_TIME_OF_PLACE tell where that is so; else an event is taken to be anywhere in
 *             its code
 *   mix T     how many times as much as in a loop an event costs in a program where functions of many kinds take turns
 *   unwind U  what a Python function that an exception leaves costs more than one that returns
 *   malloc M, free M   what the hook adds to the event
 *   spread R  how much longer all loops took together in the second best pass than at their best, as a part of that
 *
 * Earlier ones have call and c_call, and "mem M" for both kinds of memory events.
 *
 * THREAD_NAME may come again for the same thread: the last one holds, but the kernel's (WIRE_KERNEL_NAME) only where
 * there is no other.
 */
enum wire_definition_type {
	WIRE_DEFINE_CODE = 1,
	WIRE_DEFINE_C_FUNCTION = 2,
	WIRE_DEFINE_TYPE = 3,
	WIRE_DEFINE_THREAD_NAME = 4,
	WIRE_DEFINE_MARK = 5,
	WIRE_DEFINE_CALIBRATION = 6,
	WIRE_DEFINE_MODULE = 7,
	WIRE_DEFINE_NATIVE_FRAME = 8,
	WIRE_DEFINE_SYMBOL = 9, /* never in shared memory */
};

/*
 * Of C, the part that is the function's own time: of a Python function that is called, or goes on, and of a C function.
 */
#define WIRE_COST_OWN_CALL 0.25
#define WIRE_COST_OWN_RESUME 0.5
#define WIRE_COST_OWN_C 0.5
#define WIRE_COST_DISTURBED_NS 100.0 /* so long after an event the program is slowed by W */

#define WIRE_DEFINITION_STRINGS 4
#define WIRE_STRING_MAX_BYTES 16384 /* a longer string is cut there, at a character, and flagged */

enum wire_definition_flags {
	WIRE_CUT = 1,	    /* a string was cut; NATIVE_FRAME: there are callers, which are not told */
	WIRE_GENERATOR = 2, /* CODE: generator, coroutine or asynchronous generator */
	WIRE_METHOD = 4,    /* C_FUNCTION: a method of a class; without it a function of a module */
	/*
	 * CODE: first called by an instruction that is no call (an attribute's, an operator). Where costs are measured
	 */
	WIRE_ENTERED = 8,
	WIRE_KERNEL_NAME = 32, /* THREAD_NAME: what the kernel calls the thread */
	WIRE_INLINED = 16, /* SYMBOL: the next record, for the same address, is what this function was inlined into */
};

/* WIRE_GENERATOR, by co_flags: CO_GENERATOR, CO_COROUTINE or CO_ASYNC_GENERATOR of code.h. */
#define WIRE_GENERATOR_CO_FLAGS (0x20 | 0x80 | 0x200)

struct wire_definition {
	uint32_t size_bytes; /* of the whole record, header and padding included */
	uint16_t type;
	uint16_t flags;
	uint32_t id;
	uint32_t number;
	uint64_t address;
	uint32_t length[WIRE_DEFINITION_STRINGS];
};

/* What the lengths of a record come to: its size_bytes. */
static inline uint32_t wire_definition_bytes(const struct wire_definition *record)
{
	uint32_t bytes = sizeof(*record);

	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++)
		bytes += record->length[i];
	return (bytes + 7) & ~7u;
}

#define WIRE_DEFINITION_MAX_BYTES (sizeof(struct wire_definition) + WIRE_DEFINITION_STRINGS * WIRE_STRING_MAX_BYTES)

_Static_assert(sizeof(struct wire_definition) == 40, "a definition's header is 40 bytes");
_Static_assert(WIRE_KINDS <= WIRE_KIND_SLOTS, "a kind fits its bits");

#endif
