/*
 * harness.h - runs programs with and without evprof, and reads what came out, for the end-to-end tests.
 *
 * Owns the registration of scenarios (one criterion test for each scenario and interpreter), the working directories,
 * the life of everything that is started, and the reading of traces through build/evprof. Used by the test files of
 * this folder only. All functions fail the running test with one clear message where they cannot do what they promise,
 * so none returns an error.
 *
 *   EVPROF_BUILD            the folder of libevprof.so, evprof and evprof-collector; build/ of the repository otherwise
 *   EVPROF_TEST_PYTHONS     versions to keep to, "3.8 3.13"
 *   EVPROF_TEST_ALL=1       the repetitions that take long, too
 *   EVPROF_TEST_KEEP=1      working directories stay for a look
 */
#ifndef EVPROF_E2E_HARNESS_H
#define EVPROF_E2E_HARNESS_H

#include <criterion/criterion.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define JOB_ARGUMENTS 24
#define JOB_VARIABLES 12

/* One interpreter that tests/interpreters/find.sh found. */
struct python {
	char name[32];	  /* "3.8-shared", "3.13t-static" */
	char version[16]; /* "3.8.18" */
	int major, minor;
	char features[128]; /* ",shared,ctypes," */
	char *command[4];   /* what starts it, NULL at the end */
	bool chrooted;
};

/* A scenario: runs once for each interpreter from its lowest minor version on, or once (python NULL). */
struct scenario {
	const char *suite;
	const char *name;
	int lowest;  /* SCENARIO_ONCE: needs no interpreter; SCENARIO_ANY: 2.7 too */
	int highest; /* 0: no bound */
	bool some;   /* the interpreter matters little: make test takes three of them, make check-all all */
	void (*body)(const struct python *python);
	const char *events; /* EVPROF_EVENTS=..., where the body says nothing else; NULL: the default */
	struct scenario *next;
};

#define SCENARIO_ONCE (-1)
#define SCENARIO_ANY 0
#define SUPPORTED 8 /* the lowest 3.x that must be recorded */

void scenario_add(struct scenario *scenario);

#define SCENARIO_ANY_OF(Suite, Name, Lowest, Highest, Some)                                                            \
	static void Suite##_##Name(const struct python *python);                                                       \
	__attribute__((constructor)) static void Suite##_##Name##_add(void)                                            \
	{                                                                                                              \
		static struct scenario scenario = {.suite = #Suite,                                                    \
						   .name = #Name,                                                      \
						   .lowest = Lowest,                                                   \
						   .highest = Highest,                                                 \
						   .some = Some,                                                       \
						   .body = Suite##_##Name};                                            \
		scenario_add(&scenario);                                                                               \
	}                                                                                                              \
	static void Suite##_##Name(const struct python *python)

#define SCENARIO_RANGE(Suite, Name, Lowest, Highest) SCENARIO_ANY_OF(Suite, Name, Lowest, Highest, false)
#define SCENARIO(Suite, Name, Lowest) SCENARIO_ANY_OF(Suite, Name, Lowest, 0, false)
/* For what reads traces rather than makes them, and what the collector or the tool does, whoever writes. */
#define SCENARIO_SOME(Suite, Name, Lowest) SCENARIO_ANY_OF(Suite, Name, Lowest, 0, true)

/*
 * Repeats a scenario, which stands above, where only calls are recorded: from 3.9 to 3.11 that is the work of another
 * hook (preload/hooks/hooks_frame.c).
 */
#define ALSO_CALLS_ONLY(Suite, Name)                                                                                   \
	__attribute__((constructor)) static void Suite##_##Name##_calls_only_add(void)                                 \
	{                                                                                                              \
		static struct scenario scenario = {.suite = #Suite,                                                    \
						   .name = #Name "_calls_only",                                        \
						   .lowest = 9,                                                        \
						   .highest = 11,                                                      \
						   .body = Suite##_##Name,                                             \
						   .events = "EVPROF_EVENTS=call"};                                    \
		scenario_add(&scenario);                                                                               \
	}

/* Skips the running test unless the interpreter has a feature of find.sh's list. */
void python_needs(const struct python *python, const char *feature);
bool python_has(const struct python *python, const char *feature);
/* A build without the GIL: threads run at the same time, so what they do to each other is chance in a bare run, too. */
bool python_is_free_threaded(const struct python *python);
/* Any one interpreter of the supported ones, for scenarios that need just one; skips the test where none is. */
const struct python *python_any(void);

enum job_how {
	JOB_PRELOAD = 0, /* LD_PRELOAD in its environment */
	JOB_BARE,	 /* without evprof */
	JOB_RUN,	 /* evprof run -- ... */
};

/*
 * A program to run. Of a string in args and env, "@x" at the start is the path of programs/x; "%B" at the start is the
 * build folder; "@@" stands for an @, as of an abstract socket.
 */
struct job {
	const struct python *python; /* NULL: args[0] is the program */
	enum job_how how;
	const char *args[JOB_ARGUMENTS];
	const char *options[6];		/* of evprof run */
	const char *env[JOB_VARIABLES]; /* NAME=value; NAME alone takes it away */
	const char *input;		/* stdin; NULL: /dev/null */
	const char *directory;		/* an existing one to run in; NULL: a fresh one */
	const char *subdirectory;	/* made below that, may be any name; NULL: none */
	unsigned timeout_s;		/* 0: 60 */
	bool lingers;			/* processes may be alive after the first has ended: do not wait for them */
};

struct outcome {
	char directory[PATH_MAX];
	pid_t pid;
	int status;	 /* exit status, or -signal */
	char *out, *err; /* what it wrote, with a NUL */
	size_t out_bytes, err_bytes;
	char trace[PATH_MAX]; /* the first *.evp in the directory, "" where none is */
	unsigned traces;
	double seconds;	    /* until the end of the first process */
	double eof_seconds; /* until stdout and stderr saw their end */
};

struct outcome *job_run(const struct job *job);
#define run(...) job_run(&(const struct job){__VA_ARGS__})
/*
 * Runs Python code with the package `evprof`, whose arguments are first and second (NULL: none). Under the address
 * sanitizer (built_with_asan()) it fails: Python cannot load a library with the sanitizer in it.
 */
struct outcome *run_with_package(const struct python *python, const char *code, const char *first, const char *second);
/* The same program bare and under evprof: stdout, stderr (evprof's lines aside) and status must be the same. */
void expect_same(const struct outcome *bare, const struct outcome *profiled);
/* Looks for traces again, in another directory too (NULL: the same). */
void outcome_find_traces(struct outcome *outcome, const char *directory);
/* Waits until all that was started in this test is gone, daemons of job_background() aside. */
void outcome_settle(struct outcome *outcome);

/* A program that runs during the test, ended by background_stop() with SIGTERM, which gives its status. */
struct background {
	pid_t pid;
	char log[PATH_MAX]; /* stdout and stderr */
};
struct background *background_start(const struct job *job);
int background_stop(struct background *background);
/* The same without the signal: waits for its own end. */
int background_wait(struct background *background);
/* Waits until a collector listens at its socket, whose name is there before; fails the test if it does not. */
void background_listens(const struct background *collector, const char *socket);

/* Fails the running test: what was expected, then what the program wrote. */
#define expect(Outcome, Condition, ...)                                                                                \
	do {                                                                                                           \
		if (!(Condition))                                                                                      \
			expect_failed(Outcome, __FILE__, __LINE__, #Condition, __VA_ARGS__);                           \
	} while (0)
void expect_failed(const struct outcome *outcome, const char *file, int line, const char *condition, const char *format,
		   ...) __attribute__((format(printf, 5, 6)));

/* stderr without evprof's own lines; how many of those there were, without the summary of evprof run. Free the text. */
char *stderr_of_program(const struct outcome *outcome);
unsigned stderr_evprof_lines(const struct outcome *outcome);
/* The evprof line number n (from 0), without its end; "" where none is. Free the text. */
char *stderr_evprof_line(const struct outcome *outcome, unsigned n);
/* The closing line is there, is the only evprof line, and its numbers are those of the trace. */
void expect_closing_line(const struct outcome *outcome);

/* ---- traces -------------------------------------------------------------------------------------------------- */

/* Runs build/evprof with arguments (NULL at the end); the status may be anything. */
struct outcome *tool_run(const char *const *args);
#define tool(...) tool_run((const char *const[]){__VA_ARGS__, NULL})

json_t *trace_info(const char *trace);
/* The report of a trace; between NULL or "begin,end". */
json_t *trace_report(const char *trace, const char *between);
/* By wall, cpu or off-cpu. */
json_t *trace_report_by(const char *trace, const char *clock);
/* Where recording is not promised (below 3.8): true if no trace was made; then no line may be printed either. */
bool silent(const struct python *python, const struct outcome *outcome);
/* Info of a trace that must be one, complete and without loss, with that number of processes (0: any). */
json_t *expect_trace(const struct outcome *outcome, unsigned processes);

/* Events of a kind in all threads of all processes of an info. */
long info_events(const json_t *info, const char *kind);
long info_lost(const json_t *info, const char *kind);
/* Kind events of one process, by its pid; -1 where the process is not in it. */
long info_process_events(const json_t *info, long pid, const char *kind);
const json_t *info_process(const json_t *info, long pid);
const json_t *info_thread_named(const json_t *info, const char *name);
/* How many different process IDs, and how many threads, an info holds. */
size_t info_pids(const json_t *info);
size_t info_threads(const json_t *info);

/* One row of a report. */
struct function {
	const char *file; /* "~" for C functions */
	long line;
	const char *name;
	long total, primitive;
	double seconds; /* cumulative */
};
size_t report_functions(const json_t *report);
struct function report_function(const json_t *report, size_t i);
/* Total and primitive calls of a Python function, by the end of its file's name and its name. 0 where there is none. */
long report_calls(const json_t *report, const char *file, const char *function);
long report_primitive_calls(const json_t *report, const char *file, const char *function);
/* Likewise the cumulative seconds; -1 where there is none. */
double report_seconds(const json_t *report, const char *file, const char *function);
/* Each call has its end: what the replay of stacks could not match. */
void expect_balanced(const struct outcome *outcome, const json_t *report);

/* One line of dump, taken apart. */
struct event {
	long long time_ns;
	long pid, tid;
	char kind[16];
	const char *name;  /* of the function (qualified where known), type or mark; "" where none is */
	const char *place; /* file:line; "" where none is */
	unsigned long long address, old_address, size;
	char domain[8];
};
/* All events of a dump, in its order. */
struct event *trace_dump(const char *trace, size_t *count);

/* ---- small things ---------------------------------------------------------------------------------------------- */

/* The library under test is one of the address sanitizer's. */
bool built_with_asan(void);
const char *build_path(const char *name);	  /* path of a file in the build folder */
const char *program_path(const char *name);	  /* path of a file in programs/ */
char *file_read(const char *path, size_t *bytes); /* NULL where it is not there */
void file_write(const char *path, const void *data, size_t bytes);
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *path_in(const struct outcome *outcome, const char *name); /* path of a file in its directory */
/* The spans and marks of a trace as oracle_trace.py reads them, in a file of rows. */
char *oracle_spans(const char *trace);
bool test_all(void);
/* Whether this interpreter stands for a way to hook: frame objects, inner frames, or sys.monitoring. */
bool python_stands_for_hook(const struct python *python);
/* Whether to repeat what differs with the hook at length: with EVPROF_TEST_ALL, and one interpreter of each way. */
bool test_at_length(const struct python *python);
/* Makes a FIFO of this user and opens it for both directions, so that neither end waits for the other one. */
int fifo_make(const char *path);
void fifo_await(int fd); /* waits for a byte */
/* Puts this test into a network namespace of its own, where no other collectors are. Skips without the right to it. */
void network_apart(void);
char *python_home(const struct python *python); /* its sys.prefix */

#endif
