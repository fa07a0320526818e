/*
 * session_end.c - the end of a session: when it has come, and the answers to processes and holds.
 *
 * Called by collector.c after each round.
 */
#include "session/session.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "session/process_end.h"
#include "symbols/resolver.h"

#define SYMBOLS_WAIT_NS UINT64_C(20000000000) /* at the end, for symbols of native frames */
#define SAMPLED_PATIENCE_US 20000
#define SLOW_PATIENCE_US 200000

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
	fill_summary(session, process);
	trace_writer_follow(&session->trace.writer, session->trace.path);
	process_answer(process, session->trace.failed ? RING_COLLECTOR_FAILED : state,
		       session->trace.failed ? session->trace.error : session->trace.path);
	process->answered = true;
}

void session_complete(struct session *session, struct process *process, const char *how, uint64_t now_ns)
{
	process_end_write(process, how, now_ns);
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
		if (!session->tools->init_ends && wait_for_symbols(session, now_ns))
			return;
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
	session_forget_dead(session);
}

void session_stop(struct session *session, uint64_t now_ns)
{
	complete_all(session, now_ns);
	close_trace(session, now_ns);
	formats_stop(&session->formats);
	finish_session(session, now_ns);
}

/* Whether an answer is due that depends on time. */
static bool is_about_to_end(const struct session *session, uint64_t now_ns)
{
	if ((pending_children_expected(&session->pending, now_ns) &&
	     !pending_children_slow(&session->pending, now_ns)) ||
	    session->formats.running || session->finished || (session->symbols_until_ns && !session->trace.closed))
		return true;
	for (const struct hold *hold = session->holds; hold; hold = hold->next) {
		if (hold->closing)
			return true;
	}
	return false;
}

bool session_needs_polling(const struct session *session, uint64_t now_ns)
{
	return session_live(session) > 0 || session->pending.since_ns || is_about_to_end(session, now_ns);
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

	if (is_about_to_end(session, now_ns))
		return SESSION_IMPATIENT_US;
	for (const struct process *process = session->processes; process; process = process->next) {
		int us = process->complete ? SESSION_PATIENT_US : process_patience_us(process);

		least_us = us < least_us ? us : least_us;
	}
	return least_us;
}
