/*
 * terminal.c - see terminal.h. Called by the verbs; the reading library has no terminal.
 */
#include "util/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include "evprof/control.h"

/* --- size and colours --- */

static unsigned size_of(unsigned short known, const char *variable)
{
	const char *value = getenv(variable);
	int given = value ? atoi(value) : 0;

	return known ? known : given > 0 ? (unsigned)given : 0;
}

/* A variable that is set to the empty string counts as not set: https://no-color.org */
static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && value[0];
}

struct terminal terminal_find(int fd)
{
	struct terminal terminal = {.is = isatty(fd)};
	struct winsize size = {0};
	const char *kind = getenv("TERM");

	if (terminal.is && ioctl(fd, TIOCGWINSZ, &size) < 0)
		size = (struct winsize){0};
	terminal.columns = size_of(size.ws_col, "COLUMNS");
	terminal.rows = size_of(size.ws_row, "LINES");
	terminal.columns = terminal.columns ? terminal.columns : 80;
	terminal.colour = terminal.is && !is_set("NO_COLOR") && kind && kind[0] && strcmp(kind, "dumb") != 0;
	return terminal;
}

void terminal_style(const struct terminal *terminal, struct output *output, enum terminal_style style)
{
	static const char *const codes[] = {[TERMINAL_PLAIN] = "\033[0m",
					    [TERMINAL_BOLD] = "\033[1m",
					    [TERMINAL_DIM] = "\033[2m",
					    [TERMINAL_HOT] = "\033[1;31m"};

	if (terminal->colour)
		output_string(output, codes[style]);
}

/* --- text --- */

static unsigned columns_of(uint32_t code)
{
	int columns = code < 0x80 || code == TEXT_INVALID ? 1 : wcwidth((wchar_t)code);

	return columns < 0 ? 1 : (unsigned)columns;
}

/* wcwidth() goes by the locale, and the names in a trace are UTF-8 in all of them. */
static locale_t use_utf8(locale_t *before)
{
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);

	*before = utf8 ? uselocale(utf8) : (locale_t)0;
	return utf8;
}

static void end_utf8(locale_t utf8, locale_t before)
{
	if (!utf8)
		return;
	uselocale(before);
	freelocale(utf8);
}

static unsigned width_of(struct text line)
{
	unsigned width = 0;

	while (line.length)
		width += columns_of(text_next(&line));
	return width;
}

unsigned terminal_width(struct text line)
{
	locale_t utf8, before;
	unsigned width;

	if (text_plain(line) == line.length)
		return (unsigned)line.length;
	utf8 = use_utf8(&before);
	width = width_of(line);
	end_utf8(utf8, before);
	return width;
}

struct text terminal_tail(struct text line, unsigned columns)
{
	locale_t utf8, before;
	unsigned width;

	if (text_plain(line) == line.length) {
		size_t cut = line.length > columns ? line.length - columns : 0;

		return (struct text){line.at + cut, line.length - cut};
	}
	utf8 = use_utf8(&before);
	for (width = width_of(line); width > columns;)
		width -= columns_of(text_next(&line));
	end_utf8(utf8, before);
	return line;
}

unsigned terminal_put_tail(struct output *output, struct text line, unsigned columns)
{
	unsigned width = terminal_width(line);
	bool cut = width > columns && columns > 3;
	struct text tail = terminal_tail(line, cut ? columns - 3 : columns);

	if (cut)
		output_string(output, "...");
	output_put(output, tail.at, tail.length);
	return cut ? 3 + terminal_width(tail) : terminal_width(tail);
}

void terminal_put_spaces(struct output *output, unsigned count)
{
	while (count--)
		output_char(output, ' ');
}

/* --- numbers --- */

struct unit {
	const char *name;
	double of_the_last;
};

/* `most`: from there on a number has the next unit. The names end with NULL. */
static const char *number_text(double value, const struct unit *units, double most, char out[TERMINAL_NUMBER_BYTES])
{
	const struct unit *unit = units;
	int digits;

	while (value >= most && unit[1].name)
		value /= (++unit)->of_the_last;
	digits = unit == units || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	snprintf(out, TERMINAL_NUMBER_BYTES, "%.*f %s", digits, value, unit->name);
	return out;
}

const char *terminal_time(double ns, char out[TERMINAL_NUMBER_BYTES])
{
	static const struct unit units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e3}, {"s", 1e3}, {NULL, 0}};

	return number_text(ns, units, 999.5, out);
}

const char *terminal_bytes(uint64_t bytes, char out[TERMINAL_NUMBER_BYTES])
{
	static const struct unit units[] = {{"B", 1},	   {"KiB", 1024}, {"MiB", 1024}, {"GiB", 1024},
					    {"TiB", 1024}, {"PiB", 1024}, {"EiB", 1024}, {NULL, 0}};

	return number_text((double)bytes, units, 1023.5, out);
}

/* --- the pager --- */

int terminal_open(const struct terminal *terminal, struct output *output)
{
	return terminal->is ? output_open_memory(output) : output_open(output, "-");
}

/* NULL: none is wanted. *by_default: it is less. */
static const char *pager_command(bool *by_default)
{
	const char *command = getenv(ENV_PAGER);

	command = command ? command : getenv("PAGER");
	*by_default = !command;
	return command && (!command[0] || strcmp(command, "cat") == 0) ? NULL : command ? command : "less -FRX";
}

static void become_pager(int from, const char *command, bool by_default)
{
	if (dup2(from, STDIN_FILENO) < 0)
		_exit(127);
	setenv("LESS", "FRX", 0);
	if (by_default)
		execlp("less", "less", "-FRX", (char *)NULL);
	else
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* Writes until the pager reads no more. */
static void feed_pager(int to, const char *bytes, size_t length)
{
	while (length) {
		ssize_t written = write(to, bytes, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			break;
		bytes += written;
		length -= (size_t)written;
	}
	close(to);
}

/* Waits for the pager, which has the terminal: Ctrl-C is meant for it. False: it could not be run. */
static bool show_in_pager(const struct output *output, const char *command, bool by_default)
{
	static const int ignored[] = {SIGPIPE, SIGINT, SIGQUIT};
	void (*before[3])(int);
	int ends[2], status = 0;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	child = fork();
	if (child == 0)
		become_pager(ends[0], command, by_default);
	for (size_t i = 0; i < 3; i++)
		before[i] = signal(ignored[i], SIG_IGN);
	close(ends[0]);
	if (child > 0)
		feed_pager(ends[1], output->buffer, output->used);
	else
		close(ends[1]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	for (size_t i = 0; i < 3; i++)
		signal(ignored[i], before[i]);
	return child > 0 && !(WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127));
}

static bool is_long(const struct terminal *terminal, const struct output *output)
{
	unsigned lines = 1; /* the prompt's */

	for (size_t i = 0; i < output->used; i++)
		lines += output->buffer[i] == '\n';
	return terminal->rows && lines > terminal->rows;
}

int terminal_close(const struct terminal *terminal, struct output *output)
{
	struct output out;
	bool by_default;
	const char *command = pager_command(&by_default);
	int error = output->error;

	if (!terminal->is)
		return output_close(output);
	if (!error && !(command && is_long(terminal, output) && show_in_pager(output, command, by_default))) {
		error = output_open(&out, "-");
		if (!error) {
			output_put_large(&out, output->buffer, output->used);
			error = output_close(&out);
		}
	}
	output_abandon(output);
	return error;
}
