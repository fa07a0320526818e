/*
 * test_collector_lines.c - the lines that the sampler reads in the tables of each version are those that Python reads
 * there.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shared/file/line_table.h"
#include "tools/trace/trace.h"

#define TABLE_MAX 65536

static enum sampling_lines lines_of_minor(long minor)
{
	return minor < 10 ? SAMPLING_LINES_LNOTAB : minor == 10 ? SAMPLING_LINES_RANGES : SAMPLING_LINES_PLACES;
}

static size_t parse_table(const char *hex, uint8_t *table)
{
	size_t size = 0;
	unsigned byte;

	for (; size < TABLE_MAX && sscanf(hex + 2 * size, "%2x", &byte) == 1; size++)
		table[size] = (uint8_t)byte;
	return size;
}

/* One code object. Returns how many instructions it has. */
static long compare(char *line)
{
	static uint8_t table[TABLE_MAX];
	char *rest = line, *word = strsep(&rest, " ");
	long minor = strtol(word, NULL, 10), first = strtol(strsep(&rest, " "), NULL, 10), count = 0;
	size_t size = parse_table(strsep(&rest, " "), table);

	for (; (word = strsep(&rest, " ")); count++) {
		int expected = atoi(word), found = line_of(lines_of_minor(minor), table, size, (int)first, 2 * count);

		cr_assert_eq(found, expected, "3.%ld, line %ld, instruction %ld: %d, not %d", minor, first, count,
			     found, expected);
	}
	return count;
}

/* Each interpreter that is there; find.sh's last column and the rest start it. */
static long compare_interpreter(const char *found)
{
	char command[4096], *line = NULL;
	const char *start = found;
	size_t room = 0;
	long count = 0;
	FILE *program;

	for (int column = 0; column < 4 && start; column++)
		start = strchr(start, '\t') ? strchr(start, '\t') + 1 : NULL;
	if (!start)
		return 0;
	snprintf(command, sizeof(command), "%s tests/unit/line_tables.py", start);
	for (char *c = command; *c; c++)
		if (*c == '\t')
			*c = ' ';
	program = popen(command, "r");
	cr_assert(program);
	while (getline(&line, &room, program) > 0) {
		line[strcspn(line, "\n")] = 0;
		count += compare(line);
	}
	cr_assert_eq(pclose(program), 0, "%s", command);
	cr_assert(count > 10000, "%s: %ld instructions", command, count);
	free(line);
	return count;
}

Test(collector_lines, are_those_that_python_reads, .timeout = 120)
{
	FILE *interpreters = popen("EVPROF_TEST_BUILD=0 tests/interpreters/find.sh", "r");
	char *line = NULL;
	size_t room = 0;
	long count = 0;

	cr_assert(interpreters);
	while (getline(&line, &room, interpreters) > 0) {
		line[strcspn(line, "\n")] = 0;
		if (strstr(line, "\t3."))
			count += compare_interpreter(line);
	}
	pclose(interpreters);
	free(line);
	if (!count)
		cr_skip_test("no Python is here");
}

/* Whatever stands there, reading ends and stays inside: AddressSanitizer looks on. */
Test(collector_lines, any_bytes_will_do)
{
	uint32_t seed = 12345;

	for (int turn = 0; turn < 30000; turn++) {
		size_t size = (size_t)turn % 40;
		uint8_t *table = malloc(size + !size);

		for (size_t i = 0; i < size; i++) {
			seed = seed * 1664525u + 1013904223u;
			table[i] = (uint8_t)(seed >> 24);
		}
		for (int lines = SAMPLING_LINES_LNOTAB; lines <= SAMPLING_LINES_PLACES; lines++)
			cr_assert(line_of((enum sampling_lines)lines, table, size, turn % 7 - 1, turn % 90 - 2) >= 0);
		free(table);
	}
}

/* The library cuts a table at 64 KiB. Until 3.9 the last line in it would have no end. */
Test(collector_lines, of_a_table_that_was_cut_end_with_it)
{
	struct {
		struct wire_definition definition;
		uint8_t table[6];
	} cut = {{.length = {4, 2}, .flags = WIRE_CUT}, {4, 1, 4, 1, 0, 100}}, whole = cut;
	const struct wire_definition function = {.number = 7}, *functions[] = {NULL, &function},
				     *tables[] = {NULL, &cut.definition};
	struct trace_process process = {.codes = {.at = functions, .count = 2}, .lines = {.at = tables, .count = 2}};

	cr_expect_eq(trace_line(&process, 1, wire_instruction(-1)), 7);
	cr_expect_eq(trace_line(&process, 1, wire_instruction(2)), 7);
	cr_expect_eq(trace_line(&process, 1, wire_instruction(6)), 8);
	cr_expect_eq(trace_line(&process, 1, wire_instruction(8)), 0);
	cr_expect_eq(trace_line(&process, 1, wire_instruction(1000)), 0);
	whole.definition.flags = 0;
	tables[1] = &whole.definition;
	cr_expect_eq(trace_line(&process, 1, wire_instruction(1000)), 109);
}
