/*
 * memory_estimate.c - see memory_estimate.h.
 */
#include "analysis/memory_estimate.h"

#define HALVINGS_TO 0.0625 /* below, seven terms of the series are exact to a double's precision */
#define CERTAIN 40.0	   /* 1 - exp(-40) is 1 */

/* 1 - exp(-x), with full precision where x is small. */
static double probability(double x)
{
	unsigned halvings = 0;
	double p = 1;

	if (x >= CERTAIN)
		return 1;
	for (; x > HALVINGS_TO; halvings++)
		x /= 2;
	for (double n = 8; n > 1; n--) /* x - x^2/2! + x^3/3! - ..., by Horner */
		p = 1 - x / n * p;
	p *= x;
	while (halvings--)
		p *= 2 - p; /* 1 - (1 - p)^2 */
	return p;
}

uint64_t estimate_blocks(uint64_t interval, uint64_t size)
{
	if (!interval)
		return ESTIMATE_UNIT;
	return size ? (uint64_t)(ESTIMATE_UNIT / probability((double)size / (double)interval) + 0.5) : 0;
}

uint64_t estimate_bytes(uint64_t interval, uint64_t size)
{
	if (!interval || !size)
		return size;
	return (uint64_t)((double)size / probability((double)size / (double)interval) + 0.5);
}
