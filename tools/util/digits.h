/*
 * digits.h - fast decimal digits, because traces consist mostly of numbers.
 *
 * Used by output.c and by the exporters that write a line for each event.
 */
#ifndef EVPROF_TOOLS_UTIL_DIGITS_H
#define EVPROF_TOOLS_UTIL_DIGITS_H

#include <stdint.h>
#include <string.h>

/* Writes the two digits of a number below 100. */
static inline void digits_two(char *at, uint32_t number)
{
	static const char digits[] = "00010203040506070809101112131415161718192021222324"
				     "25262728293031323334353637383940414243444546474849"
				     "50515253545556575859606162636465666768697071727374"
				     "75767778798081828384858687888990919293949596979899";

	memcpy(at, digits + 2 * (size_t)number, 2);
}

/* Writes the six digits of a number below 1000000, with leading zeros. */
static inline void digits_six(char *at, uint32_t number)
{
	uint32_t high = number / 10000, low = number % 10000;

	digits_two(at, high);
	digits_two(at + 2, low / 100);
	digits_two(at + 4, low % 100);
}

/*
 * Writes the digits of a number, at most DIGITS_MAX, so that they end before `end`. Returns the first digit's position.
 */
#define DIGITS_MAX 20
char *digits_before(char *end, uint64_t value);

/*
 * Writes the digits of a number, at most DIGITS_MAX, and returns the position after them. May change up to DIGITS_MAX
 * bytes.
 */
static inline char *digits_put(char *at, uint64_t value)
{
	char text[2 * DIGITS_MAX], *end = text + DIGITS_MAX, *first;

	if (value < 10) {
		*at = (char)('0' + value);
		return at + 1;
	}
	if (value < 100) {
		digits_two(at, (uint32_t)value);
		return at + 2;
	}
	first = digits_before(end, value);
	memcpy(at, first, DIGITS_MAX);
	return at + (end - first);
}

/*
 * Digits of numbers that are close to each other, such as times: all digits but the last six are cached, so most
 * numbers need no long division. All zeros: the cache of 0.
 */
struct digits_near {
	uint64_t from; /* start of the range whose leading digits are cached, a multiple of 1000000 */
	uint64_t length;
	char text[DIGITS_MAX]; /* not terminated */
};

void digits_near_find(struct digits_near *near, uint64_t value);

/* Sets near->text to the digits of value / 1000000, "0" for 0, and returns the remainder. */
static inline uint32_t digits_near(struct digits_near *near, uint64_t value)
{
	if (__builtin_expect(value - near->from >= 1000000 || !near->length, 0))
		digits_near_find(near, value);
	return (uint32_t)(value - near->from);
}

/* The same result as digits_put(). */
static inline char *digits_near_put(struct digits_near *near, char *at, uint64_t value)
{
	uint32_t rest = digits_near(near, value);

	if (__builtin_expect(!near->from, 0))
		return digits_put(at, value);
	memcpy(at, near->text, DIGITS_MAX);
	digits_six(at + near->length, rest);
	return at + near->length + 6;
}

#endif
