/* why.c - see why.h. */
#include "util/why.h"

#include <stdarg.h>
#include <stdio.h>

int complain(char *why, size_t bytes, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(why, bytes, format, list);
	va_end(list);
	return -1;
}
