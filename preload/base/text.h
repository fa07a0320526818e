/*
 * text.h - builds text in a buffer of fixed size, including JSON.
 *
 * The library may not allocate (it runs inside allocators and just after fork) and loads no JSON library into other
 * people's processes. So the little JSON that it sends is written here; the collector validates it with jansson.
 */
#ifndef PRELOAD_TEXT_H
#define PRELOAD_TEXT_H

#include <stddef.h>

struct text {
	char *bytes;
	size_t size;
	size_t used; /* invariant: used < size, bytes[used] == 0 */
	int cut;     /* something did not fit */
};

void text_init(struct text *text, char *bytes, size_t size);
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void text_add_json(struct text *text, const char *string, size_t length);
#define TEXT_SHOWN_BYTES 104
/* Quotes a value for a line: its first 100 bytes, with a question mark for each unprintable one. */
const char *text_shown(const char *value, char shown[TEXT_SHOWN_BYTES]);

#endif
