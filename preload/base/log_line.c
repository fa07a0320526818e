/* log_line.c - prints lines on stderr, each in one write, so that lines of several processes do not mix. */
#include "base/log_line.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "evprof/shown_text.h"

#define LINE_BYTES 4096	  /* a pipe takes this much at once; a line that does not fit ends with dots */
#define FULL_WAIT_MS 1000 /* for a reader of a full pipe; then the line is left out */

enum log_level log_level = LOG_WARNING;

/*
 * A write must not end a program that writes nothing to stderr itself if a pipe has no reader, nor block it if the pipe
 * is full. A SIGPIPE that was pending before is the program's.
 */
static void write_line(const char *line, size_t bytes)
{
	const struct timespec at_once = {0};
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
	sigset_t broken, before, pending;

	if (poll(&out, 1, FULL_WAIT_MS) != 1)
		return;
	sigemptyset(&broken);
	sigaddset(&broken, SIGPIPE);
	if (sigpending(&pending) || pthread_sigmask(SIG_BLOCK, &broken, &before))
		return;
	if (write(STDERR_FILENO, line, bytes) < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
		sigtimedwait(&broken, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/*
 * Paths and values come from others, and must not control the user's terminal. In UTF-8 some control characters have
 * two bytes.
 */
static void make_visible(char *line, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		unsigned char byte = (unsigned char)line[i], next = (unsigned char)line[i + 1];

		if (byte < ' ' || byte == 0x7f)
			line[i] = '?';
		if (byte == 0xc2 && next >= 0x80 && next < 0xa0)
			line[i] = line[i + 1] = '?';
	}
}

void log_line(enum log_level level, const char *format, ...)
{
	static const char prefix[] = "evprof: ", cut[] = "...\n";
	int saved_errno = errno;
	char line[LINE_BYTES];
	size_t used = sizeof(prefix) - 1, room = sizeof(line) - used;
	va_list args;
	int n;

	if (level > log_level)
		return;
	memcpy(line, prefix, used);
	va_start(args, format);
	n = vsnprintf(line + used, room, format, args);
	va_end(args);
	if (n >= 0) /* paths and names may come from anybody */
		shown_line(line + used, (size_t)n < room ? (size_t)n : room - 1);
	if (n >= 0 && (size_t)n < room) {
		used += (size_t)n;
		line[used++] = '\n';
	} else {
		used = sizeof(line);
		memcpy(line + used - sizeof(cut) + 1, cut, sizeof(cut) - 1);
	}
	make_visible(line, used - 1);
	write_line(line, used);
	errno = saved_errno;
}
