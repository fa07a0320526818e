/*
 * texts.c - see texts.h. Used by everything in this room that has columns of texts.
 */
#include "api/texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/grow.h"

#define SLOTS_AT_FIRST 256u
#define REPLACEMENT "\xef\xbf\xbd"
#define REPLACEMENT_BYTES 3

struct texts *texts_new(void)
{
	struct texts *texts = calloc(1, sizeof(*texts));

	if (!texts)
		return NULL;
	texts->references = 1;
	texts->slots = calloc(SLOTS_AT_FIRST, sizeof(*texts->slots));
	texts->slot_mask = SLOTS_AT_FIRST - 1;
	texts->bytes = malloc(1);
	texts->bytes_allocated = 1;
	texts->offsets = calloc(2, sizeof(*texts->offsets));
	texts->offsets_allocated = 2;
	if (texts->slots && texts->bytes && texts->offsets)
		return texts;
	texts_drop(texts);
	return NULL;
}

struct texts *texts_share(struct texts *texts)
{
	atomic_fetch_add_explicit(&texts->references, 1, memory_order_relaxed);
	return texts;
}

void texts_drop(struct texts *texts)
{
	if (!texts || atomic_fetch_sub_explicit(&texts->references, 1, memory_order_acq_rel) > 1)
		return;
	free(texts->slots);
	free(texts->bytes);
	free(texts->offsets);
	free(texts);
}

static struct text text_at(const struct texts *texts, uint32_t number)
{
	int32_t from = texts->offsets[number];

	return (struct text){texts->bytes + from, (size_t)(texts->offsets[number + 1] - from)};
}

static uint32_t *slot_of(const struct texts *texts, struct text text)
{
	uint64_t hash = text_hash(TEXT_HASH_BEGIN, text);
	uint32_t slot = (uint32_t)(hash ^ hash >> 32) & texts->slot_mask;

	while (texts->slots[slot] && !text_same(text_at(texts, texts->slots[slot] - 1), text))
		slot = (slot + 1) & texts->slot_mask;
	return &texts->slots[slot];
}

static int grow_slots(struct texts *texts)
{
	uint32_t *old = texts->slots, *slots;
	uint32_t size = texts->slot_mask + 1;

	if (texts->count < size / 2)
		return 0;
	slots = calloc((size_t)size * 2, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	texts->slots = slots;
	texts->slot_mask = size * 2 - 1;
	for (uint32_t number = 0; number < texts->count; number++)
		*slot_of(texts, text_at(texts, number)) = number + 1;
	free(old);
	return 0;
}

/* Room for the text's bytes, each of which may become U+FFFD. */
static int grow_bytes(struct texts *texts, size_t length)
{
	size_t wanted = texts->used + length * REPLACEMENT_BYTES + 1, allocated = texts->bytes_allocated;
	char *grown;

	if (wanted > INT32_MAX)
		return -EOVERFLOW;
	if (wanted <= allocated)
		return 0;
	allocated = wanted > 2 * allocated ? wanted : 2 * allocated;
	grown = realloc(texts->bytes, allocated);
	if (!grown)
		return -ENOMEM;
	texts->bytes = grown;
	texts->bytes_allocated = allocated;
	return 0;
}

/* Writes the text behind the used bytes, as it is stored. */
static struct text put_valid(const struct texts *texts, struct text text)
{
	char *first = texts->bytes + texts->used, *at = first;

	while (text.length) {
		const char *from = text.at;
		uint32_t code = text_next(&text);

		if (code == TEXT_INVALID || code == 0 || (code >= 0xd800 && code <= 0xdfff)) {
			memcpy(at, REPLACEMENT, REPLACEMENT_BYTES);
			at += REPLACEMENT_BYTES;
		} else {
			memcpy(at, from, (size_t)(text.at - from));
			at += text.at - from;
		}
	}
	return (struct text){first, (size_t)(at - first)};
}

uint32_t texts_add(struct texts *texts, struct text text)
{
	struct text valid;
	uint32_t *slot;

	if (grow_slots(texts) < 0 || grow_bytes(texts, text.length) < 0)
		return TEXTS_NONE;
	valid = put_valid(texts, text);
	slot = slot_of(texts, valid);
	if (*slot)
		return *slot - 1;
	if (grow_by_one(&texts->offsets, &texts->offsets_allocated, (size_t)texts->count + 1, sizeof(*texts->offsets)) <
	    0)
		return TEXTS_NONE;
	texts->used += valid.length;
	texts->offsets[++texts->count] = (int32_t)texts->used;
	*slot = texts->count;
	return texts->count - 1;
}
