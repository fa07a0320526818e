/*
 * test_tools_batches.c - the queue between an exporter and the second thread: order, pieces that are larger than a
 * batch, errors, and one processor.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "tools/util/batches.h"

struct seen {
	uint64_t next;	  /* the number that the next piece must have */
	uint64_t fail_at; /* this one fails; 0: none does */
	uint64_t wrong;
	pthread_t thread;
};

/* A number, and how many bytes that are equal to its lowest follow it. */
struct piece {
	uint64_t number;
	uint64_t length;
};

static int look(void *owner, const char *bytes, size_t used)
{
	struct seen *seen = owner;
	const struct piece *piece;
	uint64_t i;
	size_t at;

	seen->thread = pthread_self();
	for (at = 0; at < used; at += sizeof(*piece) + piece->length) {
		piece = (const struct piece *)(bytes + at);
		seen->wrong += piece->number != seen->next++;
		for (i = 0; i < piece->length; i++)
			seen->wrong += ((const uint8_t *)(piece + 1))[i] != (uint8_t)piece->number;
		if (seen->fail_at && piece->number == seen->fail_at)
			return -ENOSPC;
	}
	return 0;
}

static bool give(struct batches *batches, uint64_t number, uint64_t length)
{
	struct piece *piece = batches_room(batches, sizeof(*piece) + length);

	if (!piece)
		return false;
	*piece = (struct piece){number, length};
	memset(piece + 1, (int)(uint8_t)number, length);
	return true;
}

Test(batches, are_worked_off_in_order)
{
	static const uint64_t lengths[] = {0, 8, 1000, BATCH_BYTES - 16, BATCH_BYTES - 8, 5 * BATCH_BYTES, 64};
	struct seen seen = {0};
	struct batches batches;
	uint64_t number;

	batches_begin(&batches, look, &seen);
	for (number = 0; number < 2000; number++) {
		cr_assert(give(&batches, number, lengths[number % 7]));
		if (number % 500 == 499) {
			cr_assert(batches_wait(&batches) == 0);
			cr_assert(seen.next == number + 1, "all are worked off after a wait");
		}
	}
	cr_assert(give(&batches, number, 0));
	cr_assert(batches_end(&batches) == 0);
	cr_assert(seen.next == 2001 && !seen.wrong);
}

Test(batches, an_error_ends_the_work_and_is_returned)
{
	struct seen seen = {.fail_at = 700};
	struct batches batches;
	uint64_t number;

	batches_begin(&batches, look, &seen);
	for (number = 0; number < 1000000 && !batches.error; number++)
		cr_assert(give(&batches, number, 1000));
	cr_assert(batches.error == -ENOSPC, "while it is still given to");
	cr_assert(number < 700 + (BATCHES + 2) * (BATCH_BYTES / 1000), "soon: at %llu", (unsigned long long)number);
	cr_assert(batches_wait(&batches) == -ENOSPC && batches_end(&batches) == -ENOSPC);
	cr_assert(seen.next == 701, "nothing is worked off behind it");
}

Test(batches, one_processor_needs_no_thread)
{
	struct seen seen = {.fail_at = 2500};
	struct batches batches;
	cpu_set_t set;
	uint64_t number;
	int cpu = 0;

	cr_assert(sched_getaffinity(0, sizeof(set), &set) == 0);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	cr_assert(sched_setaffinity(0, sizeof(set), &set) == 0);
	batches_begin(&batches, look, &seen);
	for (number = 0; number < 2000; number++)
		cr_assert(give(&batches, number, 1000));
	cr_assert(batches_wait(&batches) == 0 && seen.next == 2000 && !seen.wrong);
	cr_assert(pthread_equal(seen.thread, pthread_self()));
	for (; number < 4000; number++)
		cr_assert(give(&batches, number, 1000));
	cr_assert(batches_end(&batches) == -ENOSPC && seen.next == 2501);
}

Test(batches, what_was_not_begun_can_be_ended)
{
	struct batches batches = {0};

	cr_assert(batches_end(&batches) == 0);
}
