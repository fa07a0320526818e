/*
 * sampled_code.c - see sampled_code.h. Called by the sampler.
 */
#include "sampler/sampled_code.h"

#include <stdlib.h>
#include <string.h>

#include "evprof/definition_key.h"

#define FIRST_SIZE 256
/* Code that the program compiles anew has another address: no more than these are known at a time. */
#define CODES_MAX (1u << 16)
/* For programs that make functions without end: stacks with later ones are not recorded. */
#define IDS_MAX (1u << 20)
#define LINES_MAX_BYTES (1u << 20)

static size_t place_of(const struct sampled_codes *codes, uint64_t address, const struct remote_code *is)
{
	size_t at = (address * UINT64_C(0x9e3779b97f4a7c15)) >> 20 & (codes->size - 1);

	while (codes->places[at].address &&
	       (codes->places[at].address != address || memcmp(&codes->places[at].is, is, sizeof(*is)) != 0))
		at = (at + 1) & (codes->size - 1);
	return at;
}

static bool grow_codes(struct sampled_codes *codes)
{
	struct sampled_codes larger = {.size = codes->size ? 2 * codes->size : FIRST_SIZE};

	larger.places = calloc(larger.size, sizeof(*larger.places));
	if (!larger.places)
		return false;
	for (size_t i = 0; i < codes->size; i++)
		if (codes->places[i].address)
			larger.places[place_of(&larger, codes->places[i].address, &codes->places[i].is)] =
			    codes->places[i];
	free(codes->places);
	codes->places = larger.places;
	codes->size = larger.size;
	return true;
}

static void keep_lines(struct sampled_code *code, struct remote *remote)
{
	uint64_t size;

	if (!remote_word(remote, code->is.lines + remote->layout.size, &size) || size > LINES_MAX_BYTES)
		return;
	code->lines = malloc(size ? size : 1);
	if (code->lines && remote_bytes(remote, code->is.lines, code->lines, size) == (long)size) {
		code->lines_size = size;
		return;
	}
	free(code->lines);
	code->lines = NULL;
}

/* The id of code whose lines are read; of new code, after defining it. 0: there is no room for that. */
static uint32_t id_of(struct sampled_codes *codes, const struct sampled_code *code, struct remote *remote,
		      struct ring_writer *writer)
{
	static char texts[3][WIRE_STRING_MAX_BYTES];
	const uint64_t objects[] = {code->is.file, code->is.name, code->is.qualified_name};
	const char *const strings[WIRE_DEFINITION_STRINGS] = {texts[0], texts[1], texts[2], ""};
	size_t lengths[WIRE_DEFINITION_STRINGS] = {0};
	struct wire_definition record = {.type = WIRE_DEFINE_CODE,
					 .flags = code->is.flags & WIRE_GENERATOR_CO_FLAGS ? WIRE_GENERATOR : 0,
					 .number = code->is.line < 0 ? 0 : (uint32_t)code->is.line};
	uint64_t key, *place;
	uint32_t id;

	for (int i = 0; i < 3; i++) {
		long n = objects[i] ? remote_text(remote, objects[i], texts[i], sizeof(texts[i])) : 0;

		if (n < 0)
			return 0;
		lengths[i] = (size_t)n;
		record.flags |= lengths[i] > WIRE_STRING_MAX_BYTES - 4 ? WIRE_CUT : 0;
	}
	key = definition_key_begin(&record);
	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++)
		key = definition_key_add(key, strings[i], lengths[i]);
	key = definition_key_end(definition_key_add(key, code->lines, code->lines_size));
	id = (uint32_t)u64_map_value(&codes->ids, key);
	if (id || codes->last_id >= IDS_MAX)
		return id;
	record.id = codes->last_id + 1;
	if (!ring_writer_define(writer, &record, strings, lengths))
		return 0;
	place = u64_map_make(&codes->ids, key);
	if (place) /* else it is defined again next time */
		*place = record.id;
	return codes->last_id = record.id;
}

static void forget_addresses(struct sampled_codes *codes)
{
	for (size_t i = 0; i < codes->size; i++)
		free(codes->places[i].lines);
	free(codes->places);
	codes->places = NULL;
	codes->size = codes->count = 0;
}

const struct sampled_code *sampled_code(struct sampled_codes *codes, struct remote *remote, struct ring_writer *writer,
					uint64_t address)
{
	struct sampled_code code = {.address = address};
	size_t at;

	if (!remote_code(remote, address, &code.is))
		return NULL;
	if (codes->count >= CODES_MAX)
		forget_addresses(codes);
	if (2 * codes->count >= codes->size && !grow_codes(codes))
		return NULL;
	at = place_of(codes, address, &code.is);
	if (codes->places[at].address)
		return &codes->places[at];
	keep_lines(&code, remote);
	code.id = id_of(codes, &code, remote, writer);
	if (!code.id) {
		free(code.lines);
		return NULL;
	}
	codes->places[at] = code;
	codes->count++;
	return &codes->places[at];
}

void sampled_codes_done(struct sampled_codes *codes)
{
	forget_addresses(codes);
	u64_map_done(&codes->ids);
	*codes = (struct sampled_codes){0};
}
