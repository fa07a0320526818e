/*
 * session.c - the life of a session: joins, ends, the trace file and the answers.
 *
 * Called by the server (joins and holds) and by collector.c (rounds).
 */
#include "session/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "session/process.h"
#include "symbols/resolver.h"

#define FORK_GRACE_NS UINT64_C(100000000)
#define EXEC_CHECK_NS UINT64_C(50000000)
#define PENDING_CHILDREN_CHECK_NS UINT64_C(5000000)
#define PENDING_CHILDREN_MAX 4096u /* limit of pending_children */
#define LINGER_NS UINT64_C(50000000)
#define SYMBOLS_WAIT_NS UINT64_C(20000000000) /* at the end, for symbols of native frames */
#define SHARE_MAX_WORDS (UINT64_C(128) << 10) /* words of a process in a round ... */
#define SHARE_MIN_WORDS (UINT64_C(8) << 10)   /* ... at least, if others of its user take the rest */
#define SAMPLED_PATIENCE_US 20000
#define SLOW_PATIENCE_US 200000

static int begin_user(struct session *session, uid_t uid, char *reason, size_t reason_bytes)
{
	struct users *users = &session->tools->users;
	int error;

	session->user = users_get(users, uid);
	if (!session->user)
		return -ENOMEM;
	error = user_begin(users, session->user, USER_SESSIONS, reason, reason_bytes);
	if (error)
		users_put(users, session->user);
	return error;
}

/* After an exec the process lives on, and the new program may be a Python that is about to join. */
static bool awaits_successor(const struct process *process)
{
	return process->replaced && !process->dead;
}

/* Fills in the totals of the closing line. They are valid once collector_state says so. */
static void fill_summary(const struct session *session, const struct process *process)
{
	struct ring_header *header = process->header;
	uint64_t lost = session->trace.lost;
	uint32_t running = session->pending_children_count;

	for (const struct process *other = session->processes; other; other = other->next) {
		lost += drain_lost(other);
		running += (!other->complete || awaits_successor(other)) && other != process;
	}
	atomic_store_explicit(&header->summary_processes, session->trace.process_count, memory_order_relaxed);
	atomic_store_explicit(&header->summary_running, running, memory_order_relaxed);
	atomic_store_explicit(&header->summary_unsampled, session->unsampled, memory_order_relaxed);
	atomic_store_explicit(&header->summary_events, session->trace.events, memory_order_relaxed);
	atomic_store_explicit(&header->summary_lost, lost, memory_order_relaxed);
}

static void session_answer(struct session *session, struct process *process, enum ring_collector_state state)
{
	fill_summary(session, process);
	trace_writer_follow(&session->trace.writer, session->trace.path);
	process_answer(process, session->trace.failed ? RING_COLLECTOR_FAILED : state,
		       session->trace.failed ? session->trace.error : session->trace.path);
	process->answered = true;
}

static void answer_failure(struct trace_output *trace)
{
	struct session *session = LOOP_OWNER(trace, struct session, trace);

	for (struct process *process = session->processes; process; process = process->next)
		session_answer(session, process, RING_COLLECTOR_FAILED);
}

static void end_user(struct session *session, struct process *process)
{
	user_end(process->user, USER_PROCESSES);
	users_put(&session->tools->users, process->user);
}

static void remove_process(struct session *session, struct process *process)
{
	if (!process->dead)
		loop_remove(session->tools->loop, &process->source);
	if (process->symbols)
		resolver_remove(session->tools->resolver, process->symbols);
	end_user(session, process);
	process_free(process);
}

struct session *session_new(struct session_tools *tools, const struct control_message *first, uid_t uid, char *reason,
			    size_t reason_bytes)
{
	struct session *session = calloc(1, sizeof(*session));

	snprintf(reason, reason_bytes, "the collector has no memory left");
	if (!session)
		return NULL;
	session->tools = tools;
	session->output = strdup(first->output);
	if (!session->output || begin_user(session, uid, reason, reason_bytes)) {
		free(session->output);
		free(session);
		return NULL;
	}
	reason[0] = '\0';
	trace_output_init(&session->trace, &tools->users, session->user, answer_failure);
	memcpy(session->id, first->session, sizeof(session->id));
	return session;
}

void session_free(struct session *session)
{
	trace_output_done(&session->trace);
	while (session->processes) {
		struct process *process = session->processes;

		session->processes = process->next;
		remove_process(session, process);
	}
	free(session->pending_children);
	free(session->output);
	user_end(session->user, USER_SESSIONS);
	users_put(&session->tools->users, session->user);
	free(session);
}

bool session_lingers(const struct session *session, uint64_t now_ns)
{
	if (!session->finished || now_ns - session->finished_ns >= LINGER_NS)
		return false;
	for (const struct process *process = session->processes; process; process = process->next) {
		if (!process->dead &&
		    atomic_load_explicit(&process->header->target_state, memory_order_relaxed) == RING_TARGET_EXITING)
			return true;
	}
	return false;
}

uint32_t session_live(const struct session *session)
{
	uint32_t live = 0;

	for (const struct process *process = session->processes; process; process = process->next)
		live += !process->complete;
	return live;
}

static int output_path(const struct session *session, const struct control_message *first, char *path, size_t bytes)
{
	pid_t named_after = session->tools->first.pid ? session->tools->first.pid : first->pid;
	struct output_values values = {.program = first->program, .host = first->host, .pid = named_after};
	size_t used = 0;

	if (!session->tools->output_dir)
		return output_expand(session->output, &values, path, bytes);
	used = strlen(session->tools->output_dir) + 1;
	if (used >= bytes)
		return -ENAMETOOLONG;
	memcpy(path, session->tools->output_dir, used - 1);
	path[used - 1] = '/';
	return output_expand(session->tools->output_template, &values, path + used, bytes - used);
}

/*
 * Lets the user that began the session read the trace, which belongs to the daemon. A user without a number in our user
 * namespace has the number of nobody, which other users may share, so it gets no access.
 */
static void let_user_read(const struct session *session)
{
	static bool said;
	uid_t uid = session->user->uid;
	int error = 0;

	if (session->tools->output_dir && uid != 0 && uid != geteuid() && uid != USER_NOBODY)
		error = output_let_read(session->trace.writer.fd, uid);
	if (error && !said)
		log_warning("users other than ours cannot read their traces in %s: access control lists: %s",
			    session->tools->output_dir, strerror(-error));
	said |= error != 0;
}

/* The file is created when the first process joins: that process gives it its name. */
static void open_trace(struct session *session, const struct control_message *first)
{
	struct trace_output *trace = &session->trace;
	bool others = session->tools->output_dir || session->tools->first.pid || session->goes_on;
	enum output_existing existing = others ? OUTPUT_ADD_SUFFIX : OUTPUT_REPLACE;
	int error = output_path(session, first, trace->path, sizeof(trace->path));

	if (error)
		trace_output_open_failed(trace, error);
	else if (!trace_output_open(trace, session->tools->packer, session->id, existing))
		let_user_read(session);
}

/* Counts children that an image has forked and that have not joined. They are waited for, briefly. */
static void note_missing_children(struct session *session, struct process *process, uint64_t now_ns)
{
	uint32_t forks = atomic_load_explicit(&process->header->forks, memory_order_acquire);

	if (forks != process->forks_seen) {
		process->forks_seen = forks;
		process->forks_ns = now_ns;
	}
	/* Children with known pids are pending children. */
	if (!process->complete || forks <= process->children + process->forked_count ||
	    now_ns - process->forks_ns >= FORK_GRACE_NS)
		return;
	session->missing_children += forks - process->children - process->forked_count;
	if (process->forks_ns + FORK_GRACE_NS > session->grace_until_ns)
		session->grace_until_ns = process->forks_ns + FORK_GRACE_NS;
}

/*
 * Keeps the forked children of a complete image as pending children of the session: they may join after their parent's
 * end. A child that is slow to get the processor still finds a collector to join.
 */
static void keep_pending_children(struct session *session, struct process *process, uint64_t now_ns)
{
	uint32_t forks = atomic_load_explicit(&process->header->forks, memory_order_acquire);
	unsigned before = session->pending_children_count, count = before + process->forked_count;
	struct session_child *pending_children;
	ino_t inode = process_inode(process);

	if (forks <= process->children || process->forked_count == 0 || !inode || count > PENDING_CHILDREN_MAX)
		return;
	pending_children = realloc(session->pending_children, count * sizeof(*pending_children));
	if (!pending_children)
		return;
	session->pending_children = pending_children;
	for (unsigned i = 0; i < process->forked_count; i++)
		pending_children[session->pending_children_count++] =
		    (struct session_child){.pid = process->forked[i], .inode = inode};
	process->forked_count = 0;
	session->pending_children_check_ns = 0;
	session->pending_children_next = session->pending_children_count;
	session->pending_children_since_ns =
	    session->pending_children_since_ns ? session->pending_children_since_ns : now_ns;
}

static void remove_pending_child(struct session *session, unsigned index)
{
	session->pending_children[index] = session->pending_children[--session->pending_children_count];
}

/* Removes pending children that are dead, have called exec, or have joined. */
static void check_pending_child(struct session *session, uint64_t now_ns)
{
	if (session->pending_children_count == 0) {
		/* In a later round than the removal: the last one may have just sent its message. */
		session->pending_children_since_ns = 0;
		return;
	}
	if (now_ns < session->pending_children_check_ns)
		return;
	if (session->pending_children_next > session->pending_children_count)
		session->pending_children_next = session->pending_children_count;
	while (session->pending_children_next > 0) {
		const struct session_child *child = &session->pending_children[session->pending_children_next - 1];
		int maps = process_maps(session->user, child->pid, child->inode);

		if (maps == -EAGAIN)
			return;
		session->pending_children_next--;
		if (!process_may_map(maps))
			remove_pending_child(session, session->pending_children_next);
	}
	session->pending_children_next = session->pending_children_count;
	session->pending_children_check_ns = now_ns + PENDING_CHILDREN_CHECK_NS;
}

static void forget_forked(struct session *session, const struct control_message *join)
{
	for (struct process *process = session->processes; process; process = process->next) {
		if (process->sender_pid == join->ppid)
			process_forget_fork(process, join->pid);
	}
	for (unsigned i = session->pending_children_count; i-- > 0;) {
		if (session->pending_children[i].pid == join->pid)
			remove_pending_child(session, i);
	}
}

static void count_child(struct session *session, const struct control_message *join)
{
	if (join->start != WIRE_START_FORK)
		return;
	forget_forked(session, join);
	for (struct process *process = session->processes; process; process = process->next) {
		if (!process->complete && process->sender_pid == join->ppid) {
			process->children++;
			return;
		}
	}
	if (session->missing_children > 0)
		session->missing_children--;
}

/* The end of the image: its last event, or its death where it was killed. */
static uint64_t end_ticks_of(const struct process *process, const char *how)
{
	bool told = atomic_load_explicit(&process->header->target_state, memory_order_acquire) != RING_TARGET_RUNNING;

	if (!process->dead || told || !strcmp(how, "exec") || process->death_ticks < process->last_ticks)
		return process->last_ticks;
	return process->death_ticks;
}

/* An image that announced its signal counts as killed by it. */
static const char *end_by_own_signal(struct process *process, const char *how)
{
	uint32_t number = atomic_load_explicit(&process->header->ending_signal, memory_order_relaxed);

	if (strcmp(how, "exit") != 0 || number == 0 || number >= (uint32_t)_NSIG)
		return how;
	process->signal = (int)number;
	return "killed";
}

static void complete_process(struct session *session, struct process *process, const char *how, uint64_t now_ns)
{
	struct meta_process_end end = {.process = process->number};
	struct drain_result ignored = {0};

	if (!process->drained)
		drain_process(process, DRAIN_LAST, UINT64_MAX, now_ns, &ignored);
	/* Known only after the last drain: the new program may have ended quickly. */
	if (process->dead && process->exec_seen)
		how = "exec";
	end.how = how = end_by_own_signal(process, how);
	end.signal = process->signal;
	end.end_ticks = end_ticks_of(process, how);
	drain_end(process, end.end_ticks);
	for (unsigned kind = 1; kind < WIRE_KINDS; kind++)
		end.lost.of[kind] = atomic_load_explicit(&process->header->lost_unslotted[kind], memory_order_relaxed);
	end.lost_definitions = atomic_load_explicit(&process->header->lost_definitions, memory_order_relaxed);
	end.waits = atomic_load_explicit(&process->header->waits, memory_order_relaxed);
	end.waited_us = atomic_load_explicit(&process->header->waited_us, memory_order_relaxed);
	end.samples = atomic_load_explicit(&process->header->samples, memory_order_relaxed);
	end.samples_torn = atomic_load_explicit(&process->header->samples_torn, memory_order_relaxed);
	end.samples_dropped = atomic_load_explicit(&process->header->samples_dropped, memory_order_relaxed);
	end.status = process->status;
	end.sampler_lost = process->sampler.lost;
	session->trace.lost += meta_lost(&end.lost);
	trace_output_json(&session->trace, process->number, TRACE_NOBODY, meta_process_end(&end));
	process->complete = true;
	session->ended_ns = now_ns;
	process->replaced = !strcmp(how, "exec");
	note_missing_children(session, process, now_ns);
	keep_pending_children(session, process, now_ns);
	log_info("process %d has ended (%s)", (int)process->pid, how);
}

/* How the image ended; NULL: it still runs. */
static const char *end_reason(struct process *process, struct user *user, uint64_t now_ns)
{
	uint32_t state = atomic_load_explicit(&process->header->target_state, memory_order_acquire);
	int gone;

	if (state == RING_TARGET_EXITING)
		return "exit";
	if (state == RING_TARGET_REPLACED)
		return "detached";
	if (process->dead)
		return process->exec_seen ? "exec" : process->exited ? "exit" : "killed";
	if (!process->exec_seen || now_ns < process->exec_check_ns)
		return NULL;
	gone = process_image_gone(process, user);
	if (gone != -EAGAIN)
		process->exec_check_ns = now_ns + EXEC_CHECK_NS;
	return gone == 1 ? "exec" : NULL;
}

static void note_death(struct process *process)
{
	process->death_ticks = clock_ticks(process->layout.clock_kind) >> process->layout.clock_shift;
	process_read_end(process);
}

static void process_died(struct loop_source *source, uint32_t events)
{
	struct process *process = LOOP_OWNER(source, struct process, source);

	(void)events;
	loop_remove(process->loop, source);
	process->dead = true;
	note_death(process);
}

/* The previous image with this pid has ended, whatever its pidfd says. */
static void end_predecessor(struct session *session, const struct control_message *join, pid_t pid, uint64_t now_ns)
{
	for (struct process *process = session->processes; process; process = process->next) {
		const char *how;

		if (process->pid != pid)
			continue;
		/* The pid was reused by another process. */
		if (!process->dead && process->start_time != join->start_time)
			process_died(&process->source, 0);
		process->replaced = false;
		process->superseded = true;
		if (process->complete)
			continue;
		how = end_reason(process, session->user, now_ns);
		if (!how && join->start == WIRE_START_EXEC)
			how = "exec";
		if (!how)
			how = join->start == WIRE_START_REJOIN ? "detached" : "killed";
		complete_process(session, process, how, now_ns);
		process->replaced = false;
	}
}

/* The image that forked the joining one, or NULL. The list begins with the latest. */
static const struct process *parent_of(const struct session *session, const struct process *child, pid_t ppid)
{
	for (const struct process *process = session->processes; process; process = process->next)
		if (process != child && process->sender_pid == ppid)
			return process;
	return NULL;
}

static void describe_process(struct session *session, struct process *process, const struct control_message *join,
			     uint64_t now_ns)
{
	const struct ring_layout *layout = &process->layout;
	const struct process *parent = join->start == WIRE_START_FORK ? parent_of(session, process, join->ppid) : NULL;
	struct control_message shown = *join;

	title_begin(&process->title, join, process->pid, parent ? &parent->title : NULL, now_ns);
	shown.argv = process->title.argv;
	trace_output_use_clock(&session->trace, layout->clock_kind, layout->clock_shift);
	trace_output_write_clocks(&session->trace, now_ns);
	trace_output_json(
	    &session->trace, process->number, TRACE_NOBODY,
	    meta_process(&shown, process->number, layout->clock_kind, layout->clock_shift, layout->start_ticks));
}

/* Writes the SYMBOL definitions of a process. Callback of the resolver. */
static void write_symbols(void *owner, const void *definitions, size_t bytes)
{
	const struct process *process = owner;
	struct trace_chunk chunk = {
	    .type = TRACE_CHUNK_DEFINITIONS, .process = process->number, .thread = TRACE_NOBODY};

	if (!process->trace->closed)
		trace_output_chunk(process->trace, &chunk, definitions, bytes);
}

/* Makes a process, which counts against its user's limit. */
static int new_process_of(struct session *session, int memfd, int pidfd, const struct ucred *who,
			  struct process **result, char *reason, size_t reason_bytes)
{
	struct users *users = &session->tools->users;
	struct user *user = users_get(users, who->uid);
	int error;

	if (!user)
		return -ENOMEM;
	error = user_begin(users, user, USER_PROCESSES, reason, reason_bytes);
	if (!error) {
		error = process_new(memfd, pidfd, who->pid, result, reason, reason_bytes);
		if (error)
			user_end(user, USER_PROCESSES);
	}
	if (error) {
		users_put(users, user);
		return error;
	}
	(*result)->loop = session->tools->loop;
	(*result)->trace = &session->trace;
	(*result)->drain = &session->tools->drain;
	(*result)->user = user;
	return 0;
}

int session_join(struct session *session, const struct control_message *join, int memfd, int pidfd,
		 const struct ucred *who, char *reason, size_t reason_bytes)
{
	uint64_t now_ns = clock_now_ns();
	struct process *process;
	pid_t pid = who->pid;
	int error = new_process_of(session, memfd, pidfd, who, &process, reason, reason_bytes);

	if (error)
		return error;
	process->sender_pid = join->pid;
	process->start_time = join->start_time;
	process->last_ticks = process->layout.start_ticks;
	process->sampler.wanted = join->sample_rate > 0;
	if (join->start == WIRE_START_REJOIN) /* do not reread what another collector has read */
		process->definitions_tail = atomic_load(&process->header->definitions_tail);
	process->source.ready = process_died;
	if (process->dead)
		note_death(process);
	error = process->dead ? 0 : loop_add(session->tools->loop, &process->source);
	if (error) {
		snprintf(reason, reason_bytes, "the collector cannot watch the process: %s", strerror(-error));
		end_user(session, process);
		process_forget(process);
		return error;
	}
	if (!session->trace.opened) {
		const char *formats = session->tools->output_dir ? session->tools->formats : join->formats;

		snprintf(session->format_list, sizeof(session->format_list), "%s", formats ? formats : "");
		open_trace(session, join);
	}
	pending_rejoin_joined(&session->tools->first, pid);
	end_predecessor(session, join, pid, now_ns);
	count_child(session, join);
	process->number = session->trace.process_count++;
	process->next = session->processes;
	session->processes = process;
	if (join->native)
		process->symbols = resolver_add(session->tools->resolver, who, process->user, pidfd, pid == join->pid,
						write_symbols, process);
	describe_process(session, process, join, now_ns);
	process_attach(process);
	if (session->trace.failed)
		session_answer(session, process, RING_COLLECTOR_FAILED);
	session->tools->drain.with_init |= pid == PROCESS_INIT;
	log_info("process %d joined (%s)", (int)pid, join->program);
	return 0;
}

int session_hold(struct session *session, const struct control_message *message, int fd, char *reason,
		 size_t reason_bytes)
{
	struct users *users = &session->tools->users;
	struct hold *hold;
	int error = user_begin(users, session->user, USER_HOLDS, reason, reason_bytes);

	if (error)
		return error;
	error = hold_new(session->tools->loop, fd, &hold);
	if (error) {
		snprintf(reason, reason_bytes, "the collector cannot hold a session: %s", strerror(-error));
		user_end(session->user, USER_HOLDS);
		return error;
	}
	hold->wait_ns = (uint64_t)message->wait_ms * 1000000;
	session->tools->drain.with_init |= hold->init;
	hold->next = session->holds;
	session->holds = hold;
	return 0;
}

static void update_title(struct process *process, uint64_t now_ns)
{
	bool ends = atomic_load_explicit(&process->header->target_state, memory_order_relaxed) != RING_TARGET_RUNNING;

	/* The pid of a dead process may be reused. */
	if (!process->dead && title_look(&process->title, process->pid, ends, now_ns))
		trace_output_json(process->trace, process->number, TRACE_NOBODY,
				  meta_title(process->number, title_shown(&process->title)));
}

/* Drains a process's share of its user's round. Every process has a share, however many there are. */
static bool drain_share(struct process *process, struct user *user, enum drain_mode mode, uint64_t now_ns,
			struct drain_result *result)
{
	uint64_t most = user->words < SHARE_MAX_WORDS ? user->words : SHARE_MAX_WORDS;
	uint64_t share = most > SHARE_MIN_WORDS ? most : SHARE_MIN_WORDS;
	bool all;

	update_title(process, now_ns);
	all = drain_process(process, mode, share, now_ns, result);

	user_spend(user, share - process->share);
	return all;
}

static bool has_woken_us(struct process *process)
{
	if (process->sleep == RING_AWAKE ||
	    atomic_load_explicit(&process->header->sleep, memory_order_relaxed) != RING_AWAKE)
		return false;
	process->sleep = RING_AWAKE;
	return true;
}

static void watch_sampler(struct session *session, struct process *process, uint64_t now_ns)
{
	if (!sampler_watch_missed(&process->sampler, process->memfd, now_ns) ||
	    process_image_gone(process, session->user) != 0)
		return;
	sampler_watch_end(&process->sampler, &process->layout, process->header, process->slots);
	log_warning("the sampler of process %d is gone", (int)process->pid);
	session->unsampled++;
}

/* Makes another process the first of the next round: the first one has the largest share. */
static void rotate_processes(struct session *session)
{
	struct process *first = session->processes, **last = &session->processes;

	while (*last)
		last = &(*last)->next;
	if (!first || &first->next == last)
		return;
	*last = first;
	session->processes = first->next;
	first->next = NULL;
}

void session_round(struct session *session, uint64_t now_ns, struct drain_result *result)
{
	uint64_t before = result->words;

	user_round(session->user, now_ns);
	rotate_processes(session);
	for (struct process *process = session->processes; process; process = process->next) {
		const char *how;

		if (process->complete)
			continue;
		note_missing_children(session, process, now_ns);
		process_check_forks(process, session->user, now_ns);
		result->woken |= has_woken_us(process);
		how = end_reason(process, session->user, now_ns);
		if (how && !drain_share(process, session->user, DRAIN_LAST, now_ns, result))
			continue;
		process->drained = how != NULL;
		if (how)
			complete_process(session, process, how, now_ns);
		if (how && process->pid == PROCESS_INIT && !strcmp(how, "exit"))
			session->tools->init_ends = true;
		if (how)
			continue;
		watch_sampler(session, process, now_ns);
		drain_share(process, session->user, DRAIN_GATHER, now_ns, result);
	}
	trace_output_renew_clocks(&session->trace, result->words != before, now_ns);
}

static void forget_dead(struct session *session)
{
	struct process **link = &session->processes;

	while (*link) {
		struct process *process = *link;

		if (!(process->dead || process->superseded) || !process->complete ||
		    resolver_is_busy(process->symbols)) {
			link = &process->next;
			continue;
		}
		*link = process->next;
		remove_process(session, process);
	}
}

static void answer_holds(struct session *session, uint64_t now_ns)
{
	struct meta_summary summary = {
	    .trace = session->trace.path[0] && session->trace.writer.error != -EBADF ? session->trace.path : NULL,
	    .error = session->trace.failed ? session->trace.error : NULL,
	    .absent = session->trace.process_count || !session->absent[0] ? NULL : session->absent,
	    .events = session->trace.events,
	    .lost = session->trace.lost,
	    .unsampled = session->unsampled,
	    .processes = session->trace.process_count};
	struct hold **link = &session->holds;

	if (*link)
		trace_writer_follow(&session->trace.writer, session->trace.path);
	for (const struct process *process = session->processes; process; process = process->next) {
		summary.lost += drain_lost(process);
		summary.running += !session->finished && (!process->complete || awaits_successor(process));
	}
	while (*link) {
		struct hold *hold = *link;

		if (!session->finished &&
		    (!hold->closing || now_ns - hold->closed_ns < HOLD_GRACE_NS + hold->wait_ns)) {
			link = &hold->next;
			continue;
		}
		*link = hold->next;
		hold_answer(hold, &summary);
		user_end(session->user, USER_HOLDS);
	}
}

static void close_trace(struct session *session, uint64_t now_ns)
{
	/* with_init: there may be no time after the answer. */
	trace_output_close(&session->trace, session->tools->drain.with_init, now_ns);
}

static void finish_session(struct session *session, uint64_t now_ns)
{
	char text[RING_TEXT_BYTES];

	if (session->formats.failed && !session->trace.failed) {
		snprintf(text, sizeof(text), "the trace is %.400s, but %.200s could not be written next to it; %s",
			 session->trace.path, session->format_list, "evprof export --beside shows the reason");
		trace_output_fail(&session->trace, text);
	}
	session->finished = true;
	session->finished_ns = now_ns;
	for (struct process *process = session->processes; process; process = process->next)
		session_answer(session, process, RING_COLLECTOR_FINISHED);
	answer_holds(session, now_ns);
	trace_writer_close(&session->trace.writer);
	if (session->trace.process_count > 0)
		log_info("%s: %llu events of %u processes, %llu lost", session->trace.path,
			 (unsigned long long)session->trace.events, session->trace.process_count,
			 (unsigned long long)session->trace.lost);
}

static bool has_open_hold(const struct session *session)
{
	for (const struct hold *hold = session->holds; hold; hold = hold->next) {
		if (!hold->closing)
			return true;
	}
	return false;
}

static bool child_expected(const struct session *session, uint64_t now_ns)
{
	return session->pending_children_since_ns ||
	       (session->missing_children > 0 && now_ns < session->grace_until_ns);
}

/* Pending for so long that its parent does not wait for it: it counts as if it had joined. */
static bool child_is_slow(const struct session *session, uint64_t now_ns)
{
	return session->pending_children_since_ns && now_ns - session->pending_children_since_ns >= FORK_GRACE_NS;
}

static bool successor_expected(const struct session *session)
{
	for (const struct process *process = session->processes; process; process = process->next) {
		if (awaits_successor(process))
			return true;
	}
	return false;
}

/* Whether the trace is still being exported to other formats. Waiting processes get a heartbeat meanwhile. */
static bool convert_formats(struct session *session)
{
	if (!session->converted && session->format_list[0] && !session->trace.failed &&
	    session->trace.process_count > 0)
		formats_start(&session->formats, session->tools->loop, session->format_list, session->trace.path);
	session->converted = true;
	for (struct process *process = session->processes; process && session->formats.running; process = process->next)
		atomic_fetch_add_explicit(&process->header->heartbeat, 1, memory_order_relaxed);
	return session->formats.running;
}

/* Whether native frames are still being symbolized. Waiting processes get a heartbeat meanwhile. */
static bool wait_for_symbols(struct session *session, uint64_t now_ns)
{
	bool busy = false;

	if (session->trace.closed || (session->symbols_until_ns && now_ns >= session->symbols_until_ns))
		return false;
	for (const struct process *process = session->processes; process; process = process->next)
		busy |= resolver_is_busy(process->symbols);
	if (!busy)
		return false;
	if (!session->symbols_until_ns)
		session->symbols_until_ns = now_ns + SYMBOLS_WAIT_NS;
	for (struct process *process = session->processes; process; process = process->next)
		atomic_fetch_add_explicit(&process->header->heartbeat, 1, memory_order_relaxed);
	return true;
}

static void complete_all(struct session *session, uint64_t now_ns)
{
	for (struct process *process = session->processes; process; process = process->next) {
		const char *how = process->complete ? NULL : end_reason(process, session->user, now_ns);

		if (!process->complete)
			complete_process(session, process, how ? how : "detached", now_ns);
	}
	session->pending_children_count = 0;
}

static void note_end_of_holder(struct session *session, uint64_t now_ns)
{
	for (const struct hold *hold = session->holds; hold; hold = hold->next) {
		if (hold->init && hold->closing && now_ns - hold->closed_ns >= HOLD_INIT_GRACE_NS + hold->wait_ns)
			session->tools->init_ends = true;
	}
}

uint64_t session_ended_ns(const struct session *session)
{
	uint64_t ended_ns = session->ended_ns;

	for (const struct hold *hold = session->holds; hold; hold = hold->next) {
		if (hold->closing && hold->closed_ns > ended_ns)
			ended_ns = hold->closed_ns;
	}
	return ended_ns;
}

void session_check_end(struct session *session, uint64_t now_ns, bool more_to_come)
{
	bool others;

	/* First: the end of a child that never joined wakes nobody, so nothing may wait for it longer than it lives. */
	check_pending_child(session, now_ns);
	others = session_live(session) > 0 || has_open_hold(session) || successor_expected(session) ||
		 child_is_slow(session, now_ns) || pending_rejoin_any(&session->tools->first) || more_to_come;
	note_end_of_holder(session, now_ns);
	if (session->tools->init_ends && !session->trace.closed)
		complete_all(session, now_ns);
	if (session->tools->init_ends || (!others && !child_expected(session, now_ns))) {
		if (!session->tools->init_ends && wait_for_symbols(session, now_ns))
			return;
		if (!session->trace.closed)
			close_trace(session, now_ns);
		if (!convert_formats(session))
			finish_session(session, now_ns);
		return;
	}
	for (struct process *process = session->processes; process; process = process->next) {
		if (process->complete && !process->answered && others)
			session_answer(session, process, RING_COLLECTOR_DRAINED);
	}
	answer_holds(session, now_ns);
	forget_dead(session);
}

void session_stop(struct session *session, uint64_t now_ns)
{
	complete_all(session, now_ns);
	if (!session->trace.closed)
		close_trace(session, now_ns);
	formats_stop(&session->formats);
	finish_session(session, now_ns);
}

/* Whether an answer is due that depends on time. */
static bool is_about_to_end(const struct session *session, uint64_t now_ns)
{
	if ((child_expected(session, now_ns) && !child_is_slow(session, now_ns)) || session->formats.running ||
	    session->finished || (session->symbols_until_ns && !session->trace.closed))
		return true;
	for (const struct hold *hold = session->holds; hold; hold = hold->next) {
		if (hold->closing)
			return true;
	}
	return false;
}

bool session_needs_polling(const struct session *session, uint64_t now_ns)
{
	return session_live(session) > 0 || session->pending_children_since_ns || is_about_to_end(session, now_ns);
}

/* A process's death always wakes us. A sampler's writes do not, so its process is polled more often. */
static int process_patience_us(const struct process *process)
{
	if (!atomic_load_explicit(&process->header->wakes, memory_order_relaxed))
		return SESSION_IMPATIENT_US;
	if (process->sampler.wanted)
		return SAMPLED_PATIENCE_US;
	return process->exec_seen || resolver_is_busy(process->symbols) ? SLOW_PATIENCE_US : SESSION_PATIENT_US;
}

int session_patience_us(const struct session *session, uint64_t now_ns)
{
	int least_us = session->pending_children_since_ns ? SLOW_PATIENCE_US : SESSION_PATIENT_US;

	if (is_about_to_end(session, now_ns))
		return SESSION_IMPATIENT_US;
	for (const struct process *process = session->processes; process; process = process->next) {
		int us = process->complete ? SESSION_PATIENT_US : process_patience_us(process);

		least_us = us < least_us ? us : least_us;
	}
	return least_us;
}

void session_announce(struct session *session, enum ring_sleep sleep)
{
	for (struct process *process = session->processes; process; process = process->next) {
		if (process->sleep == sleep || process->complete)
			continue;
		process->sleep = sleep;
		atomic_store(&process->header->sleep, sleep);
	}
}
