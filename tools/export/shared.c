/*
 * shared.c - what several formats write. See export.h.
 */
#include "export/export.h"

const char *export_program(const struct trace_process *process)
{
	const char *program = trace_process_name(process);

	return program[0] ? program : "python";
}

const char *export_argument(const struct trace_process *process, size_t i)
{
	return json_string_value(json_array_get(json_object_get(process->meta, "argv"), i));
}

void export_put_sampling(struct output *output, int64_t rate)
{
	char text[TRACE_SAMPLING_BYTES];

	if (rate)
		output_format(output, " (%s)", trace_sampling_text(rate, text));
}

bool export_is_memory_alone(const struct trace *trace)
{
	bool memory = false;

	for (uint32_t i = 0; i < trace->process_count; i++) {
		if (!trace->processes[i])
			continue;
		if (trace_process_has_times(trace->processes[i]))
			return false;
		memory |= trace_process_records_memory(trace->processes[i]);
	}
	return memory;
}

const struct export_instant export_instants[WIRE_KINDS] = {
    [WIRE_EXCEPTION] = {"exception", NULL}, [WIRE_GAP] = {"lost", "events"},
    [WIRE_MARK] = {"mark", NULL},	    [WIRE_FORK] = {"fork", "child"},
    [WIRE_EXEC] = {"exec", NULL},	    [WIRE_EXEC_FAILED] = {"exec_failed", "errno"},
    [WIRE_EXIT] = {"exit", "status"},
};
