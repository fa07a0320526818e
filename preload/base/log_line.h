/* log_line.h - the library's only output for people: lines on stderr. */
#ifndef PRELOAD_LOG_LINE_H
#define PRELOAD_LOG_LINE_H

#include <stdbool.h>

enum log_level { LOG_ERROR = 0, LOG_WARNING = 1, LOG_INFO = 2, LOG_DEBUG = 3 };

extern enum log_level log_level;

extern bool log_line_late; /* the library was loaded into a running program, which may have closed stderr before */

/*
 * Writes "evprof: ...\n" if level is enabled, and if descriptor 2 is a place for messages: not where stderr was closed
 * at the start, or is a file of the program's now. Never allocates, never changes errno, and is no cancellation point.
 * Not from hooks.
 */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
