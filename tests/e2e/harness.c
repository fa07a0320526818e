/*
 * harness.c - finds the interpreters and makes a criterion test of each scenario with each of them.
 *
 * Owns main(). Criterion collects its tests from a section of pointers; the ones here are filled before it looks, so
 * that each test has a name of its own ("threads::raw@3.8-shared") that --list shows and --filter takes. A test runs in
 * a process of its own: it learns from criterion which one it is.
 */
#include "harness.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process.h"

#define TESTS_MAX 4000
#define PYTHONS_MAX 48
#define TEST_TIMEOUT_S 240

#define ENV_FOUND "EVPROF_E2E_FOUND"	 /* what find.sh said: from run_tests.sh, or for the processes of the tests */
#define ENV_SCRATCH "EVPROF_E2E_SCRATCH" /* the directory above all working directories */

struct test {
	struct criterion_test test;
	struct criterion_test_extra_data data;
	char name[96];
	const struct scenario *scenario;
	const struct python *python;
	const char *missing; /* the version that is not there */
};

static struct test tests[TESTS_MAX];
static size_t tests_count;
static struct python pythons[PYTHONS_MAX];
static size_t pythons_count;
static char missing[PYTHONS_MAX][8]; /* versions: "3.9" */
static size_t missing_count;
static struct scenario *scenarios;

__attribute__((section("cr_tst"), used)) static struct criterion_test *slots[TESTS_MAX];

void scenario_add(struct scenario *scenario)
{
	scenario->next = scenarios;
	scenarios = scenario;
}

bool test_all(void)
{
	const char *all = getenv("EVPROF_TEST_ALL");

	return all && *all && strcmp(all, "0") != 0;
}

bool python_stands_for_hook(const struct python *python)
{
	return python->minor == 8 || (python->minor == 11 && python_has(python, "shared")) || python->minor == 13;
}

bool test_at_length(const struct python *python)
{
	return test_all() && python_stands_for_hook(python);
}

/* ---- interpreters ---------------------------------------------------------------------------------------------- */

static void python_parse(char *line)
{
	struct python *python = &pythons[pythons_count];
	char *field[9] = {NULL};
	int fields = 0;

	for (char *at = line; fields < 9 && (field[fields] = strsep(&at, "\t")); fields++)
		;
	if (fields == 4 && strcmp(field[3], "missing") == 0 && missing_count < PYTHONS_MAX) {
		snprintf(missing[missing_count++], sizeof(missing[0]), "%s", field[0]);
		return;
	}
	if (fields < 5 || pythons_count == PYTHONS_MAX ||
	    sscanf(field[2], "%d.%d", &python->major, &python->minor) != 2)
		return;
	snprintf(python->version, sizeof(python->version), "%s", field[0]);
	snprintf(python->name, sizeof(python->name), "%s", field[1]);
	snprintf(python->features, sizeof(python->features), ",%s,", field[3]);
	for (int i = 4; i < fields && i < 7; i++)
		python->command[i - 4] = strdup(field[i]);
	python->chrooted = fields > 5;
	/* Of the free-threaded builds evprof records this one. */
	if (python_is_free_threaded(python) && python->minor != 13)
		return;
	if (strncmp(python->name, "pypy", 4) != 0 && strncmp(python->name, "graal", 5) != 0)
		pythons_count++;
}

bool python_is_free_threaded(const struct python *python)
{
	return python_has(python, "freethreaded");
}

/* find.sh starts every interpreter, so it runs once, and the processes of the tests get its answer. */
static void pythons_find(void)
{
	char *found = NULL;

	if (!getenv(ENV_FOUND)) {
		char *command = text("'%s/../../interpreters/find.sh'", program_path("."));
		FILE *pipe = popen(command, "r");
		size_t bytes = 0;

		if (!pipe || getdelim(&found, &bytes, '\0', pipe) < 0 || pclose(pipe) != 0)
			fprintf(stderr, "e2e: tests/interpreters/find.sh found nothing\n");
		setenv(ENV_FOUND, found ? found : "", 1);
		free(found);
		free(command);
	}
	found = strdup(getenv(ENV_FOUND));
	for (char *at = found, *line; (line = strsep(&at, "\n"));)
		python_parse(line);
	free(found);
}

bool python_has(const struct python *python, const char *feature)
{
	char *word = text(",%s,", feature);
	bool has = strstr(python->features, word);

	free(word);
	return has;
}

void python_needs(const struct python *python, const char *feature)
{
	if (!python_has(python, feature))
		cr_skip_test("%s has no %s", python->name, feature);
}

const struct python *python_any(void)
{
	/* The newest: it has the most kinds of events. */
	for (size_t i = pythons_count; i-- > 0;)
		if (pythons[i].major == 3 && pythons[i].minor >= SUPPORTED && !pythons[i].chrooted &&
		    !python_is_free_threaded(&pythons[i]))
			return &pythons[i];
	cr_skip_test("no Python of 3.8 or later here");
	return NULL;
}

static const char *repository(void);

/* ---- tests ----------------------------------------------------------------------------------------------------- */

static void tests_make(void);

/* The process of a test is a new image in which main() has not run. */
static const struct test *test_current(void)
{
	if (tests_count == 0)
		tests_make();
	for (size_t i = 0; i < tests_count; i++)
		if (strcmp(tests[i].test.name, criterion_current_test->name) == 0 &&
		    strcmp(tests[i].test.category, criterion_current_test->category) == 0)
			return &tests[i];
	abort();
}

static void test_run(void)
{
	const struct test *test = test_current();

	if (test->missing)
		cr_skip_test("no interpreter of %s here", test->missing);
	process_adopt();
	process_events(test->scenario->events);
	test->scenario->body(test->python);
	process_remove_directories();
}

/* Also after a failure: whatever the test started ends with it. */
static void test_end(void)
{
	process_kill_all();
}

static void test_trampoline(void)
{
	criterion_internal_test_setup();
	criterion_internal_test_main(test_run);
	criterion_internal_test_teardown();
}

static struct test *test_new(const struct scenario *scenario, const char *suffix)
{
	struct test *test = &tests[tests_count];

	if (tests_count == TESTS_MAX)
		return NULL;
	slots[tests_count++] = &test->test;
	snprintf(test->name, sizeof(test->name), "%s%s%s", scenario->name, *suffix ? "@" : "", suffix);
	test->scenario = scenario;
	test->data.identifier_ = test->name;
	test->data.file_ = __FILE__;
	test->data.line_ = 1;
	test->data.fini = test_end;
	test->data.timeout = test_all() ? 4 * TEST_TIMEOUT_S : TEST_TIMEOUT_S;
	test->test.name = test->name;
	test->test.category = scenario->suite;
	test->test.test = test_trampoline;
	test->test.data = &test->data;
	return test;
}

static bool scenario_fits(const struct scenario *scenario, int major, int minor)
{
	if (major < 3)
		return scenario->lowest == SCENARIO_ANY;
	return minor >= scenario->lowest && (scenario->highest == 0 || minor <= scenario->highest);
}

/* The oldest, the newest, and 3.11, which is between the kinds of hooks. */
static bool is_representative(const struct python *python)
{
	int lowest = 99, highest = 0;
	const struct python *first = NULL;

	for (size_t i = 0; i < pythons_count; i++) {
		if (pythons[i].major != 3 || pythons[i].minor < SUPPORTED)
			continue;
		lowest = pythons[i].minor < lowest ? pythons[i].minor : lowest;
		highest = pythons[i].minor > highest ? pythons[i].minor : highest;
		if (!first && pythons[i].minor == python->minor)
			first = &pythons[i];
	}
	return python == first && (python->minor == lowest || python->minor == highest || python->minor == 11);
}

static void scenario_expand(const struct scenario *scenario)
{
	struct test *test;

	if (scenario->lowest == SCENARIO_ONCE) {
		test_new(scenario, "");
		return;
	}
	for (size_t i = 0; i < pythons_count; i++) {
		if (!scenario_fits(scenario, pythons[i].major, pythons[i].minor) ||
		    (scenario->some && !test_all() && !is_representative(&pythons[i])))
			continue;
		test = test_new(scenario, pythons[i].name);
		if (test)
			test->python = &pythons[i];
	}
	for (size_t i = 0; i < missing_count; i++) {
		if (scenario_fits(scenario, 3, atoi(missing[i] + 2))) {
			test = test_new(scenario, missing[i]);
			if (test)
				test->missing = missing[i];
		}
	}
}

static void tests_make(void)
{
	pythons_find();
	for (const struct scenario *scenario = scenarios; scenario; scenario = scenario->next)
		scenario_expand(scenario);
}

static void scratch_remove(const char *directory)
{
	if (getenv("EVPROF_TEST_KEEP"))
		fprintf(stderr, "e2e: the working directories are in %s\n", directory);
	else
		directory_remove(directory);
}

static void name_the_missing(void)
{
	for (size_t i = 0; i < missing_count; i++)
		printf("e2e: skipped: no interpreter of %s here\n", missing[i]);
	if (pythons_count == 0)
		printf("e2e: skipped: no interpreter at all; tests/interpreters/find.sh says what was looked for\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char scratch[] = "/tmp/evprof-e2e.XXXXXX";
	bool outer = !getenv(ENV_SCRATCH);
	int failed = 0;

	repository();
	if (outer && mkdtemp(scratch))
		setenv(ENV_SCRATCH, scratch, 1);
	tests_make();
	if (outer)
		name_the_missing();

	struct criterion_test_set *set = criterion_initialize();

	criterion_options.jobs = (size_t)sysconf(_SC_NPROCESSORS_ONLN) + 1; /* most of a test is waiting */
	if (criterion_handle_args(argc, argv, true))
		failed = !criterion_run_all_tests(set);
	criterion_finalize(set);
	if (outer)
		scratch_remove(scratch);
	return failed;
}

/* ---- small things ---------------------------------------------------------------------------------------------- */

char *text(const char *format, ...)
{
	va_list list;
	char *result;

	va_start(list, format);
	if (vasprintf(&result, format, list) < 0)
		abort();
	va_end(list);
	return result;
}

char *path_in(const struct outcome *outcome, const char *name)
{
	return text("%s/%s", outcome->directory, name);
}

char *oracle_spans(const char *trace)
{
	struct outcome *read = run(.how = JOB_BARE, .args = {"python3", "@../oracle_trace.py", trace, "spans"});
	char *rows = text("%s.rows", trace);

	expect(read, read->status == 0, "%s is as the documents say", trace);
	file_write(rows, read->out, read->out_bytes);
	return rows;
}

/* The repository: this file knows where it was compiled; EVPROF_REPOSITORY names it where it was moved. */
static const char *repository(void)
{
	static char path[PATH_MAX];
	const char *given = getenv("EVPROF_REPOSITORY");

	if (!*path) {
		char *guess = text("%s", given ? given : __FILE__);

		if (!given && strstr(guess, "tests/e2e/"))
			strcpy(strstr(guess, "tests/e2e/"), "./");
		if (!realpath(guess, path) || access(text("%s/tests/e2e/programs", path), R_OK)) {
			fprintf(stderr, "e2e: run in the repository's folder, or set EVPROF_REPOSITORY to it\n");
			exit(2);
		}
		free(guess);
	}
	return path;
}

const char *program_path(const char *name)
{
	return text("%s/tests/e2e/programs/%s", repository(), name);
}

const char *build_path(const char *name)
{
	const char *build = getenv("EVPROF_BUILD");
	char folder[PATH_MAX];

	if (!build || !*build)
		return text("%s/build/%s", repository(), name);
	if (!realpath(build, folder))
		return text("%s/%s", build, name);
	return text("%s/%s", folder, name);
}

bool built_with_asan(void)
{
	return strstr(build_path(""), "-asan") != NULL;
}

char *file_read(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "re");
	char *data = NULL;
	size_t size = 0, length = 0;

	if (!file)
		return NULL;
	do {
		if (size - length < 65536)
			data = realloc(data, size = size * 2 + 131072);
		length += fread(data + length, 1, size - length - 1, file);
	} while (!feof(file) && !ferror(file));
	fclose(file);
	data[length] = '\0';
	if (bytes)
		*bytes = length;
	return data;
}

void file_write(const char *path, const void *data, size_t bytes)
{
	FILE *file = fopen(path, "we");

	cr_assert(file && fwrite(data, 1, bytes, file) == bytes && fclose(file) == 0, "cannot write %s", path);
}

int fifo_make(const char *path)
{
	int fd;

	cr_assert(mkfifo(path, 0600) == 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	cr_assert(fd >= 0);
	return fd;
}

void fifo_await(int fd)
{
	char byte;

	cr_assert(read(fd, &byte, 1) == 1);
}

void network_apart(void)
{
	if (geteuid() != 0)
		cr_skip_test("collectors of other tests are found, too");
	cr_assert(unshare(CLONE_NEWNET) == 0, "no network namespace");
	cr_assert(system("ip link set lo up") == 0, "no loopback");
}
