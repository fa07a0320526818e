/*
 * line_table.c - see line_table.h. Formats: Objects/lnotab_notes.txt (until 3.9), PEP 626 (3.10), Objects/locations.md
 * (from 3.11 on) of CPython.
 */
#include "file/line_table.h"

#define INSTRUCTION_BYTES 2

/* Pairs: a number of bytes of instructions, and the change of the line after them. */
static int64_t line_of_lnotab(const uint8_t *table, size_t size, int64_t line, int64_t instruction)
{
	int64_t start = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		start += table[i];
		if (start > instruction)
			break;
		line += (int8_t)table[i + 1];
	}
	return line;
}

/* Pairs: a number of bytes of instructions, and the change of the line for them; -128: they have no line. */
static int64_t line_of_ranges(const uint8_t *table, size_t size, int64_t line, int64_t instruction)
{
	int64_t end = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		int8_t change = (int8_t)table[i + 1];

		end += table[i];
		if (change != -128)
			line += change;
		if (instruction < end)
			return change == -128 ? 0 : line;
	}
	return 0;
}

/* Six bits in each byte, lowest first; bit 6: another byte follows. The lowest bit of the number is its sign. */
static int64_t signed_number(const uint8_t **at, const uint8_t *end)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		if (*at == end || shift > 30)
			return 0;
		byte = *(*at)++;
		value |= (uint64_t)(byte & 63) << shift;
		shift += 6;
	} while (byte & 64);
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

enum { PLACE_ONE_LINE = 10, PLACE_NO_COLUMNS = 13, PLACE_LONG = 14, PLACE_NONE = 15 };

/* Entries: a byte with bit 7 set, which holds the form and the number of instructions, and bytes without bit 7. */
static int64_t line_of_places(const uint8_t *table, size_t size, int64_t line, int64_t instruction)
{
	const uint8_t *at = table, *end = table + size;
	int64_t covered = 0;

	while (at < end) {
		uint8_t head = *at++;
		unsigned form = head >> 3 & 15;

		if (form == PLACE_LONG || form == PLACE_NO_COLUMNS)
			line += signed_number(&at, end);
		else if (form >= PLACE_ONE_LINE && form < PLACE_NO_COLUMNS)
			line += form - PLACE_ONE_LINE;
		covered += ((head & 7) + 1) * INSTRUCTION_BYTES;
		if (instruction < covered)
			return form == PLACE_NONE ? 0 : line;
		while (at < end && !(*at & 0x80))
			at++;
	}
	return 0;
}

int line_of(enum sampling_lines lines, const uint8_t *table, size_t size, int first, int64_t instruction)
{
	int64_t line;

	if (instruction < 0)
		line = first;
	else if (!table)
		line = 0;
	else if (lines == SAMPLING_LINES_LNOTAB)
		line = line_of_lnotab(table, size, first, instruction);
	else if (lines == SAMPLING_LINES_RANGES)
		line = line_of_ranges(table, size, first, instruction);
	else
		line = line_of_places(table, size, first, instruction);
	return line > 0 && line <= INT32_MAX ? (int)line : 0;
}
