/* log_line.h - the library's only output for people: lines on stderr. */
#ifndef PRELOAD_LOG_LINE_H
#define PRELOAD_LOG_LINE_H

enum log_level { LOG_ERROR = 0, LOG_WARNING = 1, LOG_INFO = 2, LOG_DEBUG = 3 };

extern enum log_level log_level;

/*
 * Writes "evprof: ...\n" if level is enabled. Never allocates, never changes errno, and is no cancellation point. Not
 * from hooks.
 */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
