/*
 * shown_text.h - text of others in a line for people: what would move a terminal's cursor, change its state or the
 * order of what it shows is made visible. One rule for the messages of all programs (shown_line()) and for their
 * results (output_line() of the tools).
 */
#ifndef EVPROF_SHOWN_TEXT_H
#define EVPROF_SHOWN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Control characters, line separators, and what changes the direction of writing. */
static inline bool shown_needs_escape(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Bytes of the well-formed UTF-8 character at the front, and what it is; 0: there is none. left is not 0. */
static inline size_t shown_character(const unsigned char *at, size_t left, uint32_t *code)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = at[0] < 0x80   ? 1
			: at[0] < 0xc2 ? 0
			: at[0] < 0xe0 ? 2
			: at[0] < 0xf0 ? 3
			: at[0] < 0xf5 ? 4
				       : 0;

	if (!length || length > left)
		return 0;
	*code = length == 1 ? at[0] : at[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (at[i] & 0x3f);
	}
	return *code < smallest[length] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : length;
}

static inline bool shown_is_plain(const char *text, size_t length)
{
	for (size_t at = 0, bytes; at < length; at += bytes) {
		uint32_t code = 0;

		bytes = shown_character((const unsigned char *)text + at, length - at, &code);
		if (!bytes || shown_needs_escape(code))
			return false;
	}
	return true;
}

/* A message, in place: a question mark for each byte that is not to be shown. */
static inline void shown_line(char *line, size_t length)
{
	for (size_t at = 0; at < length;) {
		uint32_t code = 0;
		size_t bytes = shown_character((const unsigned char *)line + at, length - at, &code), end;

		for (end = at + (bytes ? bytes : 1); at < end; at++)
			line[at] = bytes && !shown_needs_escape(code) ? line[at] : '?';
	}
}

#endif
