/*
 * trace.c - queries on a trace in memory. See trace.h.
 */
#include "trace/trace.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "evprof/control.h"
#include "file/line_table.h"

struct text trace_string(const struct wire_definition *definition, unsigned k)
{
	const char *at = (const char *)(definition + 1);
	unsigned i;

	for (i = 0; i < k; i++)
		at += definition->length[i];
	return (struct text){at, definition->length[k]};
}

/* Whether a co_lnotab that was cut ends before the instruction: it does not say where its last line ends. */
static bool is_cut_off(const struct wire_definition *lines, const uint8_t *table, size_t bytes, int64_t offset)
{
	int64_t end = 0;

	if (lines->number != SAMPLING_LINES_LNOTAB || !(lines->flags & WIRE_CUT))
		return false;
	for (size_t i = 0; i < bytes; i += 2)
		end += table[i];
	return offset >= end;
}

uint32_t trace_line(const struct trace_process *process, uint32_t code, uint32_t instruction)
{
	const struct wire_definition *function = trace_name(&process->codes, code),
				     *lines = trace_name(&process->lines, code);
	const uint8_t *table;
	size_t bytes = 0;
	int64_t offset;

	if (!function || !lines || !instruction || function->number > INT32_MAX)
		return 0;
	table = (const uint8_t *)trace_string(lines, 0).at;
	offset = wire_instruction_offset(instruction);
	for (unsigned i = 0; i < WIRE_DEFINITION_STRINGS; i++)
		bytes += lines->length[i];
	if (is_cut_off(lines, table, bytes, offset))
		return 0;
	return (uint32_t)line_of((enum sampling_lines)lines->number, table, bytes, (int)function->number, offset);
}

const char *trace_process_text(const struct trace_process *process, const char *member)
{
	const char *text = process->meta ? json_string_value(json_object_get(process->meta, member)) : NULL;

	return text ? text : "";
}

const char *trace_process_name(const struct trace_process *process)
{
	const char *title = trace_process_text(process, "title");

	return title[0] ? title : trace_process_text(process, "program");
}

static bool has_event(const json_t *object, const char *kind)
{
	const json_t *event;
	size_t i;

	json_array_foreach(json_object_get(object, "events"), i, event)
	{
		const char *name = json_string_value(event);

		if (name && strcmp(name, kind) == 0)
			return true;
	}
	return false;
}

bool trace_process_records(const struct trace_process *process, const char *kind)
{
	bool records = has_event(process->meta, kind);
	const json_t *change;
	size_t i;

	json_array_foreach(process->changes, i, change) records |= has_event(change, kind);
	return records;
}

bool trace_process_records_memory(const struct trace_process *process)
{
	return trace_process_records(process, "mem") || trace_process_records(process, "malloc");
}

bool trace_process_has_times(const struct trace_process *process)
{
	return trace_process_records(process, "call") || trace_process_records(process, "c_call") ||
	       trace_process_records(process, "line") || trace_process_sample_rate(process);
}

bool trace_records(const struct trace *trace, const char *kind)
{
	for (uint32_t i = 0; i < trace->process_count; i++)
		if (trace->processes[i] && trace_process_records(trace->processes[i], kind))
			return true;
	return false;
}

bool trace_process_is_filtered(const struct trace_process *process)
{
	return process->meta && json_is_true(json_object_get(process->meta, "filtered"));
}

bool trace_process_is_program_only(const struct trace_process *process)
{
	return process->meta && json_is_true(json_object_get(process->meta, "program_only"));
}

bool trace_process_misses_malloc(const struct trace_process *process)
{
	return process->meta && json_is_true(json_object_get(process->meta, "malloc_unseen"));
}

bool trace_process_has_native_stacks(const struct trace_process *process)
{
	return process->meta && json_is_true(json_object_get(process->meta, "native"));
}

int trace_process_sample_rate(const struct trace_process *process)
{
	const json_t *rate = process->meta ? json_object_get(process->meta, "sample_rate") : NULL;
	json_int_t value = json_integer_value(rate);

	return value > 0 && value <= INT_MAX ? (int)value : 0;
}

bool trace_thread_is_shown(const struct trace_process *process, const struct trace_thread *thread)
{
	return thread->known && (thread->sampled || !trace_process_sample_rate(process));
}

const struct trace_thread *trace_new_thread(const struct trace *trace, const struct trace_process *process,
					    struct u64_map *known, size_t *at)
{
	while (*at < process->thread_count) {
		const struct trace_thread *thread = trace->threads[process->threads[(*at)++]];
		uint64_t *number =
		    trace_thread_is_shown(process, thread) ? u64_map_make(known, thread->number + UINT64_C(1)) : NULL;

		if (!number || *number == thread->start_ticks + 1)
			continue;
		*number = thread->start_ticks + 1;
		return thread;
	}
	return NULL;
}

int trace_sample_rate(const struct trace *trace)
{
	uint32_t i;

	for (i = 0; i < trace->process_count; i++)
		if (trace->processes[i] && trace_process_sample_rate(trace->processes[i]))
			return trace_process_sample_rate(trace->processes[i]);
	return 0;
}

uint64_t trace_process_memory_interval(const struct trace_process *process)
{
	json_int_t value = process->meta ? json_integer_value(json_object_get(process->meta, "memory_interval")) : 0;

	/* No estimate overflows below. */
	return value > 0 && value <= CONTROL_MEMORY_INTERVAL_MAX ? (uint64_t)value : 0;
}

bool trace_process_is_kept(const struct trace_process *process)
{
	return json_object_get(process->meta, "keep_ns") || json_object_get(process->meta, "keep_bytes") ||
	       json_object_get(process->meta, "keep_alive");
}

bool trace_process_is_alive_only(const struct trace_process *process)
{
	return process->meta && json_is_true(json_object_get(process->meta, "alive_only"));
}

bool trace_is_alive_only(const struct trace *trace)
{
	for (uint32_t i = 0; i < trace->process_count; i++)
		if (trace->processes[i] && trace_process_is_alive_only(trace->processes[i]))
			return true;
	return false;
}

/* The largest number that a process has there. */
static uint64_t most_of(const struct trace *trace, const char *member)
{
	json_int_t most = 0, number;

	for (uint32_t i = 0; i < trace->process_count; i++) {
		const json_t *meta = trace->processes[i] ? trace->processes[i]->meta : NULL;

		number = json_integer_value(json_object_get(meta, member));
		most = number > most ? number : most;
	}
	return (uint64_t)most;
}

uint64_t trace_left_out(const struct trace *trace)
{
	return most_of(trace, "left_out");
}

uint64_t trace_so_far(const struct trace *trace)
{
	return most_of(trace, "so_far");
}

uint64_t trace_memory_interval(const struct trace *trace)
{
	uint64_t interval = 0;

	for (uint32_t i = 0; i < trace->process_count && !interval; i++)
		interval = trace->processes[i] ? trace_process_memory_interval(trace->processes[i]) : 0;
	return interval;
}

double trace_process_budget(const struct trace_process *process)
{
	double percent = process->meta ? json_number_value(json_object_get(process->meta, "budget")) : 0;

	return percent > 0 && percent <= 100 ? percent : 0;
}

double trace_budget(const struct trace *trace)
{
	double percent = 0;

	for (uint32_t i = 0; i < trace->process_count && percent <= 0; i++)
		percent = trace->processes[i] ? trace_process_budget(trace->processes[i]) : 0;
	return percent;
}

bool trace_process_account(const struct trace_process *process, struct trace_account *account)
{
	char text[128];

	*account = (struct trace_account){0};
	snprintf(text, sizeof(text), "%.*s", (int)process->budget.length, process->budget.at);
	return sscanf(text, "%lf %lf %lf %lf %lf", &account->cost_ms, &account->part_ms, &account->cpu_ms,
		      &account->longest_ms, &account->exceptions_ms) >= 3 &&
	       isfinite(account->cost_ms) && isfinite(account->longest_ms) && isfinite(account->exceptions_ms) &&
	       isfinite(account->cpu_ms) && account->cpu_ms > account->part_ms;
}

bool trace_account(const struct trace *trace, struct trace_account *account)
{
	bool found = false;

	*account = (struct trace_account){0};
	for (uint32_t i = 0; i < trace->process_count; i++) {
		struct trace_account own;

		if (!trace->processes[i] || !trace_process_account(trace->processes[i], &own))
			continue;
		found = true;
		account->cost_ms += own.cost_ms;
		account->part_ms += own.part_ms;
		account->cpu_ms += own.cpu_ms;
		account->longest_ms = own.longest_ms > account->longest_ms ? own.longest_ms : account->longest_ms;
		account->exceptions_ms += own.exceptions_ms;
	}
	return found;
}

double trace_account_percent(const struct trace_account *account)
{
	return 100 * account->cost_ms / (account->cpu_ms - account->part_ms);
}

json_t *trace_process_account_json(const struct trace_process *process)
{
	struct trace_account account;

	if (!trace_process_account(process, &account))
		return NULL;
	return json_pack("{s:f, s:f, s:f, s:f}", "recording_cpu_ms", account.cost_ms, "recording_percent",
			 trace_account_percent(&account), "longest_left_out_us", account.longest_ms * 1e3,
			 "exceptions_left_out_ms", account.exceptions_ms);
}

void trace_warn_of_budget(const struct trace *trace)
{
	if (trace_budget(trace) > 0)
		fprintf(stderr,
			"evprof: recorded within a budget of %g%%: short calls that were not recorded are missing "
			"here, their "
			"time is in their callers; evprof report has estimates\n",
			trace_budget(trace));
}

void trace_warn_of_estimates(const struct trace *trace)
{
	if (trace_budget(trace) > 0)
		fprintf(stderr,
			"evprof: recorded within a budget of %g%%: numbers of short functions are estimates; the "
			"tables and the JSON of evprof report mark them\n",
			trace_budget(trace));
}

const char *trace_memory_sampling_text(uint64_t interval, char out[TRACE_SAMPLING_BYTES])
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
	unsigned unit = 0;

	for (; unit < 3 && interval && interval % 1024 == 0; unit++)
		interval /= 1024;
	out[0] = 0;
	if (interval)
		snprintf(out, TRACE_SAMPLING_BYTES, "Memory is sampled every %llu %s: figures are estimates",
			 (unsigned long long)interval, units[unit]);
	return out;
}

void trace_warn_of_memory_sampling(const struct trace *trace)
{
	char text[TRACE_SAMPLING_BYTES];

	if (trace_memory_interval(trace))
		fprintf(stderr, "evprof: %s\n", trace_memory_sampling_text(trace_memory_interval(trace), text));
}

const char *trace_sampling_text(int rate, char out[TRACE_SAMPLING_BYTES])
{
	out[0] = 0;
	if (rate)
		snprintf(out, TRACE_SAMPLING_BYTES,
			 "Sampled %d times a second: calls are those that were seen, times are estimates", rate);
	return out;
}

void trace_warn_of_sampling(const struct trace *trace)
{
	char text[TRACE_SAMPLING_BYTES];

	if (trace_sample_rate(trace))
		fprintf(stderr, "evprof: %s\n", trace_sampling_text(trace_sample_rate(trace), text));
}

struct trace_process *trace_process_of(const struct trace *trace, const struct trace_thread *thread)
{
	return trace->processes[thread->process];
}

void trace_near_begin(struct trace_near *near, const struct trace_process *process, uint64_t ticks)
{
	const struct trace_line *line = &process->line;
	uint64_t span = ticks - line->ticks;
	unsigned __int128 exact = (unsigned __int128)span * line->factor;

	*near = (struct trace_near){.ticks = ticks, .span = 1, .ns = trace_ns(process, ticks)};
	/*
	 * Before the line's start, ns are rounded the other way. Far from it they are clamped, and ticks wrap. There,
	 * each time is computed alone.
	 */
	if (ticks < line->ticks || ticks > UINT64_MAX - TRACE_NEAR_TICKS ||
	    (exact + (unsigned __int128)TRACE_NEAR_TICKS * line->factor) >> line->shift >= TRACE_NS_FAR)
		return;
	near->span = TRACE_NEAR_TICKS;
	near->rest = (uint64_t)(exact & (((unsigned __int128)1 << line->shift) - 1));
	near->factor = line->factor;
	near->shift = line->shift;
}

uint64_t trace_ticks(const struct trace_process *process, int64_t ns)
{
	uint64_t low = 0;
	uint64_t high = UINT64_MAX >> 1;

	if (trace_ns(process, low) >= ns)
		return low;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (trace_ns(process, middle) < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
