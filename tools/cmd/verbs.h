/*
 * verbs.h - the verbs of evprof(1), one file each.
 *
 * A verb gets argv from its own name on and returns the exit status of evprof.
 */
#ifndef EVPROF_TOOLS_CMD_VERBS_H
#define EVPROF_TOOLS_CMD_VERBS_H

#include <stdbool.h>
#include <stdint.h>

struct trace;

int cmd_run(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_annotate(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_check(int argc, char **argv);

/* True after saying that the output would replace the trace it is made of; path may be NULL: none. */
bool verb_overwrites(const char *verb, const struct trace *trace, const char *path);

#endif
