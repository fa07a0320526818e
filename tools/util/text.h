/*
 * text.h - text from a trace: any bytes, meant to be UTF-8.
 *
 * Used by everything that prints names. Nothing here allocates or fails; invalid text is replaced or escaped.
 */
#ifndef EVPROF_TOOLS_UTIL_TEXT_H
#define EVPROF_TOOLS_UTIL_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes with a length, not terminated, owned by their creator. */
struct text {
	const char *at;
	size_t length;
};

#define TEXT_INVALID UINT32_MAX

static inline struct text text_of(const char *string)
{
	return (struct text){string, string ? strlen(string) : 0};
}

static inline int text_same(struct text a, struct text b)
{
	return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

/* Compares by bytes, which for UTF-8 is the order of code points, as Python compares strings. */
int text_compare(struct text a, struct text b);

/*
 * Takes one code point off the front. A surrogate (WTF-8) is returned as it is. For a byte that starts no code point it
 * returns TEXT_INVALID and takes that byte. text->length must not be 0.
 */
uint32_t text_next(struct text *text);

/* Takes one code point as text_next() does. Returns it as valid UTF-8: U+FFFD for a surrogate or TEXT_INVALID. */
struct text text_next_valid(struct text *text, uint32_t *code);

/* FNV-1a, 64 bits. hash: TEXT_HASH_BEGIN, or the result for the previous texts, whose boundaries count, too. */
#define TEXT_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
uint64_t text_hash(uint64_t hash, struct text text);

/* The part of a path after its last slash; all of it if the slash ends it. Points into the path. */
struct text text_base_name(struct text path);

/* The number of leading bytes that are printable ASCII except '"' and '\\', which every output can copy unchanged. */
size_t text_plain(struct text text);

#endif
