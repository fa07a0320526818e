/*
 * definition_key.h - a key of code: of all that its definitions (CODE and LINES, wire.h) say.
 *
 * All code with one key has one id. A template engine compiles the same source at each request, and the definitions of
 * a service must not grow with its requests.
 */
#ifndef EVPROF_DEFINITION_KEY_H
#define EVPROF_DEFINITION_KEY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "evprof/wire.h"

static inline uint64_t definition_key_mix(uint64_t key, uint64_t word)
{
	key = (key ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return key ^ key >> 32;
}

/* Adds a string, or a table of lines. bytes: may be NULL if there are none. */
static inline uint64_t definition_key_add(uint64_t key, const void *bytes, size_t length)
{
	uint64_t word = 0;
	size_t at = 0;

	key = definition_key_mix(key, length);
	for (; length - at >= sizeof(word); at += sizeof(word)) {
		memcpy(&word, (const char *)bytes + at, sizeof(word));
		key = definition_key_mix(key, word);
	}
	if (at == length)
		return key;
	word = 0;
	memcpy(&word, (const char *)bytes + at, length - at);
	return definition_key_mix(key, word);
}

/* The key without strings and lines. */
static inline uint64_t definition_key_begin(const struct wire_definition *record)
{
	return definition_key_mix(definition_key_mix(record->number, record->flags), record->address);
}

/* The whole key is not 0. */
static inline uint64_t definition_key_end(uint64_t key)
{
	return key | 1;
}

#endif
