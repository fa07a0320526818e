/*
 * replay.h - the call stack of one thread, event by event.
 *
 * The base of everything that needs the caller of an event: call walk, event stream, profile, exporters. The loop is
 * inline and takes the sink as a constant, so the compiler builds one loop for each sink, with its functions inlined.
 *
 *   call, resume, throw, c_call            push
 *   return, yield, unwind                  pop
 *   c_return, c_exception                  pop
 *   stack, frame                           replace the stack
 *   stack_change                           replace the inner frames, which have no times
 *   gap, pause, thread_end                 empty the stack, forget the saved stacks
 *   thin                                   takes the thinned functions off the stack
 *   switch                                 save the stack, restore that of the other greenlet
 *   greenlet_stack, open                   push the stack of the greenlet, if it is not known
 *
 * An end whose function is not on top pops everything above that function, too. An end whose function is not on the
 * stack is ignored. Each frame popped that way counts as `unmatched`; so does an ignored end, unless its call may be in
 * an unknown part of the stack.
 */
#ifndef EVPROF_TOOLS_REPLAY_REPLAY_H
#define EVPROF_TOOLS_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "evprof/invariant.h"
#include "evprof/wire.h"
#include "replay/thinning.h"
#include "trace/reader.h"
#include "util/u64_map.h"

#define REPLAY_DEPTH_MAX (UINT32_C(1) << 22)

/*
 * A key is a number for a function of a process: 2 * code id for Python, 2 * function id + 1 for C. An id without a
 * definition maps to id 0.
 */

/* A frame of a stack that is not running: saved at a switch, or found at the beginning of a time range. */
struct replay_place {
	uint32_t key;
	uint32_t line;	      /* its current line; 0: not known */
	uint32_t instruction; /* wire_instruction() where only that is recorded; 0: not known */
	uint32_t hidden : 23; /* as of struct replay_frame */
	uint32_t inside : 1;
	uint64_t owner;
};

struct replay_frame {
	uint32_t key;
	uint32_t kind : 8;    /* of the event that pushed it; WIRE_FRAME: restored, or from a stack snapshot */
	uint32_t hidden : 23; /* number of hidden functions between it and the next frame */
	uint32_t inside : 1;  /* one of them is, or was, a Python function */
	uint64_t start;
	uint64_t inner;	      /* for the owner: ticks spent in callees */
	uint64_t owner;	      /* for the owner; 0 at the push of a call. Of a restored frame: what it was */
	uint32_t line;	      /* its current line, where lines are recorded; 0: not known */
	uint32_t instruction; /* wire_instruction(), where allocations have it; 0: not known */
};

struct replay {
	struct replay_frame *frames;
	uint32_t depth;
	size_t allocated;
	uint32_t *open; /* by key: number of its frames on the stack */
	uint32_t keys;
	uint32_t codes;	       /* code ids are below this */
	uint32_t functions;    /* function ids are below this */
	const uint8_t *hidden; /* by key; not 0: the function counts as part of its caller. NULL: none. Not owned */
	/* Greenlets: the running one, 0 if not known, and the saved stacks of the others (replay.c). */
	uint64_t greenlet;
	uint32_t greenlet_number; /* of the running greenlet, from 0 in order of appearance in the thread */
	uint32_t greenlets;	  /* numbers given out */
	struct u64_map numbers;	  /* live greenlets: address to number + 1 */
	struct u64_map stacks;	  /* saved stacks: address to struct replay_stack */
	uint32_t open_frames;	  /* WIRE_OPEN that follow and are the running greenlet's stack */
	bool has_stacks;	  /* a switch was seen, and the thread has not ended since */
	bool stacks_lost;	  /* a greenlet without a saved stack is unknown, not new */
	bool switching;		  /* frames are popped as they are saved, and pushed as they are restored */
	/* The stack of WIRE_STACK_CHANGE, with hidden functions: keys, outermost first. */
	uint32_t *own_stack;
	uint32_t own_depth;
	size_t own_allocated;
	bool has_own_stack;    /* the thread has such a stack: times of frames mean nothing and count as 0 */
	uint32_t place;	       /* WIRE_AT_INSTRUCTION where calls are recorded, see replay_placed(); 0: not known */
	uint32_t native_frame; /* innermost native frame of the next allocation; 0: not recorded */
	uint32_t hidden_base;  /* number of hidden functions below all frames */
	uint64_t now;
	uint64_t unmatched;
	uint64_t left_open;	   /* frames on the stack when their thread ended */
	bool base_unknown;	   /* there may be frames below the first */
	bool others_unknown;	   /* greenlets may have existed before the first event read */
	bool begins_inside;	   /* threads were running before the first event: the process has rejoined */
	bool c_functions_unknown;  /* the stack comes from Python's frames, which do not show C functions */
	struct thinning *thinning; /* NULL: nothing was thinned so far */
	bool out_of_memory;
};

/*
 * Each function may be NULL. pop: `how` is the kind of the event that ends the frame. It is WIRE_NONE where the stack
 * is replaced or emptied, or the thread ends. At a switch the frames of the suspended greenlet are popped with
 * WIRE_YIELD; they are pushed again as WIRE_FRAME when it runs again. `switching` is set then, and only then. During
 * push and pop, greenlet_number is the greenlet of the frame.
 */
struct replay_sink {
	void (*push)(void *owner, struct replay *replay, struct replay_frame *frame);
	void (*pop)(void *owner, struct replay *replay, struct replay_frame *frame, unsigned how);
	/*
	 * All other events: those of the program, gaps, WIRE_AT_LINE, WIRE_ARGUMENT, WIRE_FREED, and
	 * WIRE_AT_INSTRUCTION in a stack of its own. Other bookkeeping is not reported, nor are spans and counters
	 * without their words. A result other than 0 makes replay_run() return after the event.
	 */
	int (*other)(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra);
	/* After a call or an end of a hidden function. */
	void (*hidden)(void *owner, struct replay *replay, uint32_t head);
	/* After a WIRE_THIN or WIRE_THIN_END. */
	void (*thin)(void *owner, struct replay *replay, uint32_t head, const uint64_t *extra);
};

/* A position in a chunk. */
struct replay_cursor {
	const struct trace_events *events;
	const uint64_t *extra;
	uint32_t at;
};

/* The time of the event at the cursor; now: that of the event before. */
static inline uint64_t replay_cursor_time(const struct replay_cursor *cursor, uint64_t now)
{
	return wire_time_of(wire_head_kind(cursor->events->heads[cursor->at]), now, cursor->events->ticks[cursor->at],
			    cursor->extra);
}

/* The largest key of the process plus one: the size of an array by key. */
static inline uint32_t replay_keys_of(const struct trace_process *process)
{
	uint32_t codes = process->codes.count, functions = process->functions.count;

	return 2 * ((codes > functions ? codes : functions) + 1);
}

/* For the threads of one process. Returns 0 or -ENOMEM. */
int replay_init(struct replay *replay, const struct trace_process *process);
/* Makes room for functions that a followed trace has defined since (trace_follow()). Returns 0 or -ENOMEM. */
int replay_add_keys(struct replay *replay, const struct trace_process *process);
void replay_done(struct replay *replay);
/* Before the first event of a thread. */
void replay_begin_thread(struct replay *replay);
/* Empties the stack without calling the sink. */
void replay_forget(struct replay *replay);
/* The thread has ended, and its greenlets with it. */
void replay_end_greenlets(struct replay *replay);
/* Drops the saved stacks, which are no longer valid. */
void replay_forget_stacks(struct replay *replay);
/* Takes a WIRE_SWITCH with its extra words. */
void replay_switch(struct replay *replay, const uint64_t *extra, const struct replay_sink *sink, void *owner);
/* Takes a WIRE_STACK_CHANGE. */
void replay_change_stack(struct replay *replay, uint32_t head, const uint64_t *extra, const struct replay_sink *sink,
			 void *owner);
/* Takes a WIRE_THIN or WIRE_THIN_END. */
void replay_thin(struct replay *replay, uint32_t head, const uint64_t *extra, const struct replay_sink *sink,
		 void *owner);
/* Makes room for one more frame. False: the stack is too deep, or memory ran out. */
bool replay_grow(struct replay *replay);

static inline uint32_t replay_key_of(const struct replay *replay, uint32_t head)
{
	uint32_t id = wire_head_arg(head);
	const uint32_t c_kinds = 1u << WIRE_C_CALL | 1u << WIRE_C_RETURN | 1u << WIRE_C_EXCEPTION;
	uint32_t is_c = c_kinds >> wire_head_plain_kind(head) & 1;
	uint32_t limit = is_c ? replay->functions : replay->codes;

	return (id < limit ? id * 2 : 0) | is_c;
}

/* Whether an event of a call or its end (WIRE_CALL to WIRE_C_EXCEPTION) is a call. */
static inline bool replay_begins(unsigned kind)
{
	const uint32_t calls = 1u << WIRE_CALL | 1u << WIRE_RESUME | 1u << WIRE_THROW | 1u << WIRE_C_CALL;

	return calls >> kind & 1;
}

static inline bool replay_hides(const struct replay *replay, uint32_t key)
{
	return replay->hidden && replay->hidden[key];
}

static inline void replay_push_at(struct replay *replay, struct replay_place place, unsigned kind,
				  const struct replay_sink *sink, void *owner)
{
	struct replay_frame *frame;

	if (__builtin_expect(replay->depth == replay->allocated, 0) && !replay_grow(replay))
		return;
	invariant(replay->depth < replay->allocated && place.key < replay->keys);
	frame = &replay->frames[replay->depth++];
	frame->key = place.key;
	frame->kind = (uint8_t)kind;
	frame->hidden = place.hidden;
	frame->inside = place.inside;
	frame->start = replay->now;
	frame->inner = 0;
	frame->owner = place.owner;
	frame->line = place.line;
	frame->instruction = place.instruction;
	replay->open[place.key]++;
	if (sink->push)
		sink->push(owner, replay, frame);
}

static inline void replay_push(struct replay *replay, uint32_t key, unsigned kind, const struct replay_sink *sink,
			       void *owner)
{
	replay_push_at(replay, (struct replay_place){.key = key}, kind, sink, owner);
}

static inline struct replay_place replay_place_of(const struct replay_frame *frame)
{
	return (struct replay_place){.key = frame->key,
				     .line = frame->line,
				     .instruction = frame->instruction,
				     .hidden = frame->hidden,
				     .inside = frame->inside,
				     .owner = frame->owner};
}

/* Sets the current line of the innermost frame. Lines of hidden functions are dropped. */
static inline void replay_set_line(struct replay *replay, uint32_t line)
{
	if (replay->depth && !replay->frames[replay->depth - 1].hidden)
		replay->frames[replay->depth - 1].line = line;
}

/* Sets where the innermost frame stands. False: it is a hidden one, or the place is replay->place. */
static inline bool replay_set_instruction(struct replay *replay, uint32_t instruction)
{
	if (!replay->has_own_stack) {
		replay->place = instruction;
		return false;
	}
	if (!replay->depth || replay->frames[replay->depth - 1].hidden)
		return false;
	replay->frames[replay->depth - 1].instruction = instruction;
	return true;
}

/*
 * The innermost Python function, which stands at replay->place: where calls are recorded, that of the thread's last
 * allocation counts for whichever function is innermost at the next one. UINT32_MAX: it is not known.
 */
static inline uint32_t replay_placed(const struct replay *replay)
{
	if (!replay->place)
		return UINT32_MAX;
	for (uint32_t i = replay->depth; i-- > 0 && !replay->frames[i].inside;)
		if (!(replay->frames[i].key & 1))
			return i;
	return UINT32_MAX;
}

/* The number of hidden functions that run above so many frames, and below the next one. */
static inline uint32_t replay_hidden_at(const struct replay *replay, uint32_t depth)
{
	return depth ? replay->frames[depth - 1].hidden : replay->hidden_base;
}

/* Counts a call or an end of a hidden function. */
static inline void replay_note_hidden(struct replay *replay, bool begins, bool python)
{
	struct replay_frame *top;

	if (!replay->depth) {
		replay->hidden_base += begins ? 1 : replay->hidden_base ? -1u : 0;
		return;
	}
	top = &replay->frames[replay->depth - 1];
	if (begins)
		top->hidden++;
	else if (top->hidden)
		top->hidden--;
	top->inside = top->hidden && (top->inside || (begins && python));
}

/* The frame is off the stack and its key no longer counts as open when the sink is called. */
static inline void replay_pop(struct replay *replay, unsigned how, const struct replay_sink *sink, void *owner)
{
	struct replay_frame *frame = &replay->frames[--replay->depth];

	invariant(replay->depth < replay->allocated && replay->open[frame->key]);
	replay->open[frame->key]--;
	if (__builtin_expect(replay->has_own_stack, 0)) {
		frame->start = replay->now;
		frame->inner = 0;
	}
	if (sink->pop)
		sink->pop(owner, replay, frame, how);
}

static inline void replay_pop_all(struct replay *replay, const struct replay_sink *sink, void *owner)
{
	while (replay->depth)
		replay_pop(replay, WIRE_NONE, sink, owner);
	replay->hidden_base = 0;
	replay->own_depth = 0;
	replay->place = 0;
}

/* After the last event of a thread. */
static inline void replay_end_thread(struct replay *replay, const struct replay_sink *sink, void *owner)
{
	replay->left_open += replay->depth;
	replay_pop_all(replay, sink, owner);
	replay_end_greenlets(replay);
}

/* Whether the beginning of a call may not have been recorded, as it was that of a thinned function. */
static inline bool replay_was_thinned(const struct replay *replay, uint32_t key)
{
	return replay->thinning && thinning_was(replay->thinning, key);
}

/* Takes an end that does not match the top of the stack. */
static inline void replay_mismatch(struct replay *replay, uint32_t key, unsigned how, const struct replay_sink *sink,
				   void *owner)
{
	if (!replay->open[key]) {
		replay->unmatched += !replay->base_unknown && !(replay->c_functions_unknown && key & 1) &&
				     !replay_was_thinned(replay, key);
		return;
	}
	while (replay->frames[replay->depth - 1].key != key) {
		invariant(replay->depth > 1);
		replay->unmatched++;
		replay_pop(replay, WIRE_NONE, sink, owner);
	}
	replay_pop(replay, how, sink, owner);
}

/* Takes a call or an end (WIRE_CALL to WIRE_C_EXCEPTION). */
static inline __attribute__((always_inline)) void replay_call(struct replay *replay, uint32_t head,
							      const struct replay_sink *sink, void *owner)
{
	unsigned kind = wire_head_kind(head);
	uint32_t key = replay_key_of(replay, head);

	if (replay_hides(replay, key)) {
		replay_note_hidden(replay, replay_begins(kind), !(key & 1));
		if (sink->hidden)
			sink->hidden(owner, replay, head);
	} else if (replay_begins(kind))
		replay_push(replay, key, kind, sink, owner);
	else if (replay->depth && replay->frames[replay->depth - 1].key == key)
		replay_pop(replay, kind, sink, owner);
	else
		replay_mismatch(replay, key, kind, sink, owner);
}

static inline int replay_report(struct replay *replay, uint32_t head, const uint64_t *extra,
				const struct replay_sink *sink, void *owner)
{
	return sink->other ? sink->other(owner, replay, head, extra) : 0;
}

/* Pushes a frame that runs already, as WIRE_FRAME and WIRE_OPEN name it. */
static inline void replay_push_frame(struct replay *replay, uint32_t head, const struct replay_sink *sink, void *owner)
{
	uint32_t key = replay_key_of(replay, head);

	if (replay_hides(replay, key))
		replay_note_hidden(replay, true, true);
	else
		replay_push(replay, key, WIRE_FRAME, sink, owner);
}

/* What comes from here on has nothing to do with the calls that were open. */
static inline void replay_lose_stack(struct replay *replay, const struct replay_sink *sink, void *owner)
{
	replay_pop_all(replay, sink, owner);
	replay->open_frames = 0;
	replay_forget_stacks(replay);
	replay->base_unknown = true;
}

/* Calls are recorded from here on. */
static inline void replay_begin_stack(struct replay *replay, uint32_t head, const struct replay_sink *sink, void *owner)
{
	replay_pop_all(replay, sink, owner);
	replay->open_frames = 0;
	replay->has_own_stack = false;
	replay->base_unknown = wire_head_arg(head) & WIRE_STACK_CUT;
	replay->c_functions_unknown = true;
}

/* The stack of the greenlet that runs follows. It counts where the trace does not have it from earlier events. */
static inline void replay_begin_greenlet(struct replay *replay, uint32_t head)
{
	uint32_t value = head >> WIRE_VALUE_SHIFT;

	replay->open_frames = 0;
	if (replay->depth || replay->hidden_base)
		return;
	replay->open_frames = value & WIRE_GREENLET_FRAMES_MAX;
	replay->base_unknown = value & WIRE_GREENLET_CUT;
	replay->c_functions_unknown = true;
}

static inline void replay_open_frame(struct replay *replay, uint32_t head, const struct replay_sink *sink, void *owner)
{
	if (!replay->open_frames)
		return;
	replay->open_frames--;
	replay_push_frame(replay, head, sink, owner);
}

/* Takes an event that is neither call nor end. A result other than 0, from the sink, makes replay_run() return. */
static inline int replay_other(struct replay *replay, uint32_t head, const uint64_t *extra,
			       const struct replay_sink *sink, void *owner)
{
	int result;

	switch (wire_head_kind(head)) {
	case WIRE_NATIVE_STACK:
		replay->native_frame = wire_head_arg(head);
		return 0;
	case WIRE_AT_LINE:
	case WIRE_LINE:
		replay_set_line(replay, wire_head_arg(head));
		break;
	case WIRE_GAP:
	case WIRE_PAUSE:
		replay_lose_stack(replay, sink, owner);
		break;
	case WIRE_STACK:
		replay_begin_stack(replay, head, sink, owner);
		return 0;
	case WIRE_GREENLET_STACK:
		replay_begin_greenlet(replay, head);
		return 0;
	case WIRE_OPEN:
		replay_open_frame(replay, head, sink, owner);
		return 0;
	case WIRE_FRAME:
		replay_push_frame(replay, head, sink, owner);
		return 0;
	case WIRE_STACK_CHANGE:
		replay_change_stack(replay, head, extra, sink, owner);
		return 0;
	case WIRE_AT_INSTRUCTION:
		if (!replay_set_instruction(replay, wire_head_arg(head)))
			return 0;
		break;
	case WIRE_THIN:
	case WIRE_THIN_END:
		replay_thin(replay, head, extra, sink, owner);
		return 0;
	case WIRE_SWITCH:
		replay_switch(replay, extra, sink, owner);
		break;
	case WIRE_THREAD_END:
		replay_end_thread(replay, sink, owner);
		break;
	case WIRE_REALLOC_BEGIN:
		if (!wire_extra_words(head))
			return 0;
		break;
	case WIRE_FREED:
		result =
		    wire_extra_words(head) < WIRE_FREED_WORDS ? 0 : replay_report(replay, head, extra, sink, owner);
		replay->native_frame = 0;
		return result;
	case WIRE_SPAN_BEGIN:
	case WIRE_COUNTER:
	case WIRE_ARGUMENT:
		if (wire_extra_words(head) < 2 && wire_head_kind(head) != WIRE_ARGUMENT)
			return 0;
		break;
	default:
		result =
		    wire_is_bookkeeping(wire_head_kind(head)) ? 0 : replay_report(replay, head, extra, sink, owner);
		replay->native_frame = 0;
		return result;
	}
	return replay_report(replay, head, extra, sink, owner);
}

/*
 * Continues from the cursor. Returns 0 at the end of the chunk, 1 before an event that is not earlier than `until`
 * (UINT64_MAX: never), 2 after an event for which the sink's other() returned not 0.
 */
static inline __attribute__((always_inline)) int replay_run(struct replay *replay, struct replay_cursor *cursor,
							    uint64_t until, const struct replay_sink *sink, void *owner)
{
	const uint32_t *heads = cursor->events->heads;
	const uint32_t *ticks = cursor->events->ticks;
	const uint64_t *extra = cursor->extra;
	uint32_t count = cursor->events->count;
	uint32_t i;
	int result = 0;

	for (i = cursor->at; i < count; i++) {
		uint32_t head = heads[i];
		unsigned kind = wire_head_kind(head);
		uint64_t now = wire_time_of(kind, replay->now, ticks[i], extra);

		if (__builtin_expect(now >= until, 0) && until != UINT64_MAX) {
			result = 1;
			break;
		}
		replay->now = now;
		if (kind >= WIRE_CALL && kind <= WIRE_C_EXCEPTION) {
			replay_call(replay, head, sink, owner);
			continue;
		}
		if (kind == WIRE_GAP) { /* the stack is unknown from the last event before the gap on */
			replay->now -= ticks[i];
			replay_pop_all(replay, sink, owner);
			replay->now += ticks[i];
		}
		result = replay_other(replay, head, extra, sink, owner) ? 2 : 0;
		extra += wire_extra_words(head);
		if (result) {
			i++;
			break;
		}
	}
	invariant(i <= count && (uint64_t)(extra - cursor->events->extras) <= cursor->events->extra_count);
	cursor->at = i;
	cursor->extra = extra;
	return result;
}

/* Passes an event of which only the time counts. */
static inline void replay_skip(struct replay *replay, struct replay_cursor *cursor)
{
	replay->now = replay_cursor_time(cursor, replay->now);
	cursor->extra += wire_extra_words(cursor->events->heads[cursor->at++]);
}

/* Begins a chunk: sets the time, and empties the stack if events are missing before it. */
static inline struct replay_cursor replay_begin_chunk(struct replay *replay, const struct trace_events *events,
						      const struct replay_sink *sink, void *owner)
{
	uint64_t missing = events->missing;

	if (!replay->now)
		replay->now = events->first_ticks;
	if (events->hole)
		replay_other(replay, wire_head(WIRE_GAP, 0), &missing, sink, owner);
	replay->now = events->first_ticks;
	return (struct replay_cursor){.events = events, .extra = events->extras};
}

#endif
