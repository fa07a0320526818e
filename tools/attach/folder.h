/*
 * folder.h - a folder in the /tmp that the process sees, for what it and evprof exchange.
 *
 * The root of a process in a container is not trusted: its /tmp is opened without leaving that root, and files are made
 * and opened by descriptors.
 */
#ifndef EVPROF_TOOLS_ATTACH_FOLDER_H
#define EVPROF_TOOLS_ATTACH_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/target.h"

struct folder {
	char path[64]; /* as the process has it */
	char here[96]; /* as we have it */
	int fd;
};

/* Makes the folder. Only this user can change it; the process's user can open what it knows by name. 0 or -errno. */
int folder_make(struct folder *folder, const struct target *target);

/* Makes a file of the process's user, with this text. */
int folder_write(const struct folder *folder, const struct target *target, const char *name, const char *text,
		 size_t bytes);

/* Copies a file, which the process can read and map. */
int folder_copy(const struct folder *folder, const char *name, const char *from);

/* Reads the file's beginning as a text with its NUL. Returns its length, or -errno. */
int folder_read(const struct folder *folder, const char *name, char *text, size_t bytes);

/* Removes the folder and the files below, which it may have. */
void folder_remove(struct folder *folder);

#define FOLDER_ANSWER "answer"
#define FOLDER_SCRIPT "script.py"
#define FOLDER_LIBRARY "libevprof.so"

#endif
