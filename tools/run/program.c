/*
 * program.c - starts the program of evprof run and waits for it. See program.h. Called by cmd/run.c.
 *
 * For the parent of evprof run, evprof run stands for the program. It forwards signals that are sent to it alone; a
 * signal to the process group reaches the program anyway. The program inherits its timers. It stops and continues with
 * the program. All signals are blocked and taken one by one with sigwaitinfo(), so no handler is needed.
 */
#include "run/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evprof/control.h"
#include "evprof/proc.h"
#include "evprof/system_calls.h"
#include "run/settings.h"
#include "util/clock.h"

/* --- inherited state --- */

static const int timer_kinds[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

#define TIMERS (sizeof(timer_kinds) / sizeof(timer_kinds[0]))

/* The inherited state, which is handed to the program. */
struct inherited {
	sigset_t taken; /* signals taken with sigwaitinfo() while the program runs */
	sigset_t mask;
	struct sigaction child; /* of SIGCHLD: if it is ignored, the kernel keeps no exit status */
	struct itimerval timers[TIMERS];
};

static void take_signals(struct inherited *inherited)
{
	/* Signals of evprof run's own faults and limits. */
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGXCPU, SIGXFSZ};
	static const struct sigaction by_default = {.sa_handler = SIG_DFL};

	sigfillset(&inherited->taken);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&inherited->taken, own[i]);
	sigprocmask(SIG_BLOCK, &inherited->taken, &inherited->mask);
	sigaction(SIGCHLD, &by_default, &inherited->child);
}

/* fork() does not copy timers, but one set before the exec of evprof run is meant for the program. */
static void take_timers(struct inherited *inherited)
{
	static const struct itimerval off;

	for (size_t i = 0; i < TIMERS; i++)
		if (setitimer((__itimer_which_t)timer_kinds[i], &off, &inherited->timers[i]) < 0)
			inherited->timers[i] = off;
}

static void hand_down(const struct inherited *inherited)
{
	for (size_t i = 0; i < TIMERS; i++)
		setitimer((__itimer_which_t)timer_kinds[i], &inherited->timers[i], NULL);
	sigaction(SIGCHLD, &inherited->child, NULL);
	sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
}

/* Drops pending signals, which came after the program's end, so that they do not kill evprof run. */
static void give_signals_back(const struct inherited *inherited)
{
	const struct timespec at_once = {0};

	while (sigtimedwait(&inherited->taken, NULL, &at_once) > 0)
		continue;
	sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
}

/* --- the child --- */

/* Whether the library has to come first: an allocator before it would take all native allocations. */
static bool comes_first(const char *before)
{
	struct setting_keep keep = {0};

	return run_settings_recorded(&keep) & EVENT_MALLOC && !strstr(before, "san.so") &&
	       !strstr(before, "libclang_rt");
}

/* The entries of a list that are not evprof's library, that of another installation included. To be freed. */
static char *without_library(const char *list)
{
	static const char library[] = "/libevprof.so";
	char *kept = malloc(strlen(list) + 1), *end = kept;

	while (kept && *list) {
		size_t bytes = strcspn(list, ": "), tail = sizeof(library) - 1;

		if (bytes && (bytes < tail || strncmp(list + bytes - tail, library, tail) != 0)) {
			if (end > kept)
				*end++ = ':';
			end = mempcpy(end, list, bytes);
		}
		list += bytes + (list[bytes] != '\0');
	}
	if (kept)
		*end = '\0';
	return kept;
}

/* Appends to LD_PRELOAD, because sanitizer runtimes must come first. */
static int set_preload(const char *library)
{
	const char *list = getenv("LD_PRELOAD");
	char *before = without_library(list ? list : ""), *value = NULL;
	bool first = before && comes_first(before);
	int error = -1;

	if (before &&
	    asprintf(&value, "%s%s%s", first ? library : before, before[0] ? ":" : "", first ? before : library) >= 0)
		error = setenv("LD_PRELOAD", value, 1);
	free(before);
	if (error == 0)
		free(value);
	return error;
}

static int set_environment(const struct run_program *program)
{
	const struct run_session *session = program->session;
	char *value = NULL;
	int error;

	/* This process becomes the first of the session; evprof run, its parent, prints the summary. */
	if (asprintf(&value, "%s:%d:%d:%s", session->id, (int)getpid(), (int)getppid(), session->socket) < 0)
		return -1;
	error = setenv(ENV_SESSION, value, 1);
	free(value);
	if (program->host)
		error |= setenv(ENV_SOCKET, session->socket, 1);
	return error | set_preload(program->library);
}

static void become_program(const struct run_program *program, const struct inherited *inherited, int report)
{
	int error = ENOMEM;

	if (set_environment(program) == 0) {
		hand_down(inherited);
		execvp(program->argv[0], program->argv);
		if (errno == ENOENT && program->any_python)
			execvp("python", program->argv);
		error = errno;
	}
	if (write(report, &error, sizeof(error)) < 0)
		_exit(1);
	_exit(1);
}

/* --- the parent --- */

struct witness {
	pid_t pid;
	uint64_t earlier; /* signals sent to the group before this witness started, as bits from signal 1 on */
};

/*
 * Starts a witness: a process of the group that blocks all signals. A signal that is pending there was sent to the
 * whole group, so the program has received it, too. The witness is newer than evprof run, so the kernel delivers to it
 * first.
 */
static pid_t start_witness(void)
{
	pid_t parent = getpid(), witness = fork();

	if (witness != 0)
		return witness;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	system_close_range(0, ~0u, 0);
	while (getppid() == parent)
		pause();
	_exit(0);
}

static void end_witness(pid_t witness)
{
	if (witness <= 0)
		return;
	kill(witness, SIGKILL);
	waitpid(witness, NULL, 0);
}

/* Reads the pending signals of a process, as bits from signal 1 on. False: they cannot be read. */
static bool read_pending(pid_t pid, uint64_t *signals)
{
	char status[4096];
	const char *found =
	    pid > 0 && proc_is_ours() ? proc_status_of(pid, 0, "\nShdPnd:", status, sizeof(status)) : NULL;

	if (found)
		*signals = strtoull(found, NULL, 16);
	return found != NULL;
}

/*
 * Replaces the witness, to detect the next signal with that number. Other signals that are pending in the old one, and
 * with us, are kept in `earlier`.
 */
static void replace_witness(struct witness *witness, uint64_t number)
{
	struct witness before = *witness;
	uint64_t signals;

	witness->pid = start_witness();
	if (read_pending(before.pid, &signals))
		witness->earlier |= signals & ~number;
	end_witness(before.pid);
}

/* 1: the signal was sent to the group; 0: to us alone; -1: unknown. */
static int was_sent_to_group(struct witness *witness, int signal)
{
	uint64_t number = UINT64_C(1) << (signal - 1), signals;
	bool earlier = witness->earlier & number;

	witness->earlier &= ~number;
	if (!read_pending(witness->pid, &signals))
		return earlier ? 1 : -1;
	if (signals & number)
		replace_witness(witness, number);
	return earlier || signals & number;
}

static void pass_on(pid_t child, struct witness *witness, const siginfo_t *info)
{
	int group = was_sent_to_group(witness, info->si_signo);

	/* A signal from the kernel comes from the terminal, or from a timer. */
	if (group > 0 || (group < 0 && info->si_code > 0 && info->si_signo != SIGALRM) ||
	    (info->si_code <= 0 && info->si_pid == child))
		return;
	if (info->si_code == SI_QUEUE)
		sigqueue(child, info->si_signo, info->si_value);
	else
		kill(child, info->si_signo);
}

/* Whether a shell with job control expects evprof run to stop with the program. */
static bool is_a_job(int signal)
{
	int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	bool foreground = terminal >= 0 && tcgetpgrp(terminal) == getpgrp();

	if (terminal >= 0)
		close(terminal);
	return foreground || (terminal >= 0 && signal != SIGSTOP);
}

/* Stops with the program. The SIGCONT that ends the stop is taken and forwarded like any other signal. */
static void stop_with(int signal)
{
	sigset_t pending;

	if (sigpending(&pending) == 0 && !sigismember(&pending, SIGCONT) && is_a_job(signal))
		kill(getpid(), SIGSTOP);
}

/* The CPU time of a child that has ended and is not reaped yet. */
static int64_t cpu_time_of(pid_t child)
{
	siginfo_t info = {0};
	struct timespec spent;
	clockid_t clock;

	if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid != child ||
	    clock_getcpuclockid(child, &clock) != 0 || clock_gettime(clock, &spent) < 0)
		return 0;
	return (int64_t)spent.tv_sec * 1000000000 + spent.tv_nsec;
}

/* Returns 0 when the child has ended, or -errno. */
static int wait_for(pid_t child, struct witness *witness, const sigset_t *taken, struct run_end *end)
{
	for (;;) {
		siginfo_t info;
		pid_t ended;

		if (sigwaitinfo(taken, &info) < 0)
			continue;
		if (info.si_signo != SIGCHLD) {
			pass_on(child, witness, &info);
			continue;
		}
		end->cpu_ns = cpu_time_of(child);
		ended = waitpid(child, &end->status, WNOHANG | WUNTRACED);
		if (ended < 0)
			return -errno;
		if (ended > 0 && !WIFSTOPPED(end->status)) {
			end->wall_ns += time_ns(CLOCK_MONOTONIC);
			return 0;
		}
		if (ended > 0)
			stop_with(WSTOPSIG(end->status));
	}
}

/* The errno that the child has sent, or 0. */
static int read_error(int report)
{
	int error = 0;

	while (read(report, &error, sizeof(error)) < 0 && errno == EINTR)
		continue;
	return error;
}

int run_program(const struct run_program *program, struct run_end *end)
{
	struct inherited inherited;
	int report[2];
	int error, failed;
	struct witness witness = {0};
	pid_t child;

	if (pipe2(report, O_CLOEXEC) < 0)
		return -errno;
	take_signals(&inherited);
	take_timers(&inherited);
	end->wall_ns = -time_ns(CLOCK_MONOTONIC);
	child = fork();
	if (child == 0)
		become_program(program, &inherited, report[1]);
	error = child < 0 ? -errno : 0;
	close(report[1]);
	failed = child < 0 ? 0 : read_error(report[0]);
	close(report[0]);
	if (child > 0) {
		end->pid = child;
		witness.pid = start_witness();
		error = wait_for(child, &witness, &inherited.taken, end);
		end_witness(witness.pid);
	}
	give_signals_back(&inherited);
	return failed ? -failed : error;
}
