/*
 * refill.c - the slow path of the hooks: gives a thread its ring, waits for room, closes gaps, writes the stack.
 *
 * Called from hooks, with or without the GIL. Therefore it allocates nothing, takes no lock but the process's own,
 * keeps errno, and bounds every wait. Nor is a thread cancelled in it: malloc() is no cancellation point.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log_line.h"
#include "definitions/stack.h"
#include "life/greenlet_stacks.h"
#include "life/life.h"
#include "life/memory_stack.h"
#include "life/stack_every.h"
#include "life/thin.h"
#include "python/own_frames.h"
#include "ring/process.h"
#include "ring/room.h"
#include "ring/wait.h"

#define POPULATE_BYTES ((size_t)128 << 10)

#define STACK_SOON_WORDS 64	/* if it is due and cannot be read */
#define STACK_CUT_WORDS 512	/* a cut stack is not written again before */
#define GREENLET_FRAME_WORDS 16 /* for each frame of a greenlet's stack the thread's own comes later by these */
#define STACK_SMALL 256		/* frames whose ids fit into an array on the thread's own stack */

#define COLLECTORS_IN_TURN 4 /* the most collectors that may die during one wait for room */

void (*refill_before_call)(void);
static struct writer writer_ended; /* of a thread whose destructors have run */

static pthread_key_t thread_key;
static bool has_thread_key; /* the program may have taken all keys; without one the end of threads is not seen */
static pthread_once_t thread_key_once = PTHREAD_ONCE_INIT;

/*
 * Other destructors may allocate and free: where that is recorded, the ring ends in a later round of them. Not in the
 * last one, which a thread may miss that had its first event in a destructor of the first round.
 */
static void thread_gone(void *value)
{
	if (config.events & EVENT_MALLOC && ++thread_self.end_rounds < PTHREAD_DESTRUCTOR_ITERATIONS - 1) {
		pthread_setspecific(thread_key, value);
		return;
	}
	writer_end_thread();
}

static void make_thread_key(void)
{
	has_thread_key = !pthread_key_create(&thread_key, thread_gone);
	if (!has_thread_key)
		log_line(LOG_WARNING, "no thread-specific key is free; the end of threads is not recorded");
}

static void lose_unslotted(unsigned kind)
{
	atomic_fetch_add_explicit(&process->header->lost_unslotted[kind], 1, memory_order_relaxed);
}

/* Field by field: another thread may clear the room (process_set_status()) at the same time. */
static void clear_writer(struct writer *writer, struct ring_slot *slot, struct ring_extent extent, uint64_t now)
{
	writer_set_room(writer, 0, 0);
	writer->words = (uint64_t *)(process->base + extent.offset);
	writer->mask = extent.words - 1;
	writer->head = 0;
	writer->thin_words = 0;
	room_begin_free_end(extent.words);
	writer->last_ticks = now;
	writer->slot = slot;
	writer->cpu_due = 0;
	writer->pause = config.events & EVENT_CPU ? CLOCK_WAIT_TICKS : CLOCK_QUIET_TICKS;
	writer->gap = 0;
	writer->resync = 0;
	writer->asked = thin_any() ? WRITER_ASKED_THIN : 0;
	writer->knows_stack = 0;
	writer->stack_due = 0;
	writer->held_end = 0;
	writer->stack_cut = false;
	writer->paused = 0;
	writer->throwing = 0;
	writer->unwinding = NULL;
}

/* Claims a free slot. A slot of one of this process's threads is not free, whatever its state says. Lock held. */
static struct ring_slot *claim_slot(void)
{
	struct ring_slot *slot;
	uint32_t number = 0;

	while ((slot = ring_claim(&process->layout, process->header, process->slots, number))) {
		number = (uint32_t)(slot - process->slots);
		if (!process->writers[number++].slot)
			break;
	}
	if (slot && atomic_load(&process->slots_used) < number)
		atomic_store(&process->slots_used, number);
	return slot;
}

/* Gives the calling thread a ring. NULL: none is left. */
static struct writer *begin_thread(void)
{
	uint64_t now = clock_now();
	struct ring_extent extent;
	struct ring_slot *slot;
	struct writer *writer;

	process_lock(); /* keeps rejoin.c from exchanging the memory under a starting thread */
	slot = claim_slot();
	if (!slot) {
		process_unlock();
		return NULL;
	}
	extent = ring_extent(&process->layout, (uint32_t)(slot - process->slots));
	ring_place(slot, extent);
	writer = &process->writers[slot - process->slots];
	slot->tid = (uint32_t)syscall(SYS_gettid);
	slot->start_ticks = now;
	slot->start_position = 0;
	atomic_store(&slot->sampled, 0);
	ring_release(slot);
	clear_writer(writer, slot, extent, now);
	writer->ids = ids_look(&process->ids); /* lost events are looked up there, too, before there is any room */
	/*
	 * The first thread of a process fills its ring while Python starts. The collector populates the pages after
	 * these.
	 */
	if (slot == process->slots)
		writer_populate(writer, POPULATE_BYTES);
	/* Release: the collector may read tid and start once it sees LIVE. */
	atomic_store_explicit(&slot->state, RING_SLOT_LIVE, memory_order_release);
	process_unlock();
	thread_self.writer = writer;
	pthread_once(&thread_key_once, make_thread_key);
	thread_self.nesting++;
	if (has_thread_key)
		pthread_setspecific(thread_key, writer); /* it may allocate */
	thread_self.nesting--;
	return writer;
}

static bool has_ended_slot(void)
{
	for (uint32_t i = 0; i < process->layout.slot_count; i++)
		if (atomic_load_explicit(&process->slots[i].state, memory_order_relaxed) == RING_SLOT_ENDED)
			return true;
	return false;
}

/* Gives the calling thread a ring if a slot is free. False: one will be, that of an ended thread, once it is read. */
static int begin_or_expect_none(const void *unused)
{
	(void)unused;
	return thread_self.writer->slot || !life_recording() || begin_thread() || !has_ended_slot();
}

/* What is written before the next event: a gap, a pause, what is thinned. A stack waits for its own room. */
#define ROOM_WANTED (2 * WRITER_SPARE_WORDS + THIN_WORDS_MOST)
_Static_assert(ROOM_WANTED < RING_BYTES_MIN / sizeof(uint64_t) / 4, "wait_for_room() can make so much");

/*
 * Waits for room, within the bound. Less than a quarter of the ring suffices. 1, 0, or -ESRCH: the collector is gone.
 */
static int wait_for_room(struct writer *writer)
{
	int waited = wait_unless_gone(room_has_quarter, writer);

	return room_of(writer) > ROOM_WANTED ? 1 : waited;
}

/* What the trace has of the stack is not known any more. Calls write it, so where none are recorded, nothing waits. */
static void expect_stack(struct writer *writer)
{
	writer->resync = (config.events & (EVENT_CALL | EVENT_C_CALL)) != 0;
	writer->knows_stack = 0;
}

/* Writes the gap, now that there is room. The call stack follows at the next event that can read it. */
static void close_gap(struct writer *writer)
{
	if (!writer->gap) /* nothing was lost, or only what has been retracted since */
		return;
	if (clock_now() - writer->last_ticks < writer->pause) {
		writer_put_extra(writer, wire_head(WIRE_GAP, 0), writer->gap, 0);
	} else { /* the WIRE_TIME follows the gap: the time of lost events is attributed to no function */
		writer_store(writer, writer->head, wire_word(wire_head(WIRE_GAP, 0), 0));
		writer_store(writer, writer->head + 1, writer->gap);
		writer->head += 2;
	}
	writer->gap = 0;
	expect_stack(writer);
	thread_self.lost_block = NULL;
}

static void put_pause_at(struct writer *writer, uint64_t ticks, uint32_t stopped)
{
	if ((int64_t)(ticks - writer->last_ticks) > 0) {
		writer_store(writer, writer->head, wire_word(wire_head(WIRE_TIME, 0), 0));
		writer_store(writer, writer->head + 1, ticks);
		writer->head += 2;
		writer->last_ticks = ticks;
	}
	writer_store(writer, writer->head, wire_word(wire_extended(WIRE_PAUSE, 0, stopped), 0));
	ring_publish(writer->slot, ++writer->head);
}

/* Recording was stopped and started again while this thread wrote nothing: what it did meanwhile has no time. */
static void put_pause(struct writer *writer)
{
	if (!writer->paused)
		return;
	writer->paused = 0;
	if (!thread_self.stopped)
		put_pause_at(writer, atomic_load(&process->stopped_ticks), 1);
	thread_self.stopped = false;
	put_pause_at(writer, atomic_load(&process->started_ticks), 0);
	writer->cpu_due = (uint32_t)writer->head;
	writer->pause = config.events & EVENT_CPU ? CLOCK_WAIT_TICKS : CLOCK_QUIET_TICKS; /* events may have changed */
}

static bool stack_is_due(const struct writer *writer)
{
	return writer->head >= writer->stack_due && config.events & (EVENT_CALL | EVENT_C_CALL);
}

/* Words until the CPU time is due; 0: it is due. */
static uint32_t cpu_words_left(const struct writer *writer)
{
	uint32_t left = writer->cpu_due - (uint32_t)writer->head;

	return left <= CPU_EVERY_WORDS ? left : 0;
}

static bool cpu_is_due(const struct writer *writer)
{
	return config.events & EVENT_CPU && !cpu_words_left(writer);
}

/* Words of one frame of a stack, including its line if lines are recorded. */
static uint32_t words_a_frame(void)
{
	return config.events & EVENT_LINE ? 2 : 1;
}

/* The most frames of a stack that may fit: half of the free room if this thread may not wait for more. */
static uint64_t most_frames(const struct writer *writer)
{
	uint64_t room = wait_is_allowed() ? writer->mask + 1 : room_of(writer) / 2;

	room = room > 4 * WRITER_SPARE_WORDS ? (room - 4 * WRITER_SPARE_WORDS) / words_a_frame() : 0;
	return room < WIRE_STACK_CUT ? room : WIRE_STACK_CUT - 1;
}

/* A stack to be written, and how much of it is. */
struct stack {
	uint32_t *ids; /* innermost first */
	int *lines;    /* likewise, where lines are recorded; else NULL */
	uint32_t count;
	bool more; /* the stack has outer frames that ids lacks */
};

static int has_room_for(const void *what)
{
	const struct stack *stack = what;

	return room_of(thread_self.writer) >= stack->count * words_a_frame() + 3 * WRITER_SPARE_WORDS;
}

/* Cuts the outer end of a stack that still does not fit after waiting: returns happen at the inner end. */
static void fit_stack(const struct writer *writer, struct stack *stack)
{
	uint64_t room;

	if (has_room_for(stack) || wait_for(has_room_for, stack))
		return;
	room = room_of(writer) > 3 * WRITER_SPARE_WORDS ? room_of(writer) - 3 * WRITER_SPARE_WORDS : 0;
	room /= words_a_frame();
	stack->more = true;
	stack->count = room < stack->count ? (uint32_t)room : stack->count;
}

/* kind: of what precedes the frames, see stack_kind(). */
static void write_stack(struct writer *writer, const struct stack *stack, unsigned kind)
{
	unsigned frame = kind == WIRE_STACK ? WIRE_FRAME : WIRE_OPEN;

	if (kind == WIRE_STACK)
		writer_put(writer, wire_head(WIRE_STACK, stack->count | (stack->more ? WIRE_STACK_CUT : 0)));
	else if (kind == WIRE_GREENLET_STACK)
		writer_put(writer, wire_extended(kind, 0, stack->count | (stack->more ? WIRE_GREENLET_CUT : 0)));
	for (uint32_t i = stack->count; i-- > 0;) {
		/* Frames are written one at a time, like events: rejoin.c may exchange the memory between two. */
		if (unlikely(atomic_load(&process->status) == PROCESS_MOVING))
			life_recording();
		writer_store(writer, writer->head, wire_word(wire_head(frame, stack->ids[i]), 0));
		ring_publish(writer->slot, ++writer->head);
		if (stack->lines && stack->lines[i] > 0)
			writer_put_line(writer, (uint32_t)stack->lines[i]);
	}
}

/*
 * Sets when the stack is due again: a cut stack when returns may have used up what was written, a complete one when
 * readers that start in the middle need it.
 */
static void note_stack(struct writer *writer, const struct stack *stack)
{
	uint64_t words = stack_every(stack->count);

	if (stack->more)
		words = stack->count > STACK_CUT_WORDS ? stack->count : STACK_CUT_WORDS;
	writer->stack_due = writer->head + words;
	writer->stack_cut = stack->more;
	greenlet_stacks_begin();
}

/* A call, return or line, which hold the GIL. */
static bool can_read_stack(unsigned kind)
{
	return kind < WIRE_EXCEPTION || kind == WIRE_LINE;
}

/* Other events come here in threads without frames only. */
static void read_stack(struct stack *stack, unsigned kind, uint32_t most)
{
	if (can_read_stack(kind))
		stack->count = definitions_stack(kind, stack->ids, stack->lines, most, &stack->more);
}

/*
 * Whether the thread runs native code only: Python does not know it. Until 3.11 it may be one that Python has just
 * started, whose profile function follows.
 */
static bool has_no_frames(void)
{
	return python.monitoring && !thread_self.hooked_state && !own_frames_state(false);
}

/*
 * In a thread with frames the stack waits for an event that can read it. Until then memory events take the slow path
 * one by one after a gap, and a few at a time if the stack only needs to be repeated.
 */
static bool puts_stack(const struct writer *writer, unsigned kind)
{
	return (writer->resync || stack_is_due(writer) || thread_self.greenlet_unknown) &&
	       (can_read_stack(kind) || has_no_frames());
}

/*
 * WIRE_STACK: the trace does not have the stack. WIRE_GREENLET_STACK: a reader may not have it that begins at the last
 * stack of the thread. WIRE_OPEN: readers may begin here.
 */
static unsigned stack_kind(const struct writer *writer)
{
	if (writer->resync || writer->stack_cut)
		return WIRE_STACK;
	return thread_self.greenlet_unknown ? WIRE_GREENLET_STACK : WIRE_OPEN;
}

/* The next stack of the thread comes later, so those of greenlets are a small part of the words. */
static void put_greenlet_stack(struct writer *writer, struct stack *stack)
{
	if (stack->count > WIRE_GREENLET_FRAMES_MAX) {
		stack->count = WIRE_GREENLET_FRAMES_MAX;
		stack->more = true;
	}
	if (stack->count) /* else it begins */
		write_stack(writer, stack, WIRE_GREENLET_STACK);
	if (writer->stack_due > writer->head)
		writer->stack_due += (uint64_t)stack->count * GREENLET_FRAME_WORDS;
	greenlet_stacks_written(stack->count);
}

static void put_stack(struct writer *writer, unsigned kind)
{
	bool with_lines = config.events & EVENT_LINE;
	uint32_t some[STACK_SMALL];
	int some_lines[STACK_SMALL];
	struct stack stack = {.ids = some, .lines = with_lines ? some_lines : NULL};
	uint64_t most = most_frames(writer);
	size_t bytes = most * (sizeof(*stack.ids) + (with_lines ? sizeof(*stack.lines) : 0));
	unsigned written = stack_kind(writer);

	read_stack(&stack, kind, most < STACK_SMALL ? (uint32_t)most : STACK_SMALL);
	thread_self.nesting++;
	if (stack.more && most > STACK_SMALL) {
		stack.ids =
		    mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (stack.ids == MAP_FAILED) {
			stack.ids = some;
		} else {
			stack.lines = with_lines ? (int *)(stack.ids + most) : NULL;
			read_stack(&stack, kind, (uint32_t)most);
		}
	}
	fit_stack(writer, &stack);
	writer->resync = 0;
	writer->knows_stack = 0; /* nor does a reader that begins here know the place (memory_place.h) */
	if (written == WIRE_GREENLET_STACK) {
		put_greenlet_stack(writer, &stack);
	} else {
		/* A known stack is repeated as a whole or not at all. */
		if (written == WIRE_STACK || !stack.more)
			write_stack(writer, &stack, written);
		else
			stack.more = false;
		note_stack(writer, &stack);
	}
	if (stack.ids != some)
		munmap(stack.ids, bytes);
	thread_self.nesting--;
}

/* How much of the room may be used before the next slow path. */
static uint64_t next_look(const struct writer *writer, uint64_t room)
{
	uint64_t most = stack_every(0);

	if (stack_is_due(writer))
		most = STACK_SOON_WORDS; /* most likely this is a memory event */
	else if (writer->stack_due > writer->head && writer->stack_due - writer->head < most)
		most = writer->stack_due - writer->head;
	if (config.events & EVENT_CPU && cpu_words_left(writer) < most)
		most = cpu_words_left(writer);
	if (most > REJOIN_EVERY_WORDS)
		most = REJOIN_EVERY_WORDS;
	if (unlikely(refill_before_call != NULL) && !thread_self.greenlets)
		most = 1; /* the next event calls it again */
	return room < most ? room : most;
}

/* Whether something was requested (process_expect_stacks()) since the last call of this function. */
static bool note_asked(struct writer *writer)
{
	uint8_t asked = __atomic_exchange_n(&writer->asked, 0, __ATOMIC_SEQ_CST);

	if (!asked)
		return false;
	thread_self.thin_due |= (asked & WRITER_ASKED_THIN) != 0;
	if (asked == WRITER_ASKED_THIN)
		return true;
	if (asked & WRITER_ASKED_PAUSE)
		writer->paused = 1;
	expect_stack(writer);
	return true;
}

/* Waits for room. A collector that died meanwhile may have a successor, which another thread may have joined. */
static bool find_room(struct writer *writer, unsigned kind)
{
	note_asked(writer);
	for (unsigned i = 0; room_of(writer) <= ROOM_WANTED && i < COLLECTORS_IN_TURN; i++) {
		uint32_t heartbeat = atomic_load(&process->header->heartbeat);
		bool may_wait = wait_is_allowed();
		int waited = wait_for_room(writer);

		if (waited > 0)
			return true;
		if (!may_wait)
			return false;
		rejoin_if_lost(kind, REJOIN_NOW);
		if (!note_asked(writer)) {
			if (waited < 0)
				wait_give_up(heartbeat);
			return false;
		}
	}
	return room_of(writer) > ROOM_WANTED;
}

/*
 * A read from a present page also maps the pages around it, writable: the collector has allocated them (drain.c). Left
 * out for threads with few events, because reading from an absent page allocates it.
 */
static void map_ahead(const struct writer *writer)
{
	if (writer->head >= REJOIN_EVERY_WORDS && writer->head <= writer->mask)
		__atomic_load_n(&writer->words[(writer->head + REJOIN_EVERY_WORDS) & writer->mask], __ATOMIC_RELAXED);
}

/* Whether the event is one of a hook, and the program does not run (hooks/program.h). */
static bool is_left_out(unsigned kind)
{
	return thread_self.outside && kind < WIRE_THREAD_START;
}

/* Readers that begin in the middle get it where they get the stack. */
static void put_thin(struct writer *writer)
{
	bool due = thread_self.thin_due || (thin_any() && stack_is_due(writer));

	thread_self.thin_due = false;
	if (unlikely(due))
		thin_put(writer);
}

static struct writer *refill(struct writer *writer, unsigned kind)
{
	uint64_t room;

	room_show_held(writer);
	room_wake_collector(writer);
	map_ahead(writer);
	rejoin_if_lost(kind, REJOIN_AT_TIMES);
	if (unlikely(refill_before_call != NULL) && kind < WIRE_EXCEPTION)
		refill_before_call();
	if (!find_room(writer, kind)) {
		writer_lose(writer, kind);
		return NULL;
	}
	note_asked(writer);
	close_gap(writer);
	put_pause(writer);
	put_thin(writer);
	if (writer->head >= writer->stack_due)
		writer->knows_stack = 0;
	if (puts_stack(writer, kind))
		put_stack(writer, kind);
	if (is_left_out(kind)) /* the stack shows that the program has ended */
		return NULL;
	if (cpu_is_due(writer))
		writer_put_time(writer, clock_now());
	room = room_of(writer);
	if (room <= 2 * WRITER_SPARE_WORDS) {
		writer_lose(writer, kind);
		return NULL;
	}
	room = next_look(writer, room - WRITER_SPARE_WORDS);
	invariant(room + WRITER_SPARE_WORDS <= writer->mask + 1);
	room = writer->resync || thread_self.greenlet_unknown ? 0 : writer->head + room;
	writer_set_room(writer, room, 0);
	writer_take_chunk(writer);
	return writer;
}

static struct writer *find_or_begin(unsigned kind)
{
	bool recording = life_recording();
	struct writer *writer = thread_self.writer; /* joining may have changed it */

	if (recording && writer == &writer_ended && config.events & EVENT_MALLOC)
		lose_unslotted(kind); /* of libc's own, after the destructors */
	if (!recording || writer == &writer_ended || is_left_out(kind)) {
		if (writer->slot) /* calls and returns go unrecorded */
			expect_stack(writer);
		return NULL;
	}
	if (!writer->slot) {
		/* A search looks at all slots, under the lock: once in so many lost events. */
		if (!(thread_self.unslotted % WRITER_LOSE_AT_ONCE))
			wait_for(begin_or_expect_none, NULL);
		writer = thread_self.writer;
		if (!writer->slot) {
			thread_self.unslotted++;
			lose_unslotted(kind);
			return NULL;
		}
		expect_stack(writer);
		writer_put_number(writer, WIRE_THREAD_START, 0);
	}
	return refill(writer, kind);
}

/* What the slow path leaves as it was. */
struct slow {
	int saved_errno, cancel_state;
};

static void slow_begin(struct slow *slow)
{
	slow->saved_errno = errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &slow->cancel_state);
	writer_enter();
}

static void slow_end(const struct slow *slow)
{
	writer_leave();
	pthread_setcancelstate(slow->cancel_state, NULL);
	errno = slow->saved_errno;
}

static __attribute__((noinline)) struct writer *look_for_room(unsigned kind)
{
	struct writer *writer;
	struct slow slow;

	slow_begin(&slow);
	writer = find_or_begin(kind);
	slow_end(&slow);
	return writer;
}

/* Whether the calling thread's writer still is this one, and may write without waiting. */
static bool may_write_now(const struct writer *writer)
{
	return life_recording() && writer == thread_self.writer && writer->slot && room_of(writer) > ROOM_WANTED;
}

void writer_put_greenlet_stack(void)
{
	struct writer *writer = thread_self.writer;
	struct slow slow;

	slow_begin(&slow);
	if (may_write_now(writer) && stack_kind(writer) == WIRE_GREENLET_STACK) {
		room_show_held(writer);
		put_stack(writer, WIRE_C_RETURN);
	} else {
		writer_set_room(writer, 0, 0);
	}
	slow_end(&slow);
}

void writer_look(unsigned kind)
{
	struct writer *writer = thread_self.writer;
	struct slow slow;

	if (writer_finds_room(writer))
		return;
	slow_begin(&slow);
	if (may_write_now(writer))
		refill(writer, kind);
	slow_end(&slow);
}

static bool has_no_quarter(struct writer *writer)
{
	if (!(writer->gap % WRITER_LOSE_AT_ONCE) || atomic_load(&process->status) != PROCESS_JOINED ||
	    room_has_quarter(writer))
		return false;
	room_lose_until_tail_moves(writer);
	return true;
}

struct writer *writer_refill(unsigned kind)
{
	struct writer *writer = thread_self.writer;

	if (writer->head < __atomic_load_n(&writer->room, __ATOMIC_RELAXED)) {
		writer_take_chunk(writer);
		return writer;
	}
	if ((kind >= WIRE_TIME && kind != WIRE_LINE) || !(writer_goes_on_losing(writer) || has_no_quarter(writer)))
		return look_for_room(kind);
	room_count_lost(writer, kind);
	return NULL;
}

void writer_put_rare(unsigned kind, uint64_t number)
{
	struct writer *writer;

	if (!room_may_write(kind))
		return;
	writer = writer_reserve(kind);
	writer_enter();
	if (writer)
		writer_put_number(writer, kind, number);
	room_settle(thread_self.writer);
	writer_leave();
}

/*
 * A slot is released while recording is stopped, too; the end of its thread is then not recorded. Recording may have
 * been started since the thread looked.
 */
static bool is_stopped_or_started(void)
{
	uint32_t status = atomic_load(&process->status);

	return status == PROCESS_STOPPED || status == PROCESS_LEFT || status == PROCESS_JOINED;
}

void writer_end_thread(void)
{
	struct writer *writer = thread_self.writer;
	struct ring_slot *slot = writer->slot;
	int recording;

	thread_self.writer = &writer_ended;
	if (!slot)
		return;
	memory_stack_end();
	greenlet_stacks_end();
	recording = life_recording();
	if (!recording && !is_stopped_or_started())
		return;
	process_lock(); /* keeps rejoin.c from exchanging the memory under an ending thread */
	room_show_held(writer);
	if (recording && room_of(writer) > WRITER_SPARE_WORDS)
		writer_put_number(writer, WIRE_THREAD_END, 0);
	atomic_fetch_add_explicit(&process->words_ended, writer->head - writer->thin_words, memory_order_relaxed);
	writer->slot = NULL;
	/*
	 * Release: all words of the ring are visible before the slot is seen to have ended. This comes last: from here
	 * on slot and writer may belong to another thread.
	 */
	atomic_store_explicit(&slot->state, RING_SLOT_ENDED, memory_order_release);
	process_unlock();
}
