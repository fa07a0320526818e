/*
 * source.h - the source files that a trace names, found when they are shown. For annotate and export --zip.
 */
#ifndef EVPROF_TOOLS_TRACE_SOURCE_H
#define EVPROF_TOOLS_TRACE_SOURCE_H

#include <stdbool.h>

#include "trace/reader.h"
#include "util/text.h"

/* Is that co_filename meant to be one of a file? "<string>", "<frozen os>" and C functions' "~" are not. */
bool source_is_file(struct text name);

/*
 * Opens a source for reading: a regular file of text, not one that the kernel makes, of at most 16 MiB. Where not any
 * text will do, its name ends as those of Python's sources, or its first line names python. A relative name is looked
 * for where the process began, then here. Returns a descriptor or -errno: -EINVAL no such file, -EILSEQ no text,
 * -EFBIG, -ENOEXEC not Python's.
 */
int source_open(const struct trace *trace, uint32_t process, struct text name, bool any);

/* The option of the verbs that show sources. */
#define SOURCE_ALL_OPTION "all-sources"

/* Was the source written after the trace had ended? False where that is not known. */
bool source_is_newer(const struct trace *trace, int fd);

/* One line on stderr: that source of the verb is not where (for example "shown"), for this -errno of source_open(). */
void source_say_newer(const char *verb, struct text name);
void source_say_missing(const char *verb, struct text name, const char *where, int error);

#endif
