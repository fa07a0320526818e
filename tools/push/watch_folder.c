/*
 * watch_folder.c - see watch_folder.h.
 */
#include "push/watch_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/system_calls.h"
#include "util/text.h"

#define ENDING ".evp"

static int is_trace(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name), ending = strlen(ENDING);

	return length > ending && entry->d_name[0] != '.' && strcmp(entry->d_name + length - ending, ENDING) == 0;
}

/*
 * A file system may give the inode of a removed file to the next one, which also may have its name. 0: it is not there.
 */
static uint64_t key_of(const char *path, const char *name)
{
	struct statx found;
	uint64_t place[3];
	struct text text = {(const char *)place, sizeof(place)};

	if (system_statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &found) < 0)
		return 0;
	place[0] = found.stx_ino;
	place[1] = found.stx_mask & STATX_BTIME ? (uint64_t)found.stx_btime.tv_sec : 0;
	place[2] = found.stx_mask & STATX_BTIME ? found.stx_btime.tv_nsec : 0;
	return text_hash(text_hash(TEXT_HASH_BEGIN, text_of(name)), text) | 1;
}

/* Copies and parts of a trace have longer names. */
static int by_length(const struct dirent **left, const struct dirent **right)
{
	size_t a = strlen((*left)->d_name), b = strlen((*right)->d_name);

	return a == b ? strcmp((*left)->d_name, (*right)->d_name) : a < b ? -1 : 1;
}

/* Those that are known and still there, or become known. */
static void look_at(struct watch_folder *folder, const char *name, struct u64_map *known, watch_folder_found *found,
		    void *owner)
{
	char path[PATH_MAX];
	uint64_t key;

	if (snprintf(path, sizeof(path), "%s/%s", folder->path, name) >= (int)sizeof(path))
		return;
	key = key_of(path, name);
	if (key && (u64_map_value(&folder->known, key) || found(owner, path))) {
		uint64_t *is_known = u64_map_make(known, key);

		if (is_known)
			*is_known = true;
	}
}

void watch_folder_look(struct watch_folder *folder, watch_folder_found *found, void *owner)
{
	struct dirent **entries = NULL;
	int count = folder->path ? scandir(folder->path, &entries, is_trace, by_length) : 0;
	struct u64_map known = {0};

	if (count < 0)
		return;
	for (int i = 0; i < count; i++) {
		look_at(folder, entries[i]->d_name, &known, found, owner);
		free(entries[i]);
	}
	free(entries);
	u64_map_done(&folder->known);
	folder->known = known;
}

void watch_folder_done(struct watch_folder *folder)
{
	u64_map_done(&folder->known);
}
