/*
 * awaited.h - the first process of a session whose collector was killed: it may be asleep and not know yet that another
 * collector has taken its place, which stays until it joins or ends.
 */
#ifndef COLLECTOR_AWAITED_H
#define COLLECTOR_AWAITED_H

#include <stdbool.h>
#include <sys/types.h>

#include "loop.h"

struct awaited {
	struct loop_source source; /* fd: a pidfd, owned */
	struct loop *loop;	   /* NULL: nobody is awaited */
	pid_t pid;
};

/* pid 0, or one that is nobody's here: nobody is awaited. */
void awaited_init(struct awaited *awaited, struct loop *loop, pid_t pid);
void awaited_done(struct awaited *awaited);

/* A process with this pid has joined. */
void awaited_joined(struct awaited *awaited, pid_t pid);
bool awaited_any(const struct awaited *awaited);

#endif
