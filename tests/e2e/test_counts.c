/*
 * test_counts.c - the calls of every Python and C function are as many as cProfile counts, on real programs.
 *
 * count.py runs a program's main() twice and counts the second run, once by cProfile and once between two marks under
 * evprof. Both in the order of the same hash seed, with the garbage collector at rest. Compared are total and primitive
 * calls of everything, by file, line and name. With evprof run --program-only the whole program is compared with
 * python -m cProfile. Without C functions 3.9 and 3.10 are recorded by other means (hooks_frame.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "packages.h"

/* Where cProfile is known to differ from what happened, and why. Rows that fit are left out on both sides. */
static const struct exception {
	const char *file;    /* end of the file's name; "~" for C functions; NULL: any */
	const char *name;    /* part of the name; NULL: any */
	int lowest, highest; /* minor versions; 0: no bound */
	const char *reason;
} exceptions[] = {
    {"/count.py", NULL, 0, 0, "what count.py puts around main() and around threads: a profile begins inside of it"},
    {"~", "'_lsprof.Profiler'", 0, 0, "the call that ends the profile is in the profile"},
};

struct row {
	char *key; /* file:line:name */
	const char *file, *name;
	long total, primitive;
};

struct rows {
	struct row *row;
	size_t count;
};

/* Addresses in names differ from run to run: "<built-in method __new__ of type object at 0x7f...>". */
static char *without_addresses(const char *name)
{
	char *result = text("%s", name), *to = result;

	for (const char *from = name; *from;) {
		if (strncmp(from, " at 0x", 6) == 0)
			from += 6 + strspn(from + 6, "0123456789abcdef");
		else
			*to++ = *from++;
	}
	*to = '\0';
	return result;
}

static bool ends_with(const char *whole, const char *end)
{
	size_t length = strlen(whole), tail = strlen(end);

	return length >= tail && strcmp(whole + length - tail, end) == 0;
}

static bool is_exception(const struct python *python, const char *file, const char *name)
{
	for (size_t i = 0; i < sizeof(exceptions) / sizeof(*exceptions); i++) {
		const struct exception *known = &exceptions[i];

		if ((!known->file || ends_with(file, known->file)) && (!known->name || strstr(name, known->name)) &&
		    python->minor >= known->lowest && (known->highest == 0 || python->minor <= known->highest))
			return true;
	}
	return false;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct row *)a)->key, ((const struct row *)b)->key);
}

static void rows_add(struct rows *rows, const struct python *python, const char *file, long line, const char *name,
		     long total, long primitive)
{
	struct row *row = &rows->row[rows->count];

	if (is_exception(python, file, name))
		return;
	row->name = without_addresses(name);
	row->file = file;
	row->key = text("%s:%ld:%s", file, strcmp(file, "~") == 0 ? 0 : line, row->name);
	row->total = total;
	row->primitive = primitive;
	rows->count++;
}

/* Sorted, with rows of the same name added up: code that was made twice has two entries on one side or the other. */
static void rows_finish(struct rows *rows)
{
	size_t kept = 0;

	qsort(rows->row, rows->count, sizeof(*rows->row), by_key);
	for (size_t i = 0; i < rows->count; i++) {
		if (kept > 0 && strcmp(rows->row[kept - 1].key, rows->row[i].key) == 0) {
			rows->row[kept - 1].total += rows->row[i].total;
			rows->row[kept - 1].primitive += rows->row[i].primitive;
		} else {
			rows->row[kept++] = rows->row[i];
		}
	}
	rows->count = kept;
}

static struct rows rows_of_cprofile(const struct python *python, const char *path)
{
	json_t *root = json_load_file(path, 0, NULL), *one;
	struct rows rows = {calloc(json_array_size(root) + 1, sizeof(struct row)), 0};
	size_t i;

	cr_assert(json_array_size(root) > 0, "cProfile counted nothing: %s", path);
	json_array_foreach(root, i, one) rows_add(
	    &rows, python, json_string_value(json_array_get(one, 0)), (long)json_integer_value(json_array_get(one, 1)),
	    json_string_value(json_array_get(one, 2)), (long)json_integer_value(json_array_get(one, 3)),
	    (long)json_integer_value(json_array_get(one, 4)));
	rows_finish(&rows);
	return rows;
}

static struct rows rows_of_report(const struct python *python, const json_t *report)
{
	size_t count = report_functions(report);
	struct rows rows = {calloc(count + 1, sizeof(struct row)), 0};

	for (size_t i = 0; i < count; i++) {
		struct function function = report_function(report, i);

		if (function.total > 0)
			rows_add(&rows, python, function.file, function.line, function.name, function.total,
				 function.primitive);
	}
	rows_finish(&rows);
	return rows;
}

static bool same(const struct row *a, const struct row *b, bool primitive)
{
	return a->total == b->total && (!primitive || a->primitive == b->primitive);
}

/*
 * The bare name of a C function: "pop" of "<method 'pop' of 'list' objects>", "<built-in method pop>" and
 * "<function Own.pop>".
 */
static char *bare_name(const char *label)
{
	const char *begin = strstr(label, "method ");
	char *copy, *dot;

	begin = begin ? begin + 7 : strstr(label, "function ") ? strstr(label, "function ") + 9 : label;
	begin += strspn(begin, "'\"");
	copy = text("%.*s", (int)strcspn(begin, " '\">"), begin);
	dot = strrchr(copy, '.');
	return dot ? dot + 1 : copy;
}

static void leftover_add(struct rows *leftover, const struct row *row)
{
	struct row *to = &leftover->row[leftover->count++];

	*to = *row;
	to->key = strcmp(row->file, "~") == 0 ? text("~:0:any %s", bare_name(row->name)) : row->key;
}

/* The rows of both that differ, into leftovers of each. */
static void compare(const struct rows sides[2], struct rows leftover[2], bool primitive)
{
	size_t i = 0, j = 0;

	for (int side = 0; side < 2; side++)
		leftover[side] = (struct rows){calloc(sides[side].count + 1, sizeof(struct row)), 0};
	while (i < sides[0].count || j < sides[1].count) {
		int order = i == sides[0].count	  ? 1
			    : j == sides[1].count ? -1
						  : strcmp(sides[0].row[i].key, sides[1].row[j].key);

		if (order != 0 || !same(&sides[0].row[i], &sides[1].row[j], primitive)) {
			if (order <= 0)
				leftover_add(&leftover[0], &sides[0].row[i]);
			if (order >= 0)
				leftover_add(&leftover[1], &sides[1].row[j]);
		}
		i += order <= 0;
		j += order >= 0;
	}
	rows_finish(&leftover[0]);
	rows_finish(&leftover[1]);
}

/*
 * How many functions differ; a line each in said, as far as there is room.
 *
 * cProfile names a bound C method by what its type has under that name when it is first called: an overriding Python
 * function ("<function Random.seed>"), a metaclass's method, or an address. What differs for this reason only is the
 * same again when C functions are added up by their bare names. One that is counted wrongly is not.
 */
static size_t differences(const struct rows sides[2], bool primitive, char *said, size_t room)
{
	struct rows by_label[2], by_name[2];
	size_t used = 0;

	*said = '\0';
	compare(sides, by_label, primitive);
	compare(by_label, by_name, primitive);
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < by_name[side].count && used + 300 < room; i++)
			used += (size_t)snprintf(said + used, 300, "\n    %s %ld/%ld: %s", side ? "cProfile" : "evprof",
						 by_name[side].row[i].total, by_name[side].row[i].primitive,
						 by_name[side].row[i].key);
	return by_name[0].count > by_name[1].count ? by_name[0].count : by_name[1].count;
}

/* Without the functions of C. */
static struct rows only_python(struct rows rows)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows.count; i++)
		if (strcmp(rows.row[i].file, "~") != 0)
			rows.row[kept++] = rows.row[i];
	rows.count = kept;
	return rows;
}

/* The variable is for both, or NULL. */
static void expect_same_counts_of(const struct python *python, const char *name, const char *variable,
				  const char *events)
{
	bool with_c = strstr(events, "c_call");
	char *program = text("../counted/%s.py", name), *path, *said = malloc(4000);
	struct outcome *judge, *outcome;
	json_t *info, *report;
	struct rows sides[2];
	long calls = 0;
	size_t differ;

	program = text("%s", program_path(program));
	judge = run(.python = python, .how = JOB_BARE, .args = {"@../count.py", "cprofile", program, "profile.json"},
		    .env = {variable});
	expect(judge, judge->status == 0, "%s runs under cProfile", name);
	path = text("%s/profile.json", judge->directory);
	outcome = run(.python = python, .args = {"@../count.py", "evprof", program}, .env = {events, variable});
	expect(outcome, outcome->status == 0, "%s runs under evprof", name);
	info = expect_trace(outcome, 1);
	report = trace_report(outcome->trace, "begin,end");
	sides[0] = rows_of_report(python, report);
	sides[1] = rows_of_cprofile(python, path);
	for (int side = 0; side < 2 && !with_c; side++)
		sides[side] = only_python(sides[side]);
	/* In threads, calls of one function in two threads at once are recursion to cProfile from 3.12 on. */
	differ = differences(sides, strcmp(name, "thread_work") != 0, said, 4000);
	for (size_t i = 0; i < sides[1].count; i++)
		calls += sides[1].row[i].total;
	expect(outcome, calls > (with_c ? 500 : 50), "%s is a program with calls: %ld", name, calls);
	expect(outcome, differ == 0, "%s: %zu of %zu functions differ:%s", name, differ, sides[1].count, said);
	expect_balanced(outcome, trace_report(outcome->trace, NULL));
	json_decref(report);
	json_decref(info);
}

static void expect_same_counts(const struct python *python, const char *name, const char *variable)
{
	expect_same_counts_of(python, name, variable, "EVPROF_EVENTS=call,c_call,exception");
}

#define COUNTED(Name)                                                                                                  \
	SCENARIO(counts, Name, SUPPORTED)                                                                              \
	{                                                                                                              \
		expect_same_counts(python, #Name, NULL);                                                               \
	}                                                                                                              \
	SCENARIO_RANGE(counts, Name##_calls_only, 9, 11)                                                               \
	{                                                                                                              \
		expect_same_counts_of(python, #Name, NULL, "EVPROF_EVENTS=call");                                      \
	}

COUNTED(parsing)
COUNTED(markup)
COUNTED(expressions)
COUNTED(json_text)
COUNTED(async_tasks)
COUNTED(generator_chains)
COUNTED(recursion)
COUNTED(failing)
COUNTED(thread_work)
COUNTED(class_tools)
COUNTED(number_types)
COUNTED(text_tools)
COUNTED(mail)
COUNTED(options)
COUNTED(copies)
COUNTED(containers)
COUNTED(callbacks)
COUNTED(attributes)
COUNTED(syntaxes)
COUNTED(archives)
COUNTED(testing)
COUNTED(typings)
COUNTED(imports)
COUNTED(connections)
COUNTED(raising)

SCENARIO(counts, databases, SUPPORTED)
{
	python_needs(python, "sqlite3");
	expect_same_counts(python, "databases", NULL);
}

SCENARIO(counts, symbolic, SUPPORTED)
{
	expect_same_counts(python, "symbolic", package_variable(python, "sympy"));
}

SCENARIO(counts, graphs, SUPPORTED)
{
	expect_same_counts(python, "graphs", package_variable(python, "networkx"));
}

/* ---- the whole program ------------------------------------------------------------------------------------------- */

/*
 * around/sitecustomize.py makes both import the same. Calls are compared, primitive ones are not: what the program
 * calls by exec() is recursion below the exec() of cProfile. Programs with several functions of one name and line, as
 * dataclasses have, are not for this: the file of cProfile has only one of them.
 */
static void expect_counts_of_cprofile(const struct python *python, const char *name)
{
	const char *program = text("%s", program_path(text("../counted/%s.py", name)));
	const char *around = text("PYTHONPATH=%s", program_path("around"));
	bool threads = strcmp(name, "thread_work") == 0;
	struct outcome *judge, *outcome, *reported;
	char *said = malloc(4000), *path, *pid;
	json_t *info, *report;
	const json_t *first;
	struct rows sides[2];
	size_t differ;

	judge = run(.python = python, .how = JOB_BARE, .env = {around},
		    .args = {"-m", "cProfile", "-o", "their.pstats", "@only_main.py", program});
	expect(judge, judge->status == 0, "%s runs under cProfile", name);
	path = text("%s/counts.json", judge->directory);
	judge = run(.python = python, .how = JOB_BARE, .directory = judge->directory,
		    .args = {"@only_counts.py", "their.pstats", path});
	expect(judge, judge->status == 0, "its counts are read");
	outcome = run(.python = python, .how = JOB_RUN, .env = {around},
		      .options = {"--program-only", "--events", "call,c_call"}, .args = {"@only_main.py", program});
	expect(outcome, outcome->status == 0, "%s runs under evprof", name);
	info = expect_trace(outcome, 1);
	/* Until 3.11 cProfile counts the thread that it is in: the first one, whose id is that of the process. */
	first = json_array_get(json_object_get(info, "processes"), 0);
	pid = text("%lld", (long long)json_integer_value(json_object_get(first, "pid")));
	reported = threads && python->minor < 12 ? tool("report", "--json", "--thread", pid, outcome->trace)
						 : tool("report", "--json", outcome->trace);
	report = json_loads(reported->out, 0, NULL);
	expect(reported, report, "a report");
	sides[0] = rows_of_report(python, report);
	sides[1] = rows_of_cprofile(python, path);
	differ = differences(sides, false, said, 4000);
	expect(outcome, sides[1].count > 40, "%s is a program with functions: %zu", name, sides[1].count);
	expect(outcome, differ == 0, "%s: %zu of %zu functions differ:%s", name, differ, sides[1].count, said);
	expect_balanced(outcome, report);
	json_decref(report);
	json_decref(info);
}

#define WHOLE(Name)                                                                                                    \
	SCENARIO(program_only, Name, 6)                                                                                \
	{                                                                                                              \
		expect_counts_of_cprofile(python, #Name);                                                              \
	}

WHOLE(generator_chains)
WHOLE(failing)
WHOLE(recursion)
WHOLE(thread_work)
