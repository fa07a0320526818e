/*
 * shown_text.h - text of other programs in a line for people. Characters that would move a terminal's cursor, change
 * its state or the order of its text are made visible. The messages of all programs (shown_line()) and the results of
 * the tools (output_line()) share this rule.
 */
#ifndef EVPROF_SHOWN_TEXT_H
#define EVPROF_SHOWN_TEXT_H

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Control characters, line separators, and characters that change the direction of writing. */
static inline bool shown_needs_escape(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Length of the well-formed UTF-8 character at `at`, and its code point; 0: there is none. left is not 0. */
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

/* Replaces each byte of a message that must not be shown by a question mark, in place. */
static inline void shown_line(char *line, size_t length)
{
	for (size_t at = 0; at < length;) {
		uint32_t code = 0;
		size_t bytes = shown_character((const unsigned char *)line + at, length - at, &code), end;

		for (end = at + (bytes ? bytes : 1); at < end; at++)
			line[at] = bytes && !shown_needs_escape(code) ? line[at] : '?';
	}
}

/*
 * Prints the prefix, the text and a newline into the line, without a NUL. A text that does not fit ends with dots.
 * Returns the length. Paths and names in the text come from anybody.
 */
static inline size_t shown_message(char *line, size_t room, const char *prefix, const char *format, va_list arguments)
{
	size_t used = strlen(prefix);
	int printed = vsnprintf(line + used, room - used, format, arguments);
	size_t length = printed < 0 ? 0 : (size_t)printed;

	memcpy(line, prefix, used);
	if (length < room - used) {
		shown_line(line + used, length);
		line[used + length] = '\n';
		return used + length + 1;
	}
	shown_line(line + used, room - used - 4);
	memcpy(line + room - 4, "...\n", 4);
	return room;
}

#define SHOWN_PATH_BYTES (4 * PATH_MAX)

static inline const char *shown_path_relative(const char *path)
{
	static char directory[PATH_MAX];
	size_t length;

	if (!getcwd(directory, sizeof(directory)))
		return path;
	length = strlen(directory);
	return length > 1 && strncmp(path, directory, length) == 0 && path[length] == '/' ? path + length + 1 : path;
}

/*
 * A path as the user would type it, for the closing line: relative if below the working directory, quoted where a shell
 * needs it, and $'...' where a terminal would not show it unchanged. So the command in the closing line can be copied.
 * text has SHOWN_PATH_BYTES. Returns text, or part of path where that is too long.
 */
static inline const char *shown_path(const char *path, char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
	char *to = text;
	bool shows;

	path = shown_path_relative(path);
	if (strlen(path) >= PATH_MAX - 2)
		return path;
	if (path[strspn(path, plain)] == 0) {
		sprintf(text, "%s%s", path[0] == '-' ? "./" : "", path);
		return text;
	}
	shows = shown_is_plain(path, strlen(path));
	to = stpcpy(to, shows ? "'" : "$'");
	if (path[0] == '-')
		to = stpcpy(to, "./");
	for (; *path; path++) {
		if (!shows && !strchr(plain, *path))
			to += sprintf(to, "\\x%02x", (unsigned char)*path);
		else if (*path == '\'')
			to = stpcpy(to, "'\\''");
		else
			*to++ = *path;
	}
	strcpy(to, "'");
	return text;
}

#endif
