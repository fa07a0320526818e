/*
 * body.c - see body.h.
 */
#include "push/body.h"

static bool is_otlp(const struct push_body *body)
{
	return body->form == PUSH_OTLP;
}

void push_body_begin(struct push_body *body, const struct push_counts *counts)
{
	if (is_otlp(body))
		otlp_begin(&body->otlp, counts);
	else
		series_begin(&body->series, counts);
}

int push_body_add(struct push_body *body, uint32_t stack, const struct push_values *values)
{
	return is_otlp(body) ? otlp_add(&body->otlp, stack, values) : series_add(&body->series, stack, values);
}

bool push_body_is_full(const struct push_body *body)
{
	return is_otlp(body) ? otlp_is_full(&body->otlp) : series_is_full(&body->series);
}

int push_body_finish(struct push_body *body, const struct push_interval *interval, struct protobuf *request)
{
	if (is_otlp(body))
		return otlp_finish(&body->otlp, interval, request);
	return series_finish(&body->series, interval, body->form == PUSH_PARCA, request);
}

void push_body_clear(struct push_body *body)
{
	otlp_clear(&body->otlp);
	series_clear(&body->series);
}

void push_body_done(struct push_body *body)
{
	otlp_done(&body->otlp);
	series_done(&body->series);
}
