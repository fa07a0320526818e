/* text.c - see text.h. Called while joining a collector; uses no memory but the caller's. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "evprof/shown_text.h"

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

void text_add_json(struct text *text, const char *string, size_t length)
{
	const unsigned char *s = (const unsigned char *)string;

	text_add(text, "\"");
	for (size_t i = 0; i < length && !text->cut;) {
		uint32_t code;
		size_t n = shown_character(s + i, length - i, &code);

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
	shown_line(shown, kept);
	strcpy(shown + kept, length > most ? cut : "");
	return shown;
}
