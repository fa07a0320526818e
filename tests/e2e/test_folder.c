/*
 * test_folder.c - the folder of a host's daemon, and its signals: old traces go, the disk is kept free, nothing else is
 * touched.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"

/* A daemon in the folder "traces" of a directory, at the socket "evprof.sock" there. */
static struct background *begin_daemon(const char *directory, const char *first, const char *second)
{
	char *socket = text("%s/evprof.sock", directory);
	struct background *daemon;

	daemon = background_start(&(struct job){.how = JOB_BARE,
						.args = {"%B/evprof-collector", "--socket", socket, "--output-dir",
							 text("%s/traces", directory), first, second}});
	background_listens(daemon, socket);
	return daemon;
}

static void end_daemon(struct background *daemon)
{
	cr_expect_eq(background_stop(daemon), 0, "%s", file_read(daemon->log, NULL));
}

static struct outcome *run_known(const char *directory)
{
	return run(.python = python_any(), .args = {"@known.py"},
		   .env = {text("EVPROF_SOCKET=%s/evprof.sock", directory)}, .lingers = true);
}

static unsigned traces_in(const char *folder)
{
	struct outcome found = {0};

	outcome_find_traces(&found, folder);
	return found.traces;
}

/* A finished trace that is too old goes, with its export; a file of the administrator's stays. */
SCENARIO(folder, old_traces_go, SCENARIO_ONCE)
{
	const char *directory = run(.how = JOB_BARE, .args = {"mkdir", "traces"})->directory;
	const char *folder = text("%s/traces", directory);
	struct background *daemon;

	(void)python;
	file_write(text("%s/notes.html", folder), "a note", 6);
	daemon = begin_daemon(directory, "--format", "html");
	run_known(directory);
	end_daemon(daemon);
	cr_assert_eq(traces_in(folder), 1);
	sleep(2);
	daemon = begin_daemon(directory, "--keep-for", "1s");
	cr_expect_eq(traces_in(folder), 0, "%s", file_read(daemon->log, NULL));
	run_known(directory);
	cr_expect_eq(traces_in(folder), 1, "a new one stays");
	end_daemon(daemon);
	cr_expect(
	    run(.how = JOB_BARE, .args = {"sh", "-c", text("cd '%s' && test \"$(ls *.html)\" = notes.html", folder)})
		    ->status == 0,
	    "only its own export went");
}

#define DISK_MIB 24
#define FREE_MIB 16

/* Recording stops before the disk is full, the trace is whole up to there, and the program sees nothing. */
SCENARIO(folder, the_disk_is_kept_free, SCENARIO_ONCE)
{
	static const char flood[] = "import os\n"
				    "def leaf(i): return os.urandom(i % 7 + 1)\n"
				    "total = 0\n"
				    "for i in range(2000000): total += len(leaf(i))\n"
				    "print(total)";
	const char *directory = run(.how = JOB_BARE, .args = {"mkdir", "traces"})->directory;
	const char *folder = text("%s/traces", directory);
	struct background *daemon;
	struct outcome *outcome, *info;
	struct outcome found = {0};
	struct statvfs disk;

	(void)python;
	if (geteuid() != 0 || unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", folder, "tmpfs", 0, text("size=%dM", DISK_MIB)))
		cr_skip_test("nothing can be mounted here");
	daemon = begin_daemon(directory, "--min-free", text("%dM", FREE_MIB));
	outcome = run(.python = python_any(), .args = {"-c", flood},
		      .env = {text("EVPROF_SOCKET=%s/evprof.sock", directory), "EVPROF_EVENTS=call,c_call,mem"},
		      .lingers = true);
	expect(outcome, outcome->status == 0 && strcmp(outcome->out, "7999995\n") == 0, "the program has its result");
	expect(outcome, strstr(outcome->err, "--min-free"), "the closing line says why it stopped");
	cr_assert_eq(statvfs(folder, &disk), 0);
	expect(outcome, disk.f_bavail * disk.f_frsize >= (FREE_MIB - 1) << 20, "%lu MiB are free",
	       (unsigned long)(disk.f_bavail * disk.f_frsize >> 20));
	outcome_find_traces(&found, folder);
	cr_assert_eq(found.traces, 1);
	/* The program waits for the daemon with a bound. */
	for (int i = 0; i < 100; i++, usleep(100000)) {
		info = run(.how = JOB_BARE, .args = {"%B/evprof", "info", found.trace}, .lingers = true);
		if (info->status == 0)
			break;
	}
	expect(info, info->status == 0 && strstr(info->out, "complete"), "it is whole up to there");
	end_daemon(daemon);
	umount(folder);
}

/* SIGUSR1 has it write its status; a terminal that closes, and a signal without a meaning, do nothing. */
SCENARIO(folder, signals, SCENARIO_ONCE)
{
	const char *directory = run(.how = JOB_BARE, .args = {"mkdir", "traces"})->directory;
	struct background *daemon = begin_daemon(directory, NULL, NULL);
	const char *log_path = text("%s", daemon->log);
	pid_t pid = daemon->pid;
	char *log, *said;
	json_t *status;

	(void)python;
	kill(daemon->pid, SIGHUP);
	kill(daemon->pid, SIGUSR2);
	kill(daemon->pid, SIGUSR1);
	usleep(500000);
	run_known(directory);
	cr_expect_eq(traces_in(text("%s/traces", directory)), 1, "it goes on");
	end_daemon(daemon);
	log = file_read(log_path, NULL);
	said = strstr(log, "evprof-collector: status ");
	cr_assert(said, "%s", log);
	status = json_loads(said + strlen("evprof-collector: status "), JSON_DISABLE_EOF_CHECK, NULL);
	cr_expect_eq(json_integer_value(json_object_get(json_object_get(status, "collector"), "pid")), pid);
	json_decref(status);
}

/* The file is there at once and whole, for every user, and goes with the daemon. */
SCENARIO(folder, metrics_for_the_node_exporter, SCENARIO_ONCE)
{
	const char *directory = run(.how = JOB_BARE, .args = {"mkdir", "traces"})->directory;
	const char *path = text("%s/evprof.prom", directory);
	struct background *daemon = begin_daemon(directory, "--metrics", path);
	char *said = file_read(path, NULL);
	struct stat status;

	(void)python;
	cr_assert(said && stat(path, &status) == 0, "%s", file_read(daemon->log, NULL));
	cr_expect_eq(status.st_mode & 07777, 0644);
	cr_expect(strstr(said, "\nevprof_processes 0\n") && strstr(said, "\nevprof_collector_free_bytes "), "%s", said);
	end_daemon(daemon);
	cr_expect(access(path, F_OK) < 0, "it is removed");
	cr_expect(run(.how = JOB_BARE, .args = {"sh", "-c", text("ls '%s'/evprof.prom*", directory)})->status != 0,
		  "and leaves nothing");
}

/* What Prometheus gets is the same; silence, garbage and other sites keep neither it nor the recording waiting. */
SCENARIO(folder, metrics_over_http, SCENARIO_ONCE)
{
	const char *directory;
	struct background *daemon;
	struct outcome *asked, *wrong;

	(void)python;
	if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0)
		cr_skip_test("the port may be in use");
	cr_assert(system("ip link set lo up") == 0);
	directory = run(.how = JOB_BARE, .args = {"mkdir", "traces"})->directory;
	daemon = begin_daemon(directory, "--metrics", "127.0.0.1:9464");
	asked = run(.how = JOB_BARE, .timeout_s = 120, .lingers = true,
		    .args = {"python3", "@ask_metrics.py", "9464", text("%s/evprof.sock", directory),
			     build_path("libevprof.so"), text("%s/gate", directory)});
	expect(asked, asked->status == 0 && strcmp(asked->out, "right\n") == 0, "%s%s", asked->out, asked->err);
	wrong = run(.how = JOB_BARE, .lingers = true,
		    .args = {"%B/evprof-collector", "--socket", "@evprof-other", "--output-dir", directory, "--metrics",
			     "0.0.0.0:9464"});
	expect(wrong, wrong->status == 2 && strstr(wrong->err, "127.0.0.1:PORT or [::1]:PORT, not 0.0.0.0:9464"),
	       "loopback only");
	wrong = run(.how = JOB_BARE, .lingers = true,
		    .args = {"%B/evprof-collector", "--socket", "@evprof-other", "--output-dir", directory, "--metrics",
			     "127.0.0.1:9464"});
	expect(wrong, wrong->status == 1 && strstr(wrong->err, "cannot listen at 127.0.0.1:9464 for --metrics"),
	       "it is in use");
	end_daemon(daemon);
}
