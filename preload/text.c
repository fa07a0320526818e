/* text.c - see text.h. Called while joining a collector; uses no memory but the caller's. */
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void text_init(struct text *text, char *bytes, size_t size)
{
	*text = (struct text){.bytes = bytes, .size = size};
	bytes[0] = 0;
}

void text_add(struct text *text, const char *format, ...)
{
	size_t room = text->size - text->used;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text->bytes + text->used, room, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= room) {
		text->bytes[text->used] = 0;
		text->cut = 1;
		return;
	}
	text->used += (size_t)n;
}

static void add_bytes(struct text *text, const char *bytes, size_t count)
{
	text->cut |= count >= text->size - text->used;
	if (text->cut)
		return;
	memcpy(text->bytes + text->used, bytes, count);
	text->used += count;
	text->bytes[text->used] = 0;
}

/* Length of the well-formed UTF-8 sequence at s, 0 if it is not one. */
static size_t utf8_length(const unsigned char *s, size_t left)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : 4;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void text_add_json(struct text *text, const char *string, size_t length)
{
	const unsigned char *s = (const unsigned char *)string;

	text_add(text, "\"");
	for (size_t i = 0; i < length && !text->cut;) {
		size_t n = utf8_length(s + i, length - i);

		if (n == 0) {
			text_add(text, "\\ufffd");
			i++;
		} else if (n == 1 && (s[i] < 0x20 || s[i] == '"' || s[i] == '\\' || s[i] == 0x7f)) {
			text_add(text, "\\u%04x", s[i]);
			i++;
		} else {
			add_bytes(text, string + i, n);
			i += n;
		}
	}
	text_add(text, "\"");
}

const char *text_shown(const char *value, char shown[TEXT_SHOWN_BYTES])
{
	static const char cut[] = "...";
	size_t length = strlen(value), most = TEXT_SHOWN_BYTES - sizeof(cut);
	size_t kept = length > most ? most : length;

	memcpy(shown, value, kept);
	strcpy(shown + kept, length > most ? cut : "");
	text_make_plain(shown);
	return shown;
}

void text_make_plain(char *text)
{
	for (unsigned char *c = (unsigned char *)text; *c; c++) {
		bool second = *c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0; /* of the two kinds, in UTF-8 */

		if (second)
			*c++ = '?';
		if (second || *c < ' ' || *c == 0x7f)
			*c = '?';
	}
}

long text_read_file(const char *path, char *bytes, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	while (used < size - 1 && (n = read(fd, bytes + used, size - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	bytes[used] = 0;
	return n < 0 ? -EIO : (long)used;
}
