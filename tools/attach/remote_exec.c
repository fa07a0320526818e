/*
 * remote_exec.c - see remote_exec.h.
 *
 * 3.15 has more fields before those of the debugger than 3.14. They are the last six in both, and end with the size of
 * the path's buffer, which begins behind a flag of four bytes: no other fields do. So they are found by that, once.
 */
#include "attach/remote_exec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "util/cli.h"
#include "util/clock.h"
#include "util/why.h"

#define VERSION_FIRST 0x030e0000u /* 3.14 */
#define PATH_BYTES 512		  /* of the script's path, with its NUL */
#define PLEASE_STOP 32		  /* _PY_EVAL_PLEASE_STOP_BIT of eval_breaker */
#define OFFSET_MOST (UINT64_C(1) << 24)
#define LOOK_MS 5

/* _Py_DebugOffsets, in words. */
enum { WORD_VERSION = 1, WORD_INTERPRETERS = 5, WORD_THREADS_MAIN = 10, WORDS = 128 };

/* The last six words. */
struct debugger {
	uint64_t eval_breaker; /* in the thread state */
	uint64_t support;      /* in the thread state; what follows is in there */
	uint64_t enabled;      /* in the interpreter's state */
	uint64_t pending_call; /* in the support, an int */
	uint64_t script_path;  /* in the support */
	uint64_t script_path_bytes;
};

bool remote_exec_is_for(const struct target *target)
{
	return target->version >= VERSION_FIRST && target->runtime;
}

static bool find_debugger(const uint64_t words[WORDS], struct debugger *debugger)
{
	unsigned found = 0;

	for (unsigned i = WORD_THREADS_MAIN; i + 6 <= WORDS; i++) {
		struct debugger here;

		memcpy(&here, words + i, sizeof(here));
		if (here.script_path_bytes != PATH_BYTES || here.pending_call != 0 || here.script_path != 4 ||
		    here.eval_breaker > OFFSET_MOST || here.support > OFFSET_MOST || here.enabled > OFFSET_MOST)
			continue;
		*debugger = here;
		found++;
	}
	return found == 1;
}

static int write_memory(const struct target *target, uint64_t address, const void *bytes, size_t size)
{
	struct iovec from = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
	struct iovec to = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};
	ssize_t n = process_vm_writev(target->pid, &from, 1, &to, 1, 0);

	return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EFAULT;
}

/* The flag is set last but one, as the protocol says. Of eval_breaker only the byte of the flags is written. */
static int write_request(const struct target *target, const struct debugger *debugger, uint64_t thread,
			 const char *script)
{
	uint64_t support = thread + debugger->support, breaker = thread + debugger->eval_breaker;
	int32_t pending = 1;
	uint8_t flags = 0;
	int r = write_memory(target, support + debugger->script_path, script, strlen(script) + 1);

	if (r == 0)
		r = write_memory(target, support + debugger->pending_call, &pending, sizeof(pending));
	if (r == 0)
		r = target_read(target, breaker, &flags, 1);
	flags |= PLEASE_STOP;
	return r ? r : write_memory(target, breaker, &flags, 1);
}

/* -EAGAIN: Python has no main thread, because it still starts, or has ended its program. */
static int read_main_thread(const struct target *target, const uint64_t words[WORDS], uint64_t *interpreter,
			    uint64_t *thread)
{
	int r = target_read(target, target->runtime + words[WORD_INTERPRETERS], interpreter, 8);

	*thread = 0;
	if (r == 0 && *interpreter)
		r = target_read(target, *interpreter + words[WORD_THREADS_MAIN], thread, 8);
	return r || *thread ? r : -EAGAIN;
}

static int wait_main_thread(const struct target *target, const uint64_t words[WORDS], int wait_ms,
			    uint64_t *interpreter, uint64_t *thread)
{
	int64_t end = time_ms(CLOCK_MONOTONIC) + wait_ms;
	int r = read_main_thread(target, words, interpreter, thread);

	while (r == -EAGAIN && !cli_interrupted && time_ms(CLOCK_MONOTONIC) < end) {
		nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
		r = read_main_thread(target, words, interpreter, thread);
	}
	return r;
}

static int complain_of_memory(const struct target *target, int r, char *why, size_t bytes)
{
	if (r == -EPERM)
		return complain(why, bytes,
				"the kernel forbids access to process %d: run evprof as root, or sysctl "
				"kernel.yama.ptrace_scope=0; in a container give it --cap-add SYS_PTRACE",
				(int)target->pid);
	if (r == -EAGAIN)
		return complain(why, bytes, "Python of process %d still starts, or has ended its program",
				(int)target->pid);
	if (r == -ESRCH || r == -EFAULT)
		return complain(why, bytes, "process %d has ended, or become another program", (int)target->pid);
	return complain(why, bytes, "cannot access the memory of process %d: %s", (int)target->pid, strerror(-r));
}

/* Where the main thread looks for a request. Returns 0, or -1 with one line in why. */
static int find_place(const struct target *target, int wait_ms, struct debugger *debugger, uint64_t *interpreter,
		      uint64_t *thread, char *why, size_t bytes)
{
	uint64_t words[WORDS];
	int r = target_read(target, target->runtime, words, sizeof(words));

	if (r < 0)
		return complain_of_memory(target, r, why, bytes);
	if (memcmp(words, "xdebugpy", 8) != 0 || !find_debugger(words, debugger) ||
	    words[WORD_INTERPRETERS] > OFFSET_MOST || words[WORD_THREADS_MAIN] > OFFSET_MOST)
		return complain(why, bytes, "Python %u.%u of process %d has a layout unknown to evprof",
				target->version >> 24, target->version >> 16 & 0xff, (int)target->pid);
	r = wait_main_thread(target, words, wait_ms, interpreter, thread);
	return r ? complain_of_memory(target, r, why, bytes) : 0;
}

int remote_exec(const struct target *target, const char *script, int wait_ms, char *why, size_t bytes)
{
	uint64_t interpreter = 0, thread = 0;
	struct debugger debugger = {0};
	int32_t enabled = 0;
	int r;

	if (strlen(script) >= PATH_BYTES)
		return complain(why, bytes, "the path %s is too long", script);
	if (find_place(target, wait_ms, &debugger, &interpreter, &thread, why, bytes) < 0)
		return -1;
	r = target_read(target, interpreter + debugger.enabled, &enabled, sizeof(enabled));
	if (r == 0 && enabled != 1)
		return complain(why, bytes,
				"process %d was started with remote debugging off (PYTHON_DISABLE_REMOTE_DEBUG, -X "
				"disable_remote_debug)",
				(int)target->pid);
	if (r == 0)
		r = write_request(target, &debugger, thread, script);
	return r ? complain_of_memory(target, r, why, bytes) : 0;
}

void remote_exec_withdraw(const struct target *target, const char *script)
{
	uint64_t interpreter = 0, thread = 0, support;
	char why[512], path[PATH_BYTES] = "";
	struct debugger debugger = {0};
	int32_t pending = 0;

	if (find_place(target, 0, &debugger, &interpreter, &thread, why, sizeof(why)) < 0)
		return;
	support = thread + debugger.support;
	if (target_read(target, support + debugger.script_path, path, sizeof(path)) == 0 &&
	    strncmp(path, script, sizeof(path)) == 0)
		write_memory(target, support + debugger.pending_call, &pending, sizeof(pending));
}
