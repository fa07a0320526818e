/*
 * source.h - the source files that a trace names, found when they are shown. For annotate and export --zip.
 */
#ifndef EVPROF_TOOLS_SOURCE_H
#define EVPROF_TOOLS_SOURCE_H

#include <stdbool.h>

#include "text.h"
#include "trace_reader.h"

/* Is that co_filename meant to be one of a file? "<string>", "<frozen os>" and C functions' "~" are not. */
bool source_is_file(struct text name);

/*
 * Opens a source for reading. A relative name is looked for where the process began, then here. Returns a descriptor or
 * -errno; -EINVAL for what is no regular file.
 */
int source_open(const struct trace *trace, uint32_t process, struct text name);

/* Was the source written after the trace had ended? False where that is not known. */
bool source_is_newer(const struct trace *trace, int fd);

/* One line on stderr: that source of the verb is not where (for example "shown"), for this -errno of source_open(). */
void source_say_newer(const char *verb, struct text name);
void source_say_missing(const char *verb, struct text name, const char *where, int error);

#endif
