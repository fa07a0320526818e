/*
 * digits.c - the slow paths of digits.h.
 */
#include "util/digits.h"

/* Eight digits at a time avoid the long division; each pair of digits is one copy. */
char *digits_before(char *end, uint64_t value)
{
	uint32_t rest;

	for (; value >= 100000000; value /= 100000000) {
		uint32_t eight = (uint32_t)(value % 100000000);
		uint32_t high = eight / 10000, low = eight % 10000;

		end -= 8;
		digits_two(end, high / 100);
		digits_two(end + 2, high % 100);
		digits_two(end + 4, low / 100);
		digits_two(end + 6, low % 100);
	}
	for (rest = (uint32_t)value; rest >= 100; rest /= 100)
		digits_two(end -= 2, rest % 100);
	if (rest < 10)
		*--end = (char)('0' + rest);
	else
		digits_two(end -= 2, rest);
	return end;
}

void digits_near_find(struct digits_near *near, uint64_t value)
{
	char *end = digits_put(near->text, value / 1000000);

	near->from = value - value % 1000000;
	near->length = (uint64_t)(end - near->text);
}
