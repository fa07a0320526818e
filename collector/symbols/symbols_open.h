/* symbols_open.h - opens files that a recorded program names, below the root directory of that program. */
#ifndef COLLECTOR_SYMBOLS_OPEN_H
#define COLLECTOR_SYMBOLS_OPEN_H

#include <sys/stat.h>

/* Opens a regular file below root for reading; -1: no such file, or no permission. path: as the program sees it. */
int symbols_open(int root, const char *path, struct stat *status);

#endif
