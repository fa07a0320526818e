/*
 * mappings.c - reads /proc/self/smaps. See mappings.h.
 */
#include "life/mappings.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ring/clock.h"

#define TEXT_BYTES_MAX (UINT64_C(4) << 20)
#define CPU_NS_MAX UINT64_C(50000000)
#define WALL_NS_MAX UINT64_C(1000000000)
#define GUARD_BYTES_MAX (UINT64_C(1) << 20)
#define ARENA_BYTES (UINT64_C(64) << 20) /* glibc's arenas begin at multiples of it */
#define LINE_BYTES 192

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/*
 * The part of a mapping without a name. The stack of a thread is above its guard; so may be an arena of glibc, above
 * what is left of another.
 */
static enum ring_resident part_of_unnamed(uint64_t begin, uint64_t guard_end)
{
	return begin % ARENA_BYTES == 0 ? RING_RESIDENT_HEAP
	       : begin == guard_end	? RING_RESIDENT_STACKS
					: RING_RESIDENT_ANONYMOUS;
}

static enum ring_resident part_of_named(const char *name)
{
	if (begins(name, "[stack"))
		return RING_RESIDENT_STACKS;
	if (begins(name, "[heap]"))
		return RING_RESIDENT_HEAP;
	if (begins(name, "/memfd:evprof "))
		return RING_RESIDENT_EVPROF;
	if (begins(name, "/dev/shm/") || begins(name, "/memfd:") || begins(name, "/SYSV") ||
	    begins(name, "/dev/zero") || begins(name, "[anon_shmem:"))
		return RING_RESIDENT_SHARED;
	return begins(name, "[anon:") ? RING_RESIDENT_ANONYMOUS : RING_RESIDENT_FILES;
}

/* The line is "begin-end access offset device inode name". */
static void begin_mapping(struct mappings *mappings, const char *line)
{
	char *at;
	uint64_t begin = strtoull(line, &at, 16), end = *at == '-' ? strtoull(at + 1, &at, 16) : 0;
	const char *access = at + 1, *name = at;

	if (end <= begin || *at != ' ')
		return;
	for (unsigned i = 0; i < 4; i++) {
		name += strspn(name, " ");
		name += strcspn(name, " ");
	}
	name += strspn(name, " ");
	mappings->part = &mappings->bytes[*name ? part_of_named(name) : part_of_unnamed(begin, mappings->guard_end)];
	mappings->guard_end =
	    !*name && begins(access, "---") && end - begin <= GUARD_BYTES_MAX && begin % ARENA_BYTES ? end : 0;
}

/* Lines of a mapping begin with a capital letter, the one that begins it with its address. */
void mappings_take_line(struct mappings *mappings, const char *line)
{
	if (*line < 'A' || *line > 'Z')
		begin_mapping(mappings, line);
	else if (mappings->part && begins(line, "Rss:"))
		*mappings->part += strtoull(line + 4, NULL, 10) << 10;
}

/* The line that is read. */
struct line {
	char text[LINE_BYTES];
	size_t used;
};

static void take_text(struct mappings *mappings, struct line *line, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] == '\n') {
			line->text[line->used] = 0;
			line->used = 0;
			mappings_take_line(mappings, line->text);
		} else if (line->used < sizeof(line->text) - 1) {
			line->text[line->used++] = text[i];
		}
	}
}

/* A busy machine makes a short reading long: the bound is in CPU time first. */
bool mappings_read(struct mappings *mappings)
{
	uint64_t cpu_end = clock_thread_cpu() + CPU_NS_MAX, wall_end = clock_ns(CLOCK_MONOTONIC) + WALL_NS_MAX;
	int fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
	struct line line = {.used = 0};
	size_t bytes = 0;
	char text[4096];
	ssize_t size = -1;

	if (fd < 0)
		return false;
	while (bytes < TEXT_BYTES_MAX && clock_thread_cpu() < cpu_end && clock_ns(CLOCK_MONOTONIC) < wall_end) {
		size = read(fd, text, sizeof(text));
		if (size <= 0)
			break;
		bytes += (size_t)size;
		take_text(mappings, &line, text, (size_t)size);
	}
	close(fd);
	return bytes && size == 0;
}
