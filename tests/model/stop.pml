/*
 * stop.pml - a thread gives itself room while another stops the recording, for spin. Run by tests/model/run.sh.
 *
 * The one place of the protocol where each side writes first and then looks at what the other has written (refill() in
 * preload/life/refill.c, process_set_status() in preload/ring/process.c), which release and acquire do not order. So
 * here a store waits in a buffer of its thread and becomes visible at any later time, in any order with the thread's
 * stores to other places (as on aarch64); the thread itself sees it at once. A sequentially consistent store is visible
 * before its thread goes on.
 *
 * Asserted: once the stop is through and nothing is on its way, the thread has no room.
 */
#define JOINED 1
#define STOPPED 2

byte status = JOINED, room, limit; /* what all see */
bool room_waits[2], limit_waits[2], status_waits;
byte room_to_be[2], limit_to_be[2];
byte through; /* of the two below */

inline store_room(who, what)
{
	d_step { room_to_be[who] = what; room_waits[who] = true }
#ifndef MISTAKE_RELAXED_ROOM
	!room_waits[who]
#endif
}

inline store_limit(who, what)
{
	d_step { limit_to_be[who] = what; limit_waits[who] = true }
#ifndef MISTAKE_RELAXED_ROOM
	!limit_waits[who]
#endif
}

active proctype refill()
{
#ifdef MISTAKE_LIMIT_AFTER_LOOK
	store_room(0, 1);
	if
	:: status != JOINED -> store_room(0, 0); store_limit(0, 0)
	:: else -> store_limit(0, 1)
	fi;
#else
	store_room(0, 1);
	store_limit(0, 1);
	if
	:: status != JOINED -> store_room(0, 0); store_limit(0, 0)
	:: else
	fi;
#endif
	through++
}

active proctype set_status()
{
	status_waits = true;
#ifndef MISTAKE_RELAXED_STATUS
	!status_waits;
#endif
	store_room(1, 0);
	store_limit(1, 0);
	through++
}

/* The stores become visible. */
active proctype memory()
{
	do
	:: d_step { status_waits -> status = STOPPED; status_waits = false }
	:: d_step { room_waits[0] -> room = room_to_be[0]; room_waits[0] = false }
	:: d_step { room_waits[1] -> room = room_to_be[1]; room_waits[1] = false }
	:: d_step { limit_waits[0] -> limit = limit_to_be[0]; limit_waits[0] = false }
	:: d_step { limit_waits[1] -> limit = limit_to_be[1]; limit_waits[1] = false }
	:: atomic {
		through == 2 && !status_waits && !room_waits[0] && !room_waits[1] && !limit_waits[0] && !limit_waits[1] ->
		assert(room == 0 && limit == 0);
		break
	   }
	od
}
