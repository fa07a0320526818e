/*
 * wire.h - the events and definitions that the preloaded library writes and all other programs read.
 *
 * Owns the layout of events and definitions. The same bytes are in shared memory (ring.h) and, regrouped, in the trace
 * file (trace.h). The functions here only pack and unpack. Prose: docs/wire.md.
 *
 * Byte order is the host's. evprof runs on little-endian machines only (x86-64, aarch64), and trace files are
 * little-endian.
 */
#ifndef EVPROF_WIRE_H
#define EVPROF_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * An event is one 64-bit word. Its kind says how many extra words follow:
 *
 *    63                              32 31                        5 4        0
 *   +----------------------------------+---------------------------+----------+
 *   | ticks since the previous event   | argument                  | kind     |
 *   +----------------------------------+---------------------------+----------+
 *                 32 bits                        27 bits              5 bits
 *
 * The previous event is that of the same thread. Ticks are those of the process's clock (ring.h: clock_kind), shifted
 * right by clock_shift.
 *
 * All but the rare events have a kind of their own. WIRE_EXTENDED is for the rest. Its argument has the sub-kind, the
 * number of extra words, and a value:
 *
 *    31                              14 13   10 9         5 4        0
 *   +----------------------------------+-------+-----------+----------+
 *   | value                            | words | sub-kind  | 19       |
 *   +----------------------------------+-------+-----------+----------+
 *                18 bits                4 bits    5 bits      5 bits
 *
 * So a reader skips what it does not know, and a new event needs no new version. Everywhere outside of the head, an
 * extended event has the kind 32 + sub-kind (wire_head_kind()). An event with one number has it in the value, or in an
 * extra word if it is larger (wire_number()). No extra word is -32 (rejoin.c: NOBODYS_WORD).
 *
 * WIRE_TIME is an absolute time. It bridges a pause that 32 bits of ticks cannot hold. WIRE_CPU is one, too, and has
 * the time for which the thread has run: in its argument and in the bits of the ticks (wire_cpu_word()). Where CPU
 * times are recorded, it precedes each event that follows a pause of more than about 25 us. It also comes at the
 * beginning of a thread and now and then. In a shorter pause the thread counts as running.
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
 * A free is recorded before it happens and an allocation after, so no other thread gets the block in between. A realloc
 * is both. Where other threads may allocate meanwhile, a WIRE_REALLOC_BEGIN comes before it happens: from there on
 * another thread may be given the old address, and the WIRE_REALLOC of the same thread ends the block that had it at
 * the WIRE_REALLOC_BEGIN. If it failed (address 0), that block lives on.
 *
 * Greenlets are stacks of one thread that take turns. WIRE_SWITCH has two addresses. An address identifies a greenlet
 * while it lives. A greenlet that has ended has an empty stack, so its address may be used again.
 *
 * A task is a coroutine that no other coroutine awaits, as event loops have it. WIRE_TASK precedes the call, resume or
 * throw that begins a step of a task; the return, yield or unwind of that ends the step. It is that of the outermost
 * coroutine that is recorded. Its extra word holds an address, that of the frame of the outermost coroutine, which
 * identifies the task until it ends; the same address with a call is a new task. The name that the
 * program gives the task (asyncio.Task.get_name()) is defined like a mark; its id is in the bits above the address, 0
 * for none.
 *
 * A span is a stretch of time that the program names (evprof.h). WIRE_SPAN_BEGIN and WIRE_SPAN_END have its number,
 * which no other span of the process has, so spans of tasks that take turns do not end each other. A span belongs to
 * the thread, greenlet and task that run at its begin, and may end anywhere in its process. Where no coroutine of the
 * task that runs then is recorded, a third word has the address of the task; its next step belongs to that task. The
 * numbers go on in the child of a fork, which may end a span that its parent began; such an end has no begin.
 *
 * WIRE_ARGUMENT precedes the WIRE_SPAN_BEGIN or WIRE_MARK that it belongs to, in the same thread; between them are
 * bookkeeping and other arguments only. Its value has the type. Its first extra word is the id of its key, the others
 * are the value:
 *
 *   text     UTF-8 in the order of its bytes, at most 88; the last word is filled up with zeros
 *   int      one word: int64 + 2^63
 *   double   one word: IEEE 754; NaN has no payload
 *   bool     one word: 0 or 1
 *
 * A longer text goes on in the next WIRE_ARGUMENT, whose key is 0, and ends after WIRE_TEXT_MAX_BYTES at the latest;
 * WIRE_ARGUMENT_CUT says that it was longer. So no value needs a definition, and a program that makes new texts without
 * end makes no reader keep them.
 *
 * Where calls are not recorded, allocations have a stack of their own. WIRE_STACK_CHANGE precedes the first allocation
 * whose stack is not that of the thread's allocation before. Its value is the number of outer frames that stay as they
 * are; its extra words replace the others, outermost first, each with the instruction at which it stands
 * (wire_place()). More frames than one event holds follow in further ones. No frame stays after a gap or a pause, at
 * the beginning of a thread, and now and then for readers that begin in the middle. No call begins or ends because of
 * such an event.
 *
 * Under a budget (EVPROF_BUDGET) the functions that a WIRE_THIN names are thinned: their calls and ends, and the calls
 * of C functions that they make, are not recorded until the next WIRE_THIN_END or WIRE_THIN of the thread. Both events
 * come in the threads of a process where these next write, with the same first extra word: the CPU time of the process
 * in ns at which all threads changed. A WIRE_THIN_END names the functions that were thinned until then. Two code ids
 * stand in a word (wire_thinned()). Events with the same CPU time are one change: each has a part of its functions, and
 * a thread may write them again. The value says why, and what an event of a thinned function would add
 * (wire_thin_value()). A frame of a thinned function is off the stack from the WIRE_THIN on, and no end comes for it.
 * Of a function with WIRE_THIN_C_CALLS only the calls of C functions are thinned; these are off the stack. Where
 * WIRE_THIN_EXCEPTIONS stands among the ids, no code's exceptions are recorded; the ends of calls that they unwind are.
 * A WIRE_THIN_END without ids says that there is a budget.
 *
 * WIRE_OPEN events name the Python functions on the stack, one after the other, each with its line where lines are
 * recorded. They are for readers that begin in the middle: they repeat what earlier events say and do not change the
 * call stack.
 *
 * A WIRE_GREENLET_STACK precedes those of a greenlet that goes on, before its first call, return or line, if it was
 * suspended before the last stack of the thread. They are for readers that do not know its stack. No reader begins
 * there, because it would know no other greenlet.
 */
enum wire_kind {
	WIRE_NONE = 0,		/* never written: an unwritten word is zero */
	WIRE_CALL = 1,		/* code id: a Python function starts */
	WIRE_RESUME = 2,	/* code id: a generator or coroutine resumes */
	WIRE_THROW = 3,		/* code id: ... resumes with an exception thrown into it */
	WIRE_RETURN = 4,	/* code id: the last return of the call */
	WIRE_YIELD = 5,		/* code id: a generator or coroutine suspends */
	WIRE_UNWIND = 6,	/* code id: an exception leaves the frame */
	WIRE_C_CALL = 7,	/* function id */
	WIRE_C_RETURN = 8,	/* function id */
	WIRE_C_EXCEPTION = 9,	/* function id: the C function raised */
	WIRE_EXCEPTION = 10,	/* type id: raised here (3.12 and later) */
	WIRE_MALLOC = 11,	/* size, domain; address. Address 0: the allocation failed */
	WIRE_CALLOC = 12,	/* as malloc; size is the product */
	WIRE_REALLOC = 13,	/* as malloc; old address */
	WIRE_FREE = 14,		/* domain; address */
	WIRE_TIME = 15,		/* extra word: time in ticks; the word's own ticks are 0 and no duration */
	WIRE_GAP = 16,		/* extra word: number of events missing here; the call stack is unknown afterwards */
	WIRE_STACK = 17,	/* argument: number of WIRE_FRAMEs, WIRE_STACK_CUT; they replace the call stack */
	WIRE_FRAME = 18,	/* code id: one frame of the stack, outermost first */
	WIRE_EXTENDED = 19,	/* sub-kind, number of extra words, value: the events from 32 on */
	WIRE_CPU = 20,		/* CPU time of the thread in ns, see above; extra word: time in ticks */
	WIRE_NATIVE_STACK = 21, /* id of the innermost NATIVE_FRAME of the next event, an allocation with 0 ticks */
	/*
	 * line number, with 0 ticks: the current line of the frame that the preceding resume, throw, frame or open
	 * names, where lines are recorded. It is not a line event, as the line does not begin.
	 */
	WIRE_AT_LINE = 22,
	/*
	 * a call reported to the hook but not recorded: of a class, or of another callable that is not a function. Only
	 * where the cost of the hooks is measured; 3.12 and later
	 */
	WIRE_OTHER_CALL = 23,
	/*
	 * wire_instruction(), with 0 ticks: where the innermost Python function of the thread stands at the allocations
	 * that follow, until the next such event or WIRE_STACK_CHANGE. Where calls are recorded, it counts for
	 * whichever function is innermost at an allocation, until the next such event, WIRE_STACK, gap or pause
	 */
	WIRE_AT_INSTRUCTION = 24,
	/* 25: not used yet, without extra words; 26, 27: not used yet, with one */
	WIRE_LINE = 28,	  /* line number: the function on top of the call stack reaches that line */
	WIRE_SWITCH = 29, /* extra words: the greenlet that continues, the one that stops */
	WIRE_TASK = 30,	  /* code id; extra word: the task whose step begins with the next event */
	WIRE_OPEN = 31,	  /* code id: this frame is on the stack already; outermost first */

	WIRE_THREAD_START = 32,
	WIRE_THREAD_END = 33,
	WIRE_PROCESS_START = 34, /* number: enum wire_start */
	WIRE_FORK = 35,		 /* number: pid of the child (0: fork failed) */
	WIRE_EXEC = 36,		 /* the image is about to be replaced; EXEC_FAILED follows on failure */
	WIRE_EXEC_FAILED = 37,	 /* number: errno */
	WIRE_EXIT = 38,		 /* number: WIRE_EXIT_KNOWN | status, or 0 */
	WIRE_MARK = 39,		 /* number: mark id. evprof_mark() */
	WIRE_PAUSE = 40,	 /* number: 1 the program stopped recording, 0 started it again */

	/*
	 * Names and keys are defined like marks. Reserved, and written by nobody yet: what has no name below. 58 to 62
	 * are free. 63 would have a further sub-kind in its first extra word.
	 */
	WIRE_MMAP = 41,	      /* value: see below; extra words: address (0: it failed), size. After a native stack */
	WIRE_MUNMAP = 42,     /* extra words: address, size: what was mapped there is so no more */
	WIRE_SPAN_BEGIN = 43, /* extra words: name's id, span's number in its process; its task, or not there */
	WIRE_SPAN_END = 44,   /* number: span's number */
	WIRE_COUNTER = 45,    /* extra words: name's id, the value: IEEE 754 double; NaN has no payload */
	WIRE_REALLOC_BEGIN =
	    46,		     /* extra word: address of a block that the thread's next WIRE_REALLOC moves, see above */
	WIRE_GC_BEGIN = 47,  /* value: generation */
	WIRE_GC_END = 48,    /* value: generation; extra words: objects collected, objects that cannot be */
	WIRE_LOCK_WAIT = 49, /* extra word: address of a lock that another thread holds */
	WIRE_LOCK_ACQUIRE = 50, /* extra word: address */
	WIRE_LOCK_RELEASE = 51, /* extra word: address */
	WIRE_ARGUMENT = 52,	/* value: enum wire_argument_type; extra words: key's id, the value, see above */
	WIRE_THIN = 53,		/* value, extra words: see above. From here the functions' events are not recorded */
	WIRE_THIN_END = 54,	/* the same. From here they are */
	WIRE_STACK_CHANGE = 55, /* value: frames that stay, WIRE_CHANGE_CUT; extra words: wire_place() of new ones */
	/*
	 * value: wire_freed_value(); extra words: allocations in 1024ths, their bytes, temporary ones. Blocks with the
	 * stack that is known here, which were allocated and freed in events that are not in the trace. The numbers of
	 * a stack add up modulo 2^64. Only in traces that keep what is alive; written by tools only
	 */
	WIRE_FREED = 56,
	WIRE_GREENLET_STACK = 57, /* value: number of WIRE_OPEN that follow, WIRE_GREENLET_CUT; see above */
	WIRE_KINDS = 64,	  /* number of kinds */
};

/*
 * The value of a WIRE_MMAP. WIRE_MMAP_MOVED: it is what the thread's WIRE_MUNMAP before has taken away, of whichever
 * value. At the same address, with the same size, nothing has changed: the call failed.
 */
enum wire_mmap {
	WIRE_MMAP_ANONYMOUS = 0,
	WIRE_MMAP_FILE = 1,
	WIRE_MMAP_MOVED = 2,  /* mremap() */
	WIRE_MMAP_SHARED = 3, /* anonymous, too, but shared memory: MAP_SHARED */
};

/* The value of a WIRE_ARGUMENT: its type, and whether its text was cut. */
enum wire_argument_type {
	WIRE_ARGUMENT_TEXT = 1,
	WIRE_ARGUMENT_INT = 2,
	WIRE_ARGUMENT_DOUBLE = 3,
	WIRE_ARGUMENT_BOOL = 4,
	WIRE_ARGUMENT_CUT = 8, /* a flag: the text was longer */
};

/* Why the events of thinned functions are recorded again. */
enum wire_burst {
	WIRE_BURST_RANDOM = 0, /* a burst at a random time: what it has is a sample of what is not recorded */
	WIRE_BURST_OTHER = 1,  /* any other reason: it is no sample */
};

#define WIRE_THIN_MOST 28u    /* code ids in a WIRE_THIN or WIRE_THIN_END */
#define WIRE_THIN_EVENTS 108u /* most events of one change: a quarter of the smallest ring has room for them */
#define WIRE_THIN_SET_MOST (WIRE_THIN_EVENTS * WIRE_THIN_MOST)
#define WIRE_THIN_C_CALLS (1u << 31)	       /* with a code id there: only the calls of C functions that it makes */
#define WIRE_THIN_EXCEPTIONS WIRE_THIN_C_CALLS /* there, without a code id: exceptions, of all code */

#define WIRE_ARGUMENT_TEXT_BYTES 88u /* of one WIRE_ARGUMENT */
#define WIRE_TEXT_MAX_BYTES 1056u    /* of an argument */
#define WIRE_ARGUMENTS_MAX 16u	     /* of a span or a mark */
#define WIRE_NAN UINT64_C(0x7ff8000000000000)

#define WIRE_CHANGE_CUT (1u << 17) /* none stays, and frames further out than the new ones are not recorded */
#define WIRE_CHANGE_STAY_MAX (WIRE_CHANGE_CUT - 1)
#define WIRE_GREENLET_CUT WIRE_CHANGE_CUT /* the outermost frames are missing */
#define WIRE_GREENLET_FRAMES_MAX (WIRE_GREENLET_CUT - 1)
#define WIRE_STACK_CUT (1u << 26) /* the outermost frames are missing: the ring had no room for them */
#define WIRE_EXIT_KNOWN 0x100u	  /* the low 8 bits are the exit status */

#define WIRE_KIND_BITS 5
#define WIRE_ARG_BITS 27
#define WIRE_ARG_MAX ((1u << WIRE_ARG_BITS) - 1)
#define WIRE_EXTENDED_KIND 32u /* the kind of sub-kind 0 */
#define WIRE_SUB_BITS 5
#define WIRE_WORDS_SHIFT (WIRE_KIND_BITS + WIRE_SUB_BITS)
#define WIRE_WORDS_BITS 4
#define WIRE_VALUE_SHIFT (WIRE_WORDS_SHIFT + WIRE_WORDS_BITS)
#define WIRE_VALUE_MAX ((1u << (32 - WIRE_VALUE_SHIFT)) - 1)
#define WIRE_DOMAIN_BITS 2
#define WIRE_SIZE_LOW_BITS (WIRE_ARG_BITS - WIRE_DOMAIN_BITS)
#define WIRE_ADDRESS_BITS 48
#define WIRE_SIZE_MAX ((UINT64_C(1) << (WIRE_SIZE_LOW_BITS + 64 - WIRE_ADDRESS_BITS)) - 1)
#define WIRE_EXTRA_MAX ((1u << WIRE_WORDS_BITS) - 1) /* most extra words of any event */

enum wire_domain {
	WIRE_DOMAIN_RAW = 0,
	WIRE_DOMAIN_MEM = 1,
	WIRE_DOMAIN_OBJ = 2,
	WIRE_DOMAIN_NATIVE = 3, /* malloc() and its kin, called by anything but Python's allocators */
};

enum wire_start {
	WIRE_START_EXEC = 0,   /* a new image: the first process, or any after exec */
	WIRE_START_FORK = 1,   /* the child of a fork: it continues with its parent's stack */
	WIRE_START_REJOIN = 2, /* the same image with another collector */
};

/* Names of the kinds, in Python's own words, as all outputs print them. Index: enum wire_kind. NULL: not used. */
#define WIRE_KIND_NAMES                                                                                                \
	{                                                                                                              \
		"none", "call", "resume", "throw", "return", "yield", "unwind", "c_call", "c_return", "c_exception",   \
		    "exception", "malloc", "calloc", "realloc", "free", "time", "gap", "stack", "frame", "extended",   \
		    "cpu", "native_stack", "at_line", "other_call", "at_instruction", NULL, NULL, NULL, "line",        \
		    "switch", "task", "open", "thread_start", "thread_end", "process_start", "fork", "exec",           \
		    "exec_failed", "exit", "mark", "pause", "mmap", "munmap", "span_begin", "span_end", "counter",     \
		    "realloc_begin", NULL, NULL, NULL, NULL, NULL, "argument", "thin", "thin_end", "stack_change",     \
		    "freed", "greenlet_stack"                                                                          \
	}

/* The kind without a look at the sub-kind: WIRE_EXTENDED for all kinds from 32 on. */
static inline unsigned wire_head_plain_kind(uint32_t head)
{
	return head & ((1u << WIRE_KIND_BITS) - 1);
}

/* enum wire_kind. */
static inline unsigned wire_head_kind(uint32_t head)
{
	unsigned kind = wire_head_plain_kind(head);

	return kind == WIRE_EXTENDED ? WIRE_EXTENDED_KIND + (head >> WIRE_KIND_BITS & ((1u << WIRE_SUB_BITS) - 1))
				     : kind;
}

/* The number of words that follow the first one. */
static inline unsigned wire_extra_words(uint32_t head)
{
	/* Wider than the kinds need: clang's analyzer takes kinds from 32 on for possible here. */
	const uint64_t one = 1u << WIRE_MALLOC | 1u << WIRE_CALLOC | 1u << WIRE_FREE | 1u << WIRE_TIME |
			     1u << WIRE_GAP | 1u << WIRE_CPU | 1u << 26 | 1u << 27 | 1u << WIRE_TASK;
	const uint64_t two = 1u << WIRE_REALLOC | 1u << WIRE_SWITCH;
	unsigned kind = wire_head_plain_kind(head);

	if (kind == WIRE_EXTENDED)
		return head >> WIRE_WORDS_SHIFT & WIRE_EXTRA_MAX;
	return (unsigned)((one >> kind & 1) + (two >> kind & 1) * 2);
}

/* Bookkeeping of the stream itself: the program did not cause it, and it does not count as an event. */
static inline int wire_is_bookkeeping(unsigned kind)
{
	return kind == WIRE_NONE || (kind >= WIRE_TIME && kind <= WIRE_AT_INSTRUCTION) || kind == WIRE_OPEN ||
	       kind == WIRE_ARGUMENT || kind == WIRE_REALLOC_BEGIN ||
	       (kind >= WIRE_THIN && kind <= WIRE_GREENLET_STACK);
}

static inline int wire_is_memory(unsigned kind)
{
	return kind >= WIRE_MALLOC && kind <= WIRE_FREE;
}

/* kind: below 32. */
static inline uint32_t wire_head(unsigned kind, uint32_t arg)
{
	return (uint32_t)kind | arg << WIRE_KIND_BITS;
}

static inline uint32_t wire_head_arg(uint32_t head)
{
	return head >> WIRE_KIND_BITS;
}

/* kind: from 32 on. value: at most WIRE_VALUE_MAX. */
static inline uint32_t wire_extended(unsigned kind, unsigned words, uint32_t value)
{
	return wire_head(WIRE_EXTENDED, kind - WIRE_EXTENDED_KIND) | words << WIRE_WORDS_SHIFT |
	       value << WIRE_VALUE_SHIFT;
}

static inline int wire_is_thin(unsigned kind)
{
	return kind == WIRE_THIN || kind == WIRE_THIN_END;
}

/* The value of a WIRE_THIN or WIRE_THIN_END: enum wire_burst, and the cost of an event in a burst, in 1/10 ns. */
#define WIRE_COST_MAX (WIRE_VALUE_MAX >> 2)

static inline uint32_t wire_thin_value(unsigned why, uint32_t cost)
{
	return why | (cost < WIRE_COST_MAX ? cost : WIRE_COST_MAX) << 2;
}

static inline unsigned wire_thin_why(uint32_t head)
{
	return head >> WIRE_VALUE_SHIFT & 3;
}

static inline uint32_t wire_thin_cost(uint32_t head)
{
	return head >> WIRE_VALUE_SHIFT >> 2;
}

/*
 * Code id number i of a WIRE_THIN or WIRE_THIN_END, maybe with WIRE_THIN_C_CALLS, or WIRE_THIN_EXCEPTIONS; 0: none.
 * extra: its extra words, i: below WIRE_THIN_MOST.
 */
static inline uint32_t wire_thinned(uint32_t head, const uint64_t *extra, unsigned i)
{
	uint32_t word = 1 + i / 2 < wire_extra_words(head) ? (uint32_t)(extra[1 + i / 2] >> i % 2 * 32) : 0;

	return word & (WIRE_ARG_MAX | WIRE_THIN_C_CALLS);
}

/*
 * The next event of a change to these code ids, from number `at` on; returns its head. extra: its extra words, at most
 * WIRE_EXTRA_MAX. A change without ids has one event.
 */
static inline uint32_t wire_thin_event(unsigned kind, uint32_t value, uint64_t cpu_ns, const uint32_t *ids,
				       uint32_t count, uint32_t *at, uint64_t *extra)
{
	uint32_t left = count - *at, here = left < WIRE_THIN_MOST ? left : WIRE_THIN_MOST;

	extra[0] = cpu_ns;
	for (uint32_t i = 0; i < here; i++)
		extra[1 + i / 2] = (uint64_t)ids[*at + i] << i % 2 * 32 | (i % 2 ? extra[1 + i / 2] : 0);
	*at += here;
	return wire_extended(kind, 1 + (here + 1) / 2, value);
}

/* The number of an extended event that has one. extra: its extra words, if any. */
static inline uint64_t wire_number(uint32_t head, const uint64_t *extra)
{
	return wire_extra_words(head) ? *extra : head >> WIRE_VALUE_SHIFT;
}

/* The argument of an event, or its number. No id, pid or status needs more than 32 bits. */
static inline uint32_t wire_argument(uint32_t head, const uint64_t *extra)
{
	return wire_head_plain_kind(head) == WIRE_EXTENDED ? (uint32_t)wire_number(head, extra) : wire_head_arg(head);
}

/* The value of an argument of a span or a mark, or of a counter. */
static inline double wire_double(uint64_t word)
{
	double number;

	memcpy(&number, &word, sizeof(number));
	return number;
}

static inline int64_t wire_int(uint64_t word)
{
	return (int64_t)(word - (UINT64_C(1) << 63));
}

static inline uint64_t wire_word(uint32_t head, uint32_t ticks)
{
	return (uint64_t)ticks << 32 | head;
}

/* The first word of a WIRE_CPU: ns, exact below 2^59. */
static inline uint64_t wire_cpu_word(uint64_t cpu_ns)
{
	return wire_word(wire_head(WIRE_CPU, (uint32_t)(cpu_ns >> 32) & WIRE_ARG_MAX), (uint32_t)cpu_ns);
}

static inline uint64_t wire_cpu_ns(uint32_t head, uint32_t ticks)
{
	return (uint64_t)wire_head_arg(head) << 32 | ticks;
}

/* Whether an event has an absolute time, in its extra word. */
static inline int wire_is_time(unsigned kind)
{
	return kind == WIRE_TIME || kind == WIRE_CPU;
}

/* The time of an event; now: that of the event before. */
static inline uint64_t wire_time_of(unsigned kind, uint64_t now, uint32_t ticks, const uint64_t *extra)
{
	return wire_is_time(kind) ? *extra : now + ticks;
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

/*
 * Where a function stands: 0 not known, 1 before its first instruction, else 2 + the offset of the instruction in units
 * of 2 bytes. offset: in bytes, below 0 before the first instruction.
 */
static inline uint32_t wire_instruction(int64_t offset)
{
	if (offset < 0)
		return 1;
	return offset / 2 + 2 > WIRE_ARG_MAX ? 0 : (uint32_t)(offset / 2 + 2);
}

/* The offset of the instruction in bytes; -1: before the first one. instruction: not 0. */
static inline int64_t wire_instruction_offset(uint32_t instruction)
{
	return instruction < 2 ? -1 : (int64_t)(instruction - 2) * 2;
}

/* An extra word of WIRE_STACK_CHANGE: the code id of a frame (0: not known), and where it stands. */
static inline uint64_t wire_place(uint32_t code, uint32_t instruction)
{
	return (uint64_t)instruction << 32 | code;
}

static inline uint32_t wire_place_code(uint64_t place)
{
	return (uint32_t)place & WIRE_ARG_MAX;
}

static inline uint32_t wire_place_instruction(uint64_t place)
{
	return (uint32_t)(place >> 32);
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

#define WIRE_FREED_WORDS 3u
#define WIRE_FREED_VALUE_BITS 10
#define WIRE_FREED_DOMAIN_SHIFT 7
#define WIRE_FREED_MAPPED (1u << 9)

/* The number of bits of a size: class n has the sizes from 2^(n-1) to 2^n - 1, class 0 has size 0. */
static inline unsigned wire_size_class(uint64_t size_bytes)
{
	return size_bytes ? 64 - (unsigned)__builtin_clzll(size_bytes) : 0;
}

/* The value of a WIRE_FREED: the class of the sizes, the domain, and whether mmap() gave the memory. */
static inline uint32_t wire_freed_value(unsigned domain, int mapped, uint64_t size_bytes)
{
	return wire_size_class(size_bytes) | domain << WIRE_FREED_DOMAIN_SHIFT | (mapped ? WIRE_FREED_MAPPED : 0);
}

static inline unsigned wire_freed_class(uint32_t head)
{
	return head >> WIRE_VALUE_SHIFT & ((1u << WIRE_FREED_DOMAIN_SHIFT) - 1);
}

/*
 * A definition gives an id its meaning. Definitions have their own ring, so a lost event never loses a name. A
 * definition is published before the first event that uses it.
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
 * Strings are Python's text in UTF-8. A lone surrogate is encoded like any other code point (WTF-8).
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
 *   LINES         code id        its form          0                the table of lines; each string continues the one
 *                                                                   before
 *   BUDGET        1              0                 0                "", account, "", ""
 *
 * LINES is written with CODE where allocations have lines. Its form is enum sampling_lines (sampling.h);
 * the bytes are those of the code object, and no text. A longer table is cut.
 *
 * The size of CODE is that of its instructions in bytes; 0: not known. Code objects of which CODE (and LINES) say the
 * same may have one id.
 *
 * Code, function, type, mark, module and native frame ids are counted separately, from 1, for each process image. 0
 * means "not known". An id is never reused for something else.
 *
 * Native frames form a tree, so that common parts of stacks are written once. A frame is a return address (the address
 * after the call) and the frame of its caller. The tree ends before the function that runs Python's instructions, which
 * is not recorded. The module of a frame is the last MODULE that covers its address: a later MODULE replaces what it
 * covers.
 *
 * SYMBOL is written by the collector. It names the function, file and line of a return address: for the frame with that
 * id, and for all frames defined later with the same address. Where the function is inlined into another one, the
 * record has WIRE_INLINED, and the next record describes that other function.
 *
 * CALIBRATION has the costs of events, measured in the process, in ns: words and numbers, "slow S call A B C entry A B
 * C ...". A reader skips words that it does not know, with their numbers.
 *
 * BUDGET has the account of EVPROF_BUDGET when Python ends, in ms of CPU time: "C P T L E", what recording has cost,
 * the part of that in the process, and all of the process's CPU time that the account covers; the mean time of a call,
 * in ms, of the longest function that was left out (not before 2026-11-29; 0: none was); and the CPU time in which
 * exceptions were left out. The process may have none.
 *
 *   A         what the hooks add to a call and its end, without the part that S covers
 *   B         time between the two timestamps of a function that does nothing
 *   C         time of the same call without hooks
 *   slow      S: time of the interpreter's instructions without hooks, as a fraction of that with hooks
 *   call      a call of a Python function by an instruction
 *   entry     ... by an operator or an attribute: a special method, a property (WIRE_ENTERED)
 *   callback  ... by a C function that has its own event
 *   init      ... of __init__ for a new object
 *   generator ... of a generator: the first call of its frame
 *   resume    ... of a generator, later; pull: by a C function, as for a callback
 *   c_call    a call of a C function; method: of a method of a C type
 *   other O   a call that is not recorded (WIRE_OTHER_CALL); with it, init includes that of the class
 *   work W N  by how much the hooks slow the program between events, as a fraction of its time without them,
 *             beginning N ns after an event
 *   far L F   what an event costs in addition at an instruction more than L bytes from the first one of its code
 *   walk W    what an event costs in addition for each byte from the previous event in the same run of the same code,
 *             or from the first instruction
 *   unwind U  what a Python function that an exception leaves costs in addition to one that returns
 *   malloc M, free M   what the hook adds to the event
 *   spread R  by how much all loops together took longer in the second best pass than in the best one, as a fraction
 *
 * MARK also defines the names of spans, counters, keys of arguments, and tasks. A process has at most WIRE_NAMES_MAX:
 * what comes after them has WIRE_NAMES_OTHER as its name.
 *
 * THREAD_NAME may be repeated for a thread. The last one counts, but the kernel's (WIRE_KERNEL_NAME) only where there
 * is no other.
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
	WIRE_DEFINE_LINES = 10,
	WIRE_DEFINE_BUDGET = 11,
};

/*
 * The fraction of C that is the function's own time: of a Python function that is called, of one that is resumed, and
 * of a C function.
 */
#define WIRE_COST_OWN_CALL 0.25
#define WIRE_COST_OWN_RESUME 0.5
#define WIRE_COST_OWN_C 0.5
#define WIRE_COST_DISTURBED_NS 100.0 /* the time after an event in which the program is slowed by W */

#define WIRE_DEFINITION_STRINGS 4
#define WIRE_NAMES_MAX 65536u
#define WIRE_NAMES_OTHER "(too many names)"
#define WIRE_NAME_MAX_BYTES 1024u   /* of a MARK; a longer one is cut likewise */
#define WIRE_STRING_MAX_BYTES 16384 /* a longer string is cut there, at a character boundary, and flagged */

enum wire_definition_flags {
	/* A string was cut; LINES: the end of the table is missing; NATIVE_FRAME: its callers are not recorded. */
	WIRE_CUT = 1,
	WIRE_GENERATOR = 2, /* CODE: generator, coroutine or asynchronous generator */
	WIRE_METHOD = 4,    /* C_FUNCTION: a method of a class; without the flag, a function of a module */
	/*
	 * CODE: first called by an instruction other than a call (an attribute's, an operator). Only where costs are
	 * measured.
	 */
	WIRE_ENTERED = 8,
	WIRE_KERNEL_NAME = 32, /* THREAD_NAME: the kernel's name of the thread */
	WIRE_INLINED = 16,     /* SYMBOL: this function is inlined into that of the next record, for the same address */
};

/* WIRE_GENERATOR, by co_flags: CO_GENERATOR, CO_COROUTINE or CO_ASYNC_GENERATOR of code.h. */
#define WIRE_GENERATOR_CO_FLAGS (0x20 | 0x80 | 0x200)

struct wire_definition {
	uint32_t size_bytes; /* of the record, with header and padding */
	uint16_t type;
	uint16_t flags;
	uint32_t id;
	uint32_t number;
	uint64_t address;
	uint32_t length[WIRE_DEFINITION_STRINGS];
};

/* The size_bytes of a record with these lengths. */
static inline uint32_t wire_definition_bytes(const struct wire_definition *record)
{
	uint32_t bytes = sizeof(*record);

	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++)
		bytes += record->length[i];
	return (bytes + 7) & ~7u;
}

#define WIRE_DEFINITION_MAX_BYTES (sizeof(struct wire_definition) + WIRE_DEFINITION_STRINGS * WIRE_STRING_MAX_BYTES)

_Static_assert(sizeof(struct wire_definition) == 40, "a definition's header is 40 bytes");
_Static_assert(WIRE_KINDS == WIRE_EXTENDED_KIND + (1u << WIRE_SUB_BITS), "a sub-kind fits its bits");

#endif
