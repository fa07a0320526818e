/*
 * own_stack.c - see own_stack.h.
 *
 * While execution is off the alternate stack, the kernel considers that stack free, and would overwrite its content
 * with the frame of a second signal. So all signals are blocked meanwhile. A program that ends is not returned to; what
 * is written at a fork or an exec is short.
 */
#include "base/own_stack.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#define STACK_BYTES (64 * 1024)

/* One for all threads. A thread that finds it in use stays on its present stack. */
static _Alignas(64) char stack[STACK_BYTES];
static ucontext_t here, there; /* the contexts of the thread that uses the stack */
static atomic_flag taken = ATOMIC_FLAG_INIT;
static void (*wanted)(void *);
static void *wanted_argument;

/*
 * The thread's alternate stack. It is stored, because a seccomp filter may end a process that asks the kernel for it.
 */
static __thread stack_t alternate __attribute__((tls_model("initial-exec")));

void own_stack_note(const stack_t *set)
{
	static const stack_t none;

	alternate = set->ss_flags & SS_DISABLE ? none : *set;
}

static bool on_alternate_stack(void)
{
	return (uintptr_t)__builtin_frame_address(0) - (uintptr_t)alternate.ss_sp < alternate.ss_size;
}

static void run_wanted(void)
{
	wanted(wanted_argument);
}

/* Runs the call on the stack, which this thread owns now. */
static bool call_there(void)
{
	if (getcontext(&there) < 0)
		return false;
	there.uc_stack = (stack_t){.ss_sp = stack, .ss_size = sizeof(stack)};
	there.uc_link = &here;
	makecontext(&there, run_wanted, 0);
	return swapcontext(&here, &there) == 0;
}

void own_stack_call(void (*call)(void *argument), void *argument)
{
	int saved_errno = errno;
	sigset_t all, before;
	bool done;

	if (!on_alternate_stack() || atomic_flag_test_and_set(&taken)) {
		call(argument);
		errno = saved_errno;
		return;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	wanted = call;
	wanted_argument = argument;
	done = call_there();
	atomic_flag_clear(&taken);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!done)
		call(argument);
	errno = saved_errno;
}

void own_stack_forked(void)
{
	atomic_flag_clear(&taken);
}
