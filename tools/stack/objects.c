/* objects.c - see objects.h. */
#include "stack/objects.h"

#include <string.h>

#define WORD sizeof(uint64_t)
#define NAME_BYTES 64
#define ENTRIES_MAX 4096      /* of a dict, to be searched from the first to the last */
#define CACHED_KEYS_FIRST 400 /* where the keys of its objects' dicts are in a class (PyHeapTypeObject) */
#define CACHED_KEYS_END 1100

/* object.h: what tp_flags has. */
#define INLINE_VALUES (1u << 2) /* the values of attributes are in the object (from 3.13 on) */
#define MANAGED_DICT (1u << 4)	/* its dict is before the object (from 3.11 on) */

uint64_t object_type(const struct layout *layout, struct process *process, uint64_t object)
{
	uint64_t type;

	return object && object % WORD == 0 && process_word(process, object + layout->fields.object_type, &type) ? type
														 : 0;
}

bool object_type_name(const struct layout *layout, struct process *process, uint64_t type, char *name, size_t bytes)
{
	uint64_t at;

	if (!process_word(process, type + layout->object_shift + PYTHON_TYPE_NAME, &at))
		return false;
	for (size_t i = 0; i < bytes; i++) {
		if (!remote_read(process->remote, at + i, &name[i], 1))
			return false;
		if (!name[i])
			return true;
	}
	name[bytes - 1] = 0;
	return true;
}

bool object_text(const struct layout *layout, struct process *process, uint64_t object, char *text, size_t bytes)
{
	long length;

	if (object_type(layout, process, object) != layout->text_type)
		return false;
	length = remote_text(process->remote, object, text, bytes - 1);
	if (length < 0)
		return false;
	text[length] = 0;
	return true;
}

/* --- dicts --- */

/* PyDictObject: ma_keys, ma_values */
enum { DICT_KEYS = 32, DICT_VALUES = 40 };

/* The entries of a PyDictKeysObject, in the order in which they were made. */
struct keys {
	uint64_t entries, count;
	unsigned stride, key; /* bytes of an entry, and where its key is; its value follows */
};

static bool read_keys(const struct layout *layout, struct process *process, uint64_t at, struct keys *keys)
{
	/* until 3.10: references, size, lookup, usable, entries, indices; then: references, sizes, usable, entries */
	uint64_t words[5], size;
	unsigned index_bits;

	if (!remote_read(process->remote, at, words, sizeof(words)))
		return false;
	if (!layout_has(layout, PYTHON_PACKED_KEYS)) {
		uint64_t width;

		size = words[1];
		width = size <= 0xff ? 1 : size <= 0xffff ? 2 : size <= 0xffffffff ? 4 : 8;
		if (!size || size >> 32 || size & (size - 1))
			return false;
		*keys = (struct keys){at + 40 + size * width, words[4], 24, 8};
	} else {
		index_bits = words[1] >> 8 & 0xff;
		if (index_bits > 40 || (words[1] & 0xff) > 40 || (words[1] >> 16 & 0xff) > 2)
			return false;
		size = UINT64_C(1) << (words[1] & 0xff);
		*keys = (struct keys){at + 32 + (UINT64_C(1) << index_bits), words[3], 16, 0};
		if (!(words[1] >> 16 & 0xff))
			keys->stride = 24, keys->key = 8;
	}
	return keys->count <= size;
}

/* The number of the entry of a name; -1: it has none. */
static long find_key(const struct layout *layout, struct process *process, const struct keys *keys, const char *name)
{
	char text[NAME_BYTES];
	uint64_t key;

	for (uint64_t i = 0; i < keys->count && i < ENTRIES_MAX; i++)
		if (process_word(process, keys->entries + i * keys->stride + keys->key, &key) &&
		    object_text(layout, process, key, text, sizeof(text)) && !strcmp(text, name))
			return (long)i;
	return -1;
}

/* Where the values of a dict that shares its keys begin. */
static uint64_t first_value(const struct layout *layout, uint64_t values)
{
	return values + (layout_has(layout, PYTHON_VALUES_INLINE) ? WORD : 0);
}

bool object_item(const struct layout *layout, struct process *process, uint64_t dict, const char *name, uint64_t *value)
{
	uint64_t at, values;
	struct keys keys;
	long i;

	if (!process_word(process, dict + layout->object_shift + DICT_KEYS, &at) ||
	    !process_word(process, dict + layout->object_shift + DICT_VALUES, &values) ||
	    !read_keys(layout, process, at, &keys))
		return false;
	i = find_key(layout, process, &keys, name);
	at = values ? first_value(layout, values) + WORD * (uint64_t)i
		    : keys.entries + (uint64_t)i * keys.stride + keys.key + WORD;
	return i >= 0 && process_word(process, at, value) && *value;
}

/* Finds a name in values that share the keys of their class. */
static bool find_in_values(const struct layout *layout, struct process *process, uint64_t type, uint64_t values,
			   const char *name, uint64_t *value)
{
	uint64_t at;
	struct keys keys;

	for (uint64_t offset = CACHED_KEYS_FIRST; offset < CACHED_KEYS_END; offset += WORD) {
		long i;

		if (!process_word(process, type + offset, &at) || !process_range_of(process, at) ||
		    !read_keys(layout, process, at, &keys) || keys.count > ENTRIES_MAX)
			continue;
		i = find_key(layout, process, &keys, name);
		if (i >= 0)
			return process_word(process, first_value(layout, values) + WORD * (uint64_t)i, value) && *value;
	}
	return false;
}

/* --- attributes --- */

/* From 3.13 on: the values are behind the object, as long as no dict has taken them over. */
static bool has_inline_values(const struct layout *layout, struct process *process, uint64_t object, uint64_t type,
			      uint64_t *values)
{
	uint64_t bytes;
	uint8_t head[4]; /* capacity, size, embedded, valid */

	if (!process_word(process, type + layout->object_shift + PYTHON_TYPE_BASIC_SIZE, &bytes) || bytes > 65536)
		return false;
	*values = object + bytes;
	return remote_read(process->remote, *values, head, sizeof(head)) && head[3] == 1;
}

/* 3.11 has two words before the object, 3.12 one whose lowest bit says that it has the values. */
static bool has_values(const struct layout *layout, struct process *process, uint64_t object, uint64_t *values)
{
	if (!process_word(process, object - (layout_has(layout, PYTHON_VALUES_BEFORE) ? 4 : 3) * WORD, values) ||
	    !*values)
		return false;
	return layout_has(layout, PYTHON_VALUES_BEFORE) || (*values)++ & 1;
}

bool object_attribute(const struct layout *layout, struct process *process, uint64_t object, const char *name,
		      uint64_t *value)
{
	uint64_t type = object_type(layout, process, object), flags, values, dict;
	int64_t offset = -3 * (int64_t)WORD;

	if (!type || !process_word(process, type + layout->object_shift + PYTHON_TYPE_FLAGS, &flags))
		return false;
	if (layout_has(layout, PYTHON_VALUES_INLINE) && flags & INLINE_VALUES &&
	    has_inline_values(layout, process, object, type, &values))
		return find_in_values(layout, process, type, values, name, value);
	if ((layout_has(layout, PYTHON_VALUES_BEFORE) || layout_has(layout, PYTHON_VALUES_TAGGED)) &&
	    flags & MANAGED_DICT && has_values(layout, process, object, &values))
		return find_in_values(layout, process, type, values, name, value);
	if (!layout_has(layout, PYTHON_PACKED_KEYS) || !(flags & MANAGED_DICT)) {
		if (!process_word(process, type + layout->object_shift + PYTHON_TYPE_DICT_OFFSET,
				  (uint64_t *)&offset) ||
		    offset <= 0 || offset > 65536)
			return false;
	} else if (layout->free_threaded) {
		offset = -(int64_t)WORD;
	}
	return process_word(process, object + (uint64_t)offset, &dict) && dict &&
	       object_item(layout, process, dict, name, value);
}
