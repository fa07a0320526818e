/*
 * test_status.c - evprof status: collectors are found, what it counts is what happened, and each user sees its own.
 *
 * The programs wait at gates (gated.py), so that the number of events between two looks is known without evprof.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"

#define CALLS 1000 /* of gated.py, between its gates */

struct gated {
	struct background *program;
	int ready, gate;
};

/* Collectors of other tests are in another network namespace, where this user may make one. */
static void apart(void)
{
	if (geteuid() == 0)
		cr_assert(unshare(CLONE_NEWNET) == 0, "no network namespace");
}

static int make_open_pipe(const char *path)
{
	int fd = fifo_make(path);

	cr_assert(chmod(path, 0666) == 0);
	return fd;
}

/* The program waits at its first gate. socket: EVPROF_SOCKET=..., or NULL. */
static struct gated begin_gated(const struct python *python, const char *name, const char *variable)
{
	const char *directory = run(.how = JOB_BARE, .args = {"true"}, .lingers = true)->directory;
	char *ready = text("%s/ready", directory), *gate = text("%s/gate", directory);
	struct gated gated = {.ready = make_open_pipe(ready), .gate = make_open_pipe(gate)};
	char *source = file_read(program_path("gated.py"), NULL), *program = text("%s/%s.py", directory, name);

	file_write(program, source, strlen(source));
	gated.program = background_start(&(struct job){
	    .python = python,
	    .args = {program, ready, gate},
	    .directory = directory,
	    .env = {variable ? variable : "EVPROF_SOCKET", "EVPROF_EVENTS=call"},
	});
	fifo_await(gated.ready);
	return gated;
}

static void open_gate(const struct gated *gated)
{
	cr_assert(write(gated->gate, ".", 1) == 1);
}

static void end_gated(const struct gated *gated)
{
	for (int i = 0; i < 3; i++)
		open_gate(gated);
	cr_expect_eq(background_wait(gated->program), 0, "%s", file_read(gated->program->log, NULL));
	close(gated->ready);
	close(gated->gate);
}

/* Collectors live on meanwhile. */
static struct outcome *status_of(const char *first, const char *second)
{
	return run(.how = JOB_BARE, .args = {"%B/evprof", "status", first, second}, .lingers = true);
}

static json_t *status_json(const char *target)
{
	struct outcome *outcome = status_of("--json", target);
	json_t *status = json_loads(outcome->out, 0, NULL);

	expect(outcome, outcome->status == 0 && status, "there is a status");
	expect(outcome,
	       json_is_array(json_object_get(status, "collectors")) &&
		   json_is_array(json_object_get(status, "processes")) && json_object_get(status, "collector"),
	       "it has its members, however many collectors there are");
	return status;
}

static json_t *process_of(json_t *status, long pid)
{
	json_t *process;
	size_t i;

	json_array_foreach(json_object_get(status, "processes"), i, process)
	{
		if (json_integer_value(json_object_get(process, "pid")) == pid)
			return process;
	}
	return NULL;
}

static long events_of(const char *pid)
{
	json_t *status = status_json(pid);
	json_t *process = process_of(status, atol(pid));
	long events = process ? (long)json_integer_value(json_object_get(process, "events")) : -1;

	cr_assert(json_array_size(json_object_get(status, "processes")) == 1 && events >= 0, "only process %s", pid);
	json_decref(status);
	return events;
}

/* An event stays in a ring for a fifth of a second at most, or a little longer on a busy machine. */
static long events_at_rest(const char *pid)
{
	long before = -1, now = events_of(pid);

	for (int i = 0; i < 20 && now != before; i++) {
		usleep(300000);
		before = now;
		now = events_of(pid);
	}
	return now;
}

SCENARIO(status, counts_what_happened, SUPPORTED)
{
	struct gated gated;
	const char *pid;
	long before;

	apart();
	gated = begin_gated(python, "gated", NULL);
	pid = text("%d", (int)gated.program->pid);
	before = events_at_rest(pid);
	open_gate(&gated);
	fifo_await(gated.ready);
	cr_expect_eq(events_at_rest(pid), before + 2 * CALLS, "a thousand calls and their returns");
	end_gated(&gated);
}

static void expect_described(json_t *collector, json_t *process)
{
	static const char *const numbers[] = {"pid", "uptime_s", "cpu_s", "rss_bytes", "disk_bytes", "free_bytes"};
	static const char *const counts[] = {"pid", "events_per_s", "events", "lost", "bytes"};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		cr_expect(json_number_value(json_object_get(collector, numbers[i])) > 0, "%s", numbers[i]);
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		cr_expect(json_is_integer(json_object_get(process, counts[i])), "%s", counts[i]);
	cr_expect(json_is_null(json_object_get(process, "keep")));
	cr_expect_str_eq(json_string_value(json_object_get(process, "recording")), "events");
}

/* Two private collectors: both are found, each has its own process, and a name finds one of them. */
SCENARIO(status, private_collectors_are_found, SCENARIO_ONCE)
{
	struct gated one, other;
	struct outcome *outcome;
	json_t *status;

	(void)python;
	if (geteuid() != 0)
		cr_skip_test("collectors of other tests are found, too");
	apart();
	outcome = status_of(NULL, NULL);
	expect(outcome,
	       outcome->status == 2 && strstr(outcome->err, "evprof status: no collector of this user runs here; ") &&
		   strchr(outcome->err, '\n') == outcome->err + outcome->err_bytes - 1,
	       "without a collector one line says what to do");
	one = begin_gated(python_any(), "one", NULL);
	status = status_json(NULL);
	cr_assert_eq(json_array_size(json_object_get(status, "collectors")), 1);
	expect_described(json_object_get(status, "collector"), process_of(status, one.program->pid));
	json_decref(status);
	other = begin_gated(python_any(), "other", NULL);
	status = status_json(NULL);
	cr_expect(json_array_size(json_object_get(status, "collectors")) == 2 &&
		  json_is_null(json_object_get(status, "collector")));
	cr_expect(process_of(status, one.program->pid) && process_of(status, other.program->pid));
	json_decref(status);
	status = status_json("other");
	cr_expect(json_array_size(json_object_get(status, "processes")) == 1 && process_of(status, other.program->pid));
	json_decref(status);
	outcome = status_of(NULL, NULL);
	expect(outcome, outcome->status == 0 && strstr(outcome->out, "  one\n") && strstr(outcome->out, "  other\n"),
	       "the table has both");
	outcome = status_of("nobody", NULL);
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "no process nobody is recorded"),
	       "a name that no process has");
	end_gated(&one);
	end_gated(&other);
}

/* ---- the host's daemon ------------------------------------------------------------------------------------------ */

#define ONE_USER "64124"
#define OTHER_USER "64125"
#define CONTROLLERS "64200" /* a group */

static struct background *begin_daemon(const char *socket, const char *folder, const char *first, const char *second)
{
	struct background *daemon = background_start(
	    &(struct job){.how = JOB_BARE,
			  .args = {"%B/evprof-collector", "--socket", socket, "--output-dir", folder, first, second}});

	background_listens(daemon, socket);
	usleep(200000); /* a moment later it is open to a group */
	return daemon;
}

/* The number of processes that a user with a group is shown; -1: an error. */
static long shown_to(const char *user, const char *group, const char *socket)
{
	struct job job = {.how = JOB_BARE,
			  .args = {"setpriv", "--reuid", user, "--regid", user, "--groups", group, "%B/evprof",
				   "status", "--socket", socket, "--json"},
			  .lingers = true};
	struct outcome *outcome = job_run(&job);
	json_t *status = json_loads(outcome->out, 0, NULL);
	long count = status ? (long)json_array_size(json_object_get(status, "processes")) : -1;

	expect(outcome, (outcome->status == 0) == (count >= 0), "the status is that of the answer");
	json_decref(status);
	return count;
}

/* The collector whose socket comes first has the process that comes last. */
SCENARIO(status, processes_of_all_collectors_are_in_order, SCENARIO_ONCE)
{
	char folder[] = "/tmp/evprof-e2e-XXXXXX";
	struct background *daemons[2];
	struct gated programs[2];
	json_t *status, *process;
	json_int_t before = 0;
	size_t i;

	(void)python;
	apart();
	cr_assert(mkdtemp(folder));
	for (i = 0; i < 2; i++) {
		const char *place = text("%s/%zu", folder, i), *socket = text("%s/evprof-%zu.sock", folder, 2 - i);

		cr_assert(mkdir(place, 0700) == 0);
		daemons[i] = begin_daemon(socket, place, NULL, NULL);
		programs[i] = begin_gated(python_any(), "app", text("EVPROF_SOCKET=%s", socket));
	}
	status = status_json(NULL);
	cr_expect(process_of(status, programs[0].program->pid) && process_of(status, programs[1].program->pid));
	json_array_foreach(json_object_get(status, "processes"), i, process)
	{
		cr_expect_leq(before, json_integer_value(json_object_get(process, "pid")), "place %zu", i);
		before = json_integer_value(json_object_get(process, "pid"));
	}
	json_decref(status);
	for (i = 0; i < 2; i++) {
		end_gated(&programs[i]);
		cr_expect_eq(background_stop(daemons[i]), 0, "%s", file_read(daemons[i]->log, NULL));
	}
	directory_remove(folder);
}

static void needs_two_users(void)
{
	if (geteuid() != 0 ||
	    run(.how = JOB_BARE, .args = {"setpriv", "--reuid", ONE_USER, "--clear-groups", "%B/evprof", "--version"})
		->status)
		cr_skip_test("only root can be two users");
}

SCENARIO(status, a_daemon_shows_each_user_its_own, SCENARIO_ONCE)
{
	char folder[] = "/tmp/evprof-e2e-XXXXXX";
	char *socket;
	struct background *daemon;
	struct gated gated;

	(void)python;
	needs_two_users();
	apart();
	cr_assert(mkdtemp(folder) && chmod(folder, 0755) == 0);
	socket = text("%s/evprof.sock", folder);
	daemon = begin_daemon(socket, folder, "--allow-other-users", NULL);
	gated = begin_gated(python_any(), "roots", text("EVPROF_SOCKET=%s", socket));
	cr_expect_eq(shown_to("0", "0", socket), 1);
	cr_expect_eq(shown_to(ONE_USER, ONE_USER, socket), 0, "root's process is not shown to others");
	cr_expect_eq(shown_to(ONE_USER, CONTROLLERS, socket), 0, "no group was named");
	cr_expect_eq(json_array_size(json_object_get(status_json(NULL), "collectors")), 1,
		     "its name has evprof in it, so it is found");
	end_gated(&gated);
	cr_expect_eq(background_stop(daemon), 0, "%s", file_read(daemon->log, NULL));
	directory_remove(folder);
}

SCENARIO(status, a_group_sees_all, SCENARIO_ONCE)
{
	char folder[] = "/tmp/evprof-e2e-XXXXXX";
	char *socket;
	struct background *daemon;
	struct gated gated;

	(void)python;
	needs_two_users();
	apart();
	cr_assert(mkdtemp(folder) && chmod(folder, 0755) == 0);
	socket = text("%s/evprof.sock", folder);
	daemon = begin_daemon(socket, folder, "--control-group", CONTROLLERS);
	gated = begin_gated(python_any(), "roots", text("EVPROF_SOCKET=%s", socket));
	cr_expect_eq(shown_to(OTHER_USER, CONTROLLERS, socket), 1);
	cr_expect_eq(shown_to(OTHER_USER, OTHER_USER, socket), -1, "the socket is the group's");
	run(.how = JOB_BARE,
	    .args = {"setpriv", "--reuid", OTHER_USER, "--regid", OTHER_USER, "--groups", CONTROLLERS, "%B/evprof",
		     "run", "--socket", socket, "true"},
	    .lingers = true);
	cr_expect(strstr(file_read(daemon->log, NULL), "serves user 0 only, not user " OTHER_USER),
		  "the group may look, and not be recorded");
	end_gated(&gated);
	cr_expect_eq(background_stop(daemon), 0, "%s", file_read(daemon->log, NULL));
	directory_remove(folder);
}

/* A collector that does not answer is named, and the others are shown. */
SCENARIO(status, a_stopped_collector_is_named, SCENARIO_ONCE)
{
	const char *folder = run(.how = JOB_BARE, .args = {"true"})->directory;
	char *socket = text("/tmp/evprof-stopped-%d.sock", (int)getpid());
	struct background *daemon;
	struct outcome *outcome, *copied, *all;
	struct gated gated;

	(void)python;
	if (geteuid() != 0)
		cr_skip_test("collectors of other tests are found, too");
	apart();
	daemon = begin_daemon(socket, folder, NULL, NULL);
	gated = begin_gated(python_any(), "one", NULL);
	kill(daemon->pid, SIGSTOP);
	outcome = status_of(NULL, NULL);
	copied = tool("snapshot", "-o", text("%s/of-one.evp", folder), text("%d", (int)gated.program->pid));
	all = tool("snapshot", "-o", text("%s/of-all.evp", folder), "all");
	kill(daemon->pid, SIGCONT);
	expect(outcome, outcome->status == 1 && strstr(outcome->out, "  one\n"), "the other one is shown");
	expect(outcome, strstr(outcome->err, text("collector %d at %s: no answer in time", (int)daemon->pid, socket)),
	       "the silent one is named");
	expect(copied, copied->status == 0 && !strstr(copied->err, "no answer"), "it has nothing of that process");
	expect(all, all->status == 1 && strstr(all->err, "no answer in time"), "it may have some of all");
	end_gated(&gated);
	cr_expect_eq(background_stop(daemon), 0, "%s", file_read(daemon->log, NULL));
}
