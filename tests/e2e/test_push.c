/*
 * test_push.c - evprof push: what a server of OTLP, Pyroscope or Parca gets is what the program has counted, and what
 * evprof report says of the trace; whatever the server answers, nothing is lost but what is counted, and nothing counts
 * twice. The server (push_server.py) decodes after the published schemas.
 */
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"

#define WAIT_TURNS 1200						    /* of 50 ms */
#define EXCLUDE "EVPROF_EXCLUDE=<frozen *>,*/json/*,*/threading.py" /* less to decode */
#define PATIENT "OTEL_EXPORTER_OTLP_TIMEOUT=40000"

static const char *make_folder(void)
{
	return run(.how = JOB_BARE, .args = {"true"}, .lingers = true)->directory;
}

static void await_file(const char *path, const struct background *who)
{
	for (int i = 0; i < WAIT_TURNS && access(path, F_OK) < 0; i++)
		usleep(50000);
	cr_assert(access(path, F_OK) == 0, "%s: %s", path, file_read(who->log, NULL));
}

/* --- the server --- */

/* answers: as push_server.py has them, NULL at the end. With the port of an earlier one in the folder, if there was. */
static struct background *start_server(const char *folder, const char *const *answers)
{
	struct job job = {.how = JOB_BARE, .args = {"python3", "@push_server.py", folder}};
	char *ready = text("%s/ready", folder);
	struct background *server;

	unlink(ready);
	for (int i = 0; answers && answers[i]; i++)
		job.args[3 + i] = answers[i];
	server = background_start(&job);
	await_file(ready, server);
	return server;
}

static char *endpoint_of(const char *folder)
{
	char *port = file_read(text("%s/port", folder), NULL);

	return text("http://127.0.0.1:%s", port);
}

static long received_count(const char *folder, const char *name)
{
	json_t *received = json_load_file(text("%s/received.json", folder), 0, NULL);
	long count = (long)json_integer_value(json_object_get(json_object_get(received, "counts"), name));

	json_decref(received);
	return count;
}

static void await_requests(const char *folder, long wanted)
{
	for (int i = 0; i < WAIT_TURNS && received_count(folder, "requests") < wanted; i++)
		usleep(50000);
	cr_assert(received_count(folder, "requests") >= wanted, "%ld requests", received_count(folder, "requests"));
}

static void stop_server(struct background *server, const char *folder)
{
	background_stop(server);
	cr_expect(access(text("%s/errors", folder), F_OK) < 0, "%s", file_read(text("%s/errors", folder), NULL));
}

/* --- evprof push --- */

static void skip_without_curl(const char *log)
{
	if (log && strstr(log, "libcurl is not here"))
		cr_skip_test("libcurl is not installed");
}

/* What its last line counts. */
struct pushed {
	unsigned long sent, bytes, again, rejected, profiles, dropped, left;
};

static struct pushed counts_of(const char *out)
{
	struct pushed counts = {0};
	const char *line = out ? strstr(out, " requests sent (") : NULL;

	while (line && line > out && line[-1] != '\n')
		line--;
	cr_assert(line && sscanf(line,
				 "%lu requests sent (%lu bytes), %lu tries again, %lu rejected, %lu profiles rejected, "
				 "%lu dropped, %lu left in the spool",
				 &counts.sent, &counts.bytes, &counts.again, &counts.rejected, &counts.profiles,
				 &counts.dropped, &counts.left) == 7,
		  "the last line has the counts: %s", out ? out : "");
	return counts;
}

static struct outcome *push(const char *folder, const char *trace, const char *option, const char *value,
			    const char *variable)
{
	struct outcome *pushed = run(.how = JOB_BARE,
				     .args = {"%B/evprof", "push", "--endpoint", endpoint_of(folder), trace,
					      "--interval", "0.1", option, value},
				     .env = {variable ? variable : "X=1"}, .lingers = true);

	skip_without_curl(pushed->err);
	return pushed;
}

static void judge(const char *folder, const char *counted, const char *trace, long pid, const char *how, bool memory)
{
	struct outcome *report = tool("report", "--json", trace);
	struct outcome *held = memory ? tool("memory", "--json", "--limit", "all", trace) : NULL;
	char *report_path = text("%s/report", folder), *memory_path = memory ? text("%s/memory", folder) : "-";
	struct outcome *judged;

	file_write(report_path, report->out, report->out_bytes);
	if (held)
		file_write(memory_path, held->out, held->out_bytes);
	judged = run(.how = JOB_BARE,
		     .args = {"python3", "@judge_push.py", text("%s/received.json", folder), counted, report_path,
			      memory_path, text("%ld", pid), how},
		     .lingers = true);
	expect(judged, judged->status == 0 && strcmp(judged->out, "right\n") == 0, "all is there: %s", judged->out);
}

static struct outcome *record(const struct python *python, const char *events)
{
	struct outcome *outcome = run(.python = python, .args = {"@pushed.py", "counted"},
				      .env = {"EVPROF_PROGRAM_ONLY=1", events, "EVPROF_OUTPUT=t.evp", EXCLUDE});

	expect(outcome, outcome->status == 0 && outcome->trace[0], "it is recorded");
	return outcome;
}

/* --- finished traces --- */

SCENARIO_SOME(push, whole_trace, SUPPORTED)
{
	const char *folder;
	struct outcome *outcome, *pushed;
	struct background *server;
	struct pushed counts;

	network_apart();
	folder = make_folder();
	outcome = record(python, "EVPROF_EVENTS=call,c_call,mem,cpu");
	server = start_server(folder, NULL);
	pushed = push(folder, outcome->trace, NULL, NULL, "OTEL_EXPORTER_OTLP_COMPRESSION=gzip");
	counts = counts_of(pushed->out);
	expect(pushed, pushed->status == 0 && counts.sent > 2 && !counts.again, "it is pushed, in several intervals");
	cr_expect_eq(received_count(folder, "requests"), (long)counts.sent);
	cr_expect_eq(received_count(folder, "gzip"), (long)counts.sent);
	judge(folder, text("%s/counted", outcome->directory), outcome->trace, outcome->pid, "alive", true);
	stop_server(server, folder);
}

static json_int_t allocated_bytes(const char *trace)
{
	json_t *memory = json_loads(tool("memory", "--json", "--limit", "all", trace)->out, 0, NULL);
	const json_t *process = json_array_get(json_object_get(memory, "processes"), 0), *site;
	json_int_t bytes = 0;
	size_t i;

	json_array_foreach(json_object_get(process, "sites"), i, site)
	{
		bytes += json_integer_value(json_object_get(site, "allocated_bytes"));
	}
	json_decref(memory);
	return bytes;
}

/* Memory alone has neither calls nor times. Where only what is alive was kept, what was freed counts, too. */
SCENARIO(push, memory_alone, SCENARIO_ONCE)
{
	static const char *const kept[] = {"X=1", "EVPROF_KEEP=alive"};

	(void)python;
	network_apart();
	for (unsigned i = 0; i < 2; i++) {
		const char *folder = make_folder();
		struct background *server = start_server(folder, NULL);
		struct outcome *outcome = run(.python = python_any(), .args = {"@pushed.py", "counted"},
					      .env = {"EVPROF_EVENTS=mem", kept[i], "EVPROF_OUTPUT=t.evp"});
		struct outcome *pushed = push(folder, outcome->trace, NULL, NULL, NULL);
		json_t *received = json_load_file(text("%s/received.json", folder), 0, NULL), *profiles;

		expect(pushed, pushed->status == 0, "it is pushed");
		profiles = json_object_get(json_object_get(received, "processes"), text("%d", outcome->pid));
		profiles = json_object_get(profiles, "profiles");
		expect(pushed, profiles && !json_object_get(profiles, "calls/count"), "no calls are sent");
		expect(pushed, !json_object_get(profiles, "wall/nanoseconds"), "no times are sent");
		cr_expect_eq(json_integer_value(json_object_get(json_object_get(profiles, "alloc_space/bytes"), "sum")),
			     allocated_bytes(outcome->trace), "%s", kept[i]);
		json_decref(received);
		stop_server(server, folder);
	}
}

/* The same in pprof's form, as Pyroscope and Parca take it. */
SCENARIO(push, series_of_pprof, SCENARIO_ONCE)
{
	static const char *const forms[] = {"pyroscope", "parca"};
	static const char *const series[] = {"calls", "wall", "process_cpu", "off_cpu", "memory"};
	struct outcome *outcome;

	network_apart();
	outcome = record(python_any(), "EVPROF_EVENTS=call,c_call,mem,cpu");
	(void)python;
	for (unsigned i = 0; i < 2; i++) {
		const char *folder = make_folder();
		struct background *server = start_server(folder, NULL);
		struct outcome *pushed =
		    run(.how = JOB_BARE,
			.args = {"%B/evprof", "push", "--endpoint", text("%s+%s", forms[i], endpoint_of(folder)),
				 outcome->trace, "--interval", "0.1"},
			.env = {"OTEL_EXPORTER_OTLP_HEADERS=X-Key=a%20b"}, .lingers = true);
		struct pushed counts;

		skip_without_curl(pushed->err);
		counts = counts_of(pushed->out);
		expect(pushed, pushed->status == 0 && counts.sent > 2 && !counts.again, "it is pushed to %s", forms[i]);
		cr_expect_eq(received_count(folder, "requests"), (long)counts.sent);
		cr_expect_eq(received_count(folder, "key a b"), (long)counts.sent);
		for (unsigned k = 0; k < sizeof(series) / sizeof(*series); k++)
			cr_expect_gt(received_count(folder, text("series %s", series[k])), 2, "%s", series[k]);
		judge(folder, text("%s/counted", outcome->directory), outcome->trace, outcome->pid, "alive", true);
		stop_server(server, folder);
	}
}

struct answered {
	const char *folder;
	struct outcome *outcome, *pushed;
	struct background *server;
	struct pushed counts;
};

/* Records, and pushes to a server that gives the answers. */
static struct answered push_to(const char *const *answers, const char *variable)
{
	struct answered all;

	network_apart();
	all.folder = make_folder();
	all.outcome = record(python_any(), "EVPROF_EVENTS=call,c_call");
	all.server = start_server(all.folder, answers);
	all.pushed = push(all.folder, all.outcome->trace, NULL, NULL, variable);
	all.counts = counts_of(all.pushed->out);
	return all;
}

/* Each is sent again as often as it takes, and counts once. */
SCENARIO(push, answers_that_ask_for_patience, SCENARIO_ONCE)
{
	static const char *const answers[] = {"503+0", "429+0", "reset", "lost", "502", "slow+1", "504+1", "200", NULL};
	struct answered all = push_to(answers, "OTEL_EXPORTER_OTLP_HEADERS=X-Key=a%20b");
	const struct pushed *counts = &all.counts;

	(void)python;
	expect(all.pushed, all.pushed->status == 0 && counts->again >= 5 && !counts->dropped && !counts->rejected,
	       "all is sent; libcurl itself may try again after a connection was closed");
	expect(all.pushed, strstr(all.pushed->err, "the server answers 503; profiles wait"),
	       "a line says what happens");
	expect(all.pushed, strstr(all.pushed->err, "takes profiles again"), "and that it is over");
	cr_expect_eq(received_count(all.folder, "requests"), (long)counts->sent + 1, "one was taken without an answer");
	cr_expect_eq(received_count(all.folder, "key a b"), (long)counts->sent + 1, "each has the header");
	judge(all.folder, text("%s/counted", all.outcome->directory), all.outcome->trace, all.outcome->pid, "doubled",
	      false);
	stop_server(all.server, all.folder);
}

/* What is not to be sent again is counted. A timeout is no answer. */
SCENARIO(push, answers_that_reject, SCENARIO_ONCE)
{
	static const char *const answers[] = {"400", "slow+4", "partial+2", "404", "200", NULL};
	struct answered all = push_to(answers, "OTEL_EXPORTER_OTLP_TIMEOUT=2500");
	const struct pushed *counts = &all.counts;

	(void)python;
	expect(all.pushed,
	       all.pushed->status == 1 && counts->rejected == 2 && counts->profiles == 2 && counts->again >= 1,
	       "the losses are counted");
	expect(all.pushed, strstr(all.pushed->err, "the server answers 400, and rejects profiles"), "and reported");
	stop_server(all.server, all.folder);
}

/* By TLS: nothing is sent to a server whose certificate is not known, nor without a certificate where it is wanted. */
SCENARIO(push, certificates, SCENARIO_ONCE)
{
	const char *folder;
	char *endpoint, *cert, *key;
	struct outcome *outcome, *made, *pushed;
	struct background *server, *refused;

	(void)python;
	network_apart();
	folder = make_folder();
	cert = text("%s/cert.pem", folder);
	key = text("%s/key.pem", folder);
	made = run(.how = JOB_BARE,
		   .args = {"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
			    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"});
	if (made->status != 0)
		cr_skip_test("no openssl makes a certificate");
	outcome = record(python_any(), "EVPROF_EVENTS=call,c_call");
	server = start_server(folder, NULL);
	endpoint = text("https%s", endpoint_of(folder) + strlen("http"));
	refused = background_start(
	    &(struct job){.how = JOB_BARE, .args = {"%B/evprof", "push", "--endpoint", endpoint, outcome->trace}});
	for (int i = 0; i < WAIT_TURNS && !strstr(file_read(refused->log, NULL), "profiles wait"); i++)
		usleep(50000);
	cr_expect_eq(background_stop(refused), 1);
	skip_without_curl(file_read(refused->log, NULL));
	cr_expect(strstr(file_read(refused->log, NULL), "(OTEL_EXPORTER_OTLP_CERTIFICATE?)"), "%s",
		  file_read(refused->log, NULL));
	cr_expect_eq(received_count(folder, "requests"), 0);
	pushed = run(.how = JOB_BARE, .args = {"%B/evprof", "push", "--endpoint", endpoint, outcome->trace},
		     .env = {text("OTEL_EXPORTER_OTLP_CERTIFICATE=%s", cert),
			     text("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=%s", cert),
			     text("OTEL_EXPORTER_OTLP_PROFILES_CLIENT_KEY=%s", key)},
		     .lingers = true);
	expect(pushed, pushed->status == 0 && counts_of(pushed->out).sent == 1, "it is sent");
	judge(folder, text("%s/counted", outcome->directory), outcome->trace, outcome->pid, NULL, false);
	stop_server(server, folder);
}

/* --- the spool --- */

static size_t files_in(const char *folder)
{
	glob_t found;
	size_t count = glob(text("%s/*.otlp", folder), 0, NULL, &found) == 0 ? found.gl_pathc : 0;

	globfree(&found);
	return count;
}

/* A push that finds no server, with its spool, is killed: the next one sends what it left. */
SCENARIO(push, spool_outlives_it, SCENARIO_ONCE)
{
	const char *folder, *spool;
	struct outcome *outcome, *again;
	struct background *server, *killed;
	struct pushed counts;
	size_t waiting = 0;

	(void)python;
	network_apart();
	folder = make_folder();
	spool = text("%s/spool", folder);
	outcome = record(python_any(), "EVPROF_EVENTS=call,c_call");
	server = start_server(folder, NULL);
	stop_server(server, folder); /* its port is known */
	killed = background_start(&(struct job){.how = JOB_BARE,
						.args = {"%B/evprof", "push", "--endpoint", endpoint_of(folder),
							 "--interval", "0.1", "--spool", spool, outcome->trace}});
	await_file(text("%s/%020d.otlp", spool, 1), killed);
	for (size_t before = 1; before != waiting; usleep(500000)) { /* until all are there */
		before = waiting;
		waiting = files_in(spool);
	}
	kill(killed->pid, SIGKILL);
	background_wait(killed);
	cr_expect(waiting > 2, "%zu requests wait", waiting);
	server = start_server(folder, NULL);
	file_write(text("%s/empty.evp", folder), "", 0);
	again = push(folder, text("%s/empty.evp", folder), "--spool", spool, NULL);
	counts = counts_of(again->out);
	expect(again, counts.sent == waiting && !counts.dropped && !counts.left, "all %zu are sent", waiting);
	cr_expect_eq(files_in(spool), 0, "and none is left");
	judge(folder, text("%s/counted", outcome->directory), outcome->trace, outcome->pid, NULL, false);
	stop_server(server, folder);
}

/* The oldest are dropped for new ones, and counted. */
SCENARIO(push, spool_is_bounded, SCENARIO_ONCE)
{
	const char *folder;
	struct outcome *outcome, *whole;
	struct background *server, *bounded;
	struct pushed all, counts;

	(void)python;
	network_apart();
	folder = make_folder();
	outcome = record(python_any(), "EVPROF_EVENTS=call,c_call");
	server = start_server(folder, NULL);
	whole = push(folder, outcome->trace, NULL, NULL, NULL);
	all = counts_of(whole->out);
	stop_server(server, folder);
	bounded = background_start(&(struct job){.how = JOB_BARE,
						 .args = {"%B/evprof", "push", "--endpoint", endpoint_of(folder),
							  "--interval", "0.1", "--spool", text("%s/spool", folder),
							  "--spool-size", text("%lu", all.bytes / 2), outcome->trace}});
	await_file(text("%s/spool/%020lu.otlp", folder, all.sent), bounded);
	cr_expect_eq(background_stop(bounded), 1, "it says that not all is sent: %s", file_read(bounded->log, NULL));
	counts = counts_of(file_read(bounded->log, NULL));
	cr_expect(counts.dropped > 0 && counts.left > 0 && !counts.sent, "%s", file_read(bounded->log, NULL));
	cr_expect_eq(counts.dropped + counts.left, all.sent, "each is counted: %s", file_read(bounded->log, NULL));
	cr_expect_eq(files_in(text("%s/spool", folder)), counts.left);
	cr_expect(strstr(file_read(bounded->log, NULL), "the spool is full"), "a line says so");
}

/* --- what is recorded now --- */

struct live {
	const char *folder, *traces, *socket;
	struct background *daemon, *push, *server, *program;
	char *variable, *counted;
	int ready, gate;
	long pid;
};

static struct live begin_live(void)
{
	struct live live = {.folder = make_folder()};

	live.traces = text("%s/traces", live.folder);
	live.socket = text("%s/sock", live.folder);
	live.variable = text("EVPROF_SOCKET=%s", live.socket);
	cr_assert(mkdir(live.traces, 0700) == 0);
	live.daemon = background_start(&(struct job){
	    .how = JOB_BARE, .args = {"%B/evprof-collector", "--socket", live.socket, "--output-dir", live.traces}});
	await_file(live.socket, live.daemon);
	return live;
}

/* Until it runs. */
static void await_push(const char *spool, const struct background *who)
{
	const char *lock = text("%s/lock", spool);

	for (int i = 0; i < WAIT_TURNS && access(lock, F_OK) < 0; i++) {
		skip_without_curl(file_read(who->log, NULL));
		usleep(50000);
	}
	await_file(lock, who);
}

static void begin_push(struct live *live, const char *endpoint)
{
	live->push = background_start(
	    &(struct job){.how = JOB_BARE,
			  .args = {"%B/evprof", "push", "--folder", text("%s/.", live->traces), "--interval", "1",
				   "--spool", text("%s/spool", live->folder), "--endpoint", endpoint,
				   live->socket ? "--socket" : NULL, live->socket},
			  .env = {PATIENT}});
	await_push(text("%s/spool", live->folder), live->push);
}

/* It waits after its first part. */
static void begin_program(struct live *live, const struct python *python)
{
	char *ready = text("%s/ready_pipe", live->folder), *gate = text("%s/gate", live->folder);

	live->counted = text("%s/counted", live->folder);
	unlink(ready), unlink(gate); /* of an earlier one */
	live->ready = fifo_make(ready);
	live->gate = fifo_make(gate);
	live->program = background_start(
	    &(struct job){.python = python,
			  .args = {"@pushed.py", live->counted, ready, gate},
			  .env = {live->variable, "EVPROF_PROGRAM_ONLY=1", "EVPROF_EVENTS=call,c_call,mem", EXCLUDE,
				  "OTEL_SERVICE_NAME=shop"}});
	live->pid = live->program->pid;
	fifo_await(live->ready);
}

static void go_on(const struct live *live)
{
	cr_assert(write(live->gate, ".", 1) == 1);
}

static void end_program(const struct live *live)
{
	go_on(live);
	fifo_await(live->ready);
	go_on(live);
	cr_expect_eq(background_wait(live->program), 0, "%s", file_read(live->program->log, NULL));
}

static void end_push(const struct live *live)
{
	char *log;

	usleep(1200000); /* it looks once a second */
	background_stop(live->push);
	log = file_read(live->push->log, NULL);
	cr_expect_eq(counts_of(log).dropped + counts_of(log).left + counts_of(log).rejected, 0, "%s", log);
}

static char *trace_of(const struct live *live, long pid)
{
	glob_t found;
	char *path = NULL;

	if (glob(text("%s/*-%ld.evp", live->traces, pid), 0, NULL, &found) == 0)
		path = text("%s", found.gl_pathv[0]);
	globfree(&found);
	cr_assert(path, "%ld is recorded: %s", pid, file_read(live->daemon->log, NULL));
	return path;
}

/* The server is away while the program goes on, and another program comes and goes. A copy of the trace is no news. */
SCENARIO_SOME(push, running_processes, SUPPORTED)
{
	struct live live;
	struct outcome *brief, *copy;

	network_apart();
	live = begin_live();
	live.server = start_server(live.folder, NULL);
	begin_push(&live, endpoint_of(live.folder));
	begin_program(&live, python);
	await_requests(live.folder, 1);
	copy = run(.how = JOB_BARE, .lingers = true,
		   .args = {"%B/evprof", "snapshot", "--socket", live.socket, "--output",
			    text("%s/copy.evp", live.traces), text("%ld", live.pid)});
	expect(copy, copy->status == 0, "what is recorded is copied into the folder");
	kill(live.server->pid, SIGKILL);
	background_wait(live.server);
	go_on(&live);
	fifo_await(live.ready);
	brief = run(.python = python, .args = {"@pushed.py", "counted"}, .lingers = true,
		    .env = {live.variable, "EVPROF_PROGRAM_ONLY=1", EXCLUDE,
			    "OTEL_RESOURCE_ATTRIBUTES=service.name=brief"});
	go_on(&live);
	cr_expect_eq(background_wait(live.program), 0, "%s", file_read(live.program->log, NULL));
	live.server = start_server(live.folder, NULL);
	end_push(&live);
	judge(live.folder, live.counted, trace_of(&live, live.pid), live.pid, "live", true);
	judge(live.folder, text("%s/counted", brief->directory), trace_of(&live, brief->pid), brief->pid, "live",
	      false);
	cr_expect_eq(background_stop(live.daemon), 0, "%s", file_read(live.daemon->log, NULL));
	stop_server(live.server, live.folder);
}

static void await_process(const char *folder, long pid)
{
	bool is_there = false;

	for (int i = 0; i < WAIT_TURNS && !is_there; i++, usleep(50000)) {
		json_t *received = json_load_file(text("%s/received.json", folder), 0, NULL);

		is_there = json_object_get(json_object_get(received, "processes"), text("%ld", pid)) != NULL;
		json_decref(received);
	}
	cr_assert(is_there, "process %ld is pushed", pid);
}

/* A program that is run again before evprof push looks again has a new trace at the path of the first one. */
SCENARIO(push, path_that_is_used_again, SCENARIO_ONCE)
{
	struct live live = {0};
	char *trace, *first;
	long first_pid;

	(void)python;
	network_apart();
	live.folder = make_folder();
	live.traces = text("%s/traces", live.folder);
	trace = text("%s/t.evp", live.folder), first = text("%s/first", live.folder);
	live.variable = text("EVPROF_OUTPUT=%s", trace);
	cr_assert(mkdir(live.traces, 0700) == 0);
	live.server = start_server(live.folder, NULL);
	begin_push(&live, endpoint_of(live.folder));
	begin_program(&live, python_any());
	await_process(live.folder, live.pid);
	first_pid = live.pid;
	kill(live.push->pid, SIGSTOP);
	end_program(&live);
	cr_assert(link(trace, text("%s.evp", first)) == 0 && rename(live.counted, first) == 0);
	begin_program(&live, python_any());
	kill(live.push->pid, SIGCONT);
	await_process(live.folder, live.pid);
	end_program(&live);
	end_push(&live);
	judge(live.folder, first, text("%s.evp", first), first_pid, "live", true);
	judge(live.folder, live.counted, trace, live.pid, "live", true);
	stop_server(live.server, live.folder);
}

/* The daemon itself has it pushed, up to what it writes when it ends, at a signal to both. */
SCENARIO_SOME(push, by_the_daemon, SUPPORTED)
{
	struct live live = {0};
	pid_t child;
	char *log;

	network_apart();
	live.folder = make_folder();
	live.traces = text("%s/traces", live.folder);
	live.socket = text("%s/sock", live.folder);
	live.variable = text("EVPROF_SOCKET=%s", live.socket);
	cr_assert(mkdir(live.traces, 0700) == 0);
	live.server = start_server(live.folder, NULL);
	live.daemon =
	    background_start(&(struct job){.how = JOB_BARE,
					   .args = {"%B/evprof-collector", "--socket", live.socket, "--output-dir",
						    live.traces, "--push", endpoint_of(live.folder)},
					   .env = {"OTEL_EXPORTER_OTLP_HEADERS=X-Key=daemon", PATIENT}});
	await_file(live.socket, live.daemon);
	await_push(text("%s/.push", live.traces), live.daemon);
	begin_program(&live, python);
	go_on(&live);
	fifo_await(live.ready);
	child = (pid_t)strtol(file_read(text("/proc/%d/task/%d/children", live.daemon->pid, live.daemon->pid), NULL),
			      NULL, 10);
	cr_assert(child > 0, "it has started evprof push: %s", file_read(live.daemon->log, NULL));
	kill(child, SIGTERM); /* as systemd does */
	background_stop(live.daemon);
	log = file_read(live.daemon->log, NULL);
	cr_expect_eq(counts_of(log).dropped + counts_of(log).left + counts_of(log).rejected, 0, "%s", log);
	cr_expect_eq(received_count(live.folder, "key daemon"), (long)counts_of(log).sent);
	judge(live.folder, live.counted, trace_of(&live, live.pid), live.pid, "live", true);
	go_on(&live);
	background_wait(live.program);
	stop_server(live.server, live.folder);
}

/* --- OpenTelemetry's own --- */

static const char configuration[] = "receivers:\n"
				    "  otlp: {protocols: {http: {endpoint: '127.0.0.1:14318'}}}\n"
				    "exporters:\n"
				    "  debug: {verbosity: detailed, use_internal_logger: false}\n"
				    "service:\n"
				    "  telemetry: {metrics: {level: none}}\n"
				    "  pipelines: {profiles: {receivers: [otlp], exporters: [debug]}}\n";

static struct background *start_collector(const char *program, const char *folder)
{
	struct background *collector = background_start(&(struct job){
	    .how = JOB_BARE,
	    .args = {program, "--config", text("%s/otel.yaml", folder), "--feature-gates=service.profilesSupport"}});
	char *log = NULL;

	for (int i = 0; i < WAIT_TURNS && !(log && strstr(log, "Everything is ready")); i++) {
		usleep(50000);
		log = file_read(collector->log, NULL);
	}
	cr_assert(log && strstr(log, "Everything is ready"), "it begins: %s", log);
	return collector;
}

static void judge_logs(const struct live *live, const char *first, const char *second)
{
	const char *trace = trace_of(live, live->pid);
	struct outcome *report = tool("report", "--json", trace), *judged;
	struct outcome *held = tool("memory", "--json", "--limit", "all", trace);

	file_write(text("%s/report", live->folder), report->out, report->out_bytes);
	file_write(text("%s/memory", live->folder), held->out, held->out_bytes);
	judged = run(.how = JOB_BARE,
		     .args = {"python3", "@judge_collector.py", live->counted, text("%s/report", live->folder),
			      text("%s/memory", live->folder), text("%ld", live->pid), first, second},
		     .lingers = true);
	expect(judged, judged->status == 0 && strncmp(judged->out, "right: ", 7) == 0, "all is there: %s", judged->out);
}

/* The Collector that tests/otel builds is killed in the middle, and comes back. */
SCENARIO(push, collector_of_opentelemetry, SCENARIO_ONCE)
{
	struct outcome *built = run(.how = JOB_BARE, .args = {program_path("../../otel/collector.sh")}, .lingers = true,
				    .timeout_s = 900, .env = {test_all() ? "EVPROF_TEST_ALL=1" : NULL});
	char first[PATH_MAX];
	struct background *collector;
	struct live live;

	(void)python;
	built->out[strcspn(built->out, "\n")] = 0;
	if (built->status != 0)
		cr_skip_test("%s", built->out);
	network_apart();
	live = begin_live();
	file_write(text("%s/otel.yaml", live.folder), configuration, strlen(configuration));
	collector = start_collector(built->out, live.folder);
	strcpy(first, collector->log);
	begin_push(&live, "http://127.0.0.1:14318");
	begin_program(&live, python_any());
	for (int i = 0; i < WAIT_TURNS && !strstr(file_read(first, NULL), "ResourceProfiles #0"); i++)
		usleep(50000);
	kill(collector->pid, SIGKILL);
	background_wait(collector);
	end_program(&live);
	collector = start_collector(built->out, live.folder);
	end_push(&live);
	judge_logs(&live, first, collector->log);
	background_stop(collector);
	cr_expect_eq(background_stop(live.daemon), 0, "%s", file_read(live.daemon->log, NULL));
}
