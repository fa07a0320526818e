/*
 * percent.c - see percent.h.
 */
#include "push/percent.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

static int digit_of(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
					    : -1;
}

static void decode(char *text)
{
	char *to = text;

	for (; *text; text++) {
		int high = *text == '%' ? digit_of(text[1]) : -1, low = high >= 0 ? digit_of(text[2]) : -1;

		if (low >= 0 && (high || low)) { /* a NUL would end the value */
			*to++ = (char)(high * 16 + low);
			text += 2;
		} else {
			*to++ = *text;
		}
	}
	*to = 0;
}

static char *trim(char *text)
{
	size_t length;

	text += strspn(text, " \t");
	length = strlen(text);
	while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		text[--length] = 0;
	return text;
}

bool percent_next(char **list, char **key, char **value)
{
	while (*list) {
		char *pair = *list, *comma = strchr(pair, ','), *equals;

		*list = comma ? comma + 1 : NULL;
		if (comma)
			*comma = 0;
		equals = strchr(pair, '=');
		if (!equals)
			continue;
		*equals = 0;
		*key = trim(pair);
		*value = trim(equals + 1);
		decode(*value);
		if (**key)
			return true;
	}
	return false;
}
