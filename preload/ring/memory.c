/*
 * memory.c - see memory.h.
 */
#include "ring/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "evprof/system_calls.h"
#include "base/config.h"
#include "evprof/proc.h"
#include "python/python.h"
#include "ring/process.h"

#define SLOTS_FEWEST 16
#define DEFINITIONS_BYTES_FREE_THREADED (UINT64_C(32) << 20) /* intact definitions can move to another collector */
#define ADDRESS_SPACE_PART 16 /* the rings take at most this part of a limited address space */

/* The ring that a forked child inherits and must unmap unused. Not in the memory that a fork clears. */
static uint8_t *mapped;
static size_t mapped_bytes;

static uint64_t page_up(uint64_t bytes)
{
	return (bytes + RING_PAGE_BYTES - 1) & ~(uint64_t)(RING_PAGE_BYTES - 1);
}

/* By how much the address space may still grow, if it were smaller by `without` bytes. */
static uint64_t address_space_left(uint64_t without)
{
	struct rlimit limit;
	char pages[32];
	uint64_t used;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	if (proc_read("/proc/self/statm", pages, sizeof(pages)) <= 0)
		return limit.rlim_cur;
	used = strtoull(pages, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) - without;
	return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

int memory_check_file_size(uint64_t size)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < size ? -EFBIG : 0;
}

/* Whether the limits of the process allow a ring of that size: 0 or -errno. */
static int check_ring_size(uint64_t size, uint32_t slots)
{
	int r = memory_check_file_size(size);

	if (r < 0)
		return r;
	/* The limit is meant for the program: nearly all of it is left to the program. */
	if (size > address_space_left(0) / (slots > SLOTS_FEWEST ? ADDRESS_SPACE_PART : ADDRESS_SPACE_PART / 4))
		return -ENOMEM;
	return 0;
}

/* Creates the shared memory with this number of slots. Returns the memfd or -errno. */
static int make_ring(uint32_t slots, uint64_t ring_bytes)
{
	uint64_t definitions_bytes =
	    python.free_threaded && slots > SLOTS_FEWEST ? DEFINITIONS_BYTES_FREE_THREADED : RING_DEFINITIONS_BYTES;
	uint64_t slots_offset = RING_PAGE_BYTES + definitions_bytes;
	uint64_t data_offset = page_up(slots_offset + slots * sizeof(struct ring_slot));
	uint64_t size = page_up(data_offset + ring_data_bytes(slots, ring_bytes));
	int fd, r = check_ring_size(size, slots);

	if (r < 0)
		return r;
	fd = system_memfd_create("evprof", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		goto failed;
	mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (mapped == MAP_FAILED)
		goto failed;
	mapped_bytes = size;
	madvise(mapped, size, MADV_DONTDUMP); /* smaller cores, and a crash takes less time */
	process->base = mapped;
	process->header = (struct ring_header *)mapped;
	process->slots = (struct ring_slot *)(mapped + slots_offset);
	process->layout = (struct ring_layout){
	    .magic = RING_MAGIC,
	    .version = RING_VERSION,
	    .header_bytes = sizeof(struct ring_header),
	    .size_bytes = size,
	    .definitions_offset = RING_PAGE_BYTES,
	    .definitions_bytes = definitions_bytes,
	    .slots_offset = slots_offset,
	    .slot_count = slots,
	    .slot_bytes = sizeof(struct ring_slot),
	    .clock_kind = clock_kind,
	    .clock_shift = CLOCK_SHIFT,
	    .start_ticks = clock_now(),
	    .ring_bytes = ring_bytes,
	    .data_offset = data_offset,
	};
	process->header->layout = process->layout;
	atomic_store(&process->header->wakes, 1);
	process->mapped_bytes = size;
	return fd;
failed:
	r = -errno;
	close(fd);
	mapped = NULL;
	return r;
}

int memory_make(void)
{
	static const uint32_t slots[] = {RING_SLOTS, 256, SLOTS_FEWEST};
	uint64_t ring_bytes = config.ring_bytes;
	int fd = -ENOMEM;

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]) && fd < 0; i++, ring_bytes /= 16)
		fd = make_ring(slots[i], ring_bytes < RING_BYTES_MIN ? RING_BYTES_MIN : ring_bytes);
	return fd;
}

/* The offset of a slot's ring. */
static uint64_t slot_offset(uint32_t number)
{
	return ring_extent(&process->layout, number).offset;
}

/* How many slots fit into these bytes; at least those that may be in use. */
static uint32_t slots_within(uint64_t bytes)
{
	uint32_t count = process->layout.slot_count, slots = process_slots_used();

	/* A sampler may be about to claim the next slot, and assumes that all rings have one size. */
	if (config.events & EVENT_SAMPLE)
		slots++;
	else if (!process->layout.first_small)
		process->layout.first_small = slots;
	while (slots < count && slot_offset(slots + 1) <= bytes)
		slots++;
	return slots < count ? slots : count;
}

/*
 * Unmaps the end of the memory. Lock held, so no thread is about to claim a slot. The file keeps its size, because the
 * collector may not have examined it yet; the collector maps none of these rings.
 */
static void shrink_mapping(uint64_t keep)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end;

	end = slot_offset(process_slots_used()) + SLOTS_FEWEST * RING_BYTES_MIN;
	if (keep < end)
		keep = end;
	if (keep >= process->mapped_bytes)
		return;
	process->header->layout.slot_count = process->layout.slot_count = slots_within(keep);
	end = (slot_offset(process->layout.slot_count) + page - 1) & ~(page - 1);
	if (end >= process->mapped_bytes || munmap(mapped + end, process->mapped_bytes - end) < 0)
		return;
	process->mapped_bytes = mapped_bytes = end;
}

static void shrink_to(enum memory_room room)
{
	uint64_t left = address_space_left(process->mapped_bytes);

	if (room == MEMORY_ROOM_LEAST)
		shrink_mapping(0);
	else if (left != UINT64_MAX)
		shrink_mapping(left / ADDRESS_SPACE_PART);
}

void memory_shrink(enum memory_room room)
{
	int saved_errno = errno;

	thread_self.nesting++; /* what it unmaps is not the program's */
	process_lock();
	if (atomic_load(&process->status) == PROCESS_JOINED || atomic_load(&process->status) == PROCESS_STOPPED)
		shrink_to(room);
	process_unlock();
	thread_self.nesting--;
	errno = saved_errno;
}

void memory_forget_inherited(void)
{
	if (mapped)
		munmap(mapped, mapped_bytes);
	mapped = NULL;
}

uint8_t *memory_keep_inherited(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *kept = mapped;

	if (mapped)
		munmap(mapped + page, mapped_bytes - page);
	mapped = NULL;
	return kept;
}
