/*
 * folder.h - a folder in the /tmp that the process sees, for what it and evprof exchange.
 *
 * The root of a process in a container is not trusted: its /tmp is opened without leaving that root, and files are made
 * and opened by descriptors. The process may put links, and mounts of its own namespace, in the place of the folder and
 * its files at any time. So root makes and removes them with the rights of the process's user.
 */
#ifndef EVPROF_TOOLS_ATTACH_FOLDER_H
#define EVPROF_TOOLS_ATTACH_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "attach/target.h"

struct folder {
	char path[64]; /* as the process has it */
	char here[96]; /* as we have it */
	int tmp;       /* /tmp, the folder above */
	int fd;	       /* -1: there is no folder */
	uid_t user;    /* of the process, whose the folder is */
	gid_t group;
};

/* Makes the folder. Only the process's user can change it; others can open what they know by name. 0 or -errno. */
int folder_make(struct folder *folder, const struct target *target);

/* Opens the folder that an earlier evprof attach made for this process, by the path of its socket. 0 or -errno. */
int folder_find(struct folder *folder, const struct target *target, const char *socket);

/* Makes a file with this text. */
int folder_write(const struct folder *folder, const char *name, const char *text, size_t bytes);

/* Makes a socket that listens in the folder, under the name `here`/socket. Returns it or -errno. */
int folder_listen(const struct folder *folder);

/* Copies a file, which the process can read and map. */
int folder_copy(const struct folder *folder, const char *name, const char *from);

/* Opens the file for reading. Returns a descriptor or -errno. */
int folder_open(const struct folder *folder, const char *name);
/* Removes the file. */
void folder_drop(const struct folder *folder, const char *name);

/* Removes the folder and the files below, which it may have. */
void folder_remove(struct folder *folder);

#define FOLDER_ANSWER "answer"
#define FOLDER_SCRIPT "script.py"
#define FOLDER_LIBRARY "libevprof.so"
#define FOLDER_SOCKET "socket"

#endif
