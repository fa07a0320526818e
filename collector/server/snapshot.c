/* snapshot.c - see snapshot.h. Called by collector.c, after a round. */
#include "server/snapshot.h"

#include <jansson.h>

#include "base/clock.h"
#include "base/control.h"
#include "evprof/json_memory.h"
#include "session/drain.h"
#include "session/session.h"

static bool may_be_meant(const struct request *request, const struct process *process)
{
	return !process->complete && peer_may(&request->rights, process->user->uid);
}

/* Whether the target is its pid in its own pid namespace, in which the sender is, too: it has its start time. */
static bool is_beside_sender(const struct request *request, const struct process *process)
{
	return request->start_time && request->start_time == process->start_time && may_be_meant(request, process) &&
	       control_target_has(request->target, process->sender_pid, "");
}

static bool is_meant(const struct request *request, const struct process *process, bool beside_sender)
{
	if (beside_sender)
		return is_beside_sender(request, process);
	return may_be_meant(request, process) && control_target_has(request->target, process_shown_pid(process),
								    process->program ? process->program : "");
}

static bool any_beside_sender(const struct session *sessions, const struct request *request)
{
	for (; sessions; sessions = sessions->next)
		for (const struct process *process = sessions->processes; process; process = process->next)
			if (is_beside_sender(request, process))
				return true;
	return false;
}

/* What a snapshot is of. */
struct meant {
	json_t *pids, *shown;
	const char *program;
};

static struct meant find_meant(const struct request *request, const struct session *session, bool beside_sender)
{
	struct meant meant = {.pids = json_array(), .shown = json_array(), .program = ""};

	for (const struct process *process = session->processes; process; process = process->next) {
		if (!is_meant(request, process, beside_sender))
			continue;
		json_array_append_new(meant.pids, json_integer(process->sender_pid));
		json_array_append_new(meant.shown, json_integer(process_shown_pid(process)));
		meant.program = process->program ? process->program : "";
	}
	return meant;
}

static bool has_meant(const struct request *request, const struct session *session, bool beside_sender)
{
	const struct process *process = session->processes;

	while (process && !is_meant(request, process, beside_sender))
		process = process->next;
	return process && session->trace.writer.fd >= 0 && !session->trace.failed && !session->trace.closed;
}

void snapshot_begin(struct session *sessions, struct request *request)
{
	bool beside_sender = any_beside_sender(sessions, request);

	if (!request->hold_ms || request->wanted_ns)
		return;
	request->wanted_ns = clock_now_ns();
	for (struct session *session = sessions; session; session = session->next)
		if (has_meant(request, session, beside_sender))
			session_want(session, request->wanted_ns);
}

bool snapshot_is_ready(const struct session *sessions, const struct request *request, uint64_t now_ns)
{
	bool beside_sender = any_beside_sender(sessions, request);

	for (const struct session *session = sessions; session; session = session->next)
		if (has_meant(request, session, beside_sender) && !session_is_read(session, request->wanted_ns, now_ns))
			return false;
	return true;
}

/* All events until then are in the file: those before the request, and what the last rounds have read. */
static uint64_t end_of(const struct session *session, const struct request *request)
{
	uint64_t end_ns = UINT64_MAX;

	for (const struct process *process = session->processes; process; process = process->next) {
		uint64_t read_ns = process->read_ns > request->wanted_ns ? process->read_ns : request->wanted_ns;

		if (!process->complete && read_ns < end_ns)
			end_ns = read_ns;
	}
	return end_ns;
}

static json_t *prepare(struct session *session, const struct request *request, const struct meant *meant,
		       uint64_t now_ns)
{
	struct kept *kept = &session->trace.kept;
	char alive[PATH_MAX];
	uint64_t hold;

	now_ns = clock_now_ns();
	trace_output_write_clocks(&session->trace, now_ns);
	hold = kept_hold(kept, &session->trace.writer, now_ns, request->hold_ms);
	trace_writer_follow(&session->trace.writer, session->trace.path);
	session_alive_ask(&session->alive, hold, alive);
	return json_pack("{s:s, s:s, s:b, s:O, s:O, s:s, s:I, s:I, s:I}", "alive", alive, "path", session->trace.path,
			 "removed", trace_output_removed(&session->trace), "pids", meant->pids, "shown", meant->shown,
			 "program", meant->program, "since_ns", (json_int_t)kept->since_ns, "until_ns",
			 (json_int_t)end_of(session, request), "hold", (json_int_t)hold);
}

static json_t *answer_of(struct session *session, const struct request *request, bool beside_sender, uint64_t now_ns)
{
	struct meant meant = find_meant(request, session, beside_sender);
	json_t *answer = NULL;

	if (json_array_size(meant.pids) && request->hold_ms)
		answer = prepare(session, request, &meant, now_ns);
	else if (json_array_size(meant.pids))
		kept_release(&session->trace.kept, request->hold);
	json_decref(meant.pids);
	json_decref(meant.shown);
	return answer;
}

json_t *snapshot_answer(struct session *sessions, const struct request *request, uint64_t now_ns)
{
	bool beside_sender = any_beside_sender(sessions, request);
	json_t *list, *answer;

	json_memory_begin();
	list = json_array();
	for (struct session *session = sessions; session; session = session->next) {
		json_t *trace = NULL;

		if (has_meant(request, session, beside_sender))
			trace = answer_of(session, request, beside_sender, now_ns);
		if (trace)
			json_array_append_new(list, trace);
	}
	answer = json_pack("{s:o}", "traces", list);
	if (!json_memory_ran_out)
		return answer;
	json_decref(answer);
	return NULL;
}
