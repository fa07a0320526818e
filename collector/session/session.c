/*
 * session.c - the life of a session: joins, rounds and the trace file. Its end is in session_end.c.
 *
 * Called by the server (joins and holds) and by collector.c (rounds).
 */
#include "session/session.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "evprof/settings.h"
#include "evprof/system_calls.h"
#include "symbols/resolver.h"

#define LINGER_NS UINT64_C(50000000)
#define SHARE_MAX_WORDS (UINT64_C(128) << 10) /* words of a process in a round ... */
#define SHARE_MIN_WORDS (UINT64_C(8) << 10)   /* ... at least, if others of its user take the rest */

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

static void answer_failure(struct trace_output *trace)
{
	struct session *session = LOOP_OWNER(trace, struct session, trace);

	for (struct process *process = session->processes; process; process = process->next)
		session_answer(session, process, RING_COLLECTOR_FAILED);
}

static void end_user(struct session *session, struct process *process)
{
	process->user->counts[USER_PROCESSES]--;
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
	trace_output_init(&session->trace, &tools->users, session->user, tools->output_dir ? &tools->folder : NULL,
			  answer_failure);
	memcpy(session->id, first->session, sizeof(session->id));
	return session;
}

void session_free(struct session *session)
{
	triggers_stop(&session->triggers);
	session_alive_stop(&session->alive, true);
	copies_stop(&session->copies);
	trace_output_done(&session->trace);
	while (session->processes) {
		struct process *process = session->processes;

		session->processes = process->next;
		remove_process(session, process);
	}
	free(session->pending.at);
	free(session->output);
	session->user->counts[USER_SESSIONS]--;
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

	if (session->tools->output_dir && uid != 0 && uid != system_geteuid() && uid != USER_NOBODY)
		error = output_let_read(session->trace.writer.fd, uid);
	if (error && !said)
		log_warning("users other than ours cannot read their traces in %s: access control lists: %s",
			    session->tools->output_dir, strerror(-error));
	said |= error != 0;
}

static void set_formats(struct session *session, const struct control_message *first)
{
	const char *formats = session->tools->output_dir ? session->tools->formats : first->formats;

	snprintf(session->format_list, sizeof(session->format_list), "%s", formats ? formats : "");
}

static uint32_t events_of(const json_t *names)
{
	uint32_t events = 0;
	const json_t *name;
	size_t i;

	json_array_foreach(names, i, name) events |= setting_event(json_string_value(name), json_string_length(name));
	return events;
}

/* What is kept of the trace of a first process. The daemon's policy comes first, as far as it can be followed. */
static struct setting_keep keep_of(const struct session *session, const struct control_message *first)
{
	static bool said;
	struct setting_keep keep = session->tools->keep;

	if (keep.alive && !setting_may_keep_alive(events_of(first->events))) {
		if (!said)
			log_warning(
			    "--keep-last alive has no effect on %s and on others without EVPROF_EVENTS=mem,malloc",
			    first->program);
		said = true;
		keep.alive = false;
		if (keep.ns == SETTING_KEEP_ALIVE_NS && !keep.bytes) /* "alive" implied it */
			keep.ns = 0;
	}
	if (!keep.ns && !keep.bytes)
		keep = first->keep;
	keep.alive |= first->keep.alive; /* a bound of the disk, too */
	return keep;
}

/* The file is created when the first process joins: that process gives it its name. */
static void open_trace(struct session *session, const struct control_message *first)
{
	struct trace_output *trace = &session->trace;
	bool others = session->tools->output_dir || session->tools->first.pid || session->goes_on;
	enum output_existing existing = others ? OUTPUT_ADD_SUFFIX : OUTPUT_REPLACE;
	struct setting_keep keep = keep_of(session, first);
	bool rotates = session->tools->rotate.ns || session->tools->rotate.bytes;
	int error = output_path(session, first, trace->path, sizeof(trace->path));

	set_formats(session, first);
	if (error) {
		trace_output_open_failed(trace, error);
	} else if (!trace_output_open(trace, session->tools->packer, session->id, existing, &keep, rotates)) {
		if (!trace->in_memory) { /* a copy would have no place */
			triggers_begin(&session->triggers, session->tools->trigger, first->trigger);
			let_user_read(session);
		}
		trace_output_json(trace, TRACE_NOBODY, TRACE_NOBODY, meta_kinds(), KEPT_STATE);
	}
}

static void note_death(struct process *process)
{
	process->death_ticks = clock_ticks(process->layout.clock_kind) >> process->layout.clock_shift;
	process_read_end(process);
}

static void process_died(struct loop_source *source)
{
	struct process *process = LOOP_OWNER(source, struct process, source);

	loop_remove(process->loop, source);
	process->dead = true;
	note_death(process);
}

/* The previous image of this process has ended, whatever its pidfd says. So has a process whose pid this one has. */
static void end_predecessor(struct session *session, const struct control_message *join, const struct process *joined,
			    uint64_t now_ns)
{
	for (struct process *process = session->processes; process; process = process->next) {
		const char *how;

		if (!process_is_same(process, joined))
			continue;
		/* The pid was reused by another process. */
		if (!process->dead && process->start_time != join->start_time)
			process_died(&process->source);
		process->replaced = false;
		process->superseded = true;
		if (process->complete)
			continue;
		how = process_end_reason(process, session->user, now_ns);
		if (!how && join->start == WIRE_START_EXEC)
			how = "exec";
		if (!how)
			how = join->start == WIRE_START_REJOIN ? "detached" : "killed";
		session_complete(session, process, how, now_ns);
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
	process->events = events_of(join->events);
	resident_begin(&process->resident, process->events);
	shown.argv = process->title.argv;
	shown.keep = session->trace.kept.limits; /* the daemon's, where it has some: what the trace does */
	trace_output_use_clock(&session->trace, layout->clock_kind, layout->clock_shift);
	trace_output_write_clocks(&session->trace, now_ns);
	trace_output_json(&session->trace, process->number, TRACE_NOBODY,
			  meta_process(&shown, process->number, process->pid, layout->clock_kind, layout->clock_shift,
				       layout->start_ticks),
			  KEPT_STATE);
	process->in_trace = !session->trace.failed;
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
			user->counts[USER_PROCESSES]--;
	}
	if (error) {
		users_put(users, user);
		return error;
	}
	(*result)->loop = session->tools->loop;
	(*result)->trace = &session->trace;
	(*result)->drain = &session->tools->drain;
	(*result)->user = user;
	(*result)->totals.rate_ns = clock_now_ns();
	return 0;
}

int session_join(struct session *session, const struct control_message *join, int memfd, int pidfd,
		 const struct ucred *who, char *reason, size_t reason_bytes)
{
	uint64_t now_ns = clock_now_ns();
	struct triggers_place place;
	struct process *process;
	pid_t pid = who->pid;
	int error = new_process_of(session, memfd, pidfd, who, &process, reason, reason_bytes);

	if (error)
		return error;
	process->sender_pid = join->pid;
	process->program = strdup(join->program); /* NULL without memory: evprof status shows none */
	process->start_time = join->start_time;
	process->last_ticks = process->layout.start_ticks;
	process->sampler.wanted = join->sample_rate > 0;
	process->outside = join->outside;
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
	if (!session->trace.opened)
		open_trace(session, join);
	pending_rejoin_joined(&session->tools->first, pid);
	end_predecessor(session, join, process, now_ns);
	pending_children_joined(&session->pending, session->processes, join);
	process->number = session->trace.process_count++;
	session->trace.open_processes++;
	process->next = session->processes;
	session->processes = process;
	if (join->native)
		process->symbols = resolver_add(session->tools->resolver, who, process->user, pidfd, pid == join->pid,
						write_symbols, process);
	describe_process(session, process, join, now_ns);
	process_attach(process, session->trace.failed ? "" : session->trace.path);
	if (session->trace.failed)
		session_answer(session, process, RING_COLLECTOR_FAILED);
	session->tools->drain.with_init |= pid == PROCESS_INIT;
	place = session_place(session, now_ns);
	triggers_watch(&session->triggers, &place, session->user->uid, who->gid);
	session_alive_start(&session->alive, session->tools->loop, &session->trace);
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
		session->user->counts[USER_HOLDS]--;
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
				  meta_title(process->number, title_shown(&process->title)), KEPT_LATEST);
}

static void update_resident(struct process *process, uint64_t now_ns)
{
	bool ends = atomic_load_explicit(&process->header->target_state, memory_order_relaxed) != RING_TARGET_RUNNING;

	if (!process->dead && resident_look(&process->resident, process->pid, &process->layout, ends, now_ns))
		process_write_resident(process);
}

/* Drains a process's share of its user's round. Every process has a share, however many there are. */
static bool drain_share(struct process *process, struct user *user, enum drain_mode mode, uint64_t now_ns,
			struct drain_result *result)
{
	uint64_t most = user->words < SHARE_MAX_WORDS ? user->words : SHARE_MAX_WORDS;
	uint64_t share = most > SHARE_MIN_WORDS ? most : SHARE_MIN_WORDS;
	bool all;

	update_title(process, now_ns);
	update_resident(process, now_ns);
	process_write_events(process);
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

/*
 * Publishes that all is written which was recorded before a flush (evprof_flush()). The clock goes with it: a reader
 * needs two records, and times are as exact as the records are near.
 */
static void answer_flushes(struct session *session, uint64_t now_ns)
{
	bool clocks = false;

	for (struct process *process = session->processes; process; process = process->next) {
		if (process->flushed == process->flush)
			continue;
		if (!clocks && !session->trace.failed && !session->trace.closed)
			trace_output_write_clocks(&session->trace, now_ns);
		clocks = true;
		process->flushed = process->flush;
		/* Release: pairs with the target's acquire. The file has what was recorded. */
		atomic_store_explicit(&process->header->flushed, process->flushed, memory_order_release);
	}
}

/* Drains what ought to be written by now; or all, if the process or somebody else waits for that. */
static void drain_running(struct session *session, struct process *process, uint64_t now_ns,
			  struct drain_result *result)
{
	uint64_t began_ns = clock_now_ns();
	/* Acquire: what was recorded before the flush is in the rings. */
	uint32_t flush = atomic_load_explicit(&process->header->flush, memory_order_acquire);
	bool all = flush != process->flushed || process->read_ns < process->wanted_ns;

	if (kept_is_behind(&session->trace.kept, session->trace.writer.offset)) {
		atomic_fetch_add_explicit(&process->header->heartbeat, 1, memory_order_relaxed);
		return; /* the process waits, and then loses events, as if the collector were slow */
	}
	if (!drain_share(process, session->user, all ? DRAIN_FLUSH : DRAIN_GATHER, now_ns, result))
		return;
	process->flush = flush;
	process->read_ns = all ? began_ns : process->read_ns;
}

struct triggers_place session_place(struct session *session, uint64_t now_ns)
{
	return (struct triggers_place){.copies = &session->copies,
				       .loop = session->tools->loop,
				       .trace = &session->trace,
				       .processes = session->processes,
				       .now_ns = now_ns};
}

void session_want(struct session *session, uint64_t wanted_ns)
{
	for (struct process *process = session->processes; process; process = process->next)
		process->wanted_ns = wanted_ns;
}

bool session_is_read(const struct session *session, uint64_t wanted_ns, uint64_t now_ns)
{
	for (const struct process *process = session->processes; process; process = process->next)
		if (!process_is_read(process, wanted_ns, now_ns))
			return false;
	return true;
}

/* Waits until all that was recorded is read: little is late for the part. */
static void rotate_trace(struct session *session, uint64_t now_ns)
{
	struct rotation *rotation = &session->rotation;

	rotation_check(rotation, &session->trace, session->format_list, now_ns);
	if (!rotation_is_due(rotation, &session->tools->rotate, &session->trace, now_ns)) {
		rotation->wanted_ns = 0; /* the trace may be full meanwhile */
		return;
	}
	if (!rotation->wanted_ns)
		session_want(session, rotation->wanted_ns = clock_now_ns());
	if (!session_is_read(session, rotation->wanted_ns, now_ns))
		return;
	rotation->wanted_ns = 0;
	rotation_begin(rotation, session->tools->loop, &session->trace, clock_now_ns());
}

void session_round(struct session *session, uint64_t now_ns, struct drain_result *result)
{
	uint64_t before = result->words;
	struct triggers_place place;

	user_round(session->user, now_ns);
	rotate_processes(session);
	for (struct process *process = session->processes; process; process = process->next) {
		const char *how;

		if (process->complete)
			continue;
		pending_children_note(&session->pending, process, now_ns);
		process_check_forks(process, session->user, now_ns);
		result->woken |= has_woken_us(process);
		copies_add_asked(&session->copies, session->tools->loop, &session->trace, process, now_ns);
		how = process_end_reason(process, session->user, now_ns);
		if (how && !drain_share(process, session->user, DRAIN_LAST, now_ns, result))
			continue;
		process->drained = how != NULL;
		if (how)
			session_complete(session, process, how, now_ns);
		if (how && process->pid == PROCESS_INIT && !strcmp(how, "exit"))
			session->tools->init_ends = true;
		if (how)
			continue;
		watch_sampler(session, process, now_ns);
		process_next_request(process);
		drain_running(session, process, now_ns, result);
		process_renew_rate(process, now_ns);
	}
	place = session_place(session, now_ns);
	triggers_round(&session->triggers, &place);
	session_alive_round(&session->alive);
	answer_flushes(session, now_ns);
	trace_output_renew_clocks(&session->trace, result->words != before, now_ns);
	copies_check(&session->copies, &session->trace, now_ns);
	rotate_trace(session, now_ns);
	trace_output_renew_kept(&session->trace, now_ns);
}

void session_forget_dead(struct session *session)
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

void session_announce(struct session *session, enum ring_sleep sleep)
{
	for (struct process *process = session->processes; process; process = process->next) {
		if (process->sleep == sleep || process->complete)
			continue;
		process->sleep = sleep;
		atomic_store(&process->header->sleep, sleep);
	}
}
