/*
 * write.h - writes what alive_follow_next() has counted as a trace: live blocks as allocations at their times, with
 * their stacks, and what is gone as sums by stack (WIRE_FREED).
 *
 * Each process has one thread for all of them, which stands for its main thread: it ends the program at its time. What
 * came after that is in a second one. So readers of a trace find there what the program held when it ended, without
 * what finalization frees. Names are those that the stacks use.
 */
#ifndef EVPROF_TOOLS_ALIVE_WRITE_H
#define EVPROF_TOOLS_ALIVE_WRITE_H

#include <jansson.h>

#include "alive/follow.h"

/*
 * To fd, an empty file, which is closed. kinds: the description of the kinds, or NULL. Returns 0, -ENOMEM, or the
 * -errno of writing.
 */
int alive_write(struct alive_follow *follow, const char *kinds, int fd);
/*
 * The same to a file, which appears when it is complete. like: whoever may read that file may read this one, which may
 * take its place; NULL: the owner only. Returns 0, or -errno after a line on stderr.
 */
int alive_write_file(struct alive_follow *follow, const char *kinds, const char *path, const char *like);

#endif
