/* folder_list.h - the files of a daemon's folder that may be traces or exports of these. Used by folder.c. */
#ifndef COLLECTOR_FOLDER_LIST_H
#define COLLECTOR_FOLDER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FOLDER_TRACE_ENDING ".evp"

struct folder_file {
	char *path; /* below the folder */
	uint64_t bytes;
	int64_t modified_ns; /* CLOCK_REALTIME */
	uint64_t all_bytes;  /* of a trace: with its exports */
	bool trace;	     /* by its name */
};

struct folder_list {
	struct folder_file *files; /* in the order of their paths */
	size_t count;
	uint64_t bytes; /* of traces with their exports */
};

/*
 * Lists the regular files of this user in a folder and those below it. Returns 0 or -errno; folder_list_done() follows
 * in both cases.
 */
int folder_list_read(struct folder_list *list, int folder);
void folder_list_done(struct folder_list *list);

/*
 * Removes a trace and its exports, if it is a trace and nobody writes it. Returns 0; -EBUSY: it is being written;
 * -EINVAL: it is not a trace, or not this user's; or another -errno.
 */
int folder_remove(int folder, const char *path);

#endif
