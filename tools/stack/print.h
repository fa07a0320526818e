/* print.h - the outputs of evprof stack. */
#ifndef EVPROF_TOOLS_STACK_PRINT_H
#define EVPROF_TOOLS_STACK_PRINT_H

#include "stack/snapshot.h"
#include "util/output.h"

void print_snapshot(struct output *output, const struct snapshot *snapshot);

/* One object. */
void print_snapshot_json(struct output *output, const struct snapshot *snapshot);

#endif
