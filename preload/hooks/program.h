/*
 * program.h - EVPROF_PROGRAM_ONLY: what Python does in its main thread before and after the program is left out.
 *
 *   outside --(the program's code is called)--> inside --(that call ends)--> outside
 *
 * The thread that starts Python begins outside. There its writer has no room, so that each event takes the slow path,
 * and refill.c drops it. Code is the program's if Python itself runs it: the code of a script, of -c, of standard input
 * and of each line at the prompt; the module of -m, and the packages above it, which runpy imports first. While that
 * code runs, its definition has CODE_SLOW_PROGRAM: its end takes the slow path, too. Nothing is tested at other events.
 *
 * All other threads are the program's, and are recorded until they end. The child of a fork goes on as its parent.
 */
#ifndef PRELOAD_PROGRAM_H
#define PRELOAD_PROGRAM_H

#include <stdbool.h>

#include "base/config.h"
#include "python/python.h"
#include "ring/writer.h"

/* The calling thread starts Python. */
void program_begin(void);

/* No calls are recorded: the program cannot be told from what is around it, and all is recorded. */
void program_is_not_seen(void);

/* For the two functions below. */
bool program_reaches(struct object *code, bool starts);
void program_ends(void);

/*
 * Whether an event of code is to be recorded. starts: the event is a call; it may begin the program. Called before
 * there is room for the event. GIL held.
 */
static inline bool program_records(struct object *code, bool starts)
{
	return likely(!config.program_only) || program_reaches(code, starts);
}

/* The end of a call was recorded. It may be that of the program. GIL held. */
static inline void program_returns(const struct object *code)
{
	if (unlikely(code == thread_self.program))
		program_ends();
}

#endif
