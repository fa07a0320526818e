/* output.h - the path and the creation of a session's trace file. */
#ifndef COLLECTOR_OUTPUT_H
#define COLLECTOR_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The values for the % of a template. output_expand() makes program and host safe for a file name. */
struct output_values {
	const char *program;
	const char *host;
	pid_t pid;
};

/* Expands %p %n %h %t %%; any other % is kept. 0 or -ENAMETOOLONG. */
int output_expand(const char *template, const struct output_values *values, char *path, size_t path_bytes);

/* Whether a template stays below the folder that it is relative to. */
bool output_is_below(const char *template);

enum output_existing { OUTPUT_REPLACE, OUTPUT_ADD_SUFFIX };

/*
 * Creates the file for this user only, without following a symbolic link. An existing regular file or link is removed
 * (OUTPUT_REPLACE), or kept, and path gets a suffix -2, -3, ... (OUTPUT_ADD_SUFFIX). A trace that is being written is
 * always kept. Returns a descriptor, or -errno (-EEXIST: path is of another type).
 */
int output_create(char *path, size_t path_bytes, enum output_existing existing);

/*
 * Lets a user read a file of ours, and no more, by an access control list: the owner needs no privilege for that. 0 or
 * -errno (-EOPNOTSUPP: the file system has no such lists).
 */
int output_let_read(int fd, uid_t uid);

#endif
