/* cpu_time.c - see cpu_time.h. */
#include "trace/cpu_time.h"

#include <string.h>

bool cpu_clock_by_name(const char *name, enum cpu_clock *clock)
{
	static const char *const names[] = {"wall", "cpu", "off-cpu"};
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		*clock = (enum cpu_clock)i;
		return true;
	}
	return false;
}

bool cpu_time_known(const struct trace *trace)
{
	uint32_t i;

	for (i = 0; i < trace->process_count; i++)
		if (trace->processes[i] && !trace_process_records(trace->processes[i], "cpu"))
			return false;
	return true;
}

/* The ticks that the thread ran during a pause, at whose end a CPU time is recorded. */
static uint64_t ran_in_pause(struct cpu_time *time, const struct trace_process *process, uint64_t pause, uint64_t now,
			     uint64_t cpu_ns)
{
	uint64_t ran = 0, outside = now - pause - time->at_ticks;

	if (time->known && cpu_ns > time->cpu_ns)
		ran = trace_span_ticks(process, cpu_ns - time->cpu_ns);
	ran = ran > outside ? ran - outside : 0;
	time->known = true;
	time->cpu_ns = cpu_ns;
	time->at_ticks = now;
	return ran < pause ? ran : pause;
}

/* A pause that ends without a CPU time is too short to be a wait: the thread ran. */
void cpu_time_apply(struct cpu_time *time, enum cpu_clock clock, const struct trace_process *process,
		    struct trace_events *events)
{
	uint32_t *ticks = (uint32_t *)events->ticks; /* in the stream's buffer, which is read once */
	uint64_t *extra = (uint64_t *)events->extras;
	uint64_t now = events->first_ticks;
	uint32_t i;

	time->known &= !events->hole;
	events->first_ticks -= time->removed;
	for (i = 0; i < events->count; i++) {
		unsigned kind = wire_head_kind(events->heads[i]);
		uint64_t pause = wire_time_of(kind, now, ticks[i], extra) - now, ran = pause;

		now += pause;
		if (kind == WIRE_CPU)
			ran = ran_in_pause(time, process, pause, now, wire_cpu_ns(events->heads[i], ticks[i]));
		if (kind != WIRE_GAP)
			time->removed += clock == CPU_CLOCK_RAN ? pause - ran : ran;
		else
			time->known = false;
		if (wire_is_time(kind))
			*extra -= time->removed;
		else if (kind != WIRE_GAP && clock == CPU_CLOCK_WAITED)
			ticks[i] = 0;
		extra += wire_extra_words(events->heads[i]);
	}
}
