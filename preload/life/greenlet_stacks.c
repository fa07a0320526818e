/*
 * greenlet_stacks.c - a hash set with linear probing. See greenlet_stacks.h.
 *
 * A slot has the address and the period in which it was put there. A slot of an earlier period is free, so the set is
 * emptied by a count.
 */
#include "life/greenlet_stacks.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "life/life.h"

#define SLOTS_BITS 13
#define SLOTS (1u << SLOTS_BITS)
#define GREENLETS_MAX (SLOTS / 4 * 3) /* known in one period */
#define FRAMES_MAX (1u << 16)	      /* written in one period */
#define PERIOD_BITS 16
#define PERIOD_MAX ((1u << PERIOD_BITS) - 1)

struct greenlet_stacks {
	uint64_t slots[SLOTS]; /* address << PERIOD_BITS | period */
	uint32_t count;
	uint32_t frames;
	uint32_t period; /* 1 to PERIOD_MAX */
};

static struct greenlet_stacks *make(void)
{
	int saved_errno = errno;
	struct greenlet_stacks *made;

	thread_self.nesting++; /* evprof's own mmap() is no event */
	made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	thread_self.nesting--;
	errno = saved_errno;
	if (made == MAP_FAILED)
		return NULL;
	made->period = 1;
	return made;
}

/* The greenlet's slot, or the free one where it would be. */
static uint64_t *find(struct greenlet_stacks *stacks, const void *greenlet)
{
	uint64_t entry = (uint64_t)(uintptr_t)greenlet << PERIOD_BITS | stacks->period;
	uint32_t at = (uint32_t)(entry * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SLOTS_BITS));

	while ((stacks->slots[at] & PERIOD_MAX) == stacks->period && stacks->slots[at] != entry)
		at = (at + 1) % SLOTS;
	return &stacks->slots[at];
}

static bool is_full(const struct greenlet_stacks *stacks)
{
	return stacks->count >= GREENLETS_MAX || stacks->frames >= FRAMES_MAX;
}

static bool is_known(struct greenlet_stacks *stacks, const void *greenlet)
{
	return (*find(stacks, greenlet) & PERIOD_MAX) == stacks->period;
}

static void add(struct greenlet_stacks *stacks, const void *greenlet)
{
	uint64_t *slot = find(stacks, greenlet);

	if ((*slot & PERIOD_MAX) == stacks->period || is_full(stacks))
		return;
	*slot = (uint64_t)(uintptr_t)greenlet << PERIOD_BITS | stacks->period;
	stacks->count++;
}

void greenlet_stacks_switch(struct writer *writer, const void *target, const void *origin)
{
	struct greenlet_stacks *stacks = thread_self.greenlet_stacks;

	if (!stacks)
		stacks = thread_self.greenlet_stacks = make();
	if (!stacks)
		return;
	if (!writer->resync && !thread_self.greenlet_unknown)
		add(stacks, origin);
	thread_self.greenlet_unknown = !is_known(stacks, target) && !is_full(stacks);
	if (thread_self.greenlet_unknown)
		writer_put_greenlet_stack();
}

void greenlet_stacks_written(uint32_t frames)
{
	thread_self.greenlet_unknown = false;
	thread_self.greenlet_stacks->frames += frames;
}

void greenlet_stacks_begin(void)
{
	struct greenlet_stacks *stacks = thread_self.greenlet_stacks;

	thread_self.greenlet_unknown = false;
	if (!stacks)
		return;
	if (stacks->period == PERIOD_MAX) {
		memset(stacks->slots, 0, sizeof(stacks->slots));
		stacks->period = 0;
	}
	stacks->period++;
	stacks->count = stacks->frames = 0;
}

void greenlet_stacks_end(void)
{
	thread_self.greenlet_unknown = false;
	thread_self.nesting++; /* evprof's own munmap() is no event */
	if (thread_self.greenlet_stacks)
		munmap(thread_self.greenlet_stacks, sizeof(*thread_self.greenlet_stacks));
	thread_self.nesting--;
	thread_self.greenlet_stacks = NULL;
}
