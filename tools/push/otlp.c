/*
 * otlp.c - see otlp.h.
 *
 * The first element of each table stands for "none". Frames of Python have the type "cpython", C functions "native"
 * (profile.frame.type of OpenTelemetry's semantic conventions).
 */
#include "push/otlp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/version.h"
#include "util/grow.h"

/* Fields by message. */
enum {
	REQUEST_RESOURCE_PROFILES = 1,
	REQUEST_DICTIONARY = 2,
	DICTIONARY_MAPPING = 1,
	DICTIONARY_LOCATION = 2,
	DICTIONARY_FUNCTION = 3,
	DICTIONARY_LINK = 4,
	DICTIONARY_STRING = 5,
	DICTIONARY_ATTRIBUTE = 6,
	DICTIONARY_STACK = 7,
	RESOURCE_PROFILES_RESOURCE = 1,
	RESOURCE_PROFILES_SCOPE_PROFILES = 2,
	RESOURCE_ATTRIBUTES = 1,
	SCOPE_PROFILES_SCOPE = 1,
	SCOPE_PROFILES_PROFILES = 2,
	SCOPE_NAME = 1,
	SCOPE_VERSION = 2,
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLES = 2,
	PROFILE_TIME_UNIX_NANO = 3,
	PROFILE_DURATION_NANO = 4,
	PROFILE_ID = 7,
	VALUE_TYPE = 1,
	VALUE_UNIT = 2,
	SAMPLE_STACK = 1,
	SAMPLE_VALUES = 4,
	STACK_LOCATIONS = 1,
	LOCATION_LINES = 3,
	LOCATION_ATTRIBUTES = 4,
	LINE_FUNCTION = 1,
	LINE_LINE = 2,
	FUNCTION_NAME = 1,
	FUNCTION_FILE = 3,
	FUNCTION_START_LINE = 4,
	ATTRIBUTE_KEY = 1,
	ATTRIBUTE_VALUE = 2,
	KEY_VALUE_KEY = 1,
	KEY_VALUE_VALUE = 2,
	ANY_STRING = 1,
	ANY_INT = 3,
};

enum { FRAME_OF_PYTHON = 1, FRAME_OF_C = 2 }; /* in the table of attributes */

/* The strings at the start of the table. */
enum { STRING_NONE, STRING_FRAME_TYPE, STRING_TYPES };

static uint32_t put_string(struct otlp *otlp, struct text text)
{
	protobuf_text(&otlp->strings, DICTIONARY_STRING, text);
	return otlp->string_count++;
}

/* An empty message: the first element of a table. */
static void put_none(struct protobuf *table, uint32_t field)
{
	protobuf_begin(table, field);
	protobuf_end(table);
}

void otlp_begin(struct otlp *otlp, const struct push_counts *counts)
{
	otlp->counts = counts;
	otlp->string_count = 0;
	otlp->function_count = otlp->location_count = otlp->stack_count = 1;
	put_string(otlp, text_of(""));
	put_string(otlp, text_of("profile.frame.type"));
	for (unsigned i = 0; i < PUSH_WEIGHTS; i++) {
		put_string(otlp, text_of(push_types[i][0]));
		put_string(otlp, text_of(push_types[i][1]));
	}
	put_none(&otlp->functions, DICTIONARY_FUNCTION);
	put_none(&otlp->locations, DICTIONARY_LOCATION);
	put_none(&otlp->stacks, DICTIONARY_STACK);
}

/* --- the dictionary --- */

static uint32_t put_function(struct otlp *otlp, const struct stack_function *function)
{
	uint32_t name = put_string(otlp, text_of(function->name)), file = put_string(otlp, function->file);

	protobuf_begin(&otlp->functions, DICTIONARY_FUNCTION);
	protobuf_nonzero(&otlp->functions, FUNCTION_NAME, name);
	protobuf_nonzero(&otlp->functions, FUNCTION_FILE, file);
	protobuf_nonzero(&otlp->functions, FUNCTION_START_LINE, function->begins);
	protobuf_end(&otlp->functions);
	return otlp->function_count++;
}

static uint32_t put_location(struct otlp *otlp, const struct stack_function *function)
{
	struct protobuf *table = &otlp->locations;
	uint32_t number = put_function(otlp, function);

	protobuf_begin(table, DICTIONARY_LOCATION);
	protobuf_begin(table, LOCATION_LINES);
	protobuf_nonzero(table, LINE_FUNCTION, number);
	protobuf_nonzero(table, LINE_LINE, function->line);
	protobuf_end(table);
	protobuf_begin(table, LOCATION_ATTRIBUTES);
	protobuf_varint(table, function->is_c ? FRAME_OF_C : FRAME_OF_PYTHON);
	protobuf_end(table);
	protobuf_end(table);
	return otlp->location_count++;
}

/* 0: memory ran out. */
static uint32_t location_of(struct otlp *otlp, uint32_t function)
{
	if (grow_for(&otlp->locations_known, &otlp->locations_allocated, function, sizeof(uint32_t)) < 0)
		return 0;
	if (!otlp->locations_known[function])
		otlp->locations_known[function] = put_location(otlp, &otlp->counts->functions.at[function]);
	return otlp->locations_known[function];
}

/* Innermost frame first. Returns 0 or -ENOMEM. */
static int put_stack(struct otlp *otlp, uint32_t stack)
{
	const struct stack_node *nodes = otlp->counts->stacks.at;
	unsigned depth = 0;

	protobuf_begin(&otlp->stacks, DICTIONARY_STACK);
	protobuf_begin(&otlp->stacks, STACK_LOCATIONS);
	for (uint32_t at = stack; at && depth < OTLP_DEPTH_MAX; at = nodes[at].parent, depth++) {
		uint32_t location = location_of(otlp, nodes[at].function);

		if (!location)
			otlp->stacks.error = -ENOMEM;
		protobuf_varint(&otlp->stacks, location);
	}
	protobuf_end(&otlp->stacks);
	protobuf_end(&otlp->stacks);
	otlp->stack_count++;
	return otlp->stacks.error;
}

int otlp_add(struct otlp *otlp, uint32_t stack, const struct push_values *values)
{
	/* The empty stack, of what is outside of all known functions, is that without locations. */
	uint32_t number = stack ? otlp->stack_count : 0;
	int error = stack ? put_stack(otlp, stack) : 0;

	for (unsigned i = 0; i < PUSH_WEIGHTS && !error; i++) {
		struct protobuf *samples = &otlp->samples[i];

		if (!values->at[i])
			continue;
		protobuf_begin(samples, PROFILE_SAMPLES);
		protobuf_nonzero(samples, SAMPLE_STACK, number);
		protobuf_begin(samples, SAMPLE_VALUES);
		protobuf_varint(samples, values->at[i]);
		protobuf_end(samples);
		protobuf_end(samples);
		error = samples->error;
	}
	return error;
}

bool otlp_is_full(const struct otlp *otlp)
{
	size_t bytes = otlp->strings.used + otlp->functions.used + otlp->locations.used + otlp->stacks.used;

	for (unsigned i = 0; i < PUSH_WEIGHTS; i++)
		bytes += otlp->samples[i].used;
	return bytes >= OTLP_REQUEST_BYTES;
}

/* --- the request --- */

static void put_id(struct protobuf *request, const struct push_interval *interval, unsigned weight)
{
	uint8_t id[PUSH_ID_BYTES];

	push_interval_id(interval, (uint8_t)(weight + 1), id);
	protobuf_begin(request, PROFILE_ID);
	protobuf_put(request, id, sizeof(id));
	protobuf_end(request);
}

static void put_profile(const struct otlp *otlp, const struct push_interval *interval, unsigned weight,
			struct protobuf *request)
{
	bool is_live = push_is_live(weight);
	uint64_t end_ns = interval->begin_ns + interval->length_ns;

	protobuf_begin(request, SCOPE_PROFILES_PROFILES);
	protobuf_begin(request, PROFILE_SAMPLE_TYPE);
	protobuf_number(request, VALUE_TYPE, STRING_TYPES + 2 * weight);
	protobuf_number(request, VALUE_UNIT, STRING_TYPES + 2 * weight + 1);
	protobuf_end(request);
	protobuf_put(request, otlp->samples[weight].bytes, otlp->samples[weight].used);
	protobuf_fixed64(request, PROFILE_TIME_UNIX_NANO, is_live ? end_ns : interval->begin_ns);
	protobuf_nonzero(request, PROFILE_DURATION_NANO, is_live ? 0 : interval->length_ns);
	put_id(request, interval, weight);
	protobuf_end(request);
}

static void put_attribute(struct protobuf *request, uint32_t key, const char *value)
{
	protobuf_begin(request, DICTIONARY_ATTRIBUTE);
	protobuf_number(request, ATTRIBUTE_KEY, key);
	protobuf_begin(request, ATTRIBUTE_VALUE);
	protobuf_string(request, ANY_STRING, value);
	protobuf_end(request);
	protobuf_end(request);
}

static void put_dictionary(const struct otlp *otlp, struct protobuf *request)
{
	protobuf_begin(request, REQUEST_DICTIONARY);
	put_none(request, DICTIONARY_MAPPING);
	protobuf_put(request, otlp->locations.bytes, otlp->locations.used);
	protobuf_put(request, otlp->functions.bytes, otlp->functions.used);
	put_none(request, DICTIONARY_LINK);
	protobuf_put(request, otlp->strings.bytes, otlp->strings.used);
	put_none(request, DICTIONARY_ATTRIBUTE);
	put_attribute(request, STRING_FRAME_TYPE, "cpython");
	put_attribute(request, STRING_FRAME_TYPE, "native");
	protobuf_put(request, otlp->stacks.bytes, otlp->stacks.used);
	protobuf_end(request);
}

void otlp_clear(struct otlp *otlp)
{
	protobuf_clear(&otlp->strings);
	protobuf_clear(&otlp->functions);
	protobuf_clear(&otlp->locations);
	protobuf_clear(&otlp->stacks);
	for (unsigned i = 0; i < PUSH_WEIGHTS; i++)
		protobuf_clear(&otlp->samples[i]);
	if (otlp->locations_known)
		memset(otlp->locations_known, 0, otlp->locations_allocated * sizeof(uint32_t));
}

static void put_resource(const struct push_resource *resource, struct protobuf *request)
{
	for (size_t i = 0; i < resource->count; i++) {
		const struct push_attribute *attribute = &resource->at[i];

		protobuf_begin(request, RESOURCE_ATTRIBUTES);
		protobuf_string(request, KEY_VALUE_KEY, attribute->key);
		protobuf_begin(request, KEY_VALUE_VALUE);
		if (attribute->value)
			protobuf_string(request, ANY_STRING, attribute->value);
		else
			protobuf_number(request, ANY_INT, (uint64_t)attribute->number);
		protobuf_end(request);
		protobuf_end(request);
	}
}

static int error_of(const struct otlp *otlp)
{
	return otlp->strings.error | otlp->functions.error | otlp->locations.error | otlp->stacks.error;
}

int otlp_finish(struct otlp *otlp, const struct push_interval *interval, struct protobuf *request)
{
	int error = error_of(otlp);

	protobuf_begin(request, REQUEST_RESOURCE_PROFILES);
	protobuf_begin(request, RESOURCE_PROFILES_RESOURCE);
	put_resource(interval->resource, request);
	protobuf_end(request);
	protobuf_begin(request, RESOURCE_PROFILES_SCOPE_PROFILES);
	protobuf_begin(request, SCOPE_PROFILES_SCOPE);
	protobuf_string(request, SCOPE_NAME, "evprof");
	protobuf_string(request, SCOPE_VERSION, EVPROF_VERSION);
	protobuf_end(request);
	for (unsigned i = 0; i < PUSH_WEIGHTS; i++)
		if (interval->known[i])
			put_profile(otlp, interval, i, request);
	protobuf_end(request);
	protobuf_end(request);
	put_dictionary(otlp, request);
	otlp_clear(otlp);
	return error ? -ENOMEM : request->error;
}

void otlp_done(struct otlp *otlp)
{
	protobuf_done(&otlp->strings);
	protobuf_done(&otlp->functions);
	protobuf_done(&otlp->locations);
	protobuf_done(&otlp->stacks);
	for (unsigned i = 0; i < PUSH_WEIGHTS; i++)
		protobuf_done(&otlp->samples[i]);
	free(otlp->locations_known);
}
