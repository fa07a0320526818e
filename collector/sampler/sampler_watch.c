/*
 * sampler_watch.c - see sampler_watch.h.
 *
 * A sampler locks a byte of the shared memory while it lives (sampling.h). The kernel releases the lock with the
 * process. So no pid is needed, which might have been reused.
 */
#include "sampler/sampler_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include "evprof/sampling.h"

#define CHECK_NS UINT64_C(50000000)
#define GONE_NS UINT64_C(100000000) /* it may have ended with the image, whose end is noticed a little later */

static bool sampler_runs(int memfd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SAMPLING_LOCK_BYTE, .l_len = 1};

	return fcntl(memfd, F_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

bool sampler_watch_missed(struct sampler_watch *watch, int memfd, uint64_t now_ns)
{
	if (!watch->wanted || watch->lost || now_ns < watch->check_ns)
		return false;
	watch->check_ns = now_ns + CHECK_NS;
	if (sampler_runs(memfd)) {
		watch->seen = true;
		watch->missed_ns = 0;
		return false;
	}
	if (watch->seen && !watch->missed_ns)
		watch->missed_ns = now_ns;
	return watch->missed_ns && now_ns - watch->missed_ns >= GONE_NS;
}

/* Ends its slots as if the threads had ended. A definition that it was writing stays unpublished. */
void sampler_watch_end(struct sampler_watch *watch, const struct ring_layout *layout, struct ring_header *header,
		       struct ring_slot *slots)
{
	uint32_t used = ring_slots_used(layout, header), sampler = RING_DEFINES_SAMPLER;

	watch->lost = true;
	for (uint32_t i = 0; i < used; i++) {
		uint32_t live = RING_SLOT_LIVE;

		if (atomic_load(&slots[i].sampled))
			atomic_compare_exchange_strong(&slots[i].state, &live, RING_SLOT_ENDED);
	}
	atomic_compare_exchange_strong(&header->defines, &sampler, RING_DEFINES_NOBODY);
}
