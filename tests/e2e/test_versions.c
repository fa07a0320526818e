/*
 * test_versions.c - a library and a collector of different releases: the ring or the protocol has another version.
 *
 * The Makefile builds the other version: today's sources with one number increased. Nothing is recorded, one line says
 * what to install, and the program is as it is bare.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

static const char *const kinds[] = {"ring", "protocol"};
static const char *const others[] = {"other-library", "other-collector"};

static const char program[] = "import os, subprocess, sys\n"
			      "print('before')\n"
			      "sys.stdout.flush()\n"
			      "pid = os.fork()\n"
			      "if pid == 0: os._exit(5)\n"
			      "print(os.waitpid(pid, 0)[1] >> 8)\n"
			      "print(subprocess.call([sys.executable, '-c', 'print(list(range(3)))']))\n"
			      "sys.exit(3)\n";

static const char *file_of(const char *kind, const char *other, const char *name)
{
	return build_path(text("tests/versions/%s/%s/%s", kind, other, name));
}

static unsigned entries_of(const char *directory)
{
	unsigned count = 0;
	struct dirent *entry;
	DIR *list = opendir(directory);

	cr_assert(list, "there is no folder %s", directory);
	while ((entry = readdir(list)))
		count += entry->d_name[0] != '.';
	closedir(list);
	return count;
}

static void expect_refused(const struct outcome *bare, const struct outcome *outcome, const char *kind,
			   const char *what)
{
	char *line = stderr_evprof_line(outcome, 0);

	expect_same(bare, outcome);
	expect(outcome, outcome->status == 3, "%s: the exit status is the program's", what);
	expect(outcome, stderr_evprof_lines(outcome) == 1, "%s: one line for the tree, not %u", what,
	       stderr_evprof_lines(outcome));
	expect(outcome, strstr(line, text("another version of the %s", kind)) && strstr(line, "from one release"),
	       "%s: the line says what differs and what to install: %s", what, line);
	expect(outcome, entries_of(outcome->directory) == 0, "%s: no file is left behind", what);
	free(line);
}

/* The collector that the library starts from the folder that it is in. */
SCENARIO_SOME(versions, private_collector, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"-c", program});

	for (size_t i = 0; i < 4; i++) {
		const char *kind = kinds[i / 2], *other = others[i % 2];
		const char *library = file_of(kind, other, "libevprof.so");
		struct outcome *outcome = run(.python = python, .how = JOB_BARE, .args = {"-c", program},
					      .env = {text("LD_PRELOAD=%s", library)});

		expect_refused(bare, outcome, kind, text("%s, %s", kind, other));
		outcome_settle(outcome);
	}
}

/* The daemon refuses the stranger, and goes on to serve who has its version. */
SCENARIO_SOME(versions, daemon, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"-c", program});

	for (size_t i = 0; i < 4; i++) {
		const char *kind = kinds[i / 2], *other = others[i % 2];
		const char *what = text("daemon, %s, %s", kind, other);
		struct outcome *place = run(.how = JOB_BARE, .args = {"mkdir", "traces"}), *outcome;
		const char *address = text("%s/socket", place->directory);
		const char *socket = text("EVPROF_SOCKET=%s", address);
		const char *collector = file_of(kind, other, "evprof-collector");
		const char *traces = text("%s/traces", place->directory);
		struct background *daemon = background_start(
		    &(struct job){.how = JOB_BARE, .args = {collector, "--socket", address, "--output-dir", traces}});

		for (int wait = 0; wait < 500 && access(address, F_OK) != 0; wait++)
			usleep(10000);
		outcome = run(.python = python, .how = JOB_BARE, .args = {"-c", program},
			      .env = {text("LD_PRELOAD=%s", file_of(kind, other, "libevprof.so")), socket});
		expect_refused(bare, outcome, kind, what);
		expect(outcome, entries_of(traces) == 0, "%s: the daemon has no trace of it", what);
		if (i % 2 == 0) {
			outcome = run(.python = python, .args = {"-c", program}, .env = {socket});
			expect_same(bare, outcome);
			outcome_find_traces(outcome, traces);
			json_decref(expect_trace(outcome, 3));
		}
		cr_assert(background_stop(daemon) == 0, "%s: the daemon ends with status 0", what);
	}
}

/* evprof run of today with a collector or a library that was installed from another release. */
SCENARIO_SOME(versions, evprof_run, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"-c", program});

	for (size_t i = 0; i < 4; i++) {
		const char *kind = kinds[i / 2], *other = others[i % 2];
		struct job job = {.how = JOB_BARE, .args = {file_of(kind, other, "evprof"), "run", "--"}};
		int n = 3;

		for (int k = 0; python->command[k]; k++)
			job.args[n++] = python->command[k];
		job.args[n++] = "-c";
		job.args[n] = program;
		expect_refused(bare, job_run(&job), kind, text("evprof run, %s, %s", kind, other));
	}
}
