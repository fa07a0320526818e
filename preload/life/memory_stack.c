/*
 * memory_stack.c - see memory_stack.h.
 */
#include "life/memory_stack.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/config.h"
#include "base/lock.h"
#include "definitions/definitions.h"
#include "life/life.h"
#include "life/memory_place.h"
#include "life/stack_every.h"
#include "python/own_frames.h"
#include "ring/process.h"

#define STACK_MOST 16384      /* frames of a copy */
#define STACK_CUT_TO 4096     /* frames that are kept of a deeper stack */
#define STACK_NEW_MOST 32     /* frames above the copied ones that are found without reading the whole stack */
#define STACK_NEAR 8	      /* the copied frames among which one is searched */
#define STACK_EVENT_FRAMES 12 /* of one event: it fits the room of one reservation */
#define CALL_FRAMES 2	      /* that a call changes: its own, and its caller's */

_Static_assert(1 + STACK_EVENT_FRAMES <= WRITER_SPARE_WORDS, "an event fits one reservation");
_Static_assert(STACK_MOST <= WIRE_CHANGE_STAY_MAX, "each number of frames fits the event");

/*
 * What evprof leaves where the result of a frame's call will be (own_frames_result()), with a number in its lower half:
 * neither an address nor an integer of Python's.
 */
#define WAITING UINT64_C(0xe5f0a1c300000000)

#define FRAME_WRITTEN (1u << 31) /* the frame is in the trace; others are C code's, hidden, or have not begun */

struct copied_frame {
	const char *frame;
	uintptr_t code; /* as it stands in the frame */
	uintptr_t instruction;
	uint32_t id;	/* with FRAME_WRITTEN; 0 not known */
	uint32_t below; /* written frames further out */
	/*
	 * While the frame waits for the call in which it stands, this value is there. It is there no more once the call
	 * has returned, or the function was called anew. NULL: it is nowhere. 0: it was not tried since the frame
	 * stands there.
	 */
	uint64_t *result;
	uint64_t waiting;
} __attribute__((aligned(64))); /* a power of two, as addresses become numbers; a line of the cache */

/* Cleared in the child of a fork, which has an empty copy. */
struct memory_stack {
	const void *state; /* the PyThreadState that the copy is of */
	const void *known; /* that state, if the copy has frames, and all have names; else NULL: see write_slowly() */
	bool usable;	   /* ids of code may be used in its interpreter */
	bool own;	   /* it is known to be this thread's, also if the program allocates without the GIL (3.11) */
	bool unknown;	   /* a frame is written as unknown */
	bool cut;	   /* frames further out than the first are left out */
	uint32_t depth;
	uint32_t described;   /* so many of at[] have the id of their code; those beyond depth are from deeper stacks */
	uint32_t forgotten;   /* forgotten_ids() of the copy */
	uint32_t written;     /* frames in the trace */
	uint32_t written_top; /* the id of the innermost of them, with FRAME_WRITTEN */
	uint32_t waits;	      /* how often WAITING was left */
	const char *base;     /* the frame further out than the first; NULL: none */
	struct copied_frame at[STACK_MOST];
};

bool memory_stack_known;
bool memory_stack_frames_wait;

bool memory_stack_wanted(void)
{
	return config.events & EVENT_MEM && !(config.events & (EVENT_CALL | EVENT_C_CALL));
}

void memory_stack_begin(void)
{
	int saved_errno = errno;

	if (memory_stack_known || memory_place_known || !definitions_lines || thread_self.entered ||
	    thread_self.nesting)
		return;
	thread_self.entered = 1; /* reading a frame raises audit events, which come back here */
	thread_self.nesting++;
	python_lock();
	if (!memory_stack_known && !memory_place_known &&
	    sampled_layout_find(memory_stack_wanted() ? "allocations have no Python stack"
						      : "allocations have no lines")) {
		memory_stack_known = sampled_layout_known && memory_stack_wanted();
		memory_stack_frames_wait = own_frames_have_results();
		memory_place_known = sampled_layout_known && memory_place_wanted();
		definitions_lines = sampled_layout_known;
	}
	python_unlock();
	thread_self.nesting--;
	thread_self.entered = 0;
	errno = saved_errno;
}

void memory_stack_end_all(void)
{
	memory_stack_known = memory_place_known = definitions_lines = false;
}

/* Changes when an id may have become that of another function: code has died, or all ids were forgotten. */
static inline uint32_t forgotten_ids(void)
{
	return atomic_load_explicit(&definitions_codes_died, memory_order_relaxed) +
	       atomic_load_explicit(&process->ids_forgotten, memory_order_relaxed);
}

/* --- comparing --- */

/* Whether a frame of the copy stands where that says. by_address: an instruction's address says what code it is. */
static inline __attribute__((always_inline)) bool stands_there(const struct copied_frame *copy, bool by_address)
{
	const uintptr_t mask = by_address ? UINTPTR_MAX : own_frames_instruction_mask();

	return own_frames_instruction(copy->frame, mask) == copy->instruction &&
	       (by_address || own_frames_code(copy->frame) == copy->code);
}

static inline bool still_waits(const struct copied_frame *copy)
{
	return copy->result && *copy->result == copy->waiting;
}

static inline bool may_wait(const struct copied_frame *copy)
{
	return copy->result || !copy->waiting;
}

static inline void forget_wait(struct copied_frame *copy)
{
	copy->result = NULL;
	copy->waiting = 0;
}

/* What a frame that waits for the same call implies. */
static inline bool is_as_copied(const struct memory_stack *stack, const struct copied_frame *copy)
{
	for (; stands_there(copy, true); copy--) {
		if (copy == stack->at)
			return own_frames_back(copy->frame) == stack->base;
		if (own_frames_back(copy->frame) != copy[-1].frame)
			return false;
	}
	return false;
}

/* Lets the frames from copy to before at[end] show that they wait for those they called. They are as in the copy. */
static __attribute__((noinline)) void let_wait(struct memory_stack *stack, struct copied_frame *copy, uint32_t end)
{
	if (!stack->own)
		return;
	for (; copy < &stack->at[end]; copy++) {
		if (still_waits(copy) || !may_wait(copy))
			continue;
		copy->result = own_frames_result(copy->frame, copy[1].frame);
		copy->waiting = WAITING + ++stack->waits;
		if (copy->result)
			*copy->result = copy->waiting;
	}
}

/*
 * Compares the thread's frames from that of at[i] outwards with the copy, up to one that still waits for the same call:
 * none further out has run since. Lowers *changed to the outermost one that stands elsewhere. False: other frames
 * follow. attached: lets frames wait, so that the next comparison needs fewer of them. waits: memory_stack_frames_wait,
 * mostly a constant at compile time. Each address comes from the copy: to go from frame to frame instead, where each
 * load waits for the one before, makes an allocation in 60 frames half as dear again.
 */
static inline __attribute__((always_inline)) bool compare(struct memory_stack *stack, uint32_t i, bool attached,
							  bool waits, uint32_t *changed)
{
	struct copied_frame *const begin = &stack->at[i], *copy = begin;
	bool due = false;

	for (;; copy--) {
		if (unlikely(!stands_there(copy, waits))) {
			*changed = (uint32_t)(copy - stack->at);
		} else if (waits && copy != begin && still_waits(copy)) {
			invariant(is_as_copied(stack, copy));
			break;
		} else if (waits) {
			due |= copy != begin && may_wait(copy);
		}
		if (own_frames_back(copy->frame) != (copy == stack->at ? stack->base : copy[-1].frame))
			return false;
		if (copy == stack->at)
			break;
	}
	if (unlikely(due) && attached)
		let_wait(stack, copy, *changed < i ? *changed : i);
	return true;
}

/* The place of a frame near the inner end of the copy; -1: it is not there. */
static int64_t find_near(const struct memory_stack *stack, const char *frame)
{
	for (uint32_t i = stack->depth, n = 0; i-- > 0 && n < STACK_NEAR; n++)
		if (stack->at[i].frame == frame)
			return i;
	return -1;
}

/*
 * Finds how the thread's frames follow on the copied ones, and puts new ones into the copy. Returns the index of the
 * outermost one that is new or stands elsewhere, or -1: the whole stack has to be read.
 */
static int64_t take_new_frames(struct memory_stack *stack, const char *top, bool attached)
{
	const char *fresh[STACK_NEW_MOST], *frame = top;
	uint32_t count = 0, changed;
	int64_t common;

	while ((common = find_near(stack, frame)) < 0) {
		if (count == STACK_NEW_MOST)
			return -1;
		fresh[count++] = frame;
		frame = own_frames_back(frame);
		if (!frame)
			return -1;
	}
	changed = (uint32_t)common + 1;
	if (changed + count > STACK_MOST ||
	    !compare(stack, (uint32_t)common, attached, memory_stack_frames_wait, &changed))
		return -1;
	stack->depth = (uint32_t)common + 1;
	while (count)
		stack->at[stack->depth++].frame = fresh[--count];
	return changed;
}

/* Puts all frames into the copy. Returns the index of the outermost one that was not there. */
static uint32_t take_all_frames(struct memory_stack *stack, const char *top)
{
	const uintptr_t mask = own_frames_instruction_mask();
	const char *frame, *base = NULL;
	uint32_t depth = 0, known = stack->depth, changed;

	for (frame = top; frame && depth <= STACK_MOST; frame = own_frames_back(frame))
		depth++;
	stack->cut = depth > STACK_MOST;
	if (stack->cut) {
		depth = STACK_CUT_TO;
		known = 0;
	}
	changed = depth;
	frame = top;
	for (uint32_t i = depth; i-- > 0; frame = own_frames_back(frame)) {
		struct copied_frame *copy = &stack->at[i];

		if (i >= known || copy->frame != frame || copy->code != own_frames_code(frame) ||
		    copy->instruction != own_frames_instruction(frame, mask))
			changed = i;
		copy->frame = frame;
		base = own_frames_back(frame);
	}
	if (base != stack->base)
		changed = 0;
	stack->base = base;
	stack->depth = depth;
	return changed;
}

/* --- names --- */

/* The id of a function; 0: not known. DEFINITION_HIDDEN: it is not to be shown. */
static uint32_t find_id(struct memory_stack *stack, struct writer *writer, const char *frame, const void *code,
			bool attached)
{
	uint64_t value;
	uint32_t id;

	if (unlikely(!ids_find_fast(&writer->ids, code, &value)))
		value = definitions_reload(writer, code);
	if (likely(value && !(value >> 32 & CODE_SLOW_C_FUNCTION)))
		return (uint32_t)value;
	id = attached ? definitions_code_of_frame((struct object *)code, own_frames_globals(frame))
		      : definitions_code_by_loads((struct object *)code);
	stack->unknown |= !id;
	return id;
}

/* Whether at[i] has the id of the function of a frame, which Python shows. */
static inline bool is_described(const struct memory_stack *stack, uint32_t i, const char *frame)
{
	return i < stack->described && own_frames_code(frame) == stack->at[i].code && DEFINITION_ID(stack->at[i].id) &&
	       own_frames_has_begun(frame);
}

/* The number of written frames further out than at[i]. */
static inline uint32_t count_below(const struct memory_stack *stack, uint32_t i)
{
	return i ? stack->at[i - 1].below + (stack->at[i - 1].id != 0) : 0;
}

/* From the outermost frame that has changed inwards. */
static void describe(struct memory_stack *stack, struct writer *writer, uint32_t i, bool attached)
{
	struct copied_frame *copy = &stack->at[i];

	if (!is_described(stack, i, copy->frame)) {
		const void *code = own_frames_shown_code(copy->frame);
		uint32_t id = code ? find_id(stack, writer, copy->frame, code, attached) : DEFINITION_HIDDEN;

		copy->code = own_frames_code(copy->frame);
		copy->id = id & DEFINITION_HIDDEN ? 0 : DEFINITION_ID(id) | FRAME_WRITTEN;
	}
	copy->instruction = own_frames_instruction(copy->frame, own_frames_instruction_mask());
	forget_wait(copy);
	copy->below = count_below(stack, i);
	if (i >= stack->described)
		stack->described = i + 1;
}

/* --- writing --- */

/* Of a field of code and one of an instruction. */
static inline uint32_t instruction_of(uintptr_t code, uintptr_t instruction)
{
	return wire_instruction(own_frames_offset((const void *)(code & ~(uintptr_t)7), instruction));
}

/* Bookkeeping has no ticks: its time is that of the event before. Only with room. */
static void put(struct writer *writer, uint32_t head, const uint64_t *words)
{
	uint64_t at;

	writer_enter();
	at = writer->head;
	writer_store(writer, at++, wire_word(head, 0));
	for (unsigned i = 0; i < wire_extra_words(head); i++)
		writer_store(writer, at++, words[i]);
	writer->head = at;
	ring_publish(writer->slot, at);
	writer_leave();
}

static void put_instruction(struct writer *writer, uint32_t instruction)
{
	uint32_t head = wire_head(WIRE_AT_INSTRUCTION, instruction);

	writer_enter();
	writer_store(writer, writer->head, wire_word(head, 0));
	ring_publish(writer->slot, ++writer->head);
	writer_leave();
}

/* Writes the frames from at[first] on. False: there is no room, or the stack became unknown meanwhile. */
static bool put_frames(struct memory_stack *stack, unsigned kind, uint32_t first)
{
	uint32_t stay = first < stack->depth ? stack->at[first].below : stack->written;
	uint64_t words[STACK_EVENT_FRAMES] = {0};
	struct writer *writer;

	do {
		uint32_t count = 0;

		for (; first < stack->depth && count < STACK_EVENT_FRAMES; first++) {
			const struct copied_frame *copy = &stack->at[first];

			if (copy->id)
				words[count++] =
				    wire_place(DEFINITION_ID(copy->id), instruction_of(copy->code, copy->instruction));
		}
		writer = writer_reserve(kind);
		if (!writer || !writer->knows_stack)
			return false;
		put(writer, wire_extended(WIRE_STACK_CHANGE, count, stay | (stack->cut && !stay ? WIRE_CHANGE_CUT : 0)),
		    words);
		stay += count;
	} while (first < stack->depth);
	return true;
}

/* The written frames of the copy, and the innermost of them. */
static void count_written(struct memory_stack *stack)
{
	uint32_t i = stack->depth;

	while (i && !stack->at[i - 1].id)
		i--;
	stack->written = i ? stack->at[i - 1].below + 1 : 0;
	stack->written_top = i ? stack->at[i - 1].id : 0;
}

/* Writes the frames of the copy from at[changed] on, as far as the trace does not have them. */
static bool write_change(struct memory_stack *stack, struct writer *writer, unsigned kind, uint32_t changed)
{
	uint32_t before = stack->written, before_top = stack->written_top, inner;

	count_written(stack);
	for (inner = stack->depth; inner > changed && !stack->at[inner - 1].id; inner--)
		;
	if (inner == changed && stack->written == before) /* no change shows */
		return true;
	if (inner > changed && stack->at[inner - 1].below + 1 == before && stack->written_top == before_top &&
	    stack->at[changed].below + 1 == before) {
		put_instruction(writer, instruction_of(stack->at[inner - 1].code, stack->at[inner - 1].instruction));
		return true;
	}
	return put_frames(stack, kind, changed);
}

/* The whole stack is about to be written. */
static void begin_anew(struct memory_stack *stack, struct writer *writer, const char *top)
{
	stack->depth = stack->described = 0;
	stack->unknown = false;
	stack->forgotten = forgotten_ids();
	take_all_frames(stack, top);
	stack->written = UINT32_MAX; /* even an empty stack is written */
	writer->stack_due = writer->head + stack_every(stack->depth);
	writer->knows_stack = 1;
}

static __attribute__((noinline)) bool write_slowly(struct writer *writer, unsigned kind, const char *top, bool attached)
{
	struct memory_stack *stack = thread_self.stack;
	int64_t changed;

	stack->known = NULL;
	for (int turn = 0; turn < 3; turn++) {
		changed = -1;
		if (!writer->knows_stack || stack->forgotten != forgotten_ids() || (stack->unknown && attached)) {
			begin_anew(stack, writer, top);
			changed = 0;
		} else if (top) {
			changed = take_new_frames(stack, top, attached);
		}
		if (changed < 0)
			changed = take_all_frames(stack, top);
		for (uint32_t i = (uint32_t)changed; i < stack->depth; i++)
			describe(stack, writer, i, attached);
		if (write_change(stack, writer, kind, (uint32_t)changed)) {
			stack->known = stack->depth && !stack->unknown ? stack->state : NULL;
			return true;
		}
		writer = writer_reserve(kind); /* the collector was exchanged, or events were lost meanwhile */
		if (!writer)
			return false;
		writer->knows_stack = 0;
	}
	writer_lose(writer, kind);
	return false;
}

/* A frame at at[i]: where it stands. False: the copy does not have its function. */
static inline bool find_place(const struct memory_stack *stack, uint32_t i, const char *frame, uintptr_t *instruction,
			      uint64_t *place)
{
	const struct copied_frame *copy = &stack->at[i];

	if (!is_described(stack, i, frame))
		return false;
	*instruction = own_frames_instruction(frame, own_frames_instruction_mask());
	*place = wire_place(DEFINITION_ID(copy->id), instruction_of(copy->code, *instruction));
	return true;
}

/* Only the innermost frame stands elsewhere. Otherwise as put_call(). */
static __attribute__((noinline)) bool put_moved(struct memory_stack *stack, struct writer *writer, const char *top)
{
	struct copied_frame *copy = &stack->at[stack->depth - 1];
	uint64_t place;

	if (!find_place(stack, stack->depth - 1, top, &copy->instruction, &place))
		return false;
	forget_wait(copy);
	put_instruction(writer, wire_place_instruction(place));
	return true;
}

/*
 * The innermost function has called another one, has returned, or both: writes the frames from at[changed] on, two at
 * most, of a stack of that depth, and puts them into the copy. False: the copy does not have the functions of all of
 * them and of the innermost frame. Nothing was written then.
 */
static __attribute__((noinline)) bool put_call(struct memory_stack *stack, struct writer *writer, const char *top,
					       uint32_t changed, uint32_t depth)
{
	uint32_t stay = count_below(stack, changed), count = depth - changed;
	struct copied_frame *inner = &stack->at[depth - 1];
	uintptr_t instruction = 0, caller_instruction = 0;
	uint64_t places[CALL_FRAMES] = {0};

	if (count > CALL_FRAMES || depth > stack->described || !DEFINITION_ID(inner->id) || (!stay && stack->cut))
		return false;
	if (count && !find_place(stack, depth - 1, top, &instruction, &places[count - 1]))
		return false;
	if (count == CALL_FRAMES && !find_place(stack, changed, inner[-1].frame, &caller_instruction, &places[0]))
		return false;
	put(writer, wire_extended(WIRE_STACK_CHANGE, count, stay), places);
	stack->depth = depth;
	stack->written = stay + count;
	stack->written_top = inner->id;
	if (!count)
		return true;
	inner->frame = top;
	inner->instruction = instruction;
	forget_wait(inner);
	inner->below = stay + count - 1;
	if (count == CALL_FRAMES) {
		inner[-1].instruction = caller_instruction;
		forget_wait(&inner[-1]);
	}
	return true;
}

/*
 * The innermost function has called another one, or has returned. Nothing is looked up. False: it is something else,
 * and nothing was written.
 */
static inline __attribute__((always_inline)) bool write_call(struct memory_stack *stack, struct writer *writer,
							     const char *top, bool attached, bool waits)
{
	uint32_t depth = stack->depth, inner = depth - 1, changed;

	if (inner && top == stack->at[inner - 1].frame)
		depth = inner--;
	else if (top && own_frames_back(top) == stack->at[inner].frame)
		depth++;
	else
		return false;
	changed = inner + 1;
	return compare(stack, inner, attached, waits, &changed) && put_call(stack, writer, top, changed, depth);
}

/* The state is another one than that of the copy, if there is one. False: ids may not be used in its interpreter. */
static __attribute__((noinline)) bool begin_state(const void *state)
{
	struct memory_stack *stack = thread_self.stack;
	int saved_errno = errno;
	bool usable;

	thread_self.nesting++;
	usable = python_enter_interpreter();
	if (!stack && usable)
		thread_self.stack = stack = wiped_memory_new(sizeof(*stack));
	if (stack) {
		stack->state = state;
		stack->usable = usable;
		stack->own = python.monitoring || state == python.PyGILState_GetThisThreadState();
	}
	thread_self.nesting--;
	errno = saved_errno;
	return stack && usable;
}

/*
 * Whether the thread's stack can be read from here on. In the main interpreter that takes nothing of Python's but who
 * has the GIL: where few allocations are recorded, the first ones of a thread may all be native.
 */
static bool may_begin(bool attached)
{
	return attached || (python_is_held() && python_is_main());
}

/* The state is not that of the copy, or there is no copy, or no ids may be used. */
static __attribute__((noinline)) bool write_elsewhere(struct writer *writer, unsigned kind, const void *state,
						      bool attached)
{
	bool usable = state && (thread_self.stack && thread_self.stack->state == state
				    ? thread_self.stack->usable
				    : may_begin(attached) && begin_state(state));

	if (!thread_self.stack) /* no stack was ever written for this thread */
		return true;
	return write_slowly(writer, kind, usable ? own_frames_top(state) : NULL, attached);
}

/* Whether the change since the last allocation may be written from the copy, which has the names. top: see there. */
static inline __attribute__((always_inline)) bool may_step(bool attached, const char **top)
{
	const void *state = own_frames_state(attached);
	struct memory_stack *stack = thread_self.stack;
	struct writer *writer = thread_self.writer;

	if (unlikely(!state || !stack || stack->known != state || !writer_has_room(writer) || !writer->knows_stack ||
		     stack->forgotten != forgotten_ids()))
		return false;
	*top = own_frames_top(state);
	return true;
}

/* After may_step(): any change. waits: memory_stack_frames_wait, a constant at compile time. */
static inline __attribute__((always_inline)) bool write_step(struct memory_stack *stack, const char *top, bool attached,
							     bool waits)
{
	uint32_t depth = stack->depth, changed = depth;
	struct writer *writer = thread_self.writer;

	if (top != stack->at[depth - 1].frame)
		return write_call(stack, writer, top, attached, waits);
	if (unlikely(!compare(stack, depth - 1, attached, waits, &changed)))
		return false;
	if (likely(changed == depth))
		return true;
	return changed + 1 == depth ? put_moved(stack, writer, top) : put_call(stack, writer, top, changed, depth);
}

bool memory_stack_step_of_all(bool attached)
{
	const char *top;

	return may_step(attached, &top) && write_step(thread_self.stack, top, attached, false);
}

static __attribute__((noinline)) bool write_step_to_waiting(struct memory_stack *stack, const char *top, bool attached)
{
	return write_step(stack, top, attached, true);
}

/* The slow path's registers are the caller's, and so are those of most changes. */
bool memory_stack_step_to_waiting(bool attached)
{
	const struct copied_frame *inner, *caller;
	struct memory_stack *stack;
	const char *top;

	if (!may_step(attached, &top))
		return false;
	stack = thread_self.stack;
	inner = &stack->at[stack->depth - 1];
	caller = inner - 1; /* of a stack of one frame it is none */
	/* Mostly the innermost function alone has gone on. */
	if (inner->frame == top && inner != stack->at && caller->result && own_frames_back(top) == caller->frame &&
	    stands_there(caller, true) && still_waits(caller)) {
		invariant(is_as_copied(stack, caller));
		return stands_there(inner, true) || put_moved(stack, thread_self.writer, top);
	}
	return write_step_to_waiting(stack, top, attached);
}

bool memory_stack_write_any(unsigned kind, bool attached)
{
	struct writer *writer = writer_reserve(kind);
	struct memory_stack *stack = thread_self.stack;
	const void *state;

	if (!writer)
		return false;
	state = own_frames_state(attached);
	if (!stack || stack->state != state || !stack->usable || !state)
		return write_elsewhere(writer, kind, state, attached);
	return write_slowly(writer, kind, own_frames_top(state), attached);
}

void memory_stack_end(void)
{
	thread_self.nesting++; /* evprof's own munmap() is no event */
	if (thread_self.stack)
		munmap(thread_self.stack, sizeof(*thread_self.stack));
	thread_self.nesting--;
	thread_self.stack = NULL;
}
