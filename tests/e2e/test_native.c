/*
 * test_native.c - native stacks of allocations (EVPROF_NATIVE=1) against backtrace() of the C library at the same
 * place, and names and lines against addr2line.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "compile.h"
#include "harness.h"
#include "process.h"

#define FRAMES 256

#define WITH_LINES "-O2 -g"

static const char *library(const char *name, const char *flags)
{
	return compile("native_stack.c", name, flags);
}

/* Field number n of a line of dump, from 0; NULL: it has fewer. */
static const char *field_of(const char *line, unsigned n)
{
	for (; n > 0; n--) {
		line += strcspn(line, "\t\n");
		if (*line++ != '\t')
			return NULL;
	}
	return line;
}

/*
 * The native stack of the last allocation with that size, or NULL. Line by line: the address sanitizer's strstr()
 * measures all of what it is given, so that a search from each allocation on takes minutes.
 */
static char *stack_of(const char *dump, const char *size)
{
	const char *found = NULL;
	size_t bytes = strlen(size);

	for (const char *line = dump, *end; *line; line = *end ? end + 1 : end) {
		const char *kind = field_of(line, 3), *result = field_of(line, 5), *stack = field_of(line, 7);

		end = strchrnul(line, '\n');
		if (result && !strncmp(kind, "malloc\t", 7) && !strncmp(result, size, bytes) && result[bytes] == '\t')
			found = stack ? stack : "";
	}
	return found ? strndup(found, strcspn(found, "\n")) : NULL;
}

/* Without what compilers add to names, and without what is in brackets. */
static char *plain(char *name)
{
	name[strcspn(name, "(")] = 0;
	if (strlen(name) && name[strlen(name) - 1] == ' ')
		name[strlen(name) - 1] = 0;
	if (!strstr(name, "+0x"))
		name[strcspn(name, ".")] = 0;
	return name;
}

static unsigned split(char *stack, char **names)
{
	unsigned count = 0;

	for (char *next = stack; next && *next && count < FRAMES;) {
		char *end = strstr(next, " < ");

		if (end)
			*end = 0;
		names[count++] = next;
		next = end ? end + 3 : NULL;
	}
	return count;
}

static bool has_names(const char *file)
{
	struct outcome *symbols =
	    run(.how = JOB_BARE, .args = {"sh", "-c", text("nm '%s' 2>/dev/null | head -1", file)});

	return symbols->out_bytes > 0;
}

/*
 * A call that backtrace() saw. names: what addr2line says, a line for each function that is inlined there, and for that
 * itself.
 */
struct place {
	char *file, *address;
	char *names; /* NULL: the file has no symbols */
	struct place *next;
};
static struct place *places;

static struct place *find_place(const char *file, const char *address)
{
	struct place *place = places;

	while (place && (strcmp(place->file, file) != 0 || strcmp(place->address, address) != 0))
		place = place->next;
	return place;
}

static void symbolize_file(const char *file, const char *path)
{
	const char *words = "";
	struct outcome *result;
	struct place *place;
	char *state, *line;

	if (!has_names(path))
		return;
	for (place = places; place; place = place->next)
		if (!strcmp(place->file, file))
			words = text("%s %s", words, place->address);
	result = run(.how = JOB_BARE, .args = {"sh", "-c", text("addr2line -a -C -f -i -e '%s' %s", path, words)});
	line = strtok_r(result->out, "\n", &state);
	for (place = places; place; place = place->next) {
		if (strcmp(place->file, file) != 0)
			continue;
		cr_assert(line && !strncmp(line, "0x", 2), "addr2line names the address");
		place->names = text("%s", "");
		while ((line = strtok_r(NULL, "\n", &state)) && strncmp(line, "0x", 2) != 0) {
			place->names = text("%s%s\n", place->names, plain(line));
			strtok_r(NULL, "\n", &state); /* file and line */
		}
	}
}

/* Of all calls in the program's output: addr2line reads a file once. */
static void symbolize(const char *out, const char *program)
{
	char *words = strdup(out), *state;

	for (char *word = strtok_r(words, " \n", &state); word; word = strtok_r(NULL, " \n", &state)) {
		char *plus = strrchr(word, '+');
		struct place *place;

		if (!plus)
			continue;
		*plus = 0;
		if (find_place(word, plus + 1))
			continue;
		place = calloc(1, sizeof(*place));
		*place = (struct place){.file = word, .address = plus + 1, .next = places};
		places = place;
	}
	for (struct place *place = places, *first; place; place = place->next) {
		for (first = places; strcmp(first->file, place->file) != 0;)
			first = first->next;
		if (first == place)
			symbolize_file(place->file, strcmp(place->file, "program") ? place->file : program);
	}
}

/*
 * The functions of a stack, up to Python's interpreter, if that has a name (*whole); the inlined ones too, but for
 * those that are inlined in the interpreter. A file without symbols gives "?", once.
 */
static unsigned expected_names(char *trace, char **names, bool *whole)
{
	unsigned count = 0;

	*whole = false;
	for (char *at = strtok(trace, " \n"); at; at = strtok(NULL, " \n")) {
		char *plus = strrchr(at, '+'), *state;
		unsigned before = count;
		struct place *place;

		*plus = 0;
		place = find_place(at, plus + 1);
		if (!place->names) {
			names[count++] = "?";
			continue;
		}
		for (char *name = strtok_r(strdup(place->names), "\n", &state); name;
		     name = strtok_r(NULL, "\n", &state)) {
			if (!strncmp(name, "_PyEval_EvalFrameDefault", 24)) {
				*whole = true;
				return before;
			}
			names[count++] = name;
		}
	}
	return count;
}

static void expect_stack(const struct outcome *outcome, const char *dump, char *line)
{
	char *size = strsep(&line, " "), *stack = stack_of(dump, size), *names[FRAMES], *wanted[FRAMES];
	bool whole;
	unsigned count, expected = expected_names(line, wanted, &whole);

	expect(outcome, stack && *stack, "the allocation of %s bytes has a native stack", size);
	stack = strdup(stack);
	count = split(stack, names);
	for (unsigned i = 0; i < expected && i < count; i++) {
		const char *name = plain(names[i]);

		expect(outcome, !strcmp(wanted[i], "?") || !strcmp(name, wanted[i]),
		       "%s: function %u is %s, not %s; stack: %s", size, i, wanted[i], name, stack_of(dump, size));
	}
	expect(outcome, whole ? count == expected : count <= expected, "%s: %u functions, not %u; stack: %s", size,
	       expected, count, stack_of(dump, size));
}

static const char *program_of(const struct python *python)
{
	struct outcome *asked = run(.python = python, .how = JOB_BARE,
				    .args = {"-c", "import os; print(os.path.realpath('/proc/self/exe'))"});

	return text("%.*s", (int)strcspn(asked->out, "\n"), asked->out);
}

static struct outcome *record_with(const struct python *python, const char *setting, const char *mode,
				   const char *first, const char *second)
{
	struct outcome *outcome = run(.python = python, .args = {"@native_stack.py", mode, first, second},
				      .env = {"EVPROF_NATIVE=1", setting});

	expect(outcome, outcome->status == 0, "it runs");
	json_decref(expect_trace(outcome, 0));
	return outcome;
}

static struct outcome *record(const struct python *python, const char *mode, const char *first, const char *second)
{
	return record_with(python, NULL, mode, first, second);
}

/* Each line of the program's output against the trace. */
static void expect_stacks(const struct python *python, const struct outcome *outcome, const char *dump, unsigned lines)
{
	char *rest = strdup(outcome->out), *line;
	unsigned count = 0;

	/* Files of another root are not those that addr2line would find here. */
	if (python->chrooted)
		return;
	symbolize(outcome->out, program_of(python));
	for (; (line = strsep(&rest, "\n")) && *line; count++)
		expect_stack(outcome, dump, line);
	expect(outcome, count == lines, "%u lines, not %u", lines, count);
}

/* Of the allocation with that size. */
static void expect_functions(const struct outcome *outcome, const char *dump, const char *size, const char *functions)
{
	char *stack = stack_of(dump, size), *names[FRAMES], *whole = strdup(functions);
	unsigned count, i = 0;

	expect(outcome, stack != NULL, "there is an allocation of %s bytes", size);
	count = split(strdup(stack), names);
	for (char *name = strtok(whole, " "); name; name = strtok(NULL, " "), i++)
		expect(outcome, i < count && !strcmp(plain(names[i]), name), "%s: function %u is %s; stack: %s", size,
		       i, name, stack);
}

static const char *dump_of(const struct outcome *outcome)
{
	return tool("dump", outcome->trace)->out;
}

#define ALL "level_inner level_variable level_aligned level_inlined outer::inner native_all"

SCENARIO(native, depths_without_frame_pointers, SUPPORTED)
{
	struct outcome *outcome;
	const char *dump;

	python_needs(python, "ctypes");
	outcome = record(python, "depths", library("native_stack.so", WITH_LINES), NULL);
	dump = dump_of(outcome);
	expect_functions(outcome, dump, "1000001", "level_inner native_inner");
	expect_functions(outcome, dump, "1000002", ALL);
	expect_stacks(python, outcome, dump, 6);
}

SCENARIO_SOME(native, depths_with_frame_pointers, SUPPORTED)
{
	struct outcome *outcome;
	const char *dump;

	python_needs(python, "ctypes");
	outcome = record(python, "depths", library("native_stack.so", WITH_LINES " -fno-omit-frame-pointer"), NULL);
	dump = dump_of(outcome);
	expect_functions(outcome, dump, "1000002", ALL);
	expect_stacks(python, outcome, dump, 6);
}

/* As clang and rustc leave it. */
SCENARIO_SOME(native, debug_information_without_a_table_of_units, SUPPORTED)
{
	struct outcome *outcome;
	const char *dump;

	python_needs(python, "ctypes");
	outcome = run(.how = JOB_BARE, .args = {"sh", "-c",
						text("objcopy -R .debug_aranges '%s' units.so && readelf -SW units.so",
						     library("native_stack.so", WITH_LINES))});
	expect(outcome, outcome->status == 0 && !strstr(outcome->out, "aranges"), "the table is gone");
	expect(outcome, strstr(outcome->out, ".debug_info"), "the rest is there");
	outcome = record(python, "depths", text("%s/units.so", outcome->directory), NULL);
	dump = dump_of(outcome);
	expect_functions(outcome, dump, "1000002", ALL);
	expect_stacks(python, outcome, dump, 6);
}

SCENARIO_SOME(native, a_stripped_library_has_offsets, SUPPORTED)
{
	const char *twin = library("native_stack.so", WITH_LINES);
	struct outcome *outcome, *result;
	char *names[FRAMES], *stack;
	static const char *const wanted[] = {"level_inner", "level_variable", "level_aligned"};

	python_needs(python, "ctypes");
	result = run(.how = JOB_BARE, .args = {"strip", "-o", "stripped.so", twin});
	outcome = record(python, "depths", text("%s/stripped.so", result->directory), NULL);
	stack = stack_of(dump_of(outcome), "1000002");
	expect(outcome, stack && split(stack, names) > 3, "there is a stack");
	for (unsigned i = 0; i < 3; i++) {
		const char *offset = strstr(names[i], "stripped.so+0x");

		expect(outcome, offset == names[i], "%s is an offset in the library", names[i]);
		result = run(.how = JOB_BARE, .args = {"sh", "-c",
						       text("addr2line -f -e '%s' $(printf %%x $((%s - 1))) | head -1",
							    twin, strchr(names[i], '+') + 1)});
		expect(outcome, !strcmp(plain(strtok(result->out, "\n")), wanted[i]), "%s is in %s, not %s", names[i],
		       wanted[i], result->out);
	}
	expect(outcome, strstr(names[4], "native_all"), "what is exported has its name: %s", names[4]);
}

SCENARIO(native, threads, SUPPORTED)
{
	struct outcome *outcome;
	const char *dump;

	python_needs(python, "ctypes");
	/* What evprof maps at a thread's first stack is no event. It was one, which was lost. */
	record_with(python, "EVPROF_EVENTS=mem,malloc", "threads", library("native_stack.so", WITH_LINES), NULL);
	outcome = record(python, "threads", library("native_stack.so", WITH_LINES), NULL);
	dump = dump_of(outcome);
	for (int number = 0; number < 4; number++)
		for (int i = 0; i < 20; i++)
			expect_functions(outcome, dump, text("%d", 1000001 + 100 * number + i),
					 i % 2 ? ALL : "level_inner native_inner");
}

SCENARIO(native, forked_children, SUPPORTED)
{
	struct outcome *outcome;
	const char *dump;

	python_needs(python, "ctypes");
	outcome = record(python, "forks", library("native_stack.so", WITH_LINES), NULL);
	dump = dump_of(outcome);
	for (int i = 0; i < 4; i++)
		expect_functions(outcome, dump, text("%d", 1000001 + i), ALL);
	expect_stacks(python, outcome, dump, 4);
}

/* Two libraries in turn, of which the second one gets the addresses of the first. */
SCENARIO(native, libraries_that_take_turns, SUPPORTED)
{
	struct outcome *outcome;
	const char *dump;

	python_needs(python, "ctypes");
	outcome = record(python, "unloads", library("native_stack.so", WITH_LINES),
			 library("other.so", WITH_LINES " -DINNER=other_inner"));
	dump = dump_of(outcome);
	for (int i = 0; i < 6; i++)
		expect_functions(
		    outcome, dump, text("%d", 1000001 + i),
		    i % 2 ? "other_inner level_variable level_aligned level_inlined outer::inner native_all" : ALL);
	expect_stacks(python, outcome, dump, 6);
}

SCENARIO(native, bounds, SUPPORTED)
{
	struct outcome *outcome;
	const char *dump;
	char *names[FRAMES];
	unsigned count;

	python_needs(python, "ctypes");
	outcome = record(python, "bounds", library("native_stack.so", WITH_LINES), NULL);
	dump = dump_of(outcome);
	count = split(stack_of(dump, "1000001"), names);
	expect(outcome, count == 65 && !strcmp(names[64], "..."),
	       "64 functions of a deep stack, and that there are more: %u", count);
	expect(outcome, !strcmp(plain(names[0]), "level_inner") && !strcmp(plain(names[63]), "level_recursive"),
	       "the innermost ones: %s, %s", names[0], names[63]);
	count = split(stack_of(dump, "1000002"), names);
	expect(outcome, count >= 2 && !strcmp(plain(names[0]), "level_inner"), "a stack elsewhere: %s", names[0]);
	expect_functions(outcome, dump, "1000003", "level_inner native_inner");
}

/* Without unwind tables the stack ends, and says so. */
SCENARIO_SOME(native, functions_without_unwind_tables, SUPPORTED)
{
	static const char flags[] = WITH_LINES " -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-exceptions "
					       "-Wl,--no-eh-frame-hdr";
	struct outcome *outcome;
	char *names[FRAMES];

	python_needs(python, "ctypes");
	outcome = record(python, "depths", library("native_stack.so", flags), NULL);
	expect(outcome, split(stack_of(dump_of(outcome), "1000002"), names) == 2, "one function and ...");
	expect(outcome, !strcmp(plain(names[0]), "level_inner") && !strcmp(names[1], "..."), "%s < %s", names[0],
	       names[1]);
}

/* ---- the service ------------------------------------------------------------------------------------------------- */

#define SERVICE_USER "64123" /* any that nobody has */
#define SYSTEM_PYTHON "/usr/bin/python3"

/* The collector as systemd starts it; its socket and its traces in the folder. */
static struct background *start_service(const char *folder)
{
	struct background *service = background_start(&(struct job){
	    .how = JOB_BARE,
	    .args = {SYSTEM_PYTHON, "@as_the_unit.py", "@../../../collector/systemd/evprof-collector.service.in",
		     SERVICE_USER, "%B/evprof-collector", "--socket", text("%s/socket", folder), "--output-dir",
		     text("%s/traces", folder), "--allow-other-users", "--max-trace-bytes-per-user", "1G", "--format",
		     "pstats"}});
	const char *socket = text("%s/socket", folder);

	for (int i = 0; i < 2000 && access(socket, F_OK); i++)
		usleep(10000);
	cr_assert_eq(access(socket, F_OK), 0, "no socket: %s", file_read(service->log, NULL));
	return service;
}

/* A run of that user, and its trace in the service's folder. */
static struct outcome *run_served(const char *user, const char *folder, const char *variable, const char *const *args)
{
	struct job job = {.args = {"setpriv", "--reuid", user, "--regid", user, "--clear-groups", SYSTEM_PYTHON},
			  .env = {text("EVPROF_SOCKET=%s/socket", folder), variable}};
	struct outcome *outcome;

	for (unsigned i = 0; args[i]; i++)
		job.args[7 + i] = args[i];
	run(.how = JOB_BARE, .args = {"sh", "-c", text("rm -f '%s'/traces/*", folder)});
	outcome = job_run(&job);
	expect(outcome, outcome->status == 0, "it runs");
	outcome_find_traces(outcome, text("%s/traces", folder));
	expect_closing_line(outcome);
	return outcome;
}

static void needs_service(void)
{
	if (geteuid() != 0 || access(SYSTEM_PYTHON, X_OK))
		cr_skip_test("needs root, and " SYSTEM_PYTHON);
	if (built_with_asan())
		cr_skip_test("the sanitizer does not run with the unit's rights");
	if (run(.how = JOB_BARE, .args = {"sh", "-c", "command -v systemd-analyze setpriv"})->status)
		cr_skip_test("needs systemd-analyze and setpriv");
	if (run(.how = JOB_BARE,
		.args = {"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", SYSTEM_PYTHON, "-c",
			 "import ctypes; open(__import__('sys').argv[1])", "%B/libevprof.so"})
		->status)
		cr_skip_test("other users may not read the build folder, or have no ctypes");
}

/* As the units have it: the socket's folder is root's, that of the traces is the service's, and all may enter both. */
static void make_service_folder(char *folder)
{
	cr_assert_not_null(mkdtemp(folder));
	run(.how = JOB_BARE,
	    .args = {"sh", "-c",
		     text("mkdir '%s/traces' && chmod 755 '%s' && chmod 711 '%s/traces' && chown " SERVICE_USER
			  " '%s' '%s/traces'",
			  folder, folder, folder, folder, folder)});
}

/* As far as it goes without systemd: its user, capabilities and system calls. */
SCENARIO(native, the_service_has_the_rights_it_needs, SCENARIO_ONCE)
{
	static const char *const users[] = {"0", "65534"};
	struct outcome *outcome;
	char folder[] = "/run/evprof-e2e-XXXXXX"; /* in /tmp anybody may put a socket: the library asks for more */
	struct background *service;
	const char *dump;

	(void)python;
	needs_service();
	make_service_folder(folder);
	run(.how = JOB_BARE, .args = {"cp", library("native_stack.so", WITH_LINES), folder});
	service = start_service(folder);
	for (int i = 0; i < 2; i++) {
		outcome = run_served(users[i], folder, "EVPROF_NATIVE=1",
				     (const char *const[]){program_path("native_stack.py"), "forks",
							   text("%s/native_stack.so", folder), NULL});
		dump = dump_of(outcome);
		for (int n = 0; n < 4; n++)
			expect_functions(outcome, dump, text("%d", 1000001 + n), ALL);
		/* On a machine with much else to do a short program ends before its sampler begins. */
		for (int size = 20000000, sampled = false; !sampled; size *= 5) {
			const char *code = text("def busy(): return sum(range(%d))\nbusy()", size);

			outcome = run_served(users[i], folder, "EVPROF_EVENTS=sample",
					     (const char *const[]){"-c", code, NULL});
			sampled = strstr(tool("report", outcome->trace)->out, "busy") != NULL;
			expect(outcome, sampled || size < 500000000, "%s: samples are there", users[i]);
		}
	}
	cr_expect_eq(background_stop(service), 0, "%s", file_read(service->log, NULL));
	directory_remove(folder);
}

static int status_as(const char *user, const char *program, const char *first, const char *second)
{
	return run(.how = JOB_BARE,
		   .args = {"setpriv", "--reuid", user, "--regid", user, "--clear-groups", program, first, second})
	    ->status;
}

static const char *sibling(const struct outcome *outcome, const char *ending)
{
	return text("%.*s%s", (int)(strlen(outcome->trace) - 3), outcome->trace, ending);
}

/* The daemon has its own user, and is asked by two others. Each reads what is its own, and no third user does. */
SCENARIO(native, users_read_their_own_traces, SCENARIO_ONCE)
{
	static const char *const users[] = {"64124", "64125", "64126"};
	static const char *const code[] = {"-c", "def own(): pass\nown()", NULL};
	char folder[] = "/run/evprof-e2e-XXXXXX";
	struct background *service;
	struct outcome *outcome;

	(void)python;
	needs_service();
	cr_assert_eq(unshare(CLONE_NEWNET), 0);
	make_service_folder(folder);
	service = start_service(folder);
	for (int i = 0; i < 2; i++) {
		struct outcome *report;

		outcome = run_served(users[i], folder, "EVPROF_EVENTS=call", code);
		report = run(.how = JOB_BARE, .args = {"setpriv", "--reuid", users[i], "--regid", users[i],
						       "--clear-groups", "%B/evprof", "report", outcome->trace});
		expect(report, report->status == 0 && strstr(report->out, "(own)"), "%s reads its own", users[i]);
		expect(outcome, status_as(users[i], "sh", "-c", text("cat '%s'/traces/*.pstats", folder)) != 0,
		       "nobody lists the folder");
		expect(outcome,
		       status_as(users[i], "cat", sibling(outcome, "pstats"), NULL) == 0 &&
			   status_as(users[2], "cat", sibling(outcome, "pstats"), NULL) != 0,
		       "the format has the rights of the trace");
		expect(outcome, status_as(users[i], "sh", "-c", text("echo >>'%s'", outcome->trace)) != 0,
		       "%s does not change it", users[i]);
		expect(outcome, status_as(users[i], "rm", "-f", outcome->trace) != 0, "nor delete it");
		for (int j = 0; j < 3; j++)
			expect(outcome, (status_as(users[j], "cat", outcome->trace, NULL) == 0) == (i == j),
			       "%s and the trace of %s", users[j], users[i]);
	}
	outcome = run_served("0", folder, "EVPROF_EVENTS=call", code);
	expect(outcome, status_as(users[2], "sh", "-c", text("cat '%s'", outcome->trace)) != 0, "root's is root's");
	cr_expect_eq(background_stop(service), 0, "%s", file_read(service->log, NULL));
	directory_remove(folder);
}

/* The traces stay the daemon's, and its log says so once. */
SCENARIO(native, traces_where_there_are_no_lists, SCENARIO_ONCE)
{
	static const char *const code[] = {"-c", "pass", NULL};
	char folder[] = "/run/evprof-e2e-XXXXXX", *log, *said;
	struct background *service;
	const char *traces;

	(void)python;
	needs_service();
	cr_assert_eq(unshare(CLONE_NEWNET | CLONE_NEWNS), 0);
	make_service_folder(folder);
	traces = text("%s/traces", folder);
	cr_assert_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	if (mount("none", traces, "ramfs", 0, NULL))
		cr_skip_test("nothing can be mounted here");
	run(.how = JOB_BARE,
	    .args = {"sh", "-c", text("chmod 711 '%s' && chown " SERVICE_USER " '%s'", traces, traces)});
	service = start_service(folder);
	for (int i = 0; i < 2; i++) {
		struct outcome *outcome = run_served("64124", folder, "EVPROF_EVENTS=call", code);

		expect(outcome, status_as("64124", "cat", outcome->trace, NULL) != 0, "it stays private");
	}
	cr_expect_eq(background_stop(service), 0);
	log = file_read(service->log, NULL);
	said = strstr(log, "cannot read their traces in");
	cr_expect(said && !strstr(said + 1, "cannot read their traces in"), "it is said once: %s", log);
	umount(traces);
	directory_remove(folder);
}

/* The program sees nothing of it. */
SCENARIO(native, the_program_is_the_same, SUPPORTED)
{
	struct outcome *bare = run(.python = python, .how = JOB_BARE, .args = {"@descriptors.py"}), *outcome;

	outcome = run(.python = python, .args = {"@descriptors.py"}, .env = {"EVPROF_NATIVE=1"});
	expect_same(bare, outcome);
	json_decref(expect_trace(outcome, 0));
}

SCENARIO_SOME(native, without_libunwind, SUPPORTED)
{
	struct outcome *made =
	    run(.how = JOB_BARE, .args = {"sh", "-c",
					  "echo none >libunwind-x86_64.so.8; cp libunwind-x86_64.so.8 "
					  "libunwind-aarch64.so.8"});
	struct outcome *outcome;
	json_t *info;

	if (python->chrooted)
		cr_skip_test("variables of the loader are for the program that leads there, too");
	outcome = run(.python = python, .args = {"-c", "print(len([object() for _ in range(9)]))"},
		      .env = {"EVPROF_NATIVE=1", text("LD_LIBRARY_PATH=%s", made->directory)});
	expect(outcome, outcome->status == 0 && !strcmp(outcome->out, "9\n"), "it runs");
	expect(outcome, stderr_evprof_lines(outcome) == 2, "one line says what is missing, and the closing line comes");
	expect(outcome, strstr(outcome->err, "libunwind8"), "the package is named");
	info = expect_trace(outcome, 1);
	expect(outcome, info_events(info, "malloc") >= 9, "the allocations of nine objects are recorded");
	expect(outcome, !json_is_true(json_object_get(json_array_get(json_object_get(info, "processes"), 0), "native")),
	       "and it is not said that they have native stacks");
}

SCENARIO_SOME(native, folded_by_bytes, SUPPORTED)
{
	struct outcome *outcome, *folded;

	python_needs(python, "ctypes");
	outcome = record(python, "depths", library("native_stack.so", WITH_LINES), NULL);
	folded = tool("export", "--format", "folded", "--weight", "bytes", outcome->trace, "-o", "-");
	expect(outcome,
	       strstr(folded->out,
		      "native_all (native_stack.so);outer::inner() (native_stack.so);level_inlined "
		      "(native_stack.so);level_aligned "
		      "(native_stack.so);level_variable (native_stack.so);level_inner (native_stack.so) 3000012"),
	       "the sizes of the three blocks, beneath the Python function: %.2000s", folded->out);
	expect(outcome, strstr(folded->out, "allocate (native_stack.py:"), "which is there");
}
