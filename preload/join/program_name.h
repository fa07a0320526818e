/* program_name.h - the name of the program in the name of its trace. */
#ifndef PRELOAD_PROGRAM_NAME_H
#define PRELOAD_PROGRAM_NAME_H

#include <stddef.h>

/* The script or module of this process for use in file names: [A-Za-z0-9._-] only. scratch holds the command line. */
void program_name(char *out, size_t size, char *scratch, size_t scratch_size);

#endif
