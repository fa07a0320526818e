/*
 * text.c - decoding of possibly invalid UTF-8. See text.h.
 */
#include "util/text.h"

int text_compare(struct text a, struct text b)
{
	size_t length = a.length < b.length ? a.length : b.length;
	int order = length ? memcmp(a.at, b.at, length) : 0;

	if (order)
		return order;
	return (a.length > b.length) - (a.length < b.length);
}

uint64_t text_hash(uint64_t hash, struct text text)
{
	const uint64_t prime = UINT64_C(0x100000001b3);

	for (size_t i = 0; i < text.length; i++)
		hash = (hash ^ (unsigned char)text.at[i]) * prime;
	return (hash ^ 0xff) * prime; /* separates texts: no UTF-8 contains this byte */
}

/* The smallest code point for each length. A longer encoding than needed is invalid, as it may be an attack. */
static const uint32_t smallest_of_length[] = {0, 0, 0x80, 0x800, 0x10000};

static unsigned length_by_first_byte(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	if (first >= 0xf0 && first <= 0xf4)
		return 4;
	return 0;
}

static uint32_t take_invalid(struct text *text)
{
	text->at++;
	text->length--;
	return TEXT_INVALID;
}

uint32_t text_next(struct text *text)
{
	const unsigned char *at = (const unsigned char *)text->at;
	unsigned length = length_by_first_byte(at[0]);
	uint32_t code = 0;

	if (length == 0 || length > text->length)
		return take_invalid(text);
	code = length == 1 ? at[0] : at[0] & (0x7fu >> length);
	for (unsigned i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return take_invalid(text);
		code = code << 6 | (at[i] & 0x3f);
	}
	if (code < smallest_of_length[length] || code > 0x10ffff)
		return take_invalid(text);
	text->at += length;
	text->length -= length;
	return code;
}

struct text text_next_valid(struct text *text, uint32_t *code)
{
	const char *start = text->at;

	*code = text_next(text);
	if (*code == TEXT_INVALID || (*code >= 0xd800 && *code <= 0xdfff))
		return text_of("\xef\xbf\xbd");
	return (struct text){start, (size_t)(text->at - start)};
}

size_t text_plain(struct text text)
{
	size_t i;

	for (i = 0; i < text.length; i++) {
		unsigned char c = (unsigned char)text.at[i];

		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
			break;
	}
	return i;
}

struct text text_base_name(struct text path)
{
	const char *slash = path.length ? memrchr(path.at, '/', path.length) : NULL;

	if (!slash || slash + 1 == path.at + path.length)
		return path;
	return (struct text){slash + 1, (size_t)(path.at + path.length - slash - 1)};
}
