/*
 * test_tools_names.c - names of any length, as only a hostile trace has them (wire.h cuts them at 16 KiB), and names
 * that are not meant for a terminal, through every verb and export format. Under the address sanitizer a bound that is
 * assumed shows itself.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cmd/verbs.h"
#include "tools_verb.h"
#include "trace_fixture.h"

/* Of which the whole text is searched for the name. */
static const char *const formats[] = {"csv",	 "chrome", "folded", "callgrind", "speedscope",
				      "firefox", "html",   "pprof",  "pstats",	  "perfetto"};
static const bool shows_whole[] = {true, true, true, true, true, true, false, false, true, true};

/* Around the sizes of buffers: 64 KiB, 128 KiB, 256 KiB and some below for what stands before the name. */
static const size_t sizes[] = {1,      1000,   1 << 14, (1 << 16) - 1, 1 << 16, (1 << 17) + 1, 262000, 262100,
			       262130, 262140, 262143,	262144,	       262145,	262200,	       1 << 20};

static char *name_of(size_t size)
{
	char *name = malloc(size + 1);

	memset(name, 'x', size);
	name[0] = 'f';
	name[size - 1] = size > 1 ? 'z' : 'f';
	name[size] = 0;
	return name;
}

/* A call of each function by the one before, a C function, a line, an exception, a mark and a block. */
static char *trace_with(const char *name, const char *file)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 10, 1), thread = fixture_thread(fixture, process, 11, 1000);
	char *path;

	fixture_code(fixture, process, 1, file, 1, name);
	fixture_code(fixture, process, 2, "a.py", 2, name);
	fixture_function(fixture, process, 1, name, name, "m");
	fixture_define(fixture, process, WIRE_DEFINE_TYPE, 1, 0, "m", name, "", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 1, 0, "", name, "", "");
	fixture_event(fixture, thread, WIRE_CALL, 1, 1000);
	fixture_event(fixture, thread, WIRE_CALL, 2, 1000);
	fixture_event(fixture, thread, WIRE_C_CALL, 1, 1000);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 0x1000, 64, 0, 1);
	fixture_event(fixture, thread, WIRE_C_RETURN, 1, 1000000);
	fixture_event(fixture, thread, WIRE_EXCEPTION, 1, 1000);
	fixture_event(fixture, thread, WIRE_MARK, 1, 1000);
	fixture_event(fixture, thread, WIRE_RETURN, 2, 1000000);
	fixture_event(fixture, thread, WIRE_RETURN, 1, 1000000);
	fixture_end(fixture);
	path = fixture_save(fixture);
	fixture_free(fixture);
	return path;
}

static struct tools_verb export_as(const char *format, const char *trace)
{
	char words[64];

	snprintf(words, sizeof(words), "TRACE --format %s -o -", format);
	return tools_verb_run(cmd_export, words, trace, NULL);
}

Test(names, of_any_length_in_every_format)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		char *name = name_of(sizes[i]), *trace = trace_with(name, name);

		for (size_t k = 0; k < sizeof(formats) / sizeof(*formats); k++) {
			struct tools_verb ran = export_as(formats[k], trace);

			cr_expect(ran.status == 0, "%s of %zu bytes: %s", formats[k], sizes[i], ran.err);
			cr_expect(!shows_whole[k] || memmem(ran.out, ran.out_bytes, name, sizes[i]),
				  "%s has the name of %zu bytes", formats[k], sizes[i]);
			tools_verb_done(&ran);
		}
		unlink(trace);
		free(trace);
		free(name);
	}
}

Test(names, of_any_length_in_every_verb)
{
	static int (*const each_verb[])(int, char **) = {cmd_info, cmd_report, cmd_dump, cmd_annotate, cmd_diff};
	static const char *const words[] = {"TRACE", "TRACE", "TRACE", "TRACE --all-sources", "TRACE TRACE"};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		char *name = name_of(sizes[i]), *trace = trace_with(name, name);

		for (size_t k = 0; k < sizeof(each_verb) / sizeof(*each_verb); k++) {
			struct tools_verb ran = tools_verb_run(each_verb[k], words[k], trace, NULL);

			cr_expect(ran.status == 0, "%zu bytes: %s", sizes[i], ran.err);
			tools_verb_done(&ran);
		}
		unlink(trace);
		free(trace);
		free(name);
	}
}

/* ---- text that is not meant for a terminal ----------------------------------------------------------------------- */

#define HOSTILE "f\n\x1b[31m;g \xe2\x80\xae x\xff\x7f\xc2\x9b"
#define HOSTILE_JSON "p\\n\\u001b[31m;g \xe2\x80\xae x\\u007f\xc2\x9b" /* as a trace has it */

static char *hostile_trace(void)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture->processes++, thread;
	char *path;

	fixture_meta(fixture, process,
		     "{\"type\":\"process\",\"process\":%u,\"pid\":10,\"ppid\":1,\"start\":\"exec\",\"python\":\"%s\","
		     "\"argv\":[\"%s\"],\"exe\":\"%s\",\"cwd\":\"/%s\",\"host\":\"%s\",\"program\":\"%s\","
		     "\"clock_kind\":0,\"clock_shift\":0,\"start_ticks\":0,\"events\":[\"call\"]}",
		     process, HOSTILE_JSON, HOSTILE_JSON, HOSTILE_JSON, HOSTILE_JSON, HOSTILE_JSON, HOSTILE_JSON);
	thread = fixture_thread(fixture, process, 11, 1000);
	fixture_code(fixture, process, 1, HOSTILE, 1, HOSTILE);
	fixture_function(fixture, process, 1, HOSTILE, HOSTILE, HOSTILE);
	fixture_define(fixture, process, WIRE_DEFINE_TYPE, 1, 0, HOSTILE, HOSTILE, "", HOSTILE);
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 1, 0, "", HOSTILE, "", "");
	fixture_define(fixture, process, WIRE_DEFINE_THREAD_NAME, 11, 0, "", HOSTILE, "", "");
	fixture_event(fixture, thread, WIRE_CALL, 1, 1000);
	fixture_event(fixture, thread, WIRE_C_CALL, 1, 1000);
	fixture_event(fixture, thread, WIRE_C_RETURN, 1, 1000000);
	fixture_event(fixture, thread, WIRE_EXCEPTION, 1, 1000);
	fixture_event(fixture, thread, WIRE_MARK, 1, 1000);
	fixture_event(fixture, thread, WIRE_RETURN, 1, 1000000);
	fixture_flush(fixture, thread);
	fixture_meta(fixture, 0,
		     "{\"type\":\"process_end\",\"process\":0,\"how\":\"killed\",\"status\":null,\"signal\":9,"
		     "\"end_ticks\":3000000,\"sampler\":\"killed\"}");
	fixture_end(fixture);
	path = fixture_save(fixture);
	fixture_free(fixture);
	return path;
}

/* Of what a terminal gets: bytes below a blank but newline and tab, DEL, C1, the override, and invalid UTF-8. */
static void expect_harmless(const char *what, const char *text)
{
	for (const char *at = text; *at; at++)
		cr_assert(((unsigned char)*at >= ' ' || *at == '\n' || *at == '\t') && *at != 0x7f && *at != '\xff' &&
			      strncmp(at, "\xc2\x9b", 2) != 0 && strncmp(at, "\xe2\x80\xae", 3) != 0,
			  "%s: byte %zu of\n%s", what, (size_t)(at - text), text);
}

Test(names, no_verb_moves_the_cursor)
{
	static const struct {
		const char *name;
		int (*verb)(int, char **);
		const char *words;
	} runs[] = {
	    {"info", cmd_info, "TRACE"},
	    {"report", cmd_report, "TRACE"},
	    {"by thread", cmd_report, "TRACE --by thread"},
	    {"callers", cmd_report, "TRACE --callers"},
	    {"csv", cmd_report, "TRACE --format csv"},
	    {"dump", cmd_dump, "TRACE"},
	    {"annotate", cmd_annotate, "TRACE"},
	    {"diff", cmd_diff, "TRACE TRACE"},
	    {"folded", cmd_export, "TRACE --format folded -o -"},
	    {"check", cmd_check, "TRACE --max-calls f=0"},
	};
	char *trace = hostile_trace();

	for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
		struct tools_verb ran = tools_verb_run(runs[i].verb, runs[i].words, trace, NULL);

		/* f has no limit of calls to keep: it is not there under that name. */
		cr_expect(ran.status == (runs[i].verb == cmd_check ? 2 : 0), "%s ends with %d", runs[i].name,
			  ran.status);
		cr_expect(ran.out_bytes || ran.err[0], "%s prints something", runs[i].name);
		if (strcmp(runs[i].name, "folded") != 0)
			expect_harmless(runs[i].name, ran.out);
		expect_harmless(runs[i].name, ran.err);
		tools_verb_done(&ran);
	}
	unlink(trace);
	free(trace);
}

static size_t count_of(const char *text, char c)
{
	size_t count = 0;

	for (; *text; text++)
		count += *text == c;
	return count;
}

/* A line for each stack (of the function and of the C function in it), as many frames as there are. */
Test(names, folded_has_a_line_for_each_stack)
{
	char *trace = hostile_trace();
	struct tools_verb ran = export_as("folded", trace);

	cr_expect(ran.status == 0);
	cr_expect(count_of(ran.out, '\n') == 2, "two lines:\n%s", ran.out);
	cr_expect(count_of(ran.out, ';') == 2 + 3, "process, thread and functions:\n%s", ran.out);
	tools_verb_done(&ran);
	unlink(trace);
	free(trace);
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

static char folder[] = "/tmp/evprof-names-XXXXXX";

static void write_file(const char *name, const char *bytes, size_t count, size_t size)
{
	int fd = openat(AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert(fd >= 0 && write(fd, bytes, count) == (ssize_t)count && ftruncate(fd, (off_t)size) == 0);
	close(fd);
}

static void make_files(void)
{
	static const char secret[] = "the key = SECRET\n", script[] = "#!/usr/bin/env python3\nprint('SECRET')\n";

	cr_assert(mkdtemp(folder) && chdir(folder) == 0);
	write_file("secret", secret, strlen(secret), strlen(secret));
	cr_assert(symlink("secret", "link.py") == 0);
	cr_assert(mkfifo("pipe.py", 0600) == 0);
	write_file("nul.py", secret, strlen(secret), strlen(secret) + 1);
	write_file("large.py", secret, strlen(secret), (16 << 20) + 1);
	write_file("script", script, strlen(script), strlen(script));
	write_file("good.py", secret, strlen(secret), strlen(secret));
	cr_assert(symlink("good.py", "other") == 0);
}

static void remove_files(void)
{
	static const char *const names[] = {"secret",	"link.py", "pipe.py", "nul.py",
					    "large.py", "script",  "good.py", "other"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(names[i]);
	cr_expect(chdir("/") == 0 && rmdir(folder) == 0);
}

/* A trace may name any file of the reader's: only Python's sources are shown. */
Test(names, no_source_but_pythons_is_shown, .init = make_files, .fini = remove_files)
{
	static const struct {
		const char *name, *why, *why_not_all; /* NULL: it is shown */
	} files[] = {
	    {"secret", "neither its name nor its first line is Python's", NULL},
	    {"link.py", "neither its name nor its first line is Python's", NULL},
	    {"pipe.py", "not a regular file", "not a regular file"},
	    {"nul.py", "not text", "not text"},
	    {"large.py", "File too large", "File too large"},
	    {"script", NULL, NULL},
	    {"good.py", NULL, NULL},
	    {"other", NULL, NULL},
	    {"/proc/self/environ", "not a regular file", "not a regular file"},
	    {"/proc/self/status", "not a regular file", "not a regular file"},
	    {"/sys/kernel/notes", "not a regular file", "not a regular file"},
	    {"/dev/tty", "is not shown", "is not shown"},
	    {"/", "not a regular file", "not a regular file"},
	};

	for (size_t i = 0; i < 2 * sizeof(files) / sizeof(*files); i++) {
		const char *name = files[i / 2].name, *why = i % 2 ? files[i / 2].why_not_all : files[i / 2].why;
		char *trace = trace_with("f", name), left_out[128];
		struct tools_verb ran =
		    tools_verb_run(cmd_annotate, i % 2 ? "TRACE --all-sources" : "TRACE", trace, NULL);

		cr_expect(ran.status == 0, "%s: %s", name, ran.err);
		cr_expect(!strstr(ran.out, "SECRET") == !!why, "%s:\n%s%s", name, ran.out, ran.err);
		cr_expect(!why || strstr(ran.err, why), "%s: %s", name, ran.err);
		tools_verb_done(&ran);
		ran = tools_verb_run(cmd_export,
				     i % 2 ? "TRACE --format callgrind --zip --all-sources -o -"
					   : "TRACE --format callgrind --zip -o -",
				     trace, NULL);
		cr_expect(ran.status == 0);
		snprintf(left_out, sizeof(left_out), "the source %s is not in the zip", name + (name[0] == '/'));
		cr_expect(!name[1] || !strstr(ran.err, left_out) == !why, "%s: %s", name, ran.err);
		tools_verb_done(&ran);
		unlink(trace);
		free(trace);
	}
}
