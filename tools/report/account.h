/*
 * account.h - what a recording within a budget left out, in words, for `evprof info` and the last line of `evprof run`.
 */
#ifndef EVPROF_TOOLS_REPORT_ACCOUNT_H
#define EVPROF_TOOLS_REPORT_ACCOUNT_H

#include "trace/reader.h"
#include "util/output.h"

/* Writes it behind what the line has so far, from "; " on; nothing, where all was recorded. */
void account_put_left_out(const struct trace_account *account, struct output *output);

#endif
