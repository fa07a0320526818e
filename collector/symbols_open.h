/*
 * symbols_open.h - opens the files that a recorded program names, below the root directory of that program.
 */
#ifndef COLLECTOR_SYMBOLS_OPEN_H
#define COLLECTOR_SYMBOLS_OPEN_H

#include <sys/stat.h>

/* A regular file below root, for reading; -1: it is none, or may not be read. path is that of the program. */
int symbols_open(int root, const char *path, struct stat *status);

#endif
