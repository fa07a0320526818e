/* collector.c - the rounds of a collector: drain all rings, accept connections, answer, wait. Called by main.c. */
#include "server/collector.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/answer.h"
#include "base/clock.h"
#include "base/log.h"
#include "ring/events.h"
#include "server/snapshot.h"
#include "server/status.h"
#include "server/switch.h"
#include "symbols/resolver.h"

#define WAIT_US 100000			  /* no process runs, but a connection is to be served or timed out */
#define HELD_US 1000000			  /* likewise, but without connections: a descriptor wakes us, as a rule */
#define STOP_NS UINT64_C(20000000000)	  /* for all sessions together; systemd kills after 90 s */
#define STOP_WAIT_MS 100		  /* between two heartbeats meanwhile */
#define PEER_GRACE_NS UINT64_C(200000000) /* grace for a recent connection that may join, before an end is answered */

/*
 * A program that has just started may also end soon, and then waits until its rings are drained. While a session is
 * this young, the rounds are so frequent that each drains about one chunk.
 */
#define YOUNG_NS UINT64_C(200000000)

/* Constant time, so that the time does not reveal how many bytes match. */
static bool same_bytes(const uint8_t *one, const uint8_t *other, size_t bytes)
{
	uint8_t differs = 0;

	for (size_t i = 0; i < bytes; i++)
		differs |= one[i] ^ other[i];
	return !differs;
}

/* Newest first: an older session of the same id may be closed, with its trace being exported in other formats. */
static struct session *find_session(struct collector *collector, const uint8_t *id)
{
	for (struct session *session = collector->sessions; session; session = session->next) {
		if (same_bytes(session->id, id, sizeof(session->id)))
			return session;
	}
	return NULL;
}

/* The session of a message. Makes a new one when there is none, or only one that takes no more processes. */
static int open_session(struct collector *collector, const struct control_message *message, uid_t uid,
			struct session **result, char *reason, size_t reason_bytes)
{
	struct session *known = find_session(collector, message->session), *session = known;

	if (!session && collector->private && collector->sessions) {
		snprintf(reason, reason_bytes, "this collector serves another session");
		return -EPERM;
	}
	if (!session || session->trace.closed) {
		session = session_new(&collector->tools, message, uid, reason, reason_bytes);
		if (!session)
			return -EDQUOT;
		session->goes_on = known != NULL;
		collector->tools.drain.young_until_ns = clock_now_ns() + YOUNG_NS;
		session->next = collector->sessions;
		collector->sessions = session;
	}
	*result = session;
	return 0;
}

static bool has_session(void *context, const struct control_message *message)
{
	struct collector *collector = context;

	static const uint8_t open[CONTROL_OPEN_DIGITS / 2];

	return collector->private && !same_bytes(message->session, open, sizeof(open)) &&
	       find_session(collector, message->session);
}

static int on_join(void *context, const struct control_message *message, int memfd, int pidfd, const struct ucred *who,
		   char *reason, size_t reason_bytes)
{
	struct collector *collector = context;
	struct session *session;
	struct ucred process = *who;
	const char *wrong = message->outside ? process_of_tool(pidfd, &process) : NULL;
	int error;

	if (wrong) {
		snprintf(reason, reason_bytes, "%s", wrong);
		return -EPERM;
	}
	error = open_session(collector, message, who->uid, &session, reason, reason_bytes);
	if (!error)
		error = session_join(session, message, memfd, pidfd, &process, reason, reason_bytes);
	if (!error)
		collector->had_session = true;
	collector->pace = (struct pace){0};
	return error;
}

static void on_absent(void *context, const struct control_message *message, const char *reason)
{
	struct session *session = find_session(context, message->session);

	if (session && !session->absent[0])
		snprintf(session->absent, sizeof(session->absent), "%s", reason);
}

static int on_hold(void *context, const struct control_message *message, int fd, const struct ucred *who, char *reason,
		   size_t reason_bytes)
{
	struct collector *collector = context;
	struct session *session;
	int error = open_session(collector, message, who->uid, &session, reason, reason_bytes);

	if (!error)
		error = session_hold(session, message, fd, reason, reason_bytes);
	if (!error)
		collector->had_session = true;
	return error;
}

/* After the round that follows: the answer has what is in the rings now. */
static void on_request(void *context, const struct control_message *message, int fd, const struct peer_rights *rights)
{
	struct collector *collector = context;

	requests_add(&collector->requests, message, fd, rights);
}

static json_t *describe(struct collector *collector, const char *target, const struct peer_rights *rights,
			uint64_t now_ns)
{
	struct status_source source = {
	    .sessions = collector->sessions, .folder = &collector->tools.folder, .started_ns = collector->started_ns};

	return status_answer(&source, target, rights, now_ns);
}

static json_t *answer_to(struct collector *collector, const struct request *request, uint64_t now_ns)
{
	if (request->type == CONTROL_SWITCH)
		return switch_answer(collector->sessions, request);
	if (request->type == CONTROL_SNAPSHOT)
		return snapshot_answer(collector->sessions, request, now_ns);
	return describe(collector, request->target, &request->rights, now_ns);
}

static void begin_snapshots(struct collector *collector)
{
	for (struct request *request = collector->requests.first; request; request = request->next)
		if (request->type == CONTROL_SNAPSHOT)
			snapshot_begin(collector->sessions, request);
}

/* A snapshot waits until its rings are read, unless others have no place to wait. */
static bool may_answer(const struct collector *collector, const struct request *request, uint64_t now_ns)
{
	return request->type != CONTROL_SNAPSHOT || collector->requests.count == REQUESTS_MAX ||
	       snapshot_is_ready(collector->sessions, request, now_ns);
}

static void answer_requests(struct collector *collector, uint64_t now_ns)
{
	struct request **link = &collector->requests.first, *request;

	while (*link) {
		if (!may_answer(collector, *link, now_ns)) {
			link = &(*link)->next;
			continue;
		}
		request = requests_take(&collector->requests, link);
		answer_send(request->fd, answer_to(collector, request, now_ns));
		free(request);
	}
}

void collector_log_status(struct collector *collector)
{
	static const struct peer_rights all = {.all = true};
	json_t *status = describe(collector, "all", &all, clock_now_ns());
	char *text = status ? json_dumps(status, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;

	if (!text || fprintf(stderr, "evprof-collector: status %s\n", text) < 0)
		log_error("the status cannot be written");
	free(text);
	json_decref(status);
}

static void renew_metrics(struct collector *collector, uint64_t now_ns)
{
	static const struct peer_rights all = {.all = true};
	json_t *status;

	if (!metrics_are_due(&collector->metrics, now_ns))
		return;
	status = describe(collector, "all", &all, now_ns);
	metrics_write(&collector->metrics, status, now_ns);
	json_decref(status);
}

static char *metrics_for_http(void *context, size_t *bytes)
{
	static const struct peer_rights all = {.all = true};
	json_t *status = describe(context, "all", &all, clock_now_ns());
	char *text = status ? metrics_text(status, bytes) : NULL;

	json_decref(status);
	return text;
}

static int make_tools(struct session_tools *tools, struct loop *loop, const struct collector_config *config)
{
	*tools = (struct session_tools){.loop = loop,
					.drain = {.events = malloc(sizeof(struct events_buffer)),
						  .definitions = malloc(DRAIN_DEFINITIONS_BYTES),
						  .prefaults = config->private},
					.packer = trace_packer_new(),
					.resolver = resolver_new(loop),
					.output_dir = config->output_dir,
					.formats = config->formats,
					.keep = config->keep,
					.rotate = config->rotate,
					.trigger = config->trigger,
					.output_template = config->output};
	tools->users.limits = config->limits;
	tools->folder = (struct folder){.path = config->output_dir, .limits = config->folder_limits};
	pending_rejoin_init(&tools->first, loop, config->resumes);
	return tools->drain.events && tools->packer && tools->drain.definitions && tools->resolver ? 0 : -ENOMEM;
}

static void free_tools(struct session_tools *tools)
{
	pending_rejoin_done(&tools->first);
	free(tools->drain.events);
	trace_packer_free(tools->packer);
	free(tools->drain.definitions);
	resolver_free(tools->resolver);
}

int collector_init(struct collector *collector, const struct collector_config *config)
{
	struct server_handler handler = {.context = collector,
					 .join = on_join,
					 .knows = has_session,
					 .absent = on_absent,
					 .hold = on_hold,
					 .request = on_request};
	int error;

	*collector = (struct collector){
	    .private = config->private, .started_ns = clock_now_ns(), .metrics = {.path = config->metrics}};
	error = loop_init(&collector->loop);
	if (error)
		return error;
	error = make_tools(&collector->tools, &collector->loop, config);
	if (!error)
		error = server_new(&collector->loop, config->listen_fd, &config->server, &handler, &collector->server);
	if (!error && config->metrics_fd > 0) {
		error = metrics_http_new(&collector->loop, config->metrics_fd, metrics_for_http, collector,
					 &collector->metrics_http);
		if (error)
			server_free(collector->server);
	}
	if (error) {
		free_tools(&collector->tools);
		loop_done(&collector->loop);
	}
	return error;
}

/* The next collector may take them. */
static void leave_places(struct collector *collector)
{
	metrics_done(&collector->metrics);
	collector->metrics = (struct metrics){0};
	metrics_http_free(collector->metrics_http);
	collector->metrics_http = NULL;
	server_free(collector->server);
	collector->server = NULL;
}

void collector_done(struct collector *collector)
{
	while (collector->sessions) {
		struct session *session = collector->sessions;

		collector->sessions = session->next;
		session_free(session);
	}
	requests_done(&collector->requests);
	leave_places(collector);
	free_tools(&collector->tools);
	loop_done(&collector->loop);
}

static void forget_finished(struct collector *collector, uint64_t now_ns)
{
	struct session **link = &collector->sessions;

	while (*link) {
		struct session *session = *link;

		if (!session->finished || session_lingers(session, now_ns)) {
			link = &session->next;
			continue;
		}
		*link = session->next;
		session_free(session);
	}
}

/*
 * A recent connection may come from a child of a process that has ended, so the answer to that end is delayed. Only
 * connections of the session's own user delay it, and for a limited time after each end.
 */
static bool awaits_peer(const struct collector *collector, const struct session *session, uint64_t now_ns)
{
	uint64_t ended_ns = session_ended_ns(session);

	return !collector->tools.init_ends && !server_is_short(collector->server) && ended_ns &&
	       now_ns - ended_ns < PEER_GRACE_NS &&
	       server_expects(collector->server, session->user->uid, now_ns - PEER_GRACE_NS);
}

/* Whether somebody waits for what the processes do now: whether one is stopped stands in its ring. */
static bool asks_for_status(const struct requests *requests)
{
	const struct request *request = requests->first;

	while (request && request->type != CONTROL_STATUS)
		request = request->next;
	return request;
}

/* One round. True: a process has connected after the rings were read, and may wait for the next round. */
static bool run_round(struct collector *collector, struct drain_result *result)
{
	uint64_t now_ns = clock_now_ns();
	bool ended = collector->tools.init_ends; /* the namespace is ending: no new process would live */
	bool came = false;

	collector->tools.drain.gathered =
	    now_ns - collector->tools.drain.gathered_ns >= drain_gather_ns(&collector->tools.drain) ||
	    asks_for_status(&collector->requests);
	begin_snapshots(collector);
	for (struct session *session = collector->sessions; session; session = session->next)
		session_round(session, now_ns, result);
	if (collector->tools.drain.gathered && result->words > 0)
		collector->tools.drain.gathered_ns = now_ns;
	resolver_work(collector->tools.resolver, now_ns);
	folder_tend(&collector->tools.folder, now_ns);
	answer_requests(collector, now_ns);
	renew_metrics(collector, now_ns);
	metrics_http_tend(collector->metrics_http, now_ns);
	/* After the rounds: a process that joined before another one ended is known when that end is answered. */
	if (!ended)
		came = server_poll(collector->server, now_ns);
	now_ns = clock_now_ns();
	for (struct session *session = collector->sessions; session; session = session->next) {
		if (!session->finished && !awaits_peer(collector, session, now_ns))
			session_check_end(session, now_ns, server_is_short(collector->server));
	}
	forget_finished(collector, now_ns);
	return came;
}

static bool needs_polling(const struct collector *collector, uint64_t now_ns)
{
	for (const struct session *session = collector->sessions; session; session = session->next) {
		if (session_needs_polling(session, now_ns))
			return true;
	}
	return false;
}

/* The longest sleep that all sessions and connections allow. */
static int patience_us(const struct collector *collector, uint64_t now_ns)
{
	int least_us = server_has_peers(collector->server) ? WAIT_US : SESSION_PATIENT_US;

	if (collector->requests.first)
		return SESSION_IMPATIENT_US;
	for (const struct session *session = collector->sessions; session; session = session->next) {
		int us = session_patience_us(session, now_ns);

		least_us = us < least_us ? us : least_us;
	}
	return least_us;
}

/* Of a daemon that records nobody; -1: nothing is to be done. */
static int idle_patience_us(const struct collector *collector, uint64_t now_ns)
{
	int folder_us = folder_patience_us(&collector->tools.folder, now_ns);
	int metrics_us = metrics_patience_us(&collector->metrics, now_ns);

	return folder_us < 0 || (metrics_us >= 0 && metrics_us < folder_us) ? metrics_us : folder_us;
}

static int next_timeout_us(struct collector *collector, const struct drain_result *result, uint64_t now_ns)
{
	struct pace_limits limits = {.gather_us = (int)(drain_gather_ns(&collector->tools.drain) / 1000),
				     .due_ns =
					 collector->tools.drain.gathered_ns + drain_gather_ns(&collector->tools.drain),
				     .young = now_ns < collector->tools.drain.young_until_ns};
	int us;

	if (!needs_polling(collector, now_ns)) {
		/* A private collector polls whether it may end: not every reason to end wakes it. */
		if (server_has_peers(collector->server) || metrics_http_tend(collector->metrics_http, now_ns))
			return WAIT_US;
		return collector->private ? HELD_US : idle_patience_us(collector, now_ns);
	}
	limits.longest_us = patience_us(collector, now_ns);
	us = pace_next(&collector->pace, result, &limits, now_ns);
	for (struct session *session = collector->sessions; session; session = session->next)
		session_announce(session, collector->pace.sleep);
	return us;
}

bool collector_turn(struct collector *collector, int max_wait_ms)
{
	struct drain_result result = {0};
	uint64_t began_ns = clock_now_ns();
	int wait_us;
	bool came = run_round(collector, &result);

	if (collector->private && !collector->sessions && !server_has_peers(collector->server) &&
	    (collector->had_session || clock_now_ns() - collector->started_ns >= COLLECTOR_JOIN_NS))
		return false;
	wait_us = came ? 0 : next_timeout_us(collector, &result, began_ns);
	if (max_wait_ms >= 0 && (wait_us < 0 || wait_us > max_wait_ms * 1000))
		wait_us = max_wait_ms * 1000;
	return loop_wait(&collector->loop, wait_us) == 0;
}

/* Whether files are still made of the traces. Waits for one, and for none longer because of another. */
static bool is_stopping(struct collector *collector, uint64_t until_ns)
{
	int wait_ms = STOP_WAIT_MS;

	for (struct session *session = collector->sessions; session; session = session->next) {
		if (!session->finished && session_is_stopping(session, wait_ms, until_ns))
			wait_ms = 0;
	}
	return wait_ms == 0;
}

void collector_stop(struct collector *collector)
{
	uint64_t now_ns = clock_now_ns();

	server_poll(collector->server, now_ns);
	if (!collector->private) /* a program that runs on would join us again */
		leave_places(collector);
	for (struct session *session = collector->sessions; session; session = session->next) {
		if (!session->finished)
			session_let_go(session, now_ns);
	}
	for (struct session *session = collector->sessions; session; session = session->next) {
		if (!session->finished)
			session_stop(session, now_ns);
	}
	while (is_stopping(collector, now_ns + STOP_NS))
		continue;
	forget_finished(collector, UINT64_MAX);
}
