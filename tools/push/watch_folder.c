/*
 * watch_folder.c - see watch_folder.h.
 */
#include "push/watch_folder.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

#define ENDING ".evp"

static int is_trace(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name), ending = strlen(ENDING);

	return length > ending && entry->d_name[0] != '.' && strcmp(entry->d_name + length - ending, ENDING) == 0;
}

/* NULL: memory ran out. */
static uint64_t *known_of(struct watch_folder *folder, const struct dirent *entry)
{
	return u64_map_make(&folder->known, (text_hash(TEXT_HASH_BEGIN, text_of(entry->d_name)) ^ entry->d_ino) | 1);
}

/* Copies and parts of a trace have longer names. */
static int by_length(const struct dirent **left, const struct dirent **right)
{
	size_t a = strlen((*left)->d_name), b = strlen((*right)->d_name);

	return a == b ? strcmp((*left)->d_name, (*right)->d_name) : a < b ? -1 : 1;
}

void watch_folder_look(struct watch_folder *folder, watch_folder_found *found, void *owner)
{
	struct dirent **entries = NULL;
	int count = folder->path ? scandir(folder->path, &entries, is_trace, by_length) : 0;
	char path[PATH_MAX];

	for (int i = 0; i < count; i++) {
		uint64_t *known = known_of(folder, entries[i]);

		if (known && !*known &&
		    snprintf(path, sizeof(path), "%s/%s", folder->path, entries[i]->d_name) < (int)sizeof(path))
			*known = found(owner, path);
		free(entries[i]);
	}
	free(entries);
}

void watch_folder_done(struct watch_folder *folder)
{
	u64_map_done(&folder->known);
}
