/*
 * each_instruction.c - a signal at each instruction of Py_AddPendingCall(), in the thread that calls it. Loaded by
 * switched.py. The processor traps after each instruction; the signal that is raised then is blocked until the handler
 * returns, so it interrupts the instruction. On other processors than x86-64 it comes once, before the call.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#define TRAPS 0x100l /* in the flags */

static int number;
static volatile sig_atomic_t stepping;

static int do_nothing(void *data)
{
	(void)data;
	return 0;
}

#ifdef __x86_64__
static void on_trap(int trap, siginfo_t *info, void *context)
{
	ucontext_t *user = context;

	(void)trap;
	(void)info;
	if (stepping)
		raise(number);
	else
		user->uc_mcontext.gregs[REG_EFL] &= ~TRAPS;
}

static void trap_each(void)
{
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, number);
	sigaction(SIGTRAP, &action, NULL);
	stepping = 1;
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orq %0, (%%rsp); popfq; lea 128(%%rsp), %%rsp"
			 :
			 : "i"(TRAPS)
			 : "memory", "cc");
}
#else
static void trap_each(void)
{
	raise(number);
}
#endif

void signal_each_instruction(int signal_number, int (*add_pending_call)(int (*)(void *), void *))
{
	number = signal_number;
	trap_each();
	add_pending_call(do_nothing, NULL);
	stepping = 0;
}
