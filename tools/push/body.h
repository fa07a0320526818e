/*
 * body.h - the body of a request, in the form that its receiver takes. For follow.c.
 */
#ifndef EVPROF_TOOLS_PUSH_BODY_H
#define EVPROF_TOOLS_PUSH_BODY_H

#include <stdbool.h>
#include <stdint.h>

#include "export/protobuf.h"
#include "push/counts.h"
#include "push/interval.h"
#include "push/otlp.h"
#include "push/series.h"
#include "push/settings.h"

/* Zeroed memory with a form is an empty body. */
struct push_body {
	enum push_form form;
	struct otlp otlp;
	struct series series;
};

void push_body_begin(struct push_body *body, const struct push_counts *counts);
/* Adds a stack of the process. Returns 0 or -ENOMEM. */
int push_body_add(struct push_body *body, uint32_t stack, const struct push_values *values);
/* Whether it is large enough to be sent. */
bool push_body_is_full(const struct push_body *body);
/* Writes it, and empties it. Returns 0 or -ENOMEM. */
int push_body_finish(struct push_body *body, const struct push_interval *interval, struct protobuf *request);
/* Empties it. */
void push_body_clear(struct push_body *body);
void push_body_done(struct push_body *body);

#endif
