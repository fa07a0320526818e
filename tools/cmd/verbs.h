/*
 * verbs.h - the verbs of evprof(1), one file each.
 *
 * A verb is called with argv from its own name on, and returns the exit status of evprof.
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

/* Whether the output would overwrite the trace itself; prints an error if so. path may be NULL: no file. */
bool verb_overwrites(const char *verb, const struct trace *trace, const char *path);

#endif
