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

/* False: it is known, or memory ran out. */
static bool is_new(struct watch_folder *folder, const struct dirent *entry)
{
	uint64_t key = (text_hash(TEXT_HASH_BEGIN, text_of(entry->d_name)) ^ entry->d_ino) | 1;
	uint64_t *known = u64_map_make(&folder->known, key);
	bool new = known && !*known;

	if (known)
		*known = 1;
	return new;
}

void watch_folder_look(struct watch_folder *folder, watch_folder_found *found, void *owner)
{
	DIR *listed = folder->path ? opendir(folder->path) : NULL;
	const struct dirent *entry;
	char path[PATH_MAX];

	while (listed && (entry = readdir(listed)))
		if (is_trace(entry) && is_new(folder, entry) &&
		    snprintf(path, sizeof(path), "%s/%s", folder->path, entry->d_name) < (int)sizeof(path))
			found(owner, path);
	if (listed)
		closedir(listed);
}

void watch_folder_done(struct watch_folder *folder)
{
	u64_map_done(&folder->known);
}
