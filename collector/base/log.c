/*
 * log.c - the collector's messages on stderr. Called from everywhere in collector/.
 */
#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "evprof/shown_text.h"

static enum log_level log_limit = LOG_LEVEL_WARNING;

int log_level_parse(const char *name, enum log_level *level)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0) {
			*level = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

void log_set_level(enum log_level level)
{
	log_limit = level;
}

void log_line(enum log_level level, const char *format, ...)
{
	static const char prefix[] = "evprof-collector: ";
	char line[2 * PATH_MAX + 256]; /* enough for most messages with two paths; a longer one ends with dots */
	size_t length = sizeof(prefix) - 1;
	int saved = errno;
	int printed;
	va_list arguments;

	if (level > log_limit)
		return;
	memcpy(line, prefix, length);
	va_start(arguments, format);
	printed = vsnprintf(line + length, sizeof(line) - length - 1, format, arguments);
	va_end(arguments);
	if (printed >= 0 && (size_t)printed < sizeof(line) - length - 1) {
		length += (size_t)printed;
	} else {
		length = sizeof(line) - 1;
		memcpy(line + length - 3, "...", 3);
	}
	/* Paths and names come from other processes: they must not control the operator's terminal. */
	shown_line(line, length);
	line[length++] = '\n';
	if (write(STDERR_FILENO, line, length) < 0)
		errno = saved;
	errno = saved;
}
