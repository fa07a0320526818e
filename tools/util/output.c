/*
 * output.c - buffered writing, escaping, and files that appear only when they are complete. See output.h.
 */
#include "util/output.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "evprof/shown_text.h"
#include "evprof/system_calls.h"
#include "util/digits.h"

/* The temporary name of the file being written, for the signal handler. Set while the handler is installed. */
static const char *volatile temporary_to_remove;

static void remove_temporary(int number)
{
	if (temporary_to_remove)
		unlink(temporary_to_remove);
	signal(number, SIG_DFL);
	raise(number);
}

static void catch_signals(void (*handler)(int))
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction old;

		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			signal(numbers[i], handler);
	}
}

static mode_t mode_of_new_file(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

/* The path to replace. Of a link, that is its target; the link stays. */
static char *path_to_replace(const char *path)
{
	struct stat status;
	char *real = lstat(path, &status) == 0 && S_ISLNK(status.st_mode) ? realpath(path, NULL) : NULL;

	return real ? real : strdup(path);
}

/* Whether another user has put this into a world-writable folder, such as /tmp, where anybody may write. */
static bool is_strangers(const char *path, const struct stat *status)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	struct stat above;
	bool strange = folder && stat(folder, &above) == 0 && (above.st_mode & S_ISVTX) && (above.st_mode & S_IWOTH) &&
		       status->st_uid != geteuid() && status->st_uid != above.st_uid;

	free(folder);
	return strange;
}

/* The kernel does not follow such links with fs.protected_symlinks, but that may be off, and realpath() ignores it. */
static bool is_strangers_link(const char *path)
{
	struct stat link;

	return lstat(path, &link) == 0 && S_ISLNK(link.st_mode) && is_strangers(path, &link);
}

/* Takes ownership of path. */
static int open_temporary(struct output *output, char *path)
{
	int error;

	output->path = path;
	if (!output->path || asprintf(&output->temporary, "%s.XXXXXX", output->path) < 0) {
		output->temporary = NULL;
		return -ENOMEM;
	}
	output->fd = mkostemp(output->temporary, O_CLOEXEC);
	if (output->fd < 0)
		return -errno;
	if (fchmod(output->fd, mode_of_new_file()) < 0) {
		error = -errno;
		unlink(output->temporary);
		close(output->fd);
		return error;
	}
	temporary_to_remove = output->temporary;
	catch_signals(remove_temporary);
	return 0;
}

static void release_buffer(struct output *output)
{
	free(output->buffer);
	free(output->path);
	free(output->temporary);
	memset(output, 0, sizeof(*output));
	output->fd = -1;
}

/*
 * Opens a device or pipe, which is written directly: a new file cannot replace it. What is looked at is what is opened.
 * A stranger's pipe would wait for ever, or get what is written. Returns the descriptor, -ENOENT where there is no such
 * thing, or another -errno.
 */
static int open_special(const char *path)
{
	int place = open(path, O_PATH | O_CLOEXEC), fd = -ENOENT;
	char name[32], *real;
	struct stat status;

	if (place < 0 || fstat(place, &status) < 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) {
		if (place >= 0)
			close(place);
		return -ENOENT;
	}
	real = realpath(path, NULL); /* NULL: of a descriptor, in /dev/fd */
	if (is_strangers(real ? real : path, &status)) {
		fd = -EACCES;
	} else {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", place);
		fd = open(name, O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			fd = errno == ENOENT ? -ENXIO : -errno;
	}
	free(real);
	close(place);
	return fd;
}

bool output_is_at(int fd, const char *path)
{
	struct stat own, there;

	return fd >= 0 && fstat(fd, &own) == 0 && stat(path, &there) == 0 && own.st_dev == there.st_dev &&
	       own.st_ino == there.st_ino;
}

/*
 * Whether the path is stdout by name, as /dev/stdout is. If stdout is redirected to a file, that file must keep its
 * contents.
 */
static int is_stdout(const char *path)
{
	return !path || strcmp(path, "-") == 0 || output_is_at(STDOUT_FILENO, path);
}

int output_open(struct output *output, const char *path)
{
	int error = output_open_nowhere(output);

	if (error)
		return error;
	if (path && is_strangers_link(path)) {
		error = -EACCES;
	} else if (is_stdout(path)) {
		output->fd = dup(STDOUT_FILENO);
		error = output->fd < 0 ? -errno : 0;
	} else {
		output->fd = open_special(path);
		error = output->fd == -ENOENT ? open_temporary(output, path_to_replace(path))
			: output->fd < 0      ? output->fd
					      : 0;
	}
	if (error)
		release_buffer(output);
	return error;
}

int output_open_trace(struct output *output, const char *path)
{
	struct stat status;
	int error = stat(path, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))
			? -ESPIPE
			: output_open(output, path);

	if (!error && lseek(output->fd, 0, SEEK_CUR) < 0) {
		error = -ESPIPE;
		output_abandon(output);
	}
	return error;
}

void output_complain(const char *verb, const char *path, int error)
{
	output_message("evprof %s: cannot write %s: %s", verb, path,
		       error == -ESPIPE ? "a trace needs a regular file" : strerror(-error));
}

int output_open_beside(struct output *output, const char *path)
{
	int error = output_open_nowhere(output);

	if (!error)
		error = open_temporary(output, strdup(path));
	if (error)
		release_buffer(output);
	return error;
}

int output_scratch(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL, *folder = getenv("TMPDIR");
	char *name;
	int fd, length;

	if (path)
		length = asprintf(&name, "%.*s.evprof-XXXXXX", slash ? (int)(slash + 1 - path) : 0, path);
	else
		length = asprintf(&name, "%s/evprof-XXXXXX", folder && folder[0] ? folder : "/tmp");
	if (length < 0)
		return -ENOMEM;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	else
		unlink(name);
	free(name);
	return fd;
}

void output_let_read_like(struct output *output, const char *path)
{
	static const char name[] = "system.posix_acl_access";
	char list[4096];
	ssize_t bytes = getxattr(path, name, list, sizeof(list));

	if (bytes > 0 && fsetxattr(output->fd, name, list, (size_t)bytes, 0) < 0)
		output_message("evprof export: %s is not readable for whom %s is: %s", output->path, path,
			       strerror(errno));
}

int output_open_nowhere(struct output *output)
{
	memset(output, 0, sizeof(*output));
	output->fd = -1;
	output->buffer = malloc(OUTPUT_BUFFER_BYTES);
	return output->buffer ? 0 : -ENOMEM;
}

int output_open_memory(struct output *output)
{
	int error = output_open_nowhere(output);

	output->allocated = error ? 0 : OUTPUT_BUFFER_BYTES;
	return error;
}

char *output_close_memory(struct output *output, size_t *length)
{
	char *contents = output->error ? NULL : malloc(output->used + 1);

	*length = output->used;
	if (contents)
		memcpy(contents, output->buffer, output->used);
	output_abandon(output);
	return contents;
}

/* Makes room for more bytes. If memory runs out, drops the contents. */
static void grow_buffer(struct output *output, size_t bytes)
{
	size_t wanted = 2 * output->used + bytes;
	char *grown;

	if (output->used + bytes <= output->allocated)
		return;
	grown = realloc(output->buffer, wanted);
	if (grown) {
		output->buffer = grown;
		output->allocated = wanted;
		return;
	}
	output->error = -ENOMEM;
	output->used = 0;
}

/*
 * Ends the program by SIGPIPE without a message, as other tools do, when the reader has closed the pipe. Works also if
 * SIGPIPE was inherited as ignored, or is blocked, as in threads.
 */
static void end_by_pipe(void)
{
	sigset_t pipe;

	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_UNBLOCK, &pipe, NULL);
	raise(SIGPIPE);
}

static void write_all(struct output *output, const char *bytes, size_t length)
{
	if (length && output->show && !output->error && output->show(output, bytes, length))
		return;
	if (output->fd < 0 || output->error)
		return;
	output->error = system_write_all(output->fd, bytes, length);
	if (output->error == -EPIPE)
		end_by_pipe();
}

void output_flush(struct output *output)
{
	if (output->allocated) {
		grow_buffer(output, OUTPUT_BUFFER_BYTES);
		return;
	}
	write_all(output, output->buffer, output->used);
	output->used = 0;
}

void output_put_large(struct output *output, const void *bytes, size_t length)
{
	if (output->allocated) {
		grow_buffer(output, length);
		if (!output->error) {
			memcpy(output->buffer + output->used, bytes, length);
			output->used += length;
		}
		return;
	}
	output_flush(output);
	if (length > OUTPUT_BUFFER_BYTES) {
		write_all(output, bytes, length);
		return;
	}
	memcpy(output->buffer, bytes, length);
	output->used = length;
}

int output_close(struct output *output)
{
	int error;

	output_flush(output);
	if (output->fd >= 0 && close(output->fd) < 0 && !output->error)
		output->error = -errno;
	if (output->temporary && !output->error && rename(output->temporary, output->path) < 0)
		output->error = -errno;
	if (output->temporary && output->error)
		unlink(output->temporary);
	if (output->temporary) {
		catch_signals(SIG_DFL);
		temporary_to_remove = NULL;
	}
	error = output->error;
	release_buffer(output);
	return error;
}

void output_abandon(struct output *output)
{
	if (output->temporary)
		output->error = -ECANCELED; /* makes output_close() remove the file */
	output_close(output);
}

void output_u64(struct output *output, uint64_t value)
{
	char *at = output_room(output, DIGITS_MAX);

	output_take(output, (size_t)(digits_put(at, value) - at));
}

void output_i64(struct output *output, int64_t value)
{
	if (value < 0)
		output_char(output, '-');
	output_u64(output, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void output_hex(struct output *output, uint64_t value)
{
	char digits[18];
	char *end = digits + sizeof(digits);
	char *at = end;

	do {
		*--at = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	*--at = 'x';
	*--at = '0';
	output_put(output, at, (size_t)(end - at));
}

void output_micros(struct output *output, int64_t ns)
{
	uint64_t value = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	unsigned rest = (unsigned)(value % 1000);
	char fraction[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10), (char)('0' + rest % 10)};

	if (ns < 0)
		output_char(output, '-');
	output_u64(output, value / 1000);
	output_put(output, fraction, sizeof(fraction));
}

void output_format(struct output *output, const char *format, ...)
{
	char line[512];
	char *longer = NULL;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (length >= 0 && (size_t)length < sizeof(line)) {
		output_put(output, line, (size_t)length);
		return;
	}
	va_start(arguments, format);
	length = vasprintf(&longer, format, arguments);
	va_end(arguments);
	if (length >= 0)
		output_put(output, longer, (size_t)length);
	else
		output->error = output->error ? output->error : -ENOMEM;
	if (length >= 0)
		free(longer);
}

static int is_surrogate(uint32_t code)
{
	return code >= 0xd800 && code <= 0xdfff;
}

static void json_special(struct output *output, uint32_t code, struct text source)
{
	if (code == TEXT_INVALID || is_surrogate(code))
		output_string(output, "\xef\xbf\xbd");
	else if (code == '"' || code == '\\')
		output_put(output, (char[]){'\\', (char)code}, 2);
	else if (code == '\n')
		output_string(output, "\\n");
	else if (code == '\t')
		output_string(output, "\\t");
	else if (code < 0x20 || code == 0x7f)
		output_format(output, "\\u%04x", code);
	else
		output_put(output, source.at, source.length);
}

static void line_special(struct output *output, uint32_t code, struct text source)
{
	if (code == TEXT_INVALID)
		output_format(output, "\\x%02x", (unsigned char)source.at[0]);
	else if (code == '\\')
		output_string(output, "\\\\");
	else if (code == '\n')
		output_string(output, "\\n");
	else if (code == '\t')
		output_string(output, "\\t");
	else if (code == '\r')
		output_string(output, "\\r");
	else if (is_surrogate(code) || shown_needs_escape(code))
		output_format(output, "\\u%04x", code);
	else
		output_put(output, source.at, source.length);
}

static void put_escaped(struct output *output, struct text text,
			void (*special)(struct output *output, uint32_t code, struct text source))
{
	while (text.length) {
		size_t plain = text_plain(text);
		const char *start;
		uint32_t code;

		output_put(output, text.at, plain);
		text.at += plain;
		text.length -= plain;
		if (!text.length)
			break;
		start = text.at;
		code = text_next(&text);
		special(output, code, (struct text){start, (size_t)(text.at - start)});
	}
}

void output_base64(struct output *output, const void *bytes, size_t length)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *at = bytes;
	char quad[4];

	for (size_t i = 0; i < length; i += 3) {
		size_t left = length - i;
		uint32_t word = (uint32_t)at[i] << 16;

		word |= left > 1 ? (uint32_t)at[i + 1] << 8 : 0;
		word |= left > 2 ? (uint32_t)at[i + 2] : 0;
		quad[0] = digits[word >> 18];
		quad[1] = digits[word >> 12 & 63];
		quad[2] = left > 1 ? digits[word >> 6 & 63] : '=';
		quad[3] = left > 2 ? digits[word & 63] : '=';
		output_put(output, quad, 4);
	}
}

void output_json(struct output *output, struct text text)
{
	put_escaped(output, text, json_special);
}

void output_line(struct output *output, struct text text)
{
	put_escaped(output, text, line_special);
}

#define MESSAGE_BYTES 16384 /* a longer message is cut */

void output_message(const char *format, ...)
{
	char line[MESSAGE_BYTES]; /* not allocated, because memory may be exhausted */
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	shown_line(line, strlen(line));
	fprintf(stderr, "%s\n", line);
}

static bool is_plain_word(struct text text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%^";

	for (size_t i = 0; i < text.length; i++)
		if ((unsigned char)text.at[i] < 0x80 && (!text.at[i] || !strchr(plain, text.at[i])))
			return false;
	return text.length > 0;
}

void output_argument(struct output *output, struct text text)
{
	const char *quote;

	if (is_plain_word(text)) {
		output_line(output, text);
		return;
	}
	output_char(output, '\'');
	while (text.length && (quote = memchr(text.at, '\'', text.length))) {
		output_line(output, (struct text){text.at, (size_t)(quote - text.at)});
		output_string(output, "'\\''");
		text.length -= (size_t)(quote - text.at) + 1;
		text.at = quote + 1;
	}
	output_line(output, text);
	output_char(output, '\'');
}
