/*
 * series.c - see series.h.
 *
 * The profiles of a request share one table of strings, functions and locations, which is in each of them: what is
 * measured by one weight is nearly always measured by the others.
 */
#include "push/series.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/deflate.h"
#include "export/pprof_fields.h"
#include "util/grow.h"

/* The series: weights that follow each other. */
static const struct {
	const char *name;
	unsigned first, count;
} kinds[SERIES] = {
    {"calls", PUSH_CALLS, 1},	     {"wall", PUSH_WALL_NS, 1},	      {"process_cpu", PUSH_CPU_NS, 1},
    {"off_cpu", PUSH_OFF_CPU_NS, 1}, {"memory", PUSH_ALLOCATIONS, 2}, {"memory", PUSH_LIVE_BLOCKS, 2},
};

/* The strings at the start of the table: "", then type and unit of each weight, then the program. */
enum { STRING_NONE, STRING_TYPES, STRING_PROGRAM = STRING_TYPES + 2 * PUSH_WEIGHTS };

#define MAPPING 1 /* the program */

static uint64_t put_string(struct series *series, struct text text)
{
	protobuf_text(&series->names, PROFILE_STRING, text);
	return series->string_count++;
}

void series_begin(struct series *series, const struct push_counts *counts)
{
	const char *program = trace_process_text(counts->process, "program");

	series->counts = counts;
	series->string_count = 0;
	series->stack_count = 0;
	put_string(series, text_of(""));
	for (unsigned i = 0; i < PUSH_WEIGHTS; i++) {
		put_string(series, text_of(push_types[i][0]));
		put_string(series, text_of(push_types[i][1]));
	}
	put_string(series, text_of(program[0] ? program : "python"));
	/* All names are here: nobody has to look for symbols. */
	protobuf_begin(&series->names, PROFILE_MAPPING);
	protobuf_number(&series->names, MAPPING_ID, MAPPING);
	protobuf_number(&series->names, MAPPING_FILE, STRING_PROGRAM);
	protobuf_number(&series->names, MAPPING_HAS_FUNCTIONS, 1);
	protobuf_number(&series->names, MAPPING_HAS_FILES, 1);
	protobuf_number(&series->names, MAPPING_HAS_LINES, 1);
	protobuf_end(&series->names);
}

/* A function and its location, both with that id. */
static void put_function(struct series *series, const struct stack_function *function, uint64_t id)
{
	uint64_t name = put_string(series, text_of(function->name)), file = put_string(series, function->file);

	protobuf_begin(&series->names, PROFILE_FUNCTION);
	protobuf_number(&series->names, FUNCTION_ID, id);
	protobuf_number(&series->names, FUNCTION_NAME, name);
	protobuf_number(&series->names, FUNCTION_FILE, file);
	protobuf_nonzero(&series->names, FUNCTION_LINE, function->begins);
	protobuf_end(&series->names);
	protobuf_begin(&series->names, PROFILE_LOCATION);
	protobuf_number(&series->names, LOCATION_ID, id);
	protobuf_number(&series->names, LOCATION_MAPPING, MAPPING);
	protobuf_begin(&series->names, LOCATION_LINE);
	protobuf_number(&series->names, LINE_FUNCTION, id);
	protobuf_nonzero(&series->names, LINE_NUMBER, function->line);
	protobuf_end(&series->names);
	protobuf_end(&series->names);
}

/* The functions of a stack are in the table. Returns 0 or -ENOMEM. */
static int know_functions(struct series *series, uint32_t stack)
{
	const struct push_counts *counts = series->counts;
	unsigned depth = 0;

	for (uint32_t at = stack; at && depth < SERIES_DEPTH_MAX; at = counts->stacks.at[at].parent, depth++) {
		uint32_t function = counts->stacks.at[at].function;

		if (grow_for(&series->written, &series->written_allocated, function, sizeof(*series->written)) < 0)
			return -ENOMEM;
		if (!series->written[function])
			put_function(series, &counts->functions.at[function], (uint64_t)function + 1);
		series->written[function] = 1;
	}
	return series->names.error;
}

static bool has_any(const struct push_values *values, unsigned kind)
{
	for (unsigned i = 0; i < kinds[kind].count; i++)
		if (values->at[kinds[kind].first + i])
			return true;
	return false;
}

static void put_sample(struct series *series, unsigned kind, uint32_t stack, const struct push_values *values)
{
	const struct stack_node *nodes = series->counts->stacks.at;
	struct protobuf *samples = &series->samples[kind];
	unsigned depth = 0;

	protobuf_begin(samples, PROFILE_SAMPLE);
	protobuf_begin(samples, SAMPLE_LOCATIONS); /* innermost first */
	for (uint32_t at = stack; at && depth < SERIES_DEPTH_MAX; at = nodes[at].parent, depth++)
		protobuf_varint(samples, (uint64_t)nodes[at].function + 1);
	protobuf_end(samples);
	protobuf_begin(samples, SAMPLE_VALUES);
	for (unsigned i = 0; i < kinds[kind].count; i++)
		protobuf_varint(samples, values->at[kinds[kind].first + i]);
	protobuf_end(samples);
	protobuf_end(samples);
}

int series_add(struct series *series, uint32_t stack, const struct push_values *values)
{
	int error = know_functions(series, stack);

	for (unsigned i = 0; i < SERIES && !error; i++) {
		if (!has_any(values, i))
			continue;
		put_sample(series, i, stack, values);
		error = series->samples[i].error;
	}
	series->stack_count++;
	return error;
}

bool series_is_full(const struct series *series)
{
	size_t most = 0;

	for (unsigned i = 0; i < SERIES; i++)
		most = series->samples[i].used > most ? series->samples[i].used : most;
	return series->stack_count >= SERIES_STACKS_MAX || series->names.used + most >= SERIES_PROFILE_BYTES;
}

/* --- a profile --- */

static void put_type(struct protobuf *profile, uint32_t field, unsigned weight)
{
	protobuf_begin(profile, field);
	protobuf_number(profile, VALUE_TYPE, STRING_TYPES + 2 * weight);
	protobuf_number(profile, VALUE_UNIT, STRING_TYPES + 2 * weight + 1);
	protobuf_end(profile);
}

/* What a profile has before its tables. Each event counts: the period is one of its unit. */
static void put_head(struct protobuf *head, const struct push_interval *interval, unsigned kind)
{
	bool is_live = push_is_live(kinds[kind].first);
	uint64_t end_ns = interval->begin_ns + interval->length_ns;

	for (unsigned i = 0; i < kinds[kind].count; i++)
		put_type(head, PROFILE_SAMPLE_TYPE, kinds[kind].first + i);
	protobuf_number(head, PROFILE_TIME_NANOS, is_live ? end_ns : interval->begin_ns);
	protobuf_nonzero(head, PROFILE_DURATION_NANOS, is_live ? 0 : interval->length_ns);
	put_type(head, PROFILE_PERIOD_TYPE, kinds[kind].first + kinds[kind].count - 1);
	protobuf_number(head, PROFILE_PERIOD, 1);
}

/* In base64, compressed by gzip. */
static int put_profile(const struct series *series, const struct push_interval *interval, unsigned kind,
		       struct output *output)
{
	struct protobuf head = {0};
	struct output packed;
	z_stream gzip = {0};
	int error = output_open_memory(&packed);

	if (error)
		return error;
	if (!deflate_begin_gzip(&gzip)) {
		output_abandon(&packed);
		return -ENOMEM;
	}
	put_head(&head, interval, kind);
	deflate_put(&gzip, &packed, head.bytes, head.used, Z_NO_FLUSH);
	deflate_put(&gzip, &packed, series->names.bytes, series->names.used, Z_NO_FLUSH);
	deflate_put(&gzip, &packed, series->samples[kind].bytes, series->samples[kind].used, Z_FINISH);
	deflateEnd(&gzip);
	error = head.error ? head.error : packed.error;
	protobuf_done(&head);
	output_base64(output, packed.buffer, packed.used);
	output_abandon(&packed);
	return error;
}

/* --- labels --- */

struct label_writer {
	struct output *output;
	unsigned count;
};

static void put_label(struct label_writer *writer, const char *name, struct text value)
{
	if (writer->count >= SERIES_LABELS_MAX)
		return;
	if (value.length > SERIES_VALUE_BYTES)
		value.length = SERIES_VALUE_BYTES;
	output_string(writer->output, writer->count++ ? ",{\"name\":\"" : "{\"name\":\"");
	output_string(writer->output, name);
	output_string(writer->output, "\",\"value\":\"");
	output_json(writer->output, value);
	output_string(writer->output, "\"}");
}

/*
 * Letters, digits and "_", and no digit first; names that begin with "__" are reserved. False: none is left of the key.
 */
static bool label_name(const char *key, char name[SERIES_VALUE_BYTES])
{
	size_t used = 0;

	for (const char *at = key; *at && used < SERIES_VALUE_BYTES - 1; at++) {
		bool is_plain = (isalnum((unsigned char)*at) && !(*at & 0x80)) || *at == '_';

		if (used ? true : is_plain && *at != '_' && !isdigit((unsigned char)*at))
			name[used++] = is_plain ? *at : '_';
	}
	name[used] = 0;
	return used > 0;
}

/* Whether an attribute before it has the same name: a series has a label once. */
static bool is_double(const struct push_resource *resource, size_t at, const char *name)
{
	char other[SERIES_VALUE_BYTES];

	for (size_t i = 0; i < at; i++)
		if (label_name(resource->at[i].key, other) && strcmp(other, name) == 0)
			return true;
	return false;
}

static void put_labels(struct output *output, const struct push_interval *interval, const char *series, bool is_parca)
{
	const struct push_resource *resource = interval->resource;
	struct label_writer writer = {.output = output};
	char name[SERIES_VALUE_BYTES], number[24];

	put_label(&writer, "__name__", text_of(series));
	if (!is_parca) /* the values are those of the interval: Pyroscope has no difference to compute */
		put_label(&writer, "__delta__", text_of("false"));
	for (size_t i = 0; i < resource->count; i++) {
		const struct push_attribute *attribute = &resource->at[i];

		if (!label_name(attribute->key, name) || is_double(resource, i, name))
			continue;
		snprintf(number, sizeof(number), "%lld", (long long)attribute->number);
		put_label(&writer, name, text_of(attribute->value ? attribute->value : number));
	}
}

/* --- the request --- */

/* A UUID. */
static void put_id(struct output *output, const struct push_interval *interval, unsigned kind)
{
	uint8_t id[PUSH_ID_BYTES];

	push_interval_id(interval, (uint8_t)(kind + 1), id);
	output_string(output, "\"ID\":\"");
	for (unsigned i = 0; i < PUSH_ID_BYTES; i++)
		output_format(output, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
	output_string(output, "\",");
}

static int put_series(const struct series *series, const struct push_interval *interval, unsigned kind, bool is_parca,
		      struct output *output)
{
	int error;

	output_string(output, is_parca ? "{\"labels\":{\"labels\":[" : "{\"labels\":[");
	put_labels(output, interval, kinds[kind].name, is_parca);
	output_string(output, is_parca ? "]},\"samples\":[{" : "],\"samples\":[{");
	if (!is_parca)
		put_id(output, interval, kind);
	output_string(output, "\"rawProfile\":\"");
	error = put_profile(series, interval, kind, output);
	output_string(output, "\"}]}");
	return error;
}

int series_finish(struct series *series, const struct push_interval *interval, bool is_parca, struct protobuf *request)
{
	struct output output;
	int error = series->names.error ? series->names.error : output_open_memory(&output);
	unsigned count = 0;

	if (error)
		return error;
	output_string(&output, is_parca ? "{\"normalized\":true,\"series\":[" : "{\"series\":[");
	for (unsigned i = 0; i < SERIES && !error; i++) {
		if (!series->samples[i].used || !interval->known[kinds[i].first])
			continue;
		if (count++)
			output_char(&output, ',');
		error = put_series(series, interval, i, is_parca, &output);
	}
	output_string(&output, "]}");
	if (!error)
		error = output.error;
	protobuf_put(request, output.buffer, output.used);
	output_abandon(&output);
	series_clear(series);
	return error ? error : request->error;
}

void series_clear(struct series *series)
{
	protobuf_clear(&series->names);
	for (unsigned i = 0; i < SERIES; i++)
		protobuf_clear(&series->samples[i]);
	if (series->written)
		memset(series->written, 0, series->written_allocated * sizeof(*series->written));
}

void series_done(struct series *series)
{
	protobuf_done(&series->names);
	for (unsigned i = 0; i < SERIES; i++)
		protobuf_done(&series->samples[i]);
	free(series->written);
}
