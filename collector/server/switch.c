/* switch.c - see switch.h. Called by collector.c, after a round. */
#include "server/switch.h"

#include <jansson.h>

#include "evprof/json_memory.h"
#include "session/session.h"

_Static_assert((int)CONTROL_STOP == RING_REQUEST_STOP && (int)CONTROL_START == RING_REQUEST_START &&
		   (int)CONTROL_MARK == RING_REQUEST_MARK && (int)CONTROL_EVENTS == RING_REQUEST_EVENTS,
	       "actions are requests of the ring");

static json_t *ask(struct process *process, const struct request *request)
{
	bool outside = process->outside;

	if (request->action != CONTROL_LOOK && !outside)
		process_request(process, (enum ring_request)request->action, request->name);
	return json_pack("{s:i, s:s, s:b, s:b, s:b, s:b}", "pid", (int)process_shown_pid(process), "program",
			 process->program ? process->program : "", "follows",
			 atomic_load(&process->header->follows) != 0, "followed",
			 outside || process_has_followed(process), "refused", outside || process_has_refused(process),
			 "outside", outside);
}

static bool is_meant(const struct process *process, const struct request *request)
{
	return !process->complete && peer_may(&request->rights, process->user->uid) &&
	       control_target_has(request->target, process_shown_pid(process),
				  process->program ? process->program : "");
}

/* A process that takes no more requests; NULL: none. */
static const struct process *find_busy(struct session *sessions, const struct request *request)
{
	for (struct session *session = sessions; session && request->action != CONTROL_LOOK; session = session->next)
		for (struct process *process = session->processes; process; process = process->next)
			if (is_meant(process, request) && !process->outside &&
			    !process_takes_request(process, (enum ring_request)request->action, request->name))
				return process;
	return NULL;
}

static json_t *busy_answer(const struct process *process)
{
	return json_pack("{s:o}", "error",
			 json_sprintf("process %d is to follow %u requests before, which it does when its main thread "
				      "leaves C code: try again then",
				      (int)process_shown_pid(process), process->order_count));
}

json_t *switch_answer(struct session *sessions, const struct request *request)
{
	const struct process *busy = find_busy(sessions, request);
	json_t *list, *answer;

	json_memory_begin();
	list = json_array();
	for (struct session *session = sessions; session && !busy; session = session->next)
		for (struct process *process = session->processes; process; process = process->next)
			if (is_meant(process, request))
				json_array_append_new(list, ask(process, request));
	answer = busy ? busy_answer(busy) : json_pack("{s:O}", "processes", list);
	json_decref(list);
	if (!json_memory_ran_out)
		return answer;
	json_decref(answer);
	return NULL;
}
