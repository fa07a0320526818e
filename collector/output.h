/*
 * output.h - where the trace file of a session goes.
 */
#ifndef COLLECTOR_OUTPUT_H
#define COLLECTOR_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What stands for the % of a template. program and host are made safe for a file name here. */
struct output_values {
	const char *program;
	const char *host;
	pid_t pid;
};

/* %p %n %h %t %% expanded; another % stays as it is. 0 or -ENAMETOOLONG. */
int output_expand(const char *template, const struct output_values *values, char *path, size_t path_bytes);

/* Whether a template stays below the folder it is relative to. */
bool output_is_below(const char *template);

enum output_existing { OUTPUT_REPLACE, OUTPUT_ADD_SUFFIX };

/*
 * Makes the file, for this user only, and never by following a symbolic link. What exists already is removed when it is
 * a regular file or a link (OUTPUT_REPLACE), or stays and path gets a suffix -2, -3, ... (OUTPUT_ADD_SUFFIX).
 * A descriptor, or -errno (-EEXIST: something that is no regular file is in the way).
 */
int output_create(char *path, size_t path_bytes, enum output_existing existing);

/*
 * Lets a user read a file of ours, and nothing else, by an access control list: for that its owner needs no right. 0 or
 * -errno (-EOPNOTSUPP: the file system has no such lists).
 */
int output_let_read(int fd, uid_t uid);

#endif
