/*
 * watch_folder.c - see watch_folder.h.
 */
#include "push/watch_folder.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

#define ENDING ".evp"

static bool is_trace(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name), ending = strlen(ENDING);

	return length > ending && entry->d_name[0] != '.' && strcmp(entry->d_name + length - ending, ENDING) == 0;
}

/* NULL: memory ran out. */
static uint64_t *known_of(struct watch_folder *folder, const struct dirent *entry)
{
	return u64_map_make(&folder->known, (text_hash(TEXT_HASH_BEGIN, text_of(entry->d_name)) ^ entry->d_ino) | 1);
}

void watch_folder_look(struct watch_folder *folder, watch_folder_found *found, void *owner)
{
	DIR *listed = folder->path ? opendir(folder->path) : NULL;
	const struct dirent *entry;
	char path[PATH_MAX];

	while (listed && (entry = readdir(listed))) {
		uint64_t *known = is_trace(entry) ? known_of(folder, entry) : NULL;

		if (known && !*known &&
		    snprintf(path, sizeof(path), "%s/%s", folder->path, entry->d_name) < (int)sizeof(path))
			*known = found(owner, path);
	}
	if (listed)
		closedir(listed);
}

void watch_folder_done(struct watch_folder *folder)
{
	u64_map_done(&folder->known);
}
