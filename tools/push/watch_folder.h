/*
 * watch_folder.h - the traces that appear in a folder: those of programs that end between two looks at the collector
 * are seen there only. For push.c.
 */
#ifndef EVPROF_TOOLS_PUSH_WATCH_FOLDER_H
#define EVPROF_TOOLS_PUSH_WATCH_FOLDER_H

#include <stdbool.h>

#include "util/u64_map.h"

struct watch_folder {
	const char *path;
	struct u64_map known; /* of the last look, by name, inode and the time at which it was made, if that is known */
};

/*
 * Called with the path of each file NAME.evp that is not known, short names first. True: it is known as long as it is
 * there.
 */
typedef bool watch_folder_found(void *owner, const char *path);
void watch_folder_look(struct watch_folder *folder, watch_folder_found *found, void *owner);
void watch_folder_done(struct watch_folder *folder);

#endif
