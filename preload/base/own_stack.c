/*
 * own_stack.c - see own_stack.h.
 *
 * While execution is off the alternate stack, the kernel considers that stack free, and would overwrite its content
 * with the frame of a second signal. So all signals are blocked meanwhile. A program that ends is not returned to; what
 * is written at a fork or an exec is short.
 */
#include "base/own_stack.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __GLIBC__
#include <ucontext.h>
#endif

#define STACK_BYTES (64 * 1024)

/* One for all threads. A thread that finds it in use stays on its present stack. */
static _Alignas(64) char stack[STACK_BYTES];
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

bool own_stack_is_wanted(void)
{
	return (uintptr_t)__builtin_frame_address(0) - (uintptr_t)alternate.ss_sp < alternate.ss_size;
}

static void run_wanted(void)
{
	wanted(wanted_argument);
}

#ifdef __GLIBC__
static ucontext_t here, there; /* the contexts of the thread that uses the stack */

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
#else
/* The same for musl, which has no contexts. A register that the callee saves keeps the present stack pointer. */
static bool call_there(void)
{
	char *top = stack + sizeof(stack);

#ifdef __x86_64__
	__asm__ volatile("movq %%rsp, %%rbx; movq %0, %%rsp; call *%1; movq %%rbx, %%rsp"
			 :
			 : "r"(top), "r"(run_wanted)
			 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2",
			   "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
			   "xmm14", "xmm15", "cc", "memory");
#else
	__asm__ volatile("mov x19, sp; mov sp, %0; blr %1; mov sp, x19"
			 :
			 : "r"(top), "r"(run_wanted)
			 : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",
			   "x14", "x15", "x16", "x17", "x19", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7",
			   "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20",
			   "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
#endif
	return true;
}
#endif

static void call_on_stack(void (*call)(void *argument), void *argument)
{
	sigset_t all, before;
	bool done;

	if (!own_stack_is_wanted() || atomic_flag_test_and_set(&taken)) {
		call(argument);
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
}

void own_stack_call(void (*call)(void *argument), void *argument)
{
	int saved_errno = errno, cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	call_on_stack(call, argument);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
}

void own_stack_forked(void)
{
	atomic_flag_clear(&taken);
}
