/* clock.c - chooses the clock. */
#include "clock.h"

#include <string.h>

#include "text.h"

uint32_t clock_kind = RING_CLOCK_MONOTONIC;

void clock_init(void)
{
#if defined(__aarch64__)
	clock_kind = CLOCK_COUNTER; /* the architecture promises one counter for all cores */
#else
	char source[32];

	if (text_read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof(source)) > 0 &&
	    !strncmp(source, "tsc", 3))
		clock_kind = CLOCK_COUNTER;
#endif
}
