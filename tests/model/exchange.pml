/*
 * exchange.pml - the shared memory is exchanged while threads write (preload/ring/exchange.c), for spin. Run by
 * tests/model/run.sh.
 *
 * THREADS threads write EVENTS events of one or two words, each into a ring of its own. A thread looks at its room once for
 * an event; from then on nothing stops it, and each store goes to the memory that is mapped at that moment: `mapped`. Where it
 * has no room it looks at the status, waits for the lock if the memory is being exchanged, takes what room there is, and looks
 * at the status again. Without room in the ring an event is lost, and counted in the memory that is mapped. The collector
 * of the old memory has read some of it and is dead. The exchange is that of exchange.c, step by step; the new collector reads
 * whatever is published once it has the memory. The process may die at any step.
 *
 * Asserted: a word that the new collector reads is the one that was meant; nothing is read twice; when all is over every
 * event that was published is in what either collector has read, and so is every loss. With one of the mistakes defined
 * (MISTAKE_...) an assertion must fail.
 *
 * Memory: interleavings in program order. mmap() does not return before all processors have given up the old mapping, and
 * with it all stores that went there; release and acquire order the rest (ring.h).
 */
#ifndef THREADS
#define THREADS 1
#endif
#ifndef EVENTS
#define EVENTS 3
#endif
#define WORDS 4
#define PENDING 2 /* words of the longest event: what a thread may be about to store */

#define OLD 0
#define NEW 1

#define JOINED 1
#define MOVING 2

#define NOBODYS 255
#define PLACE(memory, thread, at) (((memory) * THREADS + (thread)) * WORDS + (at) % WORDS)
#define OF(memory, thread) ((memory) * THREADS + (thread))

/* Both memories. A word is the number of its event, from 1, twice, plus 1 for a second word; 0 is what nobody has written. */
byte word[2 * THREADS * WORDS];
byte head[2 * THREADS], tail[2 * THREADS], lost[2 * THREADS];
bit mapped; /* which one the process has at its address */

/* The process's own. */
byte status = JOINED, room[THREADS]; /* the head from which on there is none */
bool lock, dead, given;

/* What only assertions look at. */
byte committed[THREADS], dropped[THREADS], finished;
byte read_events[THREADS], read_head[THREADS], base[THREADS];

inline acquire_lock()
{
	atomic { !lock -> lock = true }
}

inline store_word(value)
{
	d_step { word[PLACE(mapped, me, at)] = value; at++ }
}

/* writer_refill(): room for one event of two words, or none. */
inline refill()
{
	acquire = (status == MOVING);
	if
	:: acquire -> acquire_lock(); lock = false
	:: else
	fi;
	free = WORDS - (at - tail[OF(mapped, me)]);
	assert(free <= WORDS); /* the tail that it sees is one of this ring */
	if
	:: free >= PENDING ->
		room[me] = at + free - PENDING + 1;
		if
		:: status != JOINED -> room[me] = 0
		:: else
		fi
	:: else ->
#ifdef MISTAKE_LOSS_LOADED_AND_STORED
		count = lost[OF(mapped, me)];
		d_step { lost[OF(mapped, me)] = count + 1; dropped[me]++ }
#else
		d_step { lost[OF(mapped, me)]++; dropped[me]++ }
#endif
		gone = true
	fi
}

inline put()
{
	store_word(2 * number);
	if
	:: number % 2 == 0 -> store_word(2 * number + 1)
	:: else
	fi;
	d_step { head[OF(mapped, me)] = at; committed[me]++ }
}

proctype thread(byte me)
{
	byte at, number, free, count;
	bool acquire, gone;

	{
		number = 1;
		do
		:: number <= EVENTS ->
			gone = false;
			if
			:: at < room[me]
			:: else -> refill()
			fi;
			if
			:: gone
			:: else -> put()
			fi;
			number++
		:: else -> break
		od;
		finished++
	} unless { dead }
}

/* ---- what has read before: any number of whole events of each thread ------------------------------------------------ */

inline event_at(memory, who, place)
{
	value = word[PLACE(memory, who, place)]
}

/* The old collector, at any time before the exchange; it dies after any of these steps. */
inline old_collector()
{
	t = 0;
	do
	:: t < THREADS && !dead ->
		do
		:: tail[OF(OLD, t)] < head[OF(OLD, t)] ->
			d_step {
				event_at(OLD, t, tail[OF(OLD, t)]);
				read_events[t]++;
				read_head[t] = read_head[t] + (value / 2 % 2 == 0 -> 2 : 1)
			}
			tail[OF(OLD, t)] = read_head[t]
		:: break
		od;
		t++
	:: else -> break
	od
}

/* ---- exchange_memory() ----------------------------------------------------------------------------------------------- */

inline take_rooms()
{
	t = 0;
	do
	:: t < THREADS -> room[t] = 0; t++
	:: else -> break
	od
}

#define PENDING_END(from) ((from) + PENDING < tail[OF(OLD, t)] + WORDS -> (from) + PENDING : tail[OF(OLD, t)] + WORDS)

inline prepare_slot()
{
#ifdef MISTAKE_TAIL_AFTER_MAPPING
	skip;
#else
	tail[OF(NEW, t)] = tail[OF(OLD, t)];
#endif
	h = head[OF(OLD, t)];
	head[OF(NEW, t)] = h;
#ifdef MISTAKE_COPY_BEFORE_MAPPING
	place = tail[OF(OLD, t)];
	do
	:: place < h -> word[PLACE(NEW, t, place)] = word[PLACE(OLD, t, place)]; place++
	:: else -> break
	od;
#endif
#if !defined(MISTAKE_NO_MARK) && !defined(MISTAKE_COPY_BEFORE_MAPPING)
	place = h;
	end = PENDING_END(h);
	do
	:: place < end -> word[PLACE(NEW, t, place)] = NOBODYS; place++
	:: else -> break
	od;
#endif
	base[t] = h
}

inline merge_slot()
{
#ifdef MISTAKE_TAIL_AFTER_MAPPING
	tail[OF(NEW, t)] = tail[OF(OLD, t)];
#endif
	h = head[OF(OLD, t)];
	assert(h - base[t] <= PENDING); /* after its room was taken a thread stores one event */
	place = tail[OF(OLD, t)];
	do
	:: place < h -> word[PLACE(NEW, t, place)] = word[PLACE(OLD, t, place)]; place++
	:: else -> break
	od;
#ifndef MISTAKE_PUBLISHED_ONLY
	place = h;
	end = PENDING_END(h);
	do
	:: place < end ->
#ifdef MISTAKE_NO_COMPARE
		word[PLACE(NEW, t, place)] = word[PLACE(OLD, t, place)];
#else
		atomic {
			if
			:: word[PLACE(NEW, t, place)] == NOBODYS ->
				word[PLACE(NEW, t, place)] = word[PLACE(OLD, t, place)]
			:: else
			fi
		}
#endif
		place++
	:: else -> break
	od;
#endif
#ifdef MISTAKE_HEAD_STORED
	head[OF(NEW, t)] = h;
#else
	atomic {
		if
		:: head[OF(NEW, t)] < h -> head[OF(NEW, t)] = h
		:: else
		fi
	}
#endif
#ifdef MISTAKE_LOSS_STORED
	lost[OF(NEW, t)] = lost[OF(OLD, t)]
#else
	lost[OF(NEW, t)] = lost[OF(NEW, t)] + lost[OF(OLD, t)]
#endif
}

inline merge()
{
	t = 0;
	do
	:: t < THREADS -> merge_slot(); t++
	:: else -> break
	od
}

proctype mover()
{
	byte t, place, end, h, value;

	{
		old_collector();
		acquire_lock();
		status = MOVING;
#ifndef MISTAKE_ROOM_LEFT
		take_rooms();
#endif
		t = 0;
		do
		:: t < THREADS -> prepare_slot(); t++
		:: else -> break
		od;
		mapped = NEW; /* mmap() */
#ifdef MISTAKE_COPY_BEFORE_MAPPING
		skip;
#elif defined(MISTAKE_GIVEN_BEFORE_MERGE)
		given = true;
		merge();
#else
		merge();
#endif
		given = true; /* handshake_send() */
		status = JOINED;
		take_rooms();
		lock = false;
		finished++
	} unless { dead }
}

/* ---- the new collector ------------------------------------------------------------------------------------------------ */

inline read_event()
{
	atomic {
		event_at(NEW, t, tail[OF(NEW, t)]);
		assert(value != 0 && value != NOBODYS && value % 2 == 0); /* the first word of an event */
		assert(value / 2 > reported_number[t]);			  /* of a later one than the last */
		reported_number[t] = value / 2;
		if
		:: value / 2 % 2 == 0 ->
			assert(tail[OF(NEW, t)] + 1 < seen);
			assert(word[PLACE(NEW, t, tail[OF(NEW, t)] + 1)] == value + 1);
			next = tail[OF(NEW, t)] + 2
		:: else -> next = tail[OF(NEW, t)] + 1
		fi;
		read_events[t]++
	}
	tail[OF(NEW, t)] = next
}

proctype collector()
{
	byte t, seen, value, next, reported_number[THREADS];
	bool last;

	do
	:: given && !last ->
		last = dead || finished == THREADS + 1;
		t = 0;
		do
		:: t < THREADS ->
			seen = head[OF(NEW, t)];
			do
			:: tail[OF(NEW, t)] < seen -> read_event()
			:: else -> break
			od;
			t++
		:: else -> break
		od
	:: dead && !given -> goto nothing /* its collector was dead, and it found no other */
	:: last -> break
	od;
	t = 0;
	do
	:: t < THREADS ->
		assert(read_events[t] == committed[t]);
		assert(lost[OF(NEW, t)] == dropped[t]);
		t++
	:: else -> break
	od;
nothing:
	skip
}

proctype death()
{
	dead = true
}

init
{
	byte n;

	atomic {
		do
		:: n < THREADS -> run thread(n); n++
		:: else -> break
		od;
		run mover();
		run collector();
		run death()
	}
}
