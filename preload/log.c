/* log.c - lines for people on stderr, in one write each so that lines of many processes do not mix. */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum log_level log_level = LOG_WARNING;

void log_line(enum log_level level, const char *format, ...)
{
	int saved_errno = errno;
	char line[1536] = "evprof: ";
	size_t used = 8;
	va_list args;
	int n;

	if (level > log_level)
		return;
	va_start(args, format);
	n = vsnprintf(line + used, sizeof(line) - used - 1, format, args);
	va_end(args);
	if (n > 0)
		used += (size_t)n < sizeof(line) - used - 1 ? (size_t)n : sizeof(line) - used - 2;
	line[used++] = '\n';
	if (write(STDERR_FILENO, line, used) < 0) {
		/* Nowhere to complain to. */
	}
	errno = saved_errno;
}
