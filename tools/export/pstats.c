/*
 * pstats.c - evprof export --format pstats: the file that cProfile writes and pstats reads.
 *
 * One object in Python's marshal format, version 2, which every Python since 2.5 reads:
 *
 *   {(file, line, name): (cc, nc, tt, ct, {(file, line, name) of a caller: (nc, cc, tt, ct)})}
 *
 * nc is the number of all calls, cc of the primitive ones; tt is the own time and ct the cumulative time in seconds.
 * The order differs as in cProfile's own files: a function begins with cc, a caller with nc. Memory: that of the
 * profile.
 */

#include "analysis/profile.h"
#include "export/export.h"
#include "report/rows.h"

/* Type codes of marshal. */
#define MARSHAL_DICT '{'
#define MARSHAL_DICT_END '0'
#define MARSHAL_TUPLE '('
#define MARSHAL_INT 'i'	  /* int32_t */
#define MARSHAL_LONG 'l'  /* int32_t number of digits, 15 bits in each uint16_t, the lowest first */
#define MARSHAL_FLOAT 'g' /* double */
#define MARSHAL_TEXT 'u'  /* int32_t bytes, UTF-8; lone surrogates are allowed */

#define MARSHAL_DIGIT_BITS 15

static void put_u32(struct output *output, uint32_t value)
{
	output_put(output, &value, sizeof(value));
}

static void put_tuple(struct output *output, uint32_t count)
{
	output_char(output, MARSHAL_TUPLE);
	put_u32(output, count);
}

static void put_number(struct output *output, uint64_t value)
{
	uint16_t digits[(64 + MARSHAL_DIGIT_BITS - 1) / MARSHAL_DIGIT_BITS];
	uint32_t count = 0;

	if (value <= INT32_MAX) {
		output_char(output, MARSHAL_INT);
		put_u32(output, (uint32_t)value);
		return;
	}
	for (; value; value >>= MARSHAL_DIGIT_BITS)
		digits[count++] = (uint16_t)(value & ((1u << MARSHAL_DIGIT_BITS) - 1));
	output_char(output, MARSHAL_LONG);
	put_u32(output, count);
	output_put(output, digits, count * sizeof(*digits));
}

static void put_seconds(struct output *output, uint64_t ns)
{
	double seconds = (double)ns / 1e9;

	output_char(output, MARSHAL_FLOAT);
	output_put(output, &seconds, sizeof(seconds));
}

/* Invalid text becomes U+FFFD. The length precedes the bytes, so the text is read twice. */
static void put_text(struct output *output, struct text text)
{
	static const char replacement[] = "\xef\xbf\xbd";
	const size_t replacement_bytes = sizeof(replacement) - 1;
	struct text rest = text;
	size_t length = 0;

	while (rest.length) {
		size_t before = rest.length;

		length += text_next(&rest) == TEXT_INVALID ? replacement_bytes : before - rest.length;
	}
	output_char(output, MARSHAL_TEXT);
	put_u32(output, (uint32_t)length);
	while (text.length) {
		const char *at = text.at;

		if (text_next(&text) == TEXT_INVALID)
			output_put(output, replacement, replacement_bytes);
		else
			output_put(output, at, (size_t)(text.at - at));
	}
}

static void put_function(struct output *output, const struct label *label)
{
	put_tuple(output, 3);
	put_text(output, label->file);
	put_number(output, label->line);
	put_text(output, label->name);
}

static void put_callers(struct output *output, const struct report_rows *rows, struct report_calls callers)
{
	output_char(output, MARSHAL_DICT);
	for (size_t i = 0; i < callers.count; i++) {
		const struct profile_times *times = &callers.at[i].times;

		put_function(output, rows->rows[callers.at[i].other].label);
		put_tuple(output, 4);
		put_number(output, times->calls);
		put_number(output, report_primitive_calls(times));
		put_seconds(output, times->own_ns);
		put_seconds(output, times->total_ns);
	}
	output_char(output, MARSHAL_DICT_END);
}

static void put_rows(struct output *output, const struct report_rows *rows)
{
	output_char(output, MARSHAL_DICT);
	for (uint32_t i = 0; i < rows->count; i++) {
		const struct profile_times *times = &rows->rows[i].times;

		put_function(output, rows->rows[i].label);
		put_tuple(output, 5);
		put_number(output, report_primitive_calls(times));
		put_number(output, times->calls);
		put_seconds(output, times->own_ns);
		put_seconds(output, times->total_ns);
		put_callers(output, rows, report_calls(rows, i, true));
	}
	output_char(output, MARSHAL_DICT_END);
}

int export_pstats(const struct export *export, struct output *output, struct progress *progress)
{
	struct profile_options options = {.filter = export->filter, .edges = true};
	struct profile profile = {0};
	struct report_rows rows = {0};
	int error = profile_add(&profile, export->trace, &options, progress);

	if (!error)
		error = report_rows_init(&rows, &profile, false, false);
	if (!error)
		put_rows(output, &rows);
	report_rows_done(&rows);
	profile_done(&profile);
	return error;
}
