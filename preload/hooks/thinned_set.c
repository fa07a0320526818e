/* thinned_set.c - see thinned_set.h. */
#include "hooks/thinned_set.h"

#include <string.h>

#define KEEP_MOST (WIRE_THIN_SET_MOST * 3 / 4)
#define PLACES (2 * WIRE_THIN_SET_MOST)
#define NO_FUNCTION 0 /* no id; with WIRE_THIN_C_CALLS: WIRE_THIN_EXCEPTIONS */

static struct timed_set {
	struct thin_set set;
	uint64_t until_ns[WIRE_THIN_SET_MOST];
} now, before;
static uint16_t places[PLACES]; /* open addressing by id: 1 + index in now */

/* The place of a function in the set; 0 there: it is not in the set. */
static uint16_t *place_of(uint32_t id)
{
	uint32_t at = id * UINT32_C(2654435761) % PLACES;

	while (places[at] && (now.set.ids[places[at] - 1] & WIRE_ARG_MAX) != id)
		at = (at + 1) % PLACES;
	return &places[at];
}

const struct thin_set *thinned_set(void)
{
	return &now.set;
}

const struct thin_set *thinned_set_before(void)
{
	return &before.set;
}

bool thinned_set_is_full(void)
{
	return now.set.count == WIRE_THIN_SET_MOST;
}

enum thinned thinned_set_of(uint32_t id)
{
	uint16_t place = *place_of(id);

	return !place ? THINNED_NOT : now.set.ids[place - 1] & WIRE_THIN_C_CALLS ? THINNED_C_CALLS : THINNED;
}

bool thinned_set_has_exceptions(void)
{
	return *place_of(NO_FUNCTION);
}

bool thinned_set_take(uint32_t id, enum thinned thinned, uint64_t until_ns)
{
	uint32_t entry = id | (thinned == THINNED ? 0 : WIRE_THIN_C_CALLS), at;
	uint16_t *place = place_of(id);

	at = *place ? *place - 1u : now.set.count;
	if (*place ? now.set.ids[at] == id || now.set.ids[at] == entry : at == WIRE_THIN_SET_MOST)
		return false;
	if (!*place)
		*place = (uint16_t)++now.set.count;
	now.set.ids[at] = entry;
	now.until_ns[at] = until_ns;
	return true;
}

bool thinned_set_take_exceptions(uint64_t until_ns)
{
	return thinned_set_take(NO_FUNCTION, THINNED_C_CALLS, until_ns); /* WIRE_THIN_EXCEPTIONS */
}

uint32_t thinned_set_take_before(uint64_t now_ns)
{
	uint32_t taken = 0;

	for (uint32_t i = 0; i < before.set.count && now.set.count < KEEP_MOST; i++) {
		uint32_t entry = before.set.ids[i];

		if (now_ns <= before.until_ns[i])
			taken +=
			    thinned_set_take(entry & WIRE_ARG_MAX,
					     entry & WIRE_THIN_C_CALLS ? THINNED_C_CALLS : THINNED, before.until_ns[i]);
	}
	return taken;
}

static void empty(void)
{
	now.set.count = 0;
	memset(places, 0, sizeof(places));
}

void thinned_set_end(void)
{
	before = now;
	empty();
}

void thinned_set_forget(void)
{
	before.set.count = 0;
	empty();
}
