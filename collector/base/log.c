/*
 * log.c - the collector's messages on stderr. Called from everywhere in collector/.
 */
#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <unistd.h>

#include "evprof/shown_text.h"

enum log_level log_level = LOG_WARNING;

void log_line(enum log_level level, const char *format, ...)
{
	char line[2 * PATH_MAX + 256]; /* enough for most messages with two paths; a longer one ends with dots */
	int saved = errno;
	va_list arguments;

	if (level > log_level)
		return;
	va_start(arguments, format);
	if (write(STDERR_FILENO, line, shown_message(line, sizeof(line), "evprof-collector: ", format, arguments)) < 0)
		errno = saved;
	va_end(arguments);
	errno = saved;
}
