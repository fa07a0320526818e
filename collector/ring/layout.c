/*
 * layout.c - see layout.h.
 */
#include "ring/layout.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"

/* Limit of the memory's size: room for all rings at the largest EVPROF_RING_SIZE, and what precedes them. */
#define MEMFD_MAX_BYTES (UINT64_C(1) << 40)

/*
 * Only memory that cannot shrink may be mapped: access to a truncated page would kill the collector. So would access to
 * a huge page when these have run out.
 */
const char *layout_check_memfd(int memfd, uint64_t *size)
{
	int seals = fcntl(memfd, F_GET_SEALS);
	struct statfs system;
	struct stat status;

	if (seals < 0 || fstat(memfd, &status) < 0 || !S_ISREG(status.st_mode))
		return "the first descriptor is not a memfd";
	if (fstatfs(memfd, &system) < 0 || system.f_type != TMPFS_MAGIC)
		return "the memfd is not of ordinary memory: huge pages may run out";
	if (!(seals & F_SEAL_SHRINK))
		return "the memfd is not sealed against shrinking";
	if (status.st_size < (off_t)RING_PAGE_BYTES || (uint64_t)status.st_size > MEMFD_MAX_BYTES)
		return "the memfd has an impossible size";
	*size = (uint64_t)status.st_size;
	return NULL;
}

static bool is_power_of_two(uint64_t value)
{
	return value && !(value & (value - 1));
}

/* Whether [offset, offset + bytes) is inside the file and after the header. */
static bool in_file(const struct ring_layout *layout, uint64_t offset, uint64_t bytes)
{
	return offset >= RING_PAGE_BYTES && offset % 8 == 0 && offset <= layout->size_bytes &&
	       bytes <= layout->size_bytes - offset;
}

static const char *check_layout(const struct ring_layout *layout, uint64_t size)
{
	uint64_t slots_bytes = (uint64_t)layout->slot_count * sizeof(struct ring_slot);

	if (layout->magic != RING_MAGIC)
		return "the memfd holds no ring of evprof";
	if (layout->version != RING_VERSION || layout->header_bytes != sizeof(struct ring_header) ||
	    layout->slot_bytes != sizeof(struct ring_slot))
		return "the library has another version of the ring: install library and collector from one release";
	if (layout->size_bytes != size)
		return "the ring's size is not the memfd's";
	if (!clock_known(layout->clock_kind) || layout->clock_shift > 32)
		return "the ring's clock is not one of this machine";
	if (!is_power_of_two(layout->definitions_bytes) || layout->definitions_bytes < RING_PAGE_BYTES ||
	    layout->definitions_bytes > RING_BYTES_MAX ||
	    !in_file(layout, layout->definitions_offset, layout->definitions_bytes))
		return "the ring's definitions are not inside the memfd";
	if (layout->slot_count == 0 || layout->slot_count > RING_SLOTS || layout->slots_offset % RING_PAGE_BYTES ||
	    !in_file(layout, layout->slots_offset, slots_bytes))
		return "the ring's slots are not inside the memfd";
	if (layout->slots_offset < layout->definitions_offset + layout->definitions_bytes &&
	    layout->definitions_offset < layout->slots_offset + slots_bytes)
		return "the ring's definitions and slots overlap";
	return NULL;
}

bool layout_may_hold_ring(const struct ring_layout *layout, uint64_t offset, uint64_t bytes)
{
	return in_file(layout, offset, bytes) &&
	       offset >= layout->slots_offset + (uint64_t)layout->slot_count * sizeof(struct ring_slot) &&
	       offset >= layout->definitions_offset + layout->definitions_bytes;
}

bool layout_has_rings(const struct ring_layout *layout)
{
	return !layout->first_small && is_power_of_two(layout->ring_bytes) && layout->ring_bytes <= RING_BYTES_MAX &&
	       layout_may_hold_ring(layout, layout->data_offset,
				    ring_data_bytes(layout->slot_count, layout->ring_bytes));
}

const char *layout_read(int memfd, struct ring_layout *layout)
{
	uint64_t size;
	const char *wrong = layout_check_memfd(memfd, &size);

	if (!wrong && pread(memfd, layout, sizeof(*layout), 0) != sizeof(*layout))
		wrong = "the memfd cannot be read";
	return wrong ? wrong : check_layout(layout, size);
}
