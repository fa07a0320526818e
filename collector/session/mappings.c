/*
 * mappings.c - reads /proc/PID/smaps. See mappings.h.
 */
#include "session/mappings.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define TEXT_BYTES_MAX (UINT64_C(4) << 20)
#define LONGEST_NS UINT64_C(100000000)
#define GUARD_BYTES_MAX (UINT64_C(1) << 20)
#define ARENA_BYTES (UINT64_C(64) << 20) /* glibc's arenas begin at multiples of it */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/*
 * The part of a mapping without a name. The stack of a thread is above its guard; so may be an arena of glibc, above
 * what is left of another.
 */
static uint64_t *part_of_unnamed(struct meta_resident_parts *parts, uint64_t begin, uint64_t guard_end)
{
	return begin % ARENA_BYTES == 0 ? &parts->heap : begin == guard_end ? &parts->stacks : &parts->anonymous;
}

static uint64_t *part_of_named(struct meta_resident_parts *parts, const char *name)
{
	if (begins(name, "[stack"))
		return &parts->stacks;
	if (begins(name, "[heap]"))
		return &parts->heap;
	if (begins(name, "/memfd:evprof "))
		return &parts->evprof;
	if (begins(name, "/dev/shm/") || begins(name, "/memfd:") || begins(name, "/SYSV") ||
	    begins(name, "/dev/zero") || begins(name, "[anon_shmem:"))
		return &parts->shared;
	return begins(name, "[anon:") ? &parts->anonymous : &parts->files;
}

static void begin_mapping(struct mappings_reader *reader, const char *line, struct meta_resident_parts *parts)
{
	uint64_t begin = 0, end = 0;
	char access[5] = "", first;
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &begin, &end, access, &at) < 3)
		return;
	first = at ? line[at] : 0;
	reader->part = first ? part_of_named(parts, line + at) : part_of_unnamed(parts, begin, reader->guard_end);
	reader->guard_end =
	    !first && begins(access, "---") && end - begin <= GUARD_BYTES_MAX && begin % ARENA_BYTES ? end : 0;
}

/* Lines of a mapping begin with a capital letter, the one that begins it with its address. */
void mappings_take_line(struct mappings_reader *reader, const char *line, struct meta_resident_parts *parts)
{
	if (*line < 'A' || *line > 'Z')
		begin_mapping(reader, line, parts);
	else if (reader->part && begins(line, "Rss:"))
		*reader->part += strtoull(line + 4, NULL, 10) << 10;
}

bool mappings_read(pid_t pid, struct meta_resident_parts *parts)
{
	uint64_t until_ns = clock_now_ns() + LONGEST_NS;
	struct mappings_reader reader = {0};
	char path[32], line[8192];
	bool whole = false;
	size_t bytes = 0;
	FILE *file;

	*parts = (struct meta_resident_parts){0};
	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (bytes < TEXT_BYTES_MAX && clock_now_ns() < until_ns) {
		if (!fgets(line, sizeof(line), file)) {
			whole = bytes && !ferror(file);
			break;
		}
		line[strcspn(line, "\n")] = 0;
		bytes += strlen(line) + 1;
		mappings_take_line(&reader, line, parts);
	}
	fclose(file);
	return whole;
}
