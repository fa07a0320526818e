/*
 * session_end.c - the ends of process images, of holds and of the session itself, and the answers to them.
 *
 * Called by session.c, and by collector.c after each round.
 */
#include "session/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "session/drain.h"
#include "symbols/resolver.h"
#include "trace/trace_output.h"
#include "base/clock.h"
#include "session/process.h"

#define EXEC_CHECK_NS UINT64_C(50000000)
#define SYMBOLS_WAIT_NS UINT64_C(20000000000) /* at the end, for symbols of native frames */
#define SAMPLED_PATIENCE_US 20000
#define SLOW_PATIENCE_US 200000
#define ENDED_WAIT_MS 100 /* for a tool that the signal which ends us may have ended */

const char *process_end_reason(struct process *process, struct user *user, uint64_t now_ns)
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

/* The end of the image: its last event, or its death where it was killed. */
static uint64_t end_ticks_of(const struct process *process, const char *how)
{
	bool announced =
	    atomic_load_explicit(&process->header->target_state, memory_order_acquire) != RING_TARGET_RUNNING;

	if (!process->dead || announced || !strcmp(how, "exec") || process->death_ticks < process->last_ticks)
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

/* Drains what is left, and writes the end to the trace. The process is complete afterwards. */
static void write_end(struct process *process, const char *how, uint64_t now_ns)
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
	process_write_resident(process);
	process_write_events(process);
	for (unsigned kind = 1; kind < WIRE_KINDS; kind++)
		end.lost.of[kind] = atomic_load_explicit(&process->header->lost_unslotted[kind], memory_order_relaxed);
	end.status = process->status;
	end.sampler_lost = process->sampler.lost;
	process->trace->lost += meta_lost(&end.lost);
	meta_add(&end.lost, &process->lost_unlisted);
	if (process->in_trace)
		trace_output_json(process->trace, process->number, TRACE_NOBODY,
				  meta_process_end(&end, process->header), KEPT_END);
	process->trace->open_processes--;
	process->complete = true;
	process->replaced = !strcmp(how, "exec");
	log_info("process %d has ended (%s)", (int)process->pid, how);
}

static void hold_ready(struct loop_source *source)
{
	struct hold *hold = LOOP_OWNER(source, struct hold, source);
	char ignored[64];
	ssize_t count = recv(source->fd, ignored, sizeof(ignored), MSG_DONTWAIT);

	if (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	loop_remove(hold->loop, source);
	hold->closing = true;
	hold->closed_ns = clock_now_ns();
}

int hold_new(struct loop *loop, int fd, struct hold **result)
{
	struct hold *hold = calloc(1, sizeof(*hold));
	struct ucred who;
	socklen_t length = sizeof(who);
	int error;

	if (!hold)
		return -ENOMEM;
	hold->source = (struct loop_source){.fd = fd, .ready = hold_ready};
	hold->loop = loop;
	hold->init = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.pid == PROCESS_INIT;
	error = loop_add(loop, &hold->source);
	if (error) {
		free(hold);
		return error;
	}
	*result = hold;
	return 0;
}

/* Sends the answer without waiting for the other side, and closes the connection. */
static void answer_hold(struct hold *hold, const struct meta_summary *summary)
{
	char *text = meta_summary(summary);

	if (text)
		send(hold->source.fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
	free(text);
	if (!hold->closing)
		loop_remove(hold->loop, &hold->source);
	close(hold->source.fd);
	free(hold);
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
	uint32_t running = session->pending.count;

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

void session_answer(struct session *session, struct process *process, enum ring_collector_state state)
{
	if (process->let_go)
		return;
	fill_summary(session, process);
	trace_writer_follow(&session->trace.writer, session->trace.path);
	process_answer(process, session->trace.failed ? RING_COLLECTOR_FAILED : state,
		       session->trace.failed	  ? session->trace.error
		       : session->trace.in_memory ? ""
						  : session->trace.path);
	process->answered = true;
}

/* By these a person, a supervisor or the master of its workers ends a process in the ordinary course. */
static bool is_order(int number)
{
	return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

/*
 * Whether it came to an end that nobody ordered. Its parent may have taken its status before we could read it: then the
 * signal is not known, and it counts.
 */
static bool was_killed(const struct process *process, const char *how)
{
	return process->dead && !process->replaced && !is_order(process->signal) &&
	       (process->signal > 0 || strcmp(how, "killed") == 0);
}

/* The trace of a session that ends has it all. */
static bool goes_on(const struct session *session)
{
	return session_live(session) > 0 && !session->trace.failed && !session->trace.in_memory &&
	       kept_is_limited(&session->trace.kept);
}

void session_complete(struct session *session, struct process *process, const char *how, uint64_t now_ns)
{
	write_end(process, how, now_ns);
	copies_check(&session->copies, &session->trace, now_ns); /* the process may be freed */
	if (was_killed(process, how) && goes_on(session))
		copies_add_killed(&session->copies, session->tools->loop, &session->trace, process);
	session->ended_ns = now_ns;
	pending_children_note(&session->pending, process, now_ns);
	pending_children_keep(&session->pending, process, now_ns);
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

	if (summary.trace && session->trace.in_memory)
		summary.trace = "";
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
		answer_hold(hold, &summary);
		session->user->counts[USER_HOLDS]--;
	}
}

static void close_trace(struct session *session, uint64_t now_ns)
{
	if (!session->trace.closed) /* with_init: there may be no time after the answer */
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
	if ((session->alive.lines.started || session->alive.refused) && !session->alive.done &&
	    !session->trace.failed) {
		snprintf(text, sizeof(text), "%.400s has its last stretch, not what is alive: %s", session->trace.path,
			 session->alive.refused ? "too many traces of its user are followed"
						: "evprof cut --alive has ended too early");
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

static bool successor_expected(const struct session *session)
{
	for (const struct process *process = session->processes; process; process = process->next) {
		if (awaits_successor(process))
			return true;
	}
	return false;
}

/* A file; where the disk was full it is one, too. */
static bool has_end(const struct session *session)
{
	return (!session->trace.failed || session->trace.full) && !session->trace.in_memory &&
	       session->trace.process_count > 0;
}

static bool is_whole(const struct session *session)
{
	return has_end(session) && !session->trace.failed;
}

static bool announces(const struct process *process, enum ring_target_state state)
{
	return atomic_load_explicit(&process->header->target_state, memory_order_acquire) == state;
}

/*
 * Waiting processes get a heartbeat while something runs. Returns whether it does. For one that runs on nothing is read
 * meanwhile: without a heartbeat it does not wait for room.
 */
static bool wait_while(struct session *session, bool runs)
{
	for (struct process *process = session->processes; process && runs; process = process->next)
		if (announces(process, RING_TARGET_EXITING))
			atomic_fetch_add_explicit(&process->header->heartbeat, 1, memory_order_relaxed);
	return runs;
}

/*
 * Whether the file of a trace that keeps its last stretch is still being made anew. It has events from before the
 * stretch (kept.h), and is sparse.
 */
static bool shorten_kept(struct session *session)
{
	const struct trace_output *trace = &session->trace;
	char since[32], byte[32];
	const char *argv[] = {"evprof",
			      "cut",
			      "--since",
			      since,
			      "--in-place",
			      trace->path,
			      trace->kept.since_byte ? "--since-byte" : NULL,
			      byte,
			      NULL};

	snprintf(since, sizeof(since), "%llu", (unsigned long long)trace->kept.since_ns);
	snprintf(byte, sizeof(byte), "%llu", (unsigned long long)trace->kept.since_byte);
	if (!session->shortened && has_end(session) && trace->kept.since_ns && !session->alive.done)
		tool_run_start(&session->shortening, session->tools->loop, argv);
	session->shortened = true;
	if (wait_while(session, session->shortening.running))
		return true;
	if (session->shortening.failed)
		log_warning("%s has more than its last stretch: evprof cut --since %s --in-place shows the reason",
			    trace->path, since);
	session->shortening.failed = false;
	return false;
}

/* Whether the trace is still being exported to other formats. */
static bool convert_formats(struct session *session)
{
	const char *argv[] = {"evprof", "export", "--beside", "--format", session->format_list, session->trace.path,
			      NULL};

	if (!session->converted && session->format_list[0] && is_whole(session))
		tool_run_start(&session->formats, session->tools->loop, argv);
	session->converted = true;
	return wait_while(session, session->formats.running);
}

/* Whether native frames are still being symbolized. */
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
	return wait_while(session, true);
}

/* Whether what a process did last may still be copied. */
static bool wait_for_triggers(struct session *session, uint64_t now_ns)
{
	struct triggers_place place = session_place(session, now_ns);

	return !session->trace.closed && wait_while(session, triggers_finish(&session->triggers, &place));
}

/* Whether a part is still being made, or read by somebody, before it leaves the trace. */
static bool wait_for_part(struct session *session, uint64_t now_ns)
{
	if (session->trace.closed)
		return false;
	if (!session->rotation.run.running && !session->copies.count)
		kept_release_all(&session->trace.kept); /* of those who only look */
	return wait_while(session, rotation_check(&session->rotation, &session->trace, session->format_list, now_ns));
}

/* The trace is closed. Whether a file is still made of it. */
static bool make_files(struct session *session, uint64_t now_ns)
{
	return wait_while(session, copies_check(&session->copies, &session->trace, now_ns)) ||
	       wait_while(session, session_alive_finish(&session->alive, now_ns)) || shorten_kept(session) ||
	       convert_formats(session);
}

static void complete_all(struct session *session, uint64_t now_ns)
{
	for (struct process *process = session->processes; process; process = process->next) {
		const char *how = process->complete ? NULL : process_end_reason(process, session->user, now_ns);

		if (!process->complete)
			session_complete(session, process, how ? how : "detached", now_ns);
	}
	session->pending.count = 0;
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
	pending_children_check(&session->pending, session->user, now_ns);
	others = session_live(session) > 0 || has_open_hold(session) || successor_expected(session) ||
		 pending_children_slow(&session->pending, now_ns) || pending_rejoin_any(&session->tools->first) ||
		 more_to_come;
	note_end_of_holder(session, now_ns);
	if (session->tools->init_ends && !session->trace.closed)
		complete_all(session, now_ns);
	if (session->tools->init_ends || (!others && !pending_children_expected(&session->pending, now_ns))) {
		if (!session->tools->init_ends &&
		    (wait_for_symbols(session, now_ns) || wait_for_triggers(session, now_ns) ||
		     wait_for_part(session, now_ns)))
			return;
		close_trace(session, now_ns);
		if (!make_files(session, now_ns))
			finish_session(session, now_ns);
		return;
	}
	for (struct process *process = session->processes; process; process = process->next) {
		if (process->complete && !process->answered && others)
			session_answer(session, process, RING_COLLECTOR_DRAINED);
	}
	answer_holds(session, now_ns);
	session_forget_dead(session);
}

void session_let_go(struct session *session, uint64_t now_ns)
{
	complete_all(session, now_ns);
	if (!session->tools->output_dir) /* nobody follows a private collector */
		return;
	for (struct process *process = session->processes; process; process = process->next) {
		if (process->dead || !announces(process, RING_TARGET_RUNNING))
			continue;
		session_answer(session, process, RING_COLLECTOR_FINISHED);
		process->let_go = true;
	}
}

/* The signal that ends us may have ended it: a supervisor sends it to our children, too. */
static bool was_ended(struct tool_run *run)
{
	tool_run_wait(run, ENDED_WAIT_MS);
	return run->failed;
}

void session_stop(struct session *session, uint64_t now_ns)
{
	triggers_stop(&session->triggers);
	copies_stop(&session->copies);
	rotation_stop(&session->rotation, &session->trace, now_ns);
	close_trace(session, now_ns);
	session->shortened &= !was_ended(&session->shortening);
	session->converted &= !was_ended(&session->formats);
}

static bool wait_for_files(struct session *session, int wait_ms)
{
	tool_lines_wait(&session->alive.lines, wait_ms);
	tool_run_wait(&session->shortening, wait_ms);
	tool_run_wait(&session->formats, wait_ms);
	return true;
}

bool session_is_stopping(struct session *session, int wait_ms, uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();

	if (make_files(session, now_ns) && now_ns < until_ns)
		return wait_for_files(session, wait_ms);
	session_alive_finish(&session->alive, UINT64_MAX);
	if (shorten_kept(session)) {
		tool_run_stop(&session->shortening);
		shorten_kept(session);
	}
	if (convert_formats(session))
		tool_run_stop(&session->formats);
	finish_session(session, now_ns);
	return false;
}

/* Whether an answer is due that depends on time. */
static bool is_about_to_end(const struct session *session, uint64_t now_ns)
{
	if ((pending_children_expected(&session->pending, now_ns) &&
	     !pending_children_slow(&session->pending, now_ns)) ||
	    session->formats.running || session->shortening.running || session->copies.count ||
	    session->triggers.until_ns || session->rotation.wanted_ns || session->alive.finishing ||
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
	return session_live(session) > 0 || session->pending.since_ns || session->rotation.edge_byte ||
	       is_about_to_end(session, now_ns);
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
	int least_us = session->pending.since_ns ? SLOW_PATIENCE_US : SESSION_PATIENT_US;
	int triggers_us = triggers_patience_us(&session->triggers);
	int rotation_us = rotation_patience_us(&session->rotation, &session->tools->rotate);

	if (is_about_to_end(session, now_ns))
		return SESSION_IMPATIENT_US;
	least_us = rotation_us >= 0 && rotation_us < least_us ? rotation_us : least_us;
	least_us = triggers_us >= 0 && triggers_us < least_us ? triggers_us : least_us;
	for (const struct process *process = session->processes; process; process = process->next) {
		int us = process->complete ? SESSION_PATIENT_US : process_patience_us(process);

		least_us = us < least_us ? us : least_us;
	}
	return least_us;
}
