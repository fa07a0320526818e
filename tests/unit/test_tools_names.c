/*
 * test_tools_names.c - names of any length, as only a hostile trace has them (wire.h cuts them at 16 KiB), and names
 * that are not meant for a terminal, through every verb and export format. Under the address sanitizer a bound that is
 * assumed shows itself.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/verbs.h"
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
	static int (*const verbs[])(int, char **) = {cmd_info, cmd_report, cmd_dump, cmd_annotate, cmd_diff};
	static const char *const words[] = {"TRACE", "TRACE", "TRACE", "TRACE --sources", "TRACE TRACE"};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		char *name = name_of(sizes[i]), *trace = trace_with(name, name);

		for (size_t k = 0; k < sizeof(verbs) / sizeof(*verbs); k++) {
			struct tools_verb ran = tools_verb_run(verbs[k], words[k], trace, NULL);

			cr_expect(ran.status >= 0 && ran.status < 3, "%zu bytes: %s", sizes[i], ran.err);
			tools_verb_done(&ran);
		}
		unlink(trace);
		free(trace);
		free(name);
	}
}
