/*
 * test_tools_terminal.c - what the verbs show on a terminal: numbers with units, widths, readable names, and the report
 * on terminals of several sizes, over traces of the fixture. The pager is tested in tests/e2e/test_terminal.c.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/cmd/verbs.h"
#include "tools/report/readable.h"
#include "tools/util/terminal.h"
#include "trace_fixture.h"

Test(terminal, times)
{
	static const struct {
		double ns;
		const char *text;
	} known[] = {{0, "0 ns"},	  {999, "999 ns"},	{999.6, "1.00 us"}, {1000, "1.00 us"},
		     {9994, "9.99 us"},	  {9996, "10.0 us"},	{99960, "100 us"},  {999499, "999 us"},
		     {999500, "1.00 ms"}, {12.34e6, "12.3 ms"}, {1.5e9, "1.50 s"},  {61e9, "61.0 s"},
		     {999.6e9, "1000 s"}, {86400e9, "86400 s"}};
	char out[TERMINAL_NUMBER_BYTES];

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		cr_expect_str_eq(terminal_time(known[i].ns, out), known[i].text, "%f: %s", known[i].ns, out);
}

Test(terminal, bytes)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} known[] = {{0, "0 B"},	  {1023, "1023 B"},	 {1024, "1.00 KiB"},	{1536, "1.50 KiB"},
		     {102400, "100 KiB"}, {1048575, "1.00 MiB"}, {1 << 30, "1.00 GiB"}, {UINT64_MAX, "16.0 EiB"}};
	char out[TERMINAL_NUMBER_BYTES];

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		cr_expect_str_eq(terminal_bytes(known[i].bytes, out), known[i].text, "%s", out);
}

static void expect_tail(const char *text, unsigned columns, const char *expected)
{
	struct output output;
	size_t length;
	char *written;
	unsigned width;

	cr_assert(output_open_memory(&output) == 0);
	width = terminal_put_tail(&output, text_of(text), columns);
	output_char(&output, 0);
	written = output_close_memory(&output, &length);
	cr_expect_str_eq(written, expected, "%s in %u: %s", text, columns, written);
	cr_expect(width == terminal_width(text_of(expected)));
	free(written);
}

/* Two columns for a wide character, none for a combining one. */
Test(terminal, widths)
{
	cr_expect(terminal_width(text_of("main")) == 4);
	cr_expect(terminal_width(text_of("h\xc3\xa9")) == 2);
	cr_expect(terminal_width(text_of("e\xcc\x81")) == 1);
	cr_expect(terminal_width(text_of("\xe6\x97\xa5\xe6\x9c\xac")) == 4);
	expect_tail("Reader.read", 11, "Reader.read");
	expect_tail("Reader.read", 10, "...er.read");
	expect_tail("Reader.read", 3, "ead");
	expect_tail("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 5, "...\xe8\xaa\x9e");
	expect_tail("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 6, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e");
}

Test(terminal, paths)
{
	static const char *const known[][2] = {
	    {"/usr/lib/python3.11/json/decoder.py", "json/decoder.py"},
	    {"/opt/lib64/python3.13t/json/decoder.py", "json/decoder.py"},
	    {"/venv/lib/python3.11/site-packages/flask/app.py", "flask/app.py"},
	    {"/usr/lib/python3/dist-packages/yaml/reader.py", "yaml/reader.py"},
	    {"/usr/lib/python3.11", "/usr/lib/python3.11"},
	    {"/srv/app/main.py", "/srv/app/main.py"},
	    {"<frozen importlib._bootstrap>", "importlib._bootstrap"},
	    {"<string>", "<string>"},
	    {"", ""},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		cr_expect(text_same(readable_path(text_of(known[i][0])), text_of(known[i][1])), "%s", known[i][0]);
	cr_assert(chdir("/usr") == 0);
	cr_expect(text_same(readable_path(text_of("/usr/src/main.py")), text_of("src/main.py")));
	cr_expect(text_same(readable_path(text_of("/usrsrc/main.py")), text_of("/usrsrc/main.py")));
}

/* --- the report --- */

static char shown[65536];
static size_t shown_bytes;
static int master;

static void *read_terminal(void *unused)
{
	char some[256];
	ssize_t bytes;

	(void)unused;
	shown_bytes = 0;
	while ((bytes = read(master, some, sizeof(some))) > 0)
		for (ssize_t i = 0; i < bytes; i++) /* without the carriage returns of the terminal */
			if (some[i] != '\r' && shown_bytes + 1 < sizeof(shown))
				shown[shown_bytes++] = some[i];
	shown[shown_bytes] = 0;
	return NULL;
}

/* Runs a verb on a terminal with 100 rows and that width. */
static int on_terminal(int (*verb)(int argc, char **argv), const char *arguments, unsigned short columns)
{
	struct winsize size = {.ws_row = 100, .ws_col = columns};
	char *words[16] = {(char *)"verb"}, *copy = strdup(arguments), *state = NULL;
	int before = dup(STDOUT_FILENO), slave, count = 1, status;
	pthread_t reader;

	master = posix_openpt(O_RDWR | O_NOCTTY);
	cr_assert(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	cr_assert(slave >= 0 && ioctl(slave, TIOCSWINSZ, &size) == 0);
	for (char *word = strtok_r(copy, " ", &state); word; word = strtok_r(NULL, " ", &state))
		words[count++] = word;
	fflush(stdout);
	dup2(slave, STDOUT_FILENO);
	close(slave);
	pthread_create(&reader, NULL, read_terminal, NULL);
	optind = 0;
	status = verb(count, words);
	fflush(stdout);
	dup2(before, STDOUT_FILENO);
	close(before);
	pthread_join(reader, NULL);
	close(master);
	free(copy);
	return status;
}

enum { MAIN = 1, DECODE = 2, LEN = 1 };

/* main 1.0005 s, of them 500 us in a method, which calls len. */
static char *trace_of_calls(void)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 10, 1), thread;
	char *path;

	fixture_code(fixture, process, MAIN, "/srv/app/main.py", 10, "main");
	fixture_define(fixture, process, WIRE_DEFINE_CODE, DECODE, 343, "/usr/lib/python3.11/json/decoder.py", "decode",
		       "JSONDecoder.decode", "json.decoder");
	fixture_function(fixture, process, LEN, "", "len", "builtins");
	thread = fixture_thread(fixture, process, 10, 1000);
	fixture_event(fixture, thread, WIRE_CALL, MAIN, 0);
	fixture_event(fixture, thread, WIRE_CALL, DECODE, 1000000000);
	fixture_event(fixture, thread, WIRE_C_CALL, LEN, 400000);
	fixture_event(fixture, thread, WIRE_C_RETURN, LEN, 100000);
	fixture_event(fixture, thread, WIRE_RETURN, DECODE, 0);
	fixture_event(fixture, thread, WIRE_RETURN, MAIN, 0);
	fixture_end(fixture);
	path = fixture_save(fixture);
	fixture_free(fixture);
	return path;
}

static void expect_report(const char *options, const char *trace, unsigned short columns, const char *expected)
{
	char arguments[512];

	snprintf(arguments, sizeof(arguments), "%s %s", options, trace);
	cr_expect(on_terminal(cmd_report, arguments, columns) == 0);
	cr_expect_str_eq(shown, expected, "report %s in %u columns:\n%s", options, columns, shown);
}

#define SUMS "3 function calls in 1.00 s; ordered by internal time\n\n"

Test(terminal, report_fits)
{
	char *trace = trace_of_calls();

	setenv("NO_COLOR", "1", 1);
	expect_report("", trace, 120,
		      SUMS "ncalls  tottime  percall  cumtime  percall  function\n"
			   "     1   1.00 s   1.00 s   1.00 s   1.00 s  main                /srv/app/main.py:10\n"
			   "     1   400 us   400 us   500 us   500 us  JSONDecoder.decode  json/decoder.py:343\n"
			   "     1   100 us   100 us   100 us   100 us  builtins.len\n\n");
	expect_report("", trace, 60,
		      SUMS "ncalls  tottime  cumtime  function\n"
			   "     1   1.00 s   1.00 s  main             .../main.py:10\n"
			   "     1   400 us   500 us  ...coder.decode  ...decoder.py:343\n"
			   "     1   100 us   100 us  builtins.len\n\n");
	expect_report("--callees --restrict main|dec", trace, 80,
		      "3 function calls in 1.00 s; ordered by internal time\n"
		      "   List reduced from 3 to 2 due to restriction <'main|dec'>\n\n"
		      "  ncalls  tottime  cumtime  called\n"
		      "main  /srv/app/main.py:10\n"
		      "       1   400 us   500 us  JSONDecoder.decode  json/decoder.py:343\n"
		      "JSONDecoder.decode  json/decoder.py:343\n"
		      "       1   100 us   100 us  builtins.len\n\n");
	unlink(trace);
	free(trace);
}

/* No line is wider than the terminal, and --format text is that of a pipe. */
Test(terminal, report_never_wraps)
{
	char *trace = trace_of_calls();

	setenv("NO_COLOR", "1", 1);
	for (unsigned short columns = 40; columns < 130; columns++) {
		on_terminal(cmd_report, trace, columns);
		for (char *line = strchr(shown, '\n') + 1, *end; (end = strchr(line, '\n')); line = end + 1)
			cr_expect(end - line <= columns, "%u columns: %.*s", columns, (int)(end - line), line);
	}
	expect_report("--format text -n all", trace, 60,
		      "         3 function calls in 1.000 seconds\n\n   Ordered by: internal time\n\n"
		      "   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n"
		      "        1    1.000    1.000    1.000    1.000 /srv/app/main.py:10(main)\n"
		      "        1    0.000    0.000    0.001    0.001 /usr/lib/python3.11/json/decoder.py:343(decode)\n"
		      "        1    0.000    0.000    0.000    0.000 {built-in method builtins.len}\n\n");
	unlink(trace);
	free(trace);
}

Test(terminal, colours)
{
	static const struct {
		const char *kind, *no_color;
		bool colour;
	} known[] = {{"xterm", NULL, true},
		     {"xterm", "", true},
		     {"xterm", "1", false},
		     {"dumb", NULL, false},
		     {"", NULL, false}};
	char *trace = trace_of_calls();

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		setenv("TERM", known[i].kind, 1);
		unsetenv("NO_COLOR");
		if (known[i].no_color)
			setenv("NO_COLOR", known[i].no_color, 1);
		cr_expect(on_terminal(cmd_report, trace, 100) == 0);
		cr_expect(!strchr(shown, '\033') == !known[i].colour, "TERM=%s: %s", known[i].kind, shown);
	}
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	on_terminal(cmd_report, trace, 100);
	cr_expect(strstr(shown, "\033[1;31m   1.00 s\033[0m"), "what takes a tenth of the time stands out: %s", shown);
	cr_expect(!strstr(shown, "\033[1;31m   400 us"), "%s", shown);
	unlink(trace);
	free(trace);
}
