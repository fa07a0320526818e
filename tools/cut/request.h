/*
 * request.h - what a user asks to be cut: times, marks or spans; one stretch, or each in a file of its own.
 */
#ifndef EVPROF_TOOLS_CUT_REQUEST_H
#define EVPROF_TOOLS_CUT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cut/cut.h"

struct cut_request {
	const struct filter *filter;	   /* times, processes and threads */
	const char *mark_begin, *mark_end; /* NULL: none */
	const char *span;		   /* NULL: none */
	int64_t since_ns, until_ns;	   /* of CLOCK_MONOTONIC; 0: none */
	int64_t number;			   /* of the stretch, from 1; 0: there is one, or each is cut */
	bool each;
};

/*
 * Finds the stretches: at least one; one, unless each is wanted. Returns 0, -ENOMEM, or -EINVAL with the reason in one
 * line in why. cut_list_done() must follow in all cases.
 */
int cut_request_find(const struct cut_request *request, struct trace *trace, struct cut_list *list, char *why,
		     size_t why_bytes);

/* The path of stretch `number`, from 0: a.evp, a-2.evp, a-3.evp. The caller frees it; NULL: no memory. */
char *cut_path(const char *path, size_t number);

#endif
