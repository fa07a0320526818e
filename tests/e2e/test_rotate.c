/*
 * test_rotate.c - a daemon that writes a trace in parts, by time or by size (--rotate). The oracle is the program
 * (kept.py), which notes each of its numbered batches: over all files together each is there once.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"

struct rotated {
	const char *directory;
	struct background *daemon;
	const char *stamps, *end;
};

static struct rotated begin_daemon(const char *stretch)
{
	struct rotated rotated = {.directory = run(.how = JOB_BARE, .args = {"mkdir", "traces"})->directory};
	char *socket = text("%s/evprof.sock", rotated.directory);

	rotated.stamps = text("%s/stamps", rotated.directory);
	rotated.end = text("%s/end", rotated.directory);
	rotated.daemon = background_start(
	    &(struct job){.how = JOB_BARE,
			  .args = {"%B/evprof-collector", "--socket", socket, "--output-dir",
				   text("%s/traces", rotated.directory), "--format", "folded", "--rotate", stretch}});
	background_listens(rotated.daemon, socket);
	return rotated;
}

static long count_lines(const char *path)
{
	long count = 0;

	for (char *at = file_read(path, NULL); at && (at = strchr(at, '\n')); at++)
		count++;
	return count;
}

/* What all files have together. */
struct sums {
	size_t files;
	long leaves, moments;
	unsigned char *batches; /* how often each was called */
	double waited;		/* seconds in which waiter() was on the stack */
};

/* A file is a whole trace; from the second one on a thread waits at its beginning already. */
static void add_file(struct sums *sums, const char *path, long batches)
{
	struct outcome *info = tool("info", path);
	json_t *report = trace_report(path, NULL);

	expect(info, info->status == 0 && strstr(info->out, "\nstate     complete\n"), "%s is whole", path);
	for (size_t i = 0; i < report_functions(report); i++) {
		struct function function = report_function(report, i);
		long number = 0;

		if (sscanf(function.name, "batch_%ld", &number) != 1)
			continue;
		cr_assert(number < batches, "%s", function.name);
		sums->batches[number] =
		    (unsigned char)(sums->batches[number] + report_calls(report, "<string>", function.name));
	}
	sums->leaves += report_calls(report, "/kept.py", "leaf");
	sums->moments += report_calls(report, "/kept.py", "leaf_of_thread");
	if (report_seconds(report, "/kept.py", "waiter") > 0) /* not before its thread began, nor after its end */
		sums->waited += report_seconds(report, "/kept.py", "waiter");
	sums->files++;
	json_decref(report);
}

static size_t count_files(const struct rotated *rotated, const char *pattern)
{
	glob_t found;
	size_t count = 0;

	if (glob(text("%s/traces/%s", rotated->directory, pattern), 0, NULL, &found) == 0)
		count = found.gl_pathc;
	globfree(&found);
	return count;
}

static struct sums add_up(const struct rotated *rotated, long batches)
{
	struct sums sums = {.batches = calloc((size_t)batches + 1, 1)};
	glob_t found;

	cr_assert_eq(glob(text("%s/traces/*.evp", rotated->directory), 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		add_file(&sums, found.gl_pathv[i], batches);
	globfree(&found);
	return sums;
}

static void expect_exact(const struct python *python, const char *stretch, const char *seconds)
{
	struct rotated rotated = begin_daemon(stretch);
	struct outcome *outcome =
	    run(.python = python, .args = {"@kept.py", rotated.stamps, rotated.end, seconds},
		.env = {text("EVPROF_SOCKET=%s/evprof.sock", rotated.directory)}, .lingers = true);
	long batches = count_lines(rotated.stamps), wrong = 0;
	double waited = 0, lived = 0;
	struct sums sums;

	cr_assert_eq(sscanf(outcome->out, "waited %lf of %lf s", &waited, &lived), 2, "%s", outcome->out);
	expect(outcome, outcome->status == 0 && batches > 20, "it ran");
	cr_expect_eq(background_stop(rotated.daemon), 0, "%s", file_read(rotated.daemon->log, NULL));
	sums = add_up(&rotated, batches);
	for (long i = 0; i < batches; i++)
		wrong += sums.batches[i] != 1;
	cr_expect(sums.files >= 3, "%zu files: %s", sums.files, file_read(rotated.daemon->log, NULL));
	cr_expect_eq(count_files(&rotated, "*.folded"), sums.files, "each part is exported");
	cr_expect_eq(wrong, 0, "%ld of %ld batches are not in one file", wrong, batches);
	cr_expect_eq(sums.leaves, 7 * batches, "%ld leaves of %ld batches", sums.leaves, batches);
	cr_expect_eq(sums.moments, batches / 10, "%ld short threads of %ld", sums.moments, batches / 10);
	cr_expect(sums.waited > waited - 0.02 && sums.waited < lived + 0.02,
		  "a thread waited for %.3f s, by itself %.3f s in a program of %.3f s", sums.waited, waited, lived);
	free(sums.batches);
}

SCENARIO_SOME(rotate, by_time, SUPPORTED)
{
	expect_exact(python, "1s", "5");
}

SCENARIO_SOME(rotate, by_size, SUPPORTED)
{
	expect_exact(python, "200K", "5");
}

/* The daemon is stopped in the middle: what it has recorded until then is in its files once, without a gap. */
SCENARIO_SOME(rotate, stopped, SUPPORTED)
{
	struct rotated rotated = begin_daemon("1s");
	struct background *program =
	    background_start(&(struct job){.python = python,
					   .args = {"@kept.py", rotated.stamps, rotated.end, "60"},
					   .env = {text("EVPROF_SOCKET=%s/evprof.sock", rotated.directory)}});
	long batches, seen = 0;
	struct sums sums;

	for (int i = 0; i < 3000 && access(rotated.stamps, F_OK); i++)
		usleep(10000);
	usleep(4200000);
	cr_expect_eq(background_stop(rotated.daemon), 0, "%s", file_read(rotated.daemon->log, NULL));
	file_write(rotated.end, "", 0);
	cr_expect_eq(background_wait(program), 0, "%s", file_read(program->log, NULL));
	batches = count_lines(rotated.stamps);
	sums = add_up(&rotated, batches);
	while (seen < batches && sums.batches[seen])
		seen++;
	cr_expect(seen > 20 && sums.files >= 2, "%ld batches in %zu files", seen, sums.files);
	for (long i = 0; i < batches; i++)
		cr_expect_eq(sums.batches[i], i < seen, "batch %ld: %d times", i, sums.batches[i]);
	free(sums.batches);
}

SCENARIO(rotate, misused, SCENARIO_ONCE)
{
	struct outcome *outcome = run(.how = JOB_BARE, .args = {"%B/evprof-collector", "--socket", "s", "--output-dir",
								".", "--rotate", "1x"});

	(void)python;
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "--rotate is a time such as 30s"), "a line");
	outcome = run(.how = JOB_BARE, .args = {"%B/evprof-collector", "--socket", "s", "--output-dir", ".", "--rotate",
						"1h", "--keep-last", "30s"});
	expect(outcome, outcome->status == 2 && strstr(outcome->err, "exclude each other"), "a line");
	outcome = tool("cut", "--since-byte", "7", "x.evp", "-o", "y.evp");
	expect(outcome, outcome->status == 2, "a line");
}
