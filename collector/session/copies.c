/* copies.c - see copies.h. Called by session.c and session_end.c. */
#include "session/copies.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "evprof/system_calls.h"
#include "session/drain.h"
#include "session/process.h"
#include "trace/tool_run.h"
#include "trace/trace_output.h"

#define HOLD_MS 120000
#define ASKED_PAUSE_NS UINT64_C(1000000000) /* between two copies that are asked for */
#define ASKED_MAX 1000u			    /* of a session: each is a file */
#define FINISH_NS UINT64_C(60000000000)	    /* for copies, once the trace is closed: the session waits for them */
#define LAST_NS UINT64_C(30000000000)	    /* of a trace that keeps all */

struct copy {
	struct copy *next;
	struct tool_run run;
	struct loop *loop;
	struct process *process; /* whose rings are to be read first; NULL: they were */
	uint64_t since_ns, until_ns;
	uint64_t hold;
	int pid;
	char path[PATH_MAX];
};

/* False: the name is too long. */
static bool name_copy(const char *trace, int pid, const char *reason, char path[PATH_MAX])
{
	const char *name = strrchr(trace, '/'), *ending = strrchr(name ? name : trace, '.');
	int stem = ending ? (int)(ending - trace) : (int)strlen(trace);

	return snprintf(path, PATH_MAX, "%.*s-%d-%s.evp", stem, trace, pid, reason) < PATH_MAX;
}

static uint64_t begin_of(const struct trace_output *trace, const struct copy_wish *wish, uint64_t now_ns)
{
	uint64_t usual_ns = now_ns > LAST_NS ? now_ns - LAST_NS : 1;

	if (kept_is_limited(&trace->kept))
		return trace->kept.since_ns ? trace->kept.since_ns : 1;
	if (wish->since_ns && wish->since_ns < usual_ns)
		usual_ns = wish->since_ns;
	return usual_ns > trace->kept.since_ns ? usual_ns : trace->kept.since_ns;
}

static void start(struct copy *copy, struct trace_output *trace)
{
	char since[32], until[32], number[16];
	const char *argv[] = {"evprof",	   "cut",  "--since", since,	  "--until",   until,
			      "--process", number, "-o",      copy->path, trace->path, NULL};

	copy->process = NULL;
	trace_output_write_clocks(trace, clock_now_ns());
	trace_writer_follow(&trace->writer, trace->path);
	snprintf(since, sizeof(since), "%llu", (unsigned long long)copy->since_ns);
	snprintf(until, sizeof(until), "%llu", (unsigned long long)copy->until_ns);
	snprintf(number, sizeof(number), "%d", copy->pid);
	tool_run_start(&copy->run, copy->loop, argv);
}

bool copies_add(struct copies *copies, struct loop *loop, struct trace_output *trace, const struct copy_wish *wish)
{
	bool may = copies->count < COPIES_MAX && trace->writer.fd >= 0 && !trace->failed && !trace->closed &&
		   !trace->in_memory;
	struct copy *copy = may ? calloc(1, sizeof(*copy)) : NULL;

	if (copy)
		trace_writer_follow(&trace->writer, trace->path);
	if (!copy || !name_copy(trace->path, wish->pid, wish->reason, copy->path)) {
		free(copy);
		return false;
	}
	copy->pid = wish->pid;
	copy->loop = loop;
	copy->run.status = -1;
	copy->process = wish->process;
	copy->until_ns = clock_now_ns(); /* what was recorded so far is older */
	copy->since_ns = begin_of(trace, wish, copy->until_ns);
	copy->hold = kept_hold(&trace->kept, &trace->writer, copy->until_ns, HOLD_MS);
	if (copy->process)
		copy->process->wanted_ns = copy->until_ns;
	if (!copy->process || process_is_read(copy->process, copy->until_ns, copy->until_ns))
		start(copy, trace);
	copy->next = copies->first;
	copies->first = copy;
	copies->count++;
	return true;
}

void copies_add_killed(struct copies *copies, struct loop *loop, struct trace_output *trace, struct process *process)
{
	struct copy_wish wish = {.pid = (int)process->sender_pid, .process = process, .reason = "killed"};

	if (!copies_add(copies, loop, trace, &wish))
		log_warning("what process %d did before it was killed is not copied: too many were killed together",
			    (int)process->pid);
}

/* Another one at the same time is made later; a trace without a file, or beyond the limit, has none. */
static bool may_copy(const struct copies *copies, const struct trace_output *trace, uint64_t now_ns)
{
	return now_ns >= copies->next_ns && copies->count < COPIES_MAX && copies->asked < ASKED_MAX &&
	       trace->writer.fd >= 0 && !trace->failed && !trace->closed && !trace->in_memory;
}

void copies_add_asked(struct copies *copies, struct loop *loop, struct trace_output *trace, struct process *process,
		      uint64_t now_ns)
{
	/* Acquire: what was recorded before the wish is in the rings. */
	uint32_t word = atomic_load_explicit(&process->header->snapshot, memory_order_acquire);
	struct copy_wish wish = {.pid = (int)process->sender_pid, .process = process};
	char reason[32];

	if (word == process->snapshot || word % RING_SNAPSHOTS != RING_SNAPSHOT_SIGNAL ||
	    !may_copy(copies, trace, now_ns))
		return;
	process->snapshot = word;
	copies->next_ns = now_ns + ASKED_PAUSE_NS;
	copies->asked++;
	snprintf(reason, sizeof(reason), "signal-%u", copies->asked);
	wish.reason = reason;
	if (!copies_add(copies, loop, trace, &wish))
		log_error("what process %d did last is not copied: no memory, or too long a path",
			  (int)process->sender_pid);
}

/* In a daemon's folder. As the trace: see let_user_read() in session.c. */
static void let_user_read(const struct trace_output *trace, const char *path)
{
	uid_t uid = trace->user->uid;
	int fd = -1;

	if (trace->folder && uid != 0 && uid != system_geteuid() && uid != USER_NOBODY)
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	output_let_read(fd, uid);
	close(fd);
}

/* Of a trace that is incomplete, a copy is made all the same. */
static void finish(const struct copy *copy, const struct trace_output *trace)
{
	if (!tool_run_wrote(&copy->run) || access(copy->path, F_OK) < 0) {
		log_warning("what process %d did last is not copied: evprof cut has not written %s", copy->pid,
			    copy->path);
		return;
	}
	let_user_read(trace, copy->path);
	log_warning("%s has what process %d did last", copy->path, copy->pid);
}

bool copies_check(struct copies *copies, struct trace_output *trace, uint64_t now_ns)
{
	struct copy **link = &copies->first, *copy;

	if (trace->closed && !copies->until_ns)
		copies->until_ns = now_ns + FINISH_NS;
	while ((copy = *link)) {
		bool writes = !trace->failed && !trace->closed;

		if (copy->process && writes && process_is_read(copy->process, copy->until_ns, now_ns))
			start(copy, trace);
		if (trace->closed && now_ns >= copies->until_ns)
			tool_run_stop(&copy->run);
		if (copy->run.running || (copy->process && writes)) {
			link = &copy->next;
			continue;
		}
		*link = copy->next;
		copies->count--;
		kept_release(&trace->kept, copy->hold);
		finish(copy, trace);
		free(copy);
	}
	return copies->count > 0;
}

void copies_stop(struct copies *copies)
{
	struct copy *next;

	for (struct copy *copy = copies->first; copy; copy = next) {
		next = copy->next;
		tool_run_stop(&copy->run);
		log_warning("what process %d did last is not copied: the collector ends", copy->pid);
		free(copy);
	}
	*copies = (struct copies){0};
}
