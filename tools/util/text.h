/*
 * text.h - text that came out of a trace: any bytes, meant to be UTF-8.
 *
 * Used by everything that prints names. Nothing here allocates or fails; what is no valid text is replaced or escaped.
 */
#ifndef EVPROF_TOOLS_UTIL_TEXT_H
#define EVPROF_TOOLS_UTIL_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes with a length, not terminated, owned by whoever made them. */
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

/* The order of the bytes, which for UTF-8 is that of the code points: as Python compares strings. */
int text_compare(struct text a, struct text b);

/*
 * Takes one code point off the front. A surrogate (WTF-8) comes back as it is; for a byte that starts no code point the
 * answer is TEXT_INVALID and that byte is taken. text->length must not be 0.
 */
uint32_t text_next(struct text *text);

/*
 * FNV-1a, 64 bits. hash: TEXT_HASH_BEGIN, or what came of the texts before: where one ends and the next begins counts
 * too.
 */
#define TEXT_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
uint64_t text_hash(uint64_t hash, struct text text);

/* How many bytes at the front are printable ASCII without '"' and '\\': what needs no thought in any output. */
size_t text_plain(struct text text);

#endif
