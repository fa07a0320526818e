/*
 * test_damage.c - a file that is not a trace, is cut short or damaged: its readable part and one clear line, no crash.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static const char *const verbs[] = {"info", "report", "dump", "export"};

/* Each verb on a file: ends by itself, with something to say when it fails. */
static void expect_survives(const char *path, const char *what)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
		struct outcome *outcome = strcmp(verbs[i], "export") == 0
					      ? tool("export", "--format", "chrome", path, "-o", "/dev/null")
					      : tool(verbs[i], path);

		expect(outcome, outcome->status >= 0 && outcome->status < 100, "%s of a file %s dies by signal %d",
		       verbs[i], what, -outcome->status);
		expect(outcome, !strstr(outcome->err, "Sanitizer") && !strstr(outcome->err, "runtime error"),
		       "%s of a file %s does something undefined", verbs[i], what);
		expect(outcome, outcome->status == 0 || strncmp(outcome->err, "evprof", 6) == 0,
		       "%s of a file %s fails without a clear line", verbs[i], what);
		expect(outcome, strlen(outcome->err) < 2000, "%s of a file %s says too much", verbs[i], what);
		free(outcome->out);
		free(outcome->err);
		free(outcome);
	}
}

static struct outcome *a_trace(void)
{
	struct outcome *outcome = run(.python = python_any(), .args = {"@threads.py"});

	json_decref(expect_trace(outcome, 1));
	return outcome;
}

SCENARIO(damage, cut_short, SCENARIO_ONCE)
{
	struct outcome *outcome = a_trace();
	char *path = text("%s/damaged", outcome->directory);
	size_t bytes, parts = test_all() ? 200 : 50;
	char *data = file_read(outcome->trace, &bytes);
	long before = -1;

	(void)python;
	for (size_t part = 0; part < parts; part++) {
		json_t *info;
		long events;

		file_write(path, data, bytes * part / parts);
		expect_survives(path, text("cut at %zu of %zu bytes", bytes * part / parts, bytes));
		struct outcome *result = tool("info", "--json", path);
		if (result->status > 1)
			continue;
		info = json_loads(result->out, 0, NULL);
		expect(result, info, "info of a cut file is JSON");
		expect(result, json_is_false(json_object_get(info, "complete")), "a cut file is not complete");
		events = (long)json_integer_value(json_object_get(info, "events"));
		expect(result, events >= before, "a longer piece holds no fewer events");
		expect(result, *result->err, "a cut file gets a line");
		before = events;
		json_decref(info);
	}
	expect(outcome, before > 0, "of a cut file something can be read");
}

/* No crash, and no silence: each byte is under a checksum, but for the zeros that pad a chunk. */
SCENARIO(damage, bits_flipped, SCENARIO_ONCE)
{
	struct outcome *outcome = a_trace();
	char *path = text("%s/damaged", outcome->directory);
	size_t bytes, flips = test_all() ? 500 : 60;
	char *data = file_read(outcome->trace, &bytes);
	size_t unnoticed = 0;
	unsigned random = 12345;

	(void)python;
	for (size_t flip = 0; flip < flips; flip++) {
		size_t at = flip < 16 ? flip * 4 : (random = random * 1103515245 + 12345) % bytes;
		int bit = (int)(random >> 16) % 8;
		struct outcome *result;

		data[at] ^= (char)(1 << bit);
		file_write(path, data, bytes);
		expect_survives(path, text("with bit %d of byte %zu flipped", bit, at));
		result = tool("info", path);
		unnoticed += result->status == 0 && !*result->err;
		data[at] ^= (char)(1 << bit);
	}
	expect(outcome, unnoticed <= flips / 20, "%zu of %zu flipped bits are not noticed", unnoticed, flips);
}

SCENARIO(damage, no_trace, SCENARIO_ONCE)
{
	struct outcome *place = run(.how = JOB_BARE, .args = {"true"});
	char *path = text("%s/file", place->directory), *noise = malloc(100000);

	(void)python;
	file_write(path, "", 0);
	expect_survives(path, "that is empty");
	file_write(path, "#!/bin/sh\necho hello\n", 21);
	expect_survives(path, "that is text");
	for (size_t i = 0; i < 100000; i++)
		noise[i] = (char)(i * 2654435761u >> 13);
	file_write(path, noise, 100000);
	expect_survives(path, "that is noise");
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs) - 1; i++) {
		static const char *const others[] = {"/nonexistent.evp", "/", "/dev/null", "/proc/self/mem"};

		for (size_t j = 0; j < sizeof(others) / sizeof(*others); j++) {
			struct outcome *outcome = tool(verbs[i], others[j]);

			expect(outcome, outcome->status > 0 && strstr(outcome->err, others[j]),
			       "%s of %s fails and names it", verbs[i], others[j]);
		}
	}
}

/* Everything twice, and pieces in another order: nothing that a reader may trust. */
SCENARIO(damage, spliced, SCENARIO_ONCE)
{
	struct outcome *outcome = a_trace();
	char *path = text("%s/damaged", outcome->directory);
	size_t bytes;
	char *data = file_read(outcome->trace, &bytes), *twice = malloc(2 * bytes);

	(void)python;
	memcpy(twice, data, bytes);
	memcpy(twice + bytes, data, bytes);
	file_write(path, twice, 2 * bytes);
	expect_survives(path, "that is there twice");
	memcpy(twice + 64, data + bytes / 2, bytes - bytes / 2);
	file_write(path, twice, bytes);
	expect_survives(path, "whose first half is its second");
	memset(twice + bytes / 3, 0, bytes / 3);
	file_write(path, twice, bytes);
	expect_survives(path, "with a hole of zeros");
}

/* Help and version are results, too. */
SCENARIO(damage, full_disk_below_help, SCENARIO_ONCE)
{
	static const char *const asked[] = {"--help", "--version", "report --help", "help diff"};

	(void)python;
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct outcome *outcome =
		    run(.how = JOB_BARE,
			.args = {"/bin/sh", "-c", text("'%s' %s >/dev/full", build_path("evprof"), asked[i])});

		expect(outcome, outcome->status == 2 && strstr(outcome->err, "No space left"), "%s: that is an error",
		       asked[i]);
	}
}
