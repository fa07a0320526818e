/*
 * ring.pml - the protocol of the shared memory (include/evprof/ring.h, docs/wire.md), for spin. Run by tests/model/run.sh.
 *
 * THREADS threads of a process take SLOTS slots, LIVES times each, and write EVENTS events into rings of WORDS words; one
 * collector reads as drain.c does, step by step. Every access to shared memory is a step of its own. The process
 * may die at any step of any thread (dead); the collector then reads what is there once more.
 *
 * Words carry the life and the number of their event, so that the collector can say what it must find. What the model
 * knows beyond that (unread, committed, ...) is there to be asserted, and never decides what a thread does.
 *
 * Memory: interleavings of steps in program order. The pairs of release and acquire in ring.h order all else that is
 * shared (that they do is what the thread sanitizer checks, tests/stress), so nothing weaker can be seen but where two
 * sides each write one place and then look at another's: that is the stop, in stop.pml. What a missing release would
 * allow is seeded as a mistake, like others (MISTAKE_...): with one of them defined an assertion must fail.
 */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef LIVES
#define LIVES 1
#endif
#ifndef EVENTS
#define EVENTS 3
#endif
#ifndef HOLDS
#define HOLDS 0 /* 1: events may be held, and be taken back */
#endif
#define WORDS 4 /* of a ring */
#define NAMES 2 /* definitions that events use ... */
#define RECORDS 1 /* ... that fit their ring */

#define FREE 0
#define CLAIMED 1
#define LIVE 2
#define ENDED 3

#define NOTHING 0
#define EVENT 1
#define EXTRA 2
#define GAP 3 /* the word behind it says how many */

#define PLACE(slot, at) ((slot) * WORDS + (at) % WORDS)

/* Shared memory. */
byte state[SLOTS], tid[SLOTS], head[SLOTS], held[SLOTS], tail[SLOTS], lost[SLOTS];
byte kind[SLOTS * WORDS], value[SLOTS * WORDS];
byte definitions_head, definitions_tail, record[RECORDS];
bool waiting, dead;

/* The process's own. */
bool lock, writer_has_slot[SLOTS];
bool given[NAMES + 1];

/* What only assertions look at. */
bool unread[SLOTS * WORDS], record_unread[RECORDS], lives[SLOTS], in_trace[NAMES + 1];
byte committed, emitted, read_events, reported_lost, read_lost;

#define LONG 128 /* in the value of an event that has an extra word */

/* What stands in an event: which name it uses, and its number in the life. */
#define NAME_OF(number) (1 + (number) % NAMES)

inline acquire_lock()
{
	atomic { !lock -> lock = true }
}

inline write_word(slot, at, what, content)
{
	d_step {
		assert(!unread[PLACE(slot, at)]); /* nothing is overwritten before it was read */
		unread[PLACE(slot, at)] = true;
		kind[PLACE(slot, at)] = what;
		value[PLACE(slot, at)] = content;
	}
}

/* head is stored; what it makes visible is what counts as emitted. */
inline publish(slot, at, events, gone)
{
	d_step {
		assert(writer_has_slot[slot]); /* the writer knows its ring */
		head[slot] = at;
		assert(head[slot] >= tail[slot] && head[slot] - tail[slot] <= WORDS);
		committed = committed + events;
		reported_lost = reported_lost + gone;
	}
}

/* The id of a name; known is false where its definition found no room. */
inline define(name)
{
	known = true;
	if
	:: given[name]
	:: else ->
		acquire_lock();
#ifdef MISTAKE_EVENT_BEFORE_DEFINITION
		late = name;
#else
		write_definition(name);
#endif
		lock = false
	fi
}

inline write_definition(name)
{
	if
	:: given[name] /* another thread was first */
	:: else ->
		do /* wait_for(): within a bound, which may be over at any time */
		:: definitions_head - definitions_tail < RECORDS -> break
		:: definitions_head - definitions_tail >= RECORDS -> waiting = true
		:: definitions_head - definitions_tail >= RECORDS -> waiting = false; known = false; break
		od;
		if
		:: known ->
			d_step {
				assert(!record_unread[definitions_head % RECORDS]);
				record_unread[definitions_head % RECORDS] = true;
				record[definitions_head % RECORDS] = name
			}
			definitions_head++;
			given[name] = true
		:: else
		fi
	fi
}

/* The lowest free slot, or none. */
inline claim()
{
	mine = 0;
	acquire_lock();
	do
	:: mine < SLOTS ->
#ifdef MISTAKE_CLAIM_WITHOUT_COMPARE
		lock = false; /* the lock would hide it */
		if
		:: state[mine] == FREE -> state[mine] = CLAIMED; break
		:: else -> mine++
		fi
#else
		if
		:: atomic { state[mine] == FREE -> state[mine] = CLAIMED }; break
		:: state[mine] != FREE -> mine++
		fi
#endif
	:: else -> break
	od
}

inline begin()
{
	d_step { assert(!lives[mine]); lives[mine] = true }
#ifdef MISTAKE_LIVE_BEFORE_START
	state[mine] = LIVE;
	tid[mine] = _pid;
#else
	tid[mine] = _pid;
#endif
	writer_has_slot[mine] = true;
	at = 0;
	gap = 0;
	holds = 0;
	held[mine] = 0;
	state[mine] = LIVE;
	lock = false
}

#ifdef MISTAKE_ROOM
#define HAS_ROOM(words) (at - tail[mine] + (words) <= WORDS + 1)
#else
#define HAS_ROOM(words) (at - tail[mine] + (words) <= WORDS)
#endif

/* Room for that many words, waited for within a bound. */
inline reserve(words)
{
	room = true;
	do
	:: HAS_ROOM(words) -> break
	:: !HAS_ROOM(words) -> waiting = true
	:: !HAS_ROOM(words) -> waiting = false; room = false; break
	od
}

inline lose()
{
	d_step { lost[mine]++; gap++ }
}

inline write(extra)
{
	write_word(mine, at, EVENT, tid[mine] * 16 + number + extra * LONG);
	if
	:: extra -> write_word(mine, at + 1, EXTRA, tid[mine] * 16 + number)
	:: else
	fi;
	at = at + 1 + extra
}

inline put()
{
#ifdef MISTAKE_HEAD_BEFORE_WORDS
	publish(mine, at + 1 + number % 2, 1 + holds, 0);
#endif
	write(number % 2);
#ifndef MISTAKE_HEAD_BEFORE_WORDS
	publish(mine, at, 1 + holds, 0);
#endif
	holds = 0
}

/* In place of put(): published with the next event. */
inline hold()
{
	write(number % 2);
	d_step { held[mine] = at; holds = 1 }
}

/* An event is held, and taken back for the next one, which is shorter or as long. */
inline hold_in_vain()
{
	write(1);
	held[mine] = at;
#ifndef MISTAKE_TAKEN_BACK_UNSAID
	held[mine] = 0;
#endif
	d_step {
		at = at - 2;
		unread[PLACE(mine, at)] = false;
		unread[PLACE(mine, at + 1)] = false
	}
}

inline show_held()
{
	if
	:: holds -> publish(mine, at, 1, 0); holds = 0
	:: else
	fi
}

inline put_gap()
{
	write_word(mine, at, GAP, 0);
	write_word(mine, at + 1, EXTRA, gap);
	at = at + 2;
	publish(mine, at, 0, gap);
	gap = 0
}

inline end()
{
	show_held();
#ifdef MISTAKE_WRITER_AFTER_END
	d_step { state[mine] = ENDED; lives[mine] = false }
	writer_has_slot[mine] = false
#else
	writer_has_slot[mine] = false;
	d_step { state[mine] = ENDED; lives[mine] = false }
#endif
}

inline event()
{
	if
	:: gap == 0 && HAS_ROOM(2) /* the fast path */
	:: gap > 0 || holds || !HAS_ROOM(2) -> show_held()
	fi;
	reserve((gap > 0 -> 4 : 2));
	if
	:: !room -> lose()
	:: else ->
		if
		:: gap > 0 -> put_gap()
		:: else
		fi;
		define(NAME_OF(number));
		if
		:: HOLDS && known && !holds -> hold_in_vain(); put()
		:: HOLDS && known && !holds -> hold()
		:: known -> put()
		:: else -> show_held(); lose()
		fi;
#ifdef MISTAKE_EVENT_BEFORE_DEFINITION
		if
		:: late -> acquire_lock(); write_definition(late); lock = false; late = 0
		:: else
		fi
#endif
	fi
}

proctype thread()
{
	byte mine, at, gap, number, life;
	bool known, room, holds;
#ifdef MISTAKE_EVENT_BEFORE_DEFINITION
	byte late;
#endif

	{
		do
		:: life < LIVES ->
			claim();
			if
			:: mine < SLOTS ->
				begin();
				number = 0;
				do
				:: number < EVENTS -> event(); number++
				:: else -> break
				od;
				end()
			:: else -> lock = false /* lost, and counted elsewhere */
			fi;
			life++
		:: else -> break
		od
	} unless { dead }
}

/* It may happen between any two steps, or when all is done. */
proctype death()
{
	dead = true
}

/* ---- The collector: drain_process() ---- */

bool reader[SLOTS], reader_ended[SLOTS], wanted[SLOTS];
byte reader_tid[SLOTS], reader_head[SLOTS], reader_tail[SLOTS], reader_next[SLOTS], reader_gaps[SLOTS];

inline read_head()
{
#ifdef MISTAKE_STATE_AFTER_HEAD
	seen_head = head[i];
	seen = state[i];
#else
	seen = state[i];
	seen_head = head[i];
#endif
	/* Whoever is dead takes nothing back: what is held counts as committed. */
	if
	:: last && held[i] > seen_head -> d_step { seen_head = held[i]; committed++ }
	:: else
	fi;
	if
	:: !reader[i] && (seen == FREE || (seen == CLAIMED && !(last && seen_head > 0)))
	:: else ->
		if
		:: !reader[i] ->
			assert(tid[i] != 0); /* what stands in the slot is there before LIVE */
			d_step {
				reader[i] = true;
				reader_tid[i] = tid[i];
				reader_tail[i] = tail[i];
				reader_next[i] = 0;
				reader_gaps[i] = 0
			}
		:: else
		fi;
		d_step {
			assert(seen_head >= reader_tail[i] && seen_head - reader_tail[i] <= WORDS);
			reader_head[i] = seen_head;
			reader_ended[i] = (seen == ENDED)
		}
	fi
}

inline read_definitions()
{
	do
	:: definitions_tail < limit ->
		d_step {
			assert(record_unread[definitions_tail % RECORDS]);
			record_unread[definitions_tail % RECORDS] = false;
			assert(!in_trace[record[definitions_tail % RECORDS]]);
			in_trace[record[definitions_tail % RECORDS]] = true
		}
		definitions_tail++
	:: else -> break
	od
}

/* One word of the copy, and what it must be. */
inline read_word()
{
	d_step {
		assert(unread[PLACE(i, copied)]); /* it was written, and not read before */
		unread[PLACE(i, copied)] = false;
		if
		:: kind[PLACE(i, copied)] == EVENT ->
			assert(!half);
			assert(value[PLACE(i, copied)] % LONG == reader_tid[i] * 16 + reader_next[i]);
			assert(in_trace[NAME_OF(reader_next[i])]); /* known before it is used */
			half = value[PLACE(i, copied)] / LONG;
			read_events++;
			reader_next[i]++
		:: kind[PLACE(i, copied)] == EXTRA && half == 1 ->
			assert(value[PLACE(i, copied)] == reader_tid[i] * 16 + reader_next[i] - 1);
			half = 0
		:: kind[PLACE(i, copied)] == EXTRA && half == 2 ->
			reader_next[i] = reader_next[i] + value[PLACE(i, copied)];
			reader_gaps[i] = reader_gaps[i] + value[PLACE(i, copied)];
			half = 0
		:: kind[PLACE(i, copied)] == GAP -> assert(!half); half = 2
		:: else -> assert(false)
		fi;
		copied++
	}
}

inline read_words()
{
	copied = reader_tail[i];
#ifdef MISTAKE_TAIL_BEFORE_COPY
	tail[i] = reader_head[i];
#endif
	do
	:: copied < reader_head[i] -> read_word()
	:: else -> break
	od;
	assert(!half); /* an event is there as a whole or not at all */
	reader_tail[i] = copied;
#ifndef MISTAKE_TAIL_BEFORE_COPY
	tail[i] = copied
#endif
}

inline close_reader()
{
	d_step {
		assert(lost[i] >= reader_gaps[i]);
		read_lost = read_lost + lost[i];
		reader[i] = false
	}
}

inline release_slot()
{
	d_step { assert(!lives[i]); assert(reader_tail[i] == head[i]) } /* its thread has gone, and all was read */
	head[i] = 0;
	held[i] = 0;
	tail[i] = 0;
	lost[i] = 0;
	tid[i] = 0;
	state[i] = FREE
}

inline round()
{
#ifdef MISTAKE_DEFINITIONS_BEFORE_HEAD
	limit = definitions_head;
#endif
	needed = last || waiting;
	i = 0;
	do
	:: i < SLOTS ->
		read_head();
		if
		:: reader[i] && (last || reader_ended[i]) -> wanted[i] = true; needed = true
		:: reader[i] && !last && !reader_ended[i] -> wanted[i] = true; needed = true
		:: !last && !reader_ended[i] -> wanted[i] = false /* it may gather a little first */
		:: !reader[i] -> wanted[i] = false
		fi;
		i++
	:: else -> break
	od;
#ifndef MISTAKE_DEFINITIONS_BEFORE_HEAD
	limit = definitions_head;
#endif
	if
	:: needed -> read_definitions()
	:: else
	fi;
	i = 0;
	do
	:: i < SLOTS ->
		if
		:: reader[i] ->
#ifdef MISTAKE_FREE_BEFORE_DRAINED
			if
			:: reader_ended[i] && !last -> state[i] = FREE
			:: else
			fi;
#endif
			if
			:: wanted[i] -> read_words()
			:: else
			fi;
			if
			:: reader_ended[i] && !last -> close_reader(); release_slot()
			:: else
			fi
		:: else
		fi;
		i++
	:: else -> break
	od
}

byte counted_lost; /* by writers, of which the collector knows */

proctype collector()
{
	byte i, seen, seen_head, limit, copied, half;
	bool last, needed;

	do
	:: !last ->
		last = dead; /* the pidfd: whoever is dead writes no more */
		round()
	:: else -> break
	od;
	/* drain_end() */
	i = 0;
	do
	:: i < SLOTS ->
		if
		:: reader[i] -> close_reader()
		:: else
		fi;
		i++
	:: else -> break
	od;
	assert(read_events == committed); /* everything committed is in the trace, once */
	assert(definitions_tail == definitions_head);
	assert(read_lost >= reported_lost)
}

init
{
	byte n;

	atomic {
		do
		:: n < THREADS -> run thread(); n++
		:: else -> break
		od;
		run collector();
		run death()
	}
}
