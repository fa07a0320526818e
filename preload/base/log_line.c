/* log_line.c - prints lines on stderr, each in one write, so that lines of several processes do not mix. */
#include "base/log_line.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "evprof/shown_text.h"

#define LINE_BYTES 4096	  /* a pipe takes this much at once; a line that does not fit ends with dots */
#define FULL_WAIT_MS 1000 /* for a reader of a full pipe; then the line is left out */

enum log_level log_level = LOG_WARNING;
bool log_line_late;

static enum { STDERR_UNKNOWN, STDERR_CLOSED, STDERR_OPEN } stderr_at_start;
static dev_t stderr_device;
static ino_t stderr_inode;

static __attribute__((constructor)) void note_stderr(void)
{
	int saved_errno = errno;
	struct stat at_start;

	if (stderr_at_start != STDERR_UNKNOWN)
		return;
	if (fstat(STDERR_FILENO, &at_start) == 0) {
		stderr_device = at_start.st_dev;
		stderr_inode = at_start.st_ino;
		stderr_at_start = STDERR_OPEN;
	} else {
		stderr_at_start = STDERR_CLOSED;
	}
	errno = saved_errno;
}

/* Whether it looks like stderr: what a program has at that number for its own data it also reads, as a rule. */
static bool may_be_stderr(const struct stat *now)
{
	int domain = AF_UNIX; /* the journal's */
	socklen_t length = sizeof(domain);

	if (S_ISREG(now->st_mode))
		return (fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY;
	if (S_ISSOCK(now->st_mode))
		getsockopt(STDERR_FILENO, SOL_SOCKET, SO_DOMAIN, &domain, &length);
	return domain == AF_UNIX;
}

/*
 * Whether descriptor 2 is for messages. Where stderr was closed, the program's next file gets its number: a line would
 * be written into that. A daemon that moves stderr to its log appends, and to /dev/null or a pipe for a reader.
 */
static bool is_stderr(void)
{
	struct stat now;

	note_stderr(); /* a constructor of another library may come here first */
	if (stderr_at_start == STDERR_CLOSED || fstat(STDERR_FILENO, &now) < 0)
		return false;
	if (now.st_dev == stderr_device && now.st_ino == stderr_inode)
		return !log_line_late || may_be_stderr(&now);
	if (S_ISREG(now.st_mode))
		return fcntl(STDERR_FILENO, F_GETFL) & O_APPEND;
	return S_ISCHR(now.st_mode) || S_ISFIFO(now.st_mode);
}

/*
 * A write must not end a program that writes nothing to stderr itself if a pipe has no reader or a file has the largest
 * size allowed, nor block it if the pipe is full, nor stop a background job if the terminal stops those that write
 * (stty tostop): the terminal takes the line of a thread that blocks SIGTTOU. A SIGPIPE or SIGXFSZ that was pending
 * before is the program's.
 */
static void write_line(const char *line, size_t bytes)
{
	const struct timespec at_once = {0};
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
	sigset_t ours, blocked, before, pending;
	int number = 0;

	if (!is_stderr() || poll(&out, 1, FULL_WAIT_MS) != 1)
		return;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGPIPE);
	sigaddset(&blocked, SIGXFSZ);
	sigaddset(&blocked, SIGTTOU);
	if (sigpending(&pending) || pthread_sigmask(SIG_BLOCK, &blocked, &before))
		return;
	if (write(STDERR_FILENO, line, bytes) < 0)
		number = errno == EPIPE ? SIGPIPE : errno == EFBIG ? SIGXFSZ : 0;
	if (number && !sigismember(&pending, number)) {
		sigemptyset(&ours);
		sigaddset(&ours, number);
		sigtimedwait(&ours, NULL, &at_once);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void log_line(enum log_level level, const char *format, ...)
{
	int saved_errno = errno, cancel_state;
	char line[LINE_BYTES];
	va_list args;

	if (level > log_level)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	va_start(args, format);
	write_line(line, shown_message(line, sizeof(line), "evprof: ", format, args));
	va_end(args);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
}
