/*
 * log.h - the collector's messages.
 *
 * Each is one line on stderr. The function that decides about an error logs it, once; functions below it return -errno
 * and log nothing.
 */
#ifndef COLLECTOR_LOG_H
#define COLLECTOR_LOG_H

enum log_level { LOG_ERROR = 0, LOG_WARNING = 1, LOG_INFO = 2 };

extern enum log_level log_level;

/* Writes "evprof-collector: <text>\n" in one write, control characters of the text replaced. Keeps errno. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)

#endif
