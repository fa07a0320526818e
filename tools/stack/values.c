/* values.c - see values.h. */
#include "stack/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stack/objects.h"

#define WORD sizeof(uint64_t)
#define SHOWN_BYTES 100 /* of a str or bytes */
#define DIGITS_MAX 32	/* of an int: 30 bits each */
#define DIGIT_BITS 30
#define BILLION 1000000000u

/* True: the value has a text. */
static bool set_plain(struct value *value)
{
	value->bytes = strlen(value->text);
	value->plain = true;
	return true;
}

/* --- int --- */

/* Until 3.11 the sign of the size is that of the number; then the lowest three bits of the size have it. */
static bool read_size(const struct layout *layout, struct process *process, uint64_t object, uint64_t *count,
		      bool *negative)
{
	uint64_t word;

	if (!process_word(process, object + layout->fields.size, &word))
		return false;
	if (layout->minor >= 12) {
		*negative = (word & 3) == 2;
		*count = word >> 3;
		return true;
	}
	*negative = word >> 63;
	*count = *negative ? -word : word;
	return true;
}

/* Divides the digits by a billion, and returns the remainder. */
static uint32_t divide(uint32_t *digits, size_t count)
{
	uint64_t rest = 0;

	for (size_t i = count; i-- > 0;) {
		rest = rest << DIGIT_BITS | digits[i];
		digits[i] = (uint32_t)(rest / BILLION);
		rest %= BILLION;
	}
	return (uint32_t)rest;
}

static bool any_digit(const uint32_t *digits, size_t count)
{
	while (count && !digits[count - 1])
		count--;
	return count > 0;
}

static void write_decimal(uint32_t *digits, size_t count, bool negative, char *text, size_t bytes)
{
	uint32_t parts[2 * DIGITS_MAX];
	size_t used = 0, at = 0;

	do {
		parts[used++] = divide(digits, count);
	} while (used < 2 * DIGITS_MAX && any_digit(digits, count));
	at += (size_t)snprintf(text, bytes, "%s%u", negative ? "-" : "", parts[--used]);
	while (used-- > 0 && at < bytes)
		at += (size_t)snprintf(text + at, bytes - at, "%09u", parts[used]);
}

/* A number of more than DIGITS_MAX digits is not plain. */
static bool read_int(const struct layout *layout, struct process *process, uint64_t object, struct value *value)
{
	uint32_t digits[DIGITS_MAX];
	uint64_t count;
	bool negative;

	if (!read_size(layout, process, object, &count, &negative))
		return false;
	if (count > DIGITS_MAX)
		return true;
	if (count && !remote_read(process->remote, object + layout->object_shift + PYTHON_INT_DIGIT, digits,
				  count * sizeof(*digits)))
		return false;
	for (uint64_t i = 0; i < count; i++)
		digits[i] &= (UINT32_C(1) << DIGIT_BITS) - 1;
	write_decimal(digits, count, negative, value->text, sizeof(value->text));
	return set_plain(value);
}

static bool read_bool(const struct layout *layout, struct process *process, uint64_t object, struct value *value)
{
	uint32_t digit;

	if (!remote_read(process->remote, object + layout->object_shift + PYTHON_INT_DIGIT, &digit, sizeof(digit)))
		return false;
	strcpy(value->text, digit ? "True" : "False");
	return set_plain(value);
}

/* --- float --- */

/* The shortest text that reads as the number, with an exponent where Python writes one. */
static void write_float(double number, char *text, size_t bytes)
{
	int precision = 0, exponent;
	const char *at;

	if (!isfinite(number)) {
		snprintf(text, bytes, "%s", isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
		return;
	}
	do {
		snprintf(text, bytes, "%.*e", precision, number);
	} while (precision++ < 17 && strtod(text, NULL) != number);
	at = strchr(text, 'e');
	exponent = at ? atoi(at + 1) : 0;
	if (exponent < -4 || exponent >= 16)
		return;
	precision = precision - 1 - exponent;
	snprintf(text, bytes, "%.*f", precision > 0 ? precision : 1, number);
}

static bool read_float(const struct layout *layout, struct process *process, uint64_t object, struct value *value)
{
	double number;

	if (!remote_read(process->remote, object + layout->object_shift + PYTHON_OBJECT_BYTES, &number, sizeof(number)))
		return false;
	write_float(number, value->text, sizeof(value->text));
	return set_plain(value);
}

/* --- str and bytes --- */

static bool read_length(const struct layout *layout, struct process *process, uint64_t object, uint32_t offset,
			struct value *value)
{
	uint64_t length;

	if (!process_word(process, object + layout->object_shift + offset, &length) || length >> 62)
		return false;
	value->length = (int64_t)length;
	return true;
}

static size_t characters_of(const char *text, size_t bytes)
{
	size_t count = 0;

	for (size_t i = 0; i < bytes; i++)
		count += (text[i] & 0xc0) != 0x80;
	return count;
}

/* Of a str that is very long remote_text() does not even read the beginning. */
static bool read_str(const struct layout *layout, struct process *process, uint64_t object, struct value *value)
{
	long bytes;

	if (!read_length(layout, process, object, PYTHON_SIZE, value))
		return false;
	bytes = remote_text(process->remote, object, value->text, SHOWN_BYTES);
	value->plain = value->is_str = bytes >= 0;
	value->bytes = bytes < 0 ? 0 : (size_t)bytes;
	value->text[value->bytes] = 0;
	value->cut = value->plain && characters_of(value->text, value->bytes) < (uint64_t)value->length;
	return true;
}

/* Appends a byte as repr() does. */
static size_t escape(char *to, unsigned char byte, char quote)
{
	static const char special[] = "\n\r\t\\", names[] = "nrt\\";
	const char *found = byte ? strchr(special, byte) : NULL;

	if (found || byte == (unsigned char)quote) {
		to[0] = '\\';
		to[1] = found ? names[found - special] : quote;
		return 2;
	}
	if (byte < ' ' || byte > '~')
		return (size_t)sprintf(to, "\\x%02x", byte);
	to[0] = (char)byte;
	return 1;
}

static bool read_bytes(const struct layout *layout, struct process *process, uint64_t object, struct value *value)
{
	uint8_t bytes[SHOWN_BYTES];
	char *to = value->text, quote;
	long count;

	if (!read_length(layout, process, object, PYTHON_SIZE, value))
		return false;
	count = remote_bytes(process->remote, object, bytes, sizeof(bytes));
	if (count < 0)
		return false;
	quote = memchr(bytes, '\'', (size_t)count) && !memchr(bytes, '"', (size_t)count) ? '"' : '\'';
	value->cut = value->length > count;
	value->plain = true;
	*to++ = 'b';
	*to++ = quote;
	for (long i = 0; i < count; i++)
		to += escape(to, bytes[i], quote);
	*to++ = quote;
	*to = 0;
	value->bytes = (size_t)(to - value->text);
	return true;
}

/* --- all --- */

static bool read_none(const struct layout *layout, struct process *process, uint64_t object, struct value *value)
{
	(void)layout, (void)process, (void)object;
	strcpy(value->text, "None");
	return set_plain(value);
}

/* Python's own types: how their values are read, or where their length is. */
static const struct known_type {
	const char *name;
	bool (*read)(const struct layout *layout, struct process *process, uint64_t object, struct value *value);
	uint32_t length;
} known_types[] = {
    {"NoneType", read_none, 0},
    {"bool", read_bool, 0},
    {"int", read_int, 0},
    {"float", read_float, 0},
    {"str", read_str, 0},
    {"bytes", read_bytes, 0},
    {"bytearray", NULL, PYTHON_SIZE},
    {"list", NULL, PYTHON_SIZE},
    {"tuple", NULL, PYTHON_SIZE},
    {"dict", NULL, PYTHON_SIZE},       /* ma_used */
    {"set", NULL, PYTHON_SIZE + WORD}, /* used, behind fill */
    {"frozenset", NULL, PYTHON_SIZE + WORD},
};

bool value_read(const struct layout *layout, struct process *process, uint64_t object, struct value *value)
{
	uint64_t type = object_type(layout, process, object);
	const struct process_range *range;

	*value = (struct value){.length = -1};
	if (!type || !object_type_name(layout, process, type, value->type, sizeof(value->type)))
		return false;
	range = process_range_of(process, type);
	if (!range || !range->python)
		return true; /* a class of the program may have the name of one of Python's */
	for (size_t i = 0; i < sizeof(known_types) / sizeof(known_types[0]); i++) {
		const struct known_type *known = &known_types[i];

		if (strcmp(known->name, value->type) != 0)
			continue;
		return known->read ? known->read(layout, process, object, value)
				   : read_length(layout, process, object, known->length, value);
	}
	return true;
}
