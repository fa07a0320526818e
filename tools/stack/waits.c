/*
 * waits.c - see waits.h.
 *
 * /proc/PID/task/TID/syscall has the number and the arguments of the system call in which a thread waits. A thread that
 * waits for the GIL waits on a futex in the memory of Python's own variables, until 3.11 in _PyRuntime or the data,
 * from 3.12 on in the state of its interpreter, that of the main one being a part of _PyRuntime. Locks of programs are
 * allocated elsewhere.
 */
#include "stack/waits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "evprof/proc.h"

static const struct {
	const char *word, *text;
} names[] = {
    [WAIT_UNKNOWN] = {"unknown", "waiting"},
    [WAIT_NONE] = {"running", "running"},
    [WAIT_GIL] = {"gil", "waiting for the GIL"},
    [WAIT_LOCK] = {"lock", "waiting for a lock"},
    [WAIT_SLEEP] = {"sleep", "sleeping"},
    [WAIT_IO] = {"io", "waiting for I/O"},
    [WAIT_CHILD] = {"child", "waiting for a child process"},
    [WAIT_SIGNAL] = {"signal", "waiting for a signal"},
    [WAIT_DISK] = {"disk", "waiting for the disk"},
    [WAIT_STOPPED] = {"stopped", "stopped"},
};

const char *wait_word(enum wait_kind kind)
{
	return names[kind].word;
}

const char *wait_text(enum wait_kind kind)
{
	return names[kind].text;
}

static uint64_t read_count(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

bool wait_is_off(pid_t pid, pid_t tid, uint64_t *switches)
{
	char status[4096];
	const char *state;

	if (proc_read_of(pid, tid, "status", status, sizeof(status)) <= 0)
		return false;
	state = strstr(status, "\nState:\t");
	*switches =
	    read_count(status, "\nvoluntary_ctxt_switches:\t") + read_count(status, "\nnonvoluntary_ctxt_switches:\t");
	return state && state[8] != 'R';
}

/* How the arguments of a system call say what it waits for. */
enum form {
	FORM_PLAIN,
	FORM_FUTEX, /* the first is an address */
	FORM_FILE,  /* the first is a descriptor */
	FORM_FIRST, /* the first is a number of descriptors; 0: it sleeps */
	FORM_SECOND /* the second is */
};

static const struct call {
	long number;
	const char *name;
	enum wait_kind kind;
	enum form form;
} calls[] = {
    {SYS_futex, "futex", WAIT_LOCK, FORM_FUTEX},
#ifdef SYS_futex_waitv
    {SYS_futex_waitv, "futex_waitv", WAIT_LOCK, FORM_PLAIN},
#endif
    {SYS_flock, "flock", WAIT_LOCK, FORM_FILE},
    {SYS_fcntl, "fcntl", WAIT_LOCK, FORM_FILE},
    {SYS_nanosleep, "nanosleep", WAIT_SLEEP, FORM_PLAIN},
    {SYS_clock_nanosleep, "clock_nanosleep", WAIT_SLEEP, FORM_PLAIN},
#ifdef SYS_select
    {SYS_select, "select", WAIT_IO, FORM_FIRST},
    {SYS_poll, "poll", WAIT_IO, FORM_SECOND},
    {SYS_epoll_wait, "epoll_wait", WAIT_IO, FORM_PLAIN},
    {SYS_pause, "pause", WAIT_SIGNAL, FORM_PLAIN},
    {SYS_open, "open", WAIT_IO, FORM_PLAIN},
#endif
    {SYS_pselect6, "pselect6", WAIT_IO, FORM_FIRST},
    {SYS_ppoll, "ppoll", WAIT_IO, FORM_SECOND},
    {SYS_epoll_pwait, "epoll_pwait", WAIT_IO, FORM_PLAIN},
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, "epoll_pwait2", WAIT_IO, FORM_PLAIN},
#endif
    {SYS_openat, "openat", WAIT_IO, FORM_PLAIN},
    {SYS_read, "read", WAIT_IO, FORM_FILE},
    {SYS_readv, "readv", WAIT_IO, FORM_FILE},
    {SYS_pread64, "pread64", WAIT_IO, FORM_FILE},
    {SYS_preadv, "preadv", WAIT_IO, FORM_FILE},
    {SYS_write, "write", WAIT_IO, FORM_FILE},
    {SYS_writev, "writev", WAIT_IO, FORM_FILE},
    {SYS_pwrite64, "pwrite64", WAIT_IO, FORM_FILE},
    {SYS_pwritev, "pwritev", WAIT_IO, FORM_FILE},
    {SYS_sendfile, "sendfile", WAIT_IO, FORM_FILE},
    {SYS_splice, "splice", WAIT_IO, FORM_FILE},
    {SYS_fsync, "fsync", WAIT_DISK, FORM_FILE},
    {SYS_fdatasync, "fdatasync", WAIT_DISK, FORM_FILE},
    {SYS_accept, "accept", WAIT_IO, FORM_FILE},
    {SYS_accept4, "accept4", WAIT_IO, FORM_FILE},
    {SYS_connect, "connect", WAIT_IO, FORM_FILE},
    {SYS_recvfrom, "recvfrom", WAIT_IO, FORM_FILE},
    {SYS_recvmsg, "recvmsg", WAIT_IO, FORM_FILE},
    {SYS_recvmmsg, "recvmmsg", WAIT_IO, FORM_FILE},
    {SYS_sendto, "sendto", WAIT_IO, FORM_FILE},
    {SYS_sendmsg, "sendmsg", WAIT_IO, FORM_FILE},
    {SYS_wait4, "wait4", WAIT_CHILD, FORM_PLAIN},
    {SYS_waitid, "waitid", WAIT_CHILD, FORM_PLAIN},
    {SYS_rt_sigtimedwait, "sigtimedwait", WAIT_SIGNAL, FORM_PLAIN},
    {SYS_rt_sigsuspend, "sigsuspend", WAIT_SIGNAL, FORM_PLAIN},
};

static const struct call *find_call(long number)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].number == number)
			return &calls[i];
	return NULL;
}

/* The state letter; 0: the thread is gone. */
static char state_of(pid_t pid, pid_t tid)
{
	char line[1024];
	const char *letter;

	if (proc_read_of(pid, tid, "stat", line, sizeof(line)) <= 0 || !(letter = proc_stat_field(line, 2)) ||
	    !letter[1])
		return 0;
	return letter[2];
}

/* Whether the address is in what Python keeps for itself. */
static bool is_of_python(const struct layout *layout, const struct process *process, uint64_t address)
{
	const struct process_range *range = process_range_of(process, address);

	if (range && range->python)
		return true;
	for (size_t i = 0; i < layout->interpreter_count; i++)
		if (address - layout->interpreters[i] < layout->interpreter_bytes)
			return true;
	return false;
}

static void describe_file(const struct process *process, const char *name, uint64_t descriptor, struct wait *wait)
{
	char path[64], file[192];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)process->target.pid, (int)descriptor);
	length = readlink(path, file, sizeof(file) - 1);
	file[length > 0 ? length : 0] = 0;
	snprintf(wait->detail, sizeof(wait->detail), "%s %s", name, file);
}

static void describe_call(const struct layout *layout, const struct process *process, const struct call *call,
			  const uint64_t arguments[2], struct wait *wait)
{
	wait->kind = call->kind;
	snprintf(wait->detail, sizeof(wait->detail), "%s", call->name);
	if (call->form == FORM_FUTEX && is_of_python(layout, process, arguments[0]))
		wait->kind = WAIT_GIL;
	else if (call->form == FORM_FILE)
		describe_file(process, call->name, arguments[0], wait);
	else if ((call->form == FORM_FIRST && (int)arguments[0] == 0) || (call->form == FORM_SECOND && !arguments[1]))
		wait->kind = WAIT_SLEEP;
}

static void find_call_of(const struct layout *layout, const struct process *process, pid_t tid, struct wait *wait)
{
	uint64_t arguments[2];
	const struct call *call;
	char line[256];
	long number;

	if (proc_read_of(process->target.pid, tid, "syscall", line, sizeof(line)) <= 0)
		return;
	if (!strncmp(line, "running", 7)) {
		wait->kind = WAIT_NONE;
		return;
	}
	if (sscanf(line, "%ld %" SCNx64 " %" SCNx64, &number, &arguments[0], &arguments[1]) != 3 || number < 0)
		return;
	call = find_call(number);
	if (call)
		describe_call(layout, process, call, arguments, wait);
	else
		snprintf(wait->detail, sizeof(wait->detail), "system call %ld", number);
}

void wait_find(const struct layout *layout, const struct process *process, pid_t tid, struct wait *wait)
{
	char state = state_of(process->target.pid, tid);

	*wait = (struct wait){.kind = WAIT_UNKNOWN};
	if (state == 'R')
		wait->kind = WAIT_NONE;
	else if (state == 'T' || state == 't')
		wait->kind = WAIT_STOPPED;
	else
		find_call_of(layout, process, tid, wait);
	if (state == 'D' && wait->kind != WAIT_DISK)
		wait->kind = WAIT_DISK;
}
