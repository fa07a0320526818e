/*
 * evprof.h - the optional interface for profiled programs.
 *
 * The functions are in libevprof.so, which is present only when it was preloaded. Look them up at run time:
 *
 *     void (*mark)(const char *) = dlsym(RTLD_DEFAULT, "evprof_mark");
 *     if (mark) mark("request begins");
 *
 * Python has them as evprof.mark(), evprof.span() and so on. Any thread may call them, with or without the GIL, but not
 * from a signal handler. They do nothing in a process that is not profiled, and never change errno. Strings are UTF-8,
 * and copied.
 */
#ifndef EVPROF_EVPROF_H
#define EVPROF_EVPROF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the value of an argument is. */
enum evprof_type {
	EVPROF_TEXT = 1,
	EVPROF_INT = 2,
	EVPROF_DOUBLE = 3,
	EVPROF_BOOL = 4, /* integer: 0 or not 0 */
};

/*
 * An argument of a span or a mark: a key and a value. The first 16 arguments count, and the first 1056 bytes of a text.
 * An argument of another type, or without a key or text, is left out.
 */
struct evprof_argument {
	const char *key;
	uint64_t type; /* enum evprof_type */
	union {
		const char *text;
		int64_t integer;
		double number;
	} value;
};

/*
 * Records a named mark in the calling thread, now. A process has 65536 different names of marks, spans, counters and
 * keys; further ones are recorded as "(too many names)". A name has 1024 bytes at most.
 */
void evprof_mark(const char *name);
void evprof_mark_with(const char *name, const struct evprof_argument *arguments, size_t count);

/*
 * Begins a span: a stretch of time with a name. It belongs to the calling thread, and to the greenlet and the task that
 * run in it. Returns its number, which evprof_span_end() takes, in this thread or another one; 0: it is not recorded.
 * Spans may overlap in any way: an end ends the span with its number and no other one.
 */
uint64_t evprof_span_begin(const char *name, const struct evprof_argument *arguments, size_t count);

/* Ends a span. 0 does nothing. */
void evprof_span_end(uint64_t span);

/* Records the value that a named counter has from now on. */
void evprof_counter(const char *name, double value);

/*
 * Stop and start the recording of events in all threads of the process. While it is stopped no hook is set: the program
 * runs as without evprof. The call stack is correct again at the first event afterwards. Redundant calls are allowed. A
 * span that ends while recording is stopped has no end, and a block that is freed then stays alive in the trace.
 *
 * evprof_start() sets the hooks at once where the caller has the GIL, else Python's main thread does at its next
 * instruction.
 *
 * In a process that has loaded the library after Python started, the first evprof_start() begins the recording. It
 * needs the GIL then.
 */
void evprof_stop(void);
void evprof_start(void);

/* 1 while this process is recorded, 0 if not (no Python, switched off, stopped, or the collector is gone). */
int evprof_active(void);

/*
 * Waits until everything that was recorded before the call is in the trace file, for some seconds at most. 1: it is; 0:
 * it is not, or nothing is recorded.
 */
int evprof_flush(void);

/*
 * Ends the recording of this process for good, without the line on stderr, and waits until all of it is in the trace
 * file, for some seconds at most. 1: it is; 0: it is not, or nothing is recorded.
 */
int evprof_finish(void);

/*
 * The path of the trace file, as the collector sees it. Returns its length, and writes `bytes` bytes at most, with NUL;
 * 0: not known. A path of 768 bytes or more is cut.
 */
size_t evprof_trace_path(char *path, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
