/*
 * file_names.h - short file names: each file of a trace by the shortest end of its path that no other file has:
 * "app.py", but "pkg/__init__.py".
 *
 * Used by export/folded.c, whose format identifies functions by their text. Memory grows with the number of files.
 */
#ifndef EVPROF_TOOLS_ANALYSIS_FILE_NAMES_H
#define EVPROF_TOOLS_ANALYSIS_FILE_NAMES_H

#include "replay/filter.h"
#include "trace/labels.h"
#include "trace/reader.h"

struct file_names {
	struct labels files; /* one label without name for each file */
	struct text *sorted; /* sorted from the end of the path */
};

/* Finds the files of Python functions in the filtered processes. Returns 0 or -ENOMEM. */
int file_names_find(struct file_names *names, const struct trace *trace, const struct filter *filter);
/* Points into the file. The base name if the file is unknown or file_names_find() was not called. */
struct text file_names_short(const struct file_names *names, struct text file);
void file_names_done(struct file_names *names);

#endif
