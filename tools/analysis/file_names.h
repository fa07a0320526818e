/*
 * file_names.h - the files of a trace, each by the end of its path that no other has: "app.py", but "pkg/__init__.py".
 *
 * Used by export/folded.c, whose format knows functions by their text only. Memory grows with the number of files.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_FILE_NAMES_H
#define EVPROF_TOOLS_ANALYSIS_FILE_NAMES_H

#include <stdint.h>

#include "replay/filter.h"
#include "trace/labels.h"
#include "trace/reader.h"

struct file_names {
	struct labels files; /* a label without name for each */
	struct text *sorted; /* by their ends */
};

/* Finds the files of Python functions in the processes that are chosen. Returns 0 or -ENOMEM. */
int file_names_find(struct file_names *names, const struct trace *trace, const struct filter *filter);
/* Points into the file; its base name where it was not found, or no names were. */
struct text file_names_short(const struct file_names *names, struct text file);
void file_names_done(struct file_names *names);

#endif
