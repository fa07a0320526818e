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
#include "evprof/system_calls.h"
#include "util/progress.h"

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

/* A terminal that shows lines and nothing else, as that of an editor. */
static bool is_dumb(void)
{
	const char *kind = getenv("TERM");

	return !kind || !kind[0] || strcmp(kind, "dumb") == 0;
}

struct terminal terminal_find(int fd)
{
	struct terminal terminal = {.is = isatty(fd)};
	struct winsize size = {0};

	if (terminal.is && ioctl(fd, TIOCGWINSZ, &size) < 0)
		size = (struct winsize){0};
	terminal.columns = size_of(size.ws_col, "COLUMNS");
	terminal.rows = size_of(size.ws_row, "LINES");
	terminal.columns = terminal.columns ? terminal.columns : 80;
	terminal.colour = terminal.is && !is_set("NO_COLOR") && !is_dumb();
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

/* The pager that runs. A process has one terminal. */
static struct {
	pid_t child; /* 0: none */
	int to;	     /* its input */
	void (*handlers[3])(int);
} pager;

static const int ignored[] = {SIGPIPE, SIGINT, SIGQUIT};

/* NULL: none is wanted. *by_default: it is less. */
static const char *pager_command(bool *by_default)
{
	const char *command = getenv(ENV_PAGER);

	command = command ? command : getenv("PAGER");
	*by_default = !command;
	if (!command)
		return is_dumb() ? NULL : "less -FRX"; /* there less asks for a key first */
	return !command[0] || strcmp(command, "cat") == 0 ? NULL : command;
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

/* Whether the terminal cannot show it at once, with the prompt below. */
static bool is_long(const struct terminal *terminal, const char *bytes, size_t length)
{
	unsigned lines = 1;

	for (size_t i = 0; i < length; i++)
		lines += bytes[i] == '\n';
	return terminal->rows && lines > terminal->rows;
}

/* False: no pager is wanted, or there is no process for one. Ctrl-C is meant for the pager, which has the terminal. */
static bool begin_pager(void)
{
	bool by_default;
	const char *command = pager_command(&by_default);
	int ends[2];

	if (!command || pipe2(ends, O_CLOEXEC) < 0)
		return false;
	progress_hide();
	pager.child = fork();
	if (pager.child == 0)
		become_pager(ends[0], command, by_default);
	close(ends[0]);
	pager.to = ends[1];
	if (pager.child < 0) {
		close(pager.to);
		pager.child = 0;
		return false;
	}
	for (size_t i = 0; i < 3; i++)
		pager.handlers[i] = signal(ignored[i], SIG_IGN);
	return true;
}

/* Waits for the pager, if one runs. False: it could not be run. */
static bool end_pager(void)
{
	int status = 0;

	if (!pager.child)
		return true;
	close(pager.to);
	while (waitpid(pager.child, &status, 0) < 0 && errno == EINTR)
		continue;
	for (size_t i = 0; i < 3; i++)
		signal(ignored[i], pager.handlers[i]);
	pager.child = 0;
	return !WIFEXITED(status) || (WEXITSTATUS(status) != 126 && WEXITSTATUS(status) != 127);
}

/* False: the pager reads no more. */
static bool feed_pager(const char *bytes, size_t length)
{
	return system_write_all(pager.to, bytes, length) == 0;
}

/* The user has left the pager: nothing more is shown. */
static bool show_more(struct output *output, const char *bytes, size_t length)
{
	if (!pager.child || !feed_pager(bytes, length))
		output->error = -EPIPE;
	return true;
}

/* Decides how the output is shown. A full buffer is longer than a pipe, so a pager that takes it is one that runs. */
static bool show_first(struct output *output, const char *bytes, size_t length)
{
	bool left;

	output->show = NULL;
	if (!is_long(output->terminal, bytes, length) || !begin_pager())
		return false;
	left = !feed_pager(bytes, length);
	if (left && !end_pager())
		return false;
	output->error = left ? -EPIPE : 0;
	output->show = show_more;
	return true;
}

int terminal_open(const struct terminal *terminal, struct output *output)
{
	int error = output_open(output, "-");

	if (!error && terminal->is) {
		output->terminal = terminal;
		output->show = show_first;
	}
	return error;
}

int terminal_close(struct output *output)
{
	size_t all = output->show == show_first ? output->used : 0;

	output_flush(output);
	if (output->show == show_more) {
		bool ran = end_pager();

		output->used = ran ? 0 : all; /* the buffer still has it */
		output->error = output->error == -EPIPE ? 0 : output->error;
	}
	output->show = NULL;
	return output_close(output);
}

void terminal_abandon(struct output *output)
{
	output->used = 0;
	output->show = NULL;
	end_pager();
	output_abandon(output);
}
