/*
 * calibration.c - reads the costs that a process measured, and shortens the times between its events. See calibration.h.
 */
#include "calibration.h"

#include <stdio.h>
#include <string.h>

/*
 * Of the time between the stamps of an empty function, this much is the function's own: the rest of a bare call lies
 * before the first stamp and after the last. A C function has its body between them and little else.
 */
#define OWN_SHARE_CALL 0.25
#define OWN_SHARE_C_CALL 0.5

struct costs {
	double call[3]; /* wire.h: A, B, C */
	double c_call[3];
	double memory;
};

static bool parse(struct text text, struct costs *costs)
{
	char copy[256];

	if (text.length >= sizeof(copy))
		return false;
	memcpy(copy, text.at, text.length);
	copy[text.length] = 0;
	return sscanf(copy, "call %lf %lf %lf c_call %lf %lf %lf mem %lf", &costs->call[0], &costs->call[1],
		      &costs->call[2], &costs->c_call[0], &costs->c_call[1], &costs->c_call[2], &costs->memory) == 7;
}

static bool find_costs(const struct trace *trace, const struct trace_process *process, struct costs *costs)
{
	const char *python = trace_process_text(process, "python");
	uint32_t i;

	if (process->calibration.length)
		return parse(process->calibration, costs);
	for (i = 0; i < trace->process_count; i++) {
		const struct trace_process *other = trace->processes[i];

		if (other && other->calibration.length && strcmp(trace_process_text(other, "python"), python) == 0)
			return parse(other->calibration, costs);
	}
	return false;
}

bool calibration_known(const struct trace *trace)
{
	uint32_t i;

	for (i = 0; i < trace->process_count; i++)
		if (trace->processes[i] && trace->processes[i]->calibration.length)
			return true;
	return false;
}

static uint32_t fixed(const struct trace_process *process, double ns)
{
	double ticks_per_ns = 1e-6 * (double)(trace_ticks(process, process->line.ns + 1000000) - process->line.ticks);
	double cost = ns * ticks_per_ns * 256;

	return cost > 0 && cost < 1e9 ? (uint32_t)cost : 0;
}

/* What the hooks add lies to a part between the two stamps, and for the rest around them. */
static void set_pair(struct calibration *calibration, const struct trace_process *process, const double costs[3],
		     double own_share, uint32_t begins, uint32_t ends)
{
	double inner = costs[1] - own_share * costs[2], outer;
	unsigned kind;

	inner = inner < 0 ? 0 : inner > costs[0] ? costs[0] : inner;
	outer = costs[0] - inner;
	for (kind = 0; kind < WIRE_KIND_SLOTS; kind++) {
		if (begins >> kind & 1) {
			calibration->before[kind] = fixed(process, outer / 2);
			calibration->after[kind] = fixed(process, inner / 2);
		} else if (ends >> kind & 1) {
			calibration->before[kind] = fixed(process, inner / 2);
			calibration->after[kind] = fixed(process, outer / 2);
		}
	}
}

bool calibration_find(struct calibration *calibration, const struct trace *trace, const struct trace_process *process)
{
	struct costs costs;
	unsigned kind;

	memset(calibration, 0, sizeof(*calibration));
	if (!find_costs(trace, process, &costs))
		return false;
	set_pair(calibration, process, costs.call, OWN_SHARE_CALL,
		 1u << WIRE_CALL | 1u << WIRE_RESUME | 1u << WIRE_THROW,
		 1u << WIRE_RETURN | 1u << WIRE_YIELD | 1u << WIRE_UNWIND);
	set_pair(calibration, process, costs.c_call, OWN_SHARE_C_CALL, 1u << WIRE_C_CALL,
		 1u << WIRE_C_RETURN | 1u << WIRE_C_EXCEPTION);
	for (kind = WIRE_MALLOC; kind <= WIRE_FREE; kind++)
		calibration->before[kind] = calibration->after[kind] = fixed(process, costs.memory / 2);
	return true;
}

void calibration_begin_thread(struct calibration *calibration)
{
	calibration->last_kind = WIRE_NONE;
	calibration->removed = 0;
	calibration->rest = 0;
}

void calibration_apply(struct calibration *calibration, struct trace_events *events)
{
	uint32_t *ticks = (uint32_t *)events->ticks; /* of the stream's buffer, read once */
	uint64_t *extra = (uint64_t *)events->extras;
	uint32_t i;

	events->first_ticks -= calibration->removed;
	for (i = 0; i < events->count; i++) {
		unsigned kind = wire_head_kind(events->heads[i]);
		uint32_t cost =
		    calibration->after[calibration->last_kind] + calibration->before[kind] + calibration->rest;
		uint32_t most = kind == WIRE_TIME ? 0 : ticks[i]; /* its ticks are no time */
		uint32_t whole = cost >> 8 < most ? cost >> 8 : most;

		if (kind == WIRE_TIME)
			*extra -= calibration->removed;
		else
			calibration->rest = cost >> 8 > whole ? 0 : cost & 255;
		ticks[i] -= whole;
		calibration->removed += whole;
		calibration->last_kind = kind;
		extra += wire_extra_words(kind);
	}
}
