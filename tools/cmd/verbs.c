/*
 * verbs.c - shared by verbs with an output. See verbs.h.
 */
#include "cmd/verbs.h"

#include "trace/reader.h"
#include "util/cli.h"

bool verb_overwrites(const char *verb, const struct trace *trace, const char *path)
{
	if (!path || !trace_is_at(trace, path))
		return false;
	cli_misused(verb, "%s is the trace itself; give the output another name", path);
	return true;
}
