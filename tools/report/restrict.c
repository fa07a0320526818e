/*
 * restrict.c - pstats' restrictions: parsing and applying them. See rows.h.
 *
 * Regular expressions are those of regex(7), as everywhere in evprof, and the most common extensions of Python's.
 */
#include "report/rows.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cli.h"

/* --- regular expressions --- */

/* The bracket class for an escape such as \d, which regex(7) lacks; NULL: the letter has none. */
static const char *class_of(char letter)
{
	switch (letter) {
	case 'd':
		return "0-9";
	case 's':
		return "[:space:]";
	case 'w':
		return "[:alnum:]_";
	}
	return NULL;
}

/*
 * Copies a bracket expression from '[' on, translated to regex(7). Returns the position after ']', or NULL for an
 * escape that regex(7) cannot express.
 */
static const char *put_brackets(FILE *to, const char *from)
{
	fputc(*from++, to);
	if (*from == '^')
		fputc(*from++, to);
	if (*from == ']')
		fputc(*from++, to);
	for (; *from && *from != ']'; from++) {
		if (*from != '\\') {
			fputc(*from, to);
			continue;
		}
		from++;
		if (class_of(*from))
			fputs(class_of(*from), to);
		else if (ispunct((unsigned char)*from) && !strchr("]^-\\[", *from))
			fputc(*from, to);
		else
			return NULL;
	}
	if (*from)
		fputc(*from++, to);
	return from;
}

/*
 * Translates a Python regular expression to regex(7): \d, \D, \A, \Z, (?:...), a "{" that is not a repetition, and
 * classes in brackets. False if that is impossible; regcomp() reports other errors.
 */
static bool put_pattern(FILE *to, const char *from)
{
	while (from && *from) {
		if (*from == '[') {
			from = put_brackets(to, from);
		} else if (*from == '{' && !isdigit((unsigned char)from[1]) && from[1] != ',') {
			fputs("\\{", to);
			from++;
		} else if (strncmp(from, "(?:", 3) == 0) {
			fputc('(', to);
			from += 3;
		} else if (*from == '\\' && from[1]) {
			static const char *const said[][2] = {{"d", "[0-9]"}, {"D", "[^0-9]"}, {"A", "^"}, {"Z", "$"}};
			char other[3] = {'\\', from[1], 0};
			const char *text = other;
			size_t i;

			for (i = 0; i < sizeof(said) / sizeof(said[0]); i++)
				if (from[1] == said[i][0][0])
					text = said[i][1];
			fputs(text, to);
			from += 2;
		} else {
			fputc(*from++, to);
		}
	}
	return from != NULL;
}

/* Skips "(?i)" at the beginning, the only flag with an effect on names. */
static const char *skip_flags(const char *text, int *flags)
{
	if (strncmp(text, "(?i)", 4) != 0)
		return text;
	*flags |= REG_ICASE;
	return text + 4;
}

static bool compile_pattern(regex_t *pattern, const char *text)
{
	int flags = REG_EXTENDED | REG_NOSUB, error = REG_BADPAT;
	char why[128] = "an escape in brackets that regex(7) has not";
	char *translated = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&translated, &size);
	bool known = stream && put_pattern(stream, skip_flags(text, &flags));

	if (!stream || fclose(stream) != 0)
		snprintf(why, sizeof(why), "out of memory");
	else if (known && (error = translated ? regcomp(pattern, translated, flags) : REG_ESPACE))
		regerror(error, pattern, why, sizeof(why));
	free(translated);
	if (error)
		cli_misused("report", "\"%s\" is not a regular expression: %s", text, why);
	return error == 0;
}

/* --- parsing --- */

static uint32_t limited_count(int64_t count)
{
	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

/* Parses a number, if text is one. False: it is too large or negative, and an error is printed. */
static bool parse_restriction(struct report_restriction *restriction, const char *text)
{
	const char *unsigned_text = text + (*text == '-' || *text == '+');
	size_t digits = strspn(unsigned_text, "0123456789.");
	bool number = *unsigned_text && !unsigned_text[digits] && strcmp(unsigned_text, ".") != 0 &&
		      strchr(unsigned_text, '.') == strrchr(unsigned_text, '.');
	int64_t count;

	restriction->text = text;
	if (!number) {
		restriction->kind = RESTRICT_PATTERN;
		return compile_pattern(&restriction->pattern, text);
	}
	if (strchr(text, '.')) {
		restriction->kind = RESTRICT_FRACTION;
		restriction->fraction = strtod(text, NULL);
		if (!signbit(restriction->fraction) && restriction->fraction <= 1)
			return true;
		return cli_misused("report", "--restrict wants a fraction from 0.0 to 1.0, not %s", text);
	}
	restriction->kind = RESTRICT_COUNT;
	if (!cli_number("report", "--restrict", text, 0, &count))
		return false;
	restriction->count = limited_count(count);
	return true;
}

bool report_restrictions_add(struct report_restrictions *restrictions, const char *text)
{
	struct report_restriction *grown = realloc(restrictions->at, (restrictions->count + 1) * sizeof(*grown));

	if (!grown) {
		fprintf(stderr, "evprof report: out of memory\n");
		return false;
	}
	restrictions->at = grown;
	memset(&grown[restrictions->count], 0, sizeof(*grown));
	if (!parse_restriction(&grown[restrictions->count], text))
		return false;
	restrictions->count++;
	return true;
}

void report_restrictions_done(struct report_restrictions *restrictions)
{
	for (size_t i = 0; i < restrictions->count; i++)
		if (restrictions->at[i].kind == RESTRICT_PATTERN)
			regfree(&restrictions->at[i].pattern);
	free(restrictions->at);
	memset(restrictions, 0, sizeof(*restrictions));
}

/* --- applying --- */

static uint32_t keep_matching(struct report_rows *rows, const regex_t *pattern)
{
	uint32_t kept = 0, i;

	for (i = 0; i < rows->shown_count; i++)
		if (regexec(pattern, rows->rows[rows->shown[i]].name.at, 0, NULL, 0) == 0)
			rows->shown[kept++] = rows->shown[i];
	return kept;
}

static uint32_t restricted_count(struct report_rows *rows, const struct report_restriction *restriction)
{
	switch (restriction->kind) {
	case RESTRICT_PATTERN:
		return keep_matching(rows, &restriction->pattern);
	case RESTRICT_FRACTION:
		return (uint32_t)(rows->shown_count * restriction->fraction + 0.5);
	case RESTRICT_COUNT:
		break;
	}
	return restriction->count < rows->shown_count ? restriction->count : rows->shown_count;
}

/* Prints a float like Python's repr(): the shortest text with the same value. */
static void print_fraction(struct output *output, double fraction)
{
	char text[32];
	int digits = 0;

	do
		snprintf(text, sizeof(text), "%.*g", ++digits, fraction);
	while (digits < 17 && strtod(text, NULL) != fraction);
	output_string(output, text);
	output_string(output, strpbrk(text, ".e") ? "" : ".0");
}

/* Prints a string like Python's repr(), for one line of text. */
static void print_pattern(struct output *output, const char *text)
{
	char quote = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'';

	output_char(output, quote);
	while (*text) {
		size_t plain = quote == '\'' ? strcspn(text, "'") : strlen(text);

		output_line(output, (struct text){text, plain});
		text += plain;
		if (*text) {
			output_string(output, "\\'");
			text++;
		}
	}
	output_char(output, quote);
}

static void print_reduction(struct output *output, const struct report_restriction *restriction, uint32_t before,
			    uint32_t after)
{
	output_format(output, "   List reduced from %u to %u due to restriction <", before, after);
	if (restriction->kind == RESTRICT_COUNT)
		output_format(output, "%u", restriction->count);
	else if (restriction->kind == RESTRICT_FRACTION)
		print_fraction(output, restriction->fraction);
	else
		print_pattern(output, restriction->text);
	output_string(output, ">\n");
}

void report_rows_restrict(struct report_rows *rows, const struct report_restrictions *restrictions,
			  struct output *output)
{
	struct report_restriction limit = {.kind = RESTRICT_COUNT, .count = limited_count(restrictions->limit)};

	for (size_t i = 0; i < restrictions->count + (restrictions->limit >= 0); i++) {
		const struct report_restriction *one = i < restrictions->count ? &restrictions->at[i] : &limit;
		uint32_t before = rows->shown_count;

		rows->shown_count = restricted_count(rows, one);
		if (rows->shown_count != before)
			print_reduction(output, one, before, rows->shown_count);
	}
}
