/*
 * filter.c - the common options of the verbs, and the filter of functions. See filter.h.
 */
#include "replay/filter.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cli.h"
#include "util/output.h"

const char filter_help[] =
    "What is shown:\n"
    "      --include PATTERN     only these functions: a glob over the file, the name, the qualified name or "
    "module.name,\n"
    "                            or re:EXPRESSION, a regular expression anywhere in one of them; may come again\n"
    "      --exclude PATTERN     not these functions: their time goes to their callers\n"
    "      --exclude-syspath     not the functions of the standard library and of installed packages\n"
    "      --process PID, --thread TID\n"
    "                            only this process or thread; may come again\n"
    "      --from T, --to T      only this stretch, since the start of the trace: 1500 (ns), 20us, 3ms, 1.5s\n"
    "      --min-duration T      only calls that last at least so long\n"
    "      --max-depth N         only the N outermost calls of the stack\n"
    "      --clock CLOCK         times by: wall (default), cpu: while the thread ran, or off-cpu: while it waited; "
    "for\n"
    "                            traces recorded with the events cpu\n";

bool filter_parse_duration(const char *text, int64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
	char *end;
	double number = strtod(text, &end);
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (end == text || strcmp(end, units[i].name) != 0 || !isfinite(number) || number < 0)
			continue;
		if (number * units[i].ns > (double)TRACE_NS_FAR)
			break;
		*ns = (int64_t)(number * units[i].ns + 0.5);
		return true;
	}
	return false;
}

bool filter_duration(const char *verb, const char *option, const char *text, int64_t *ns)
{
	if (filter_parse_duration(text, ns))
		return true;
	cli_misused(verb, "%s wants a time such as 1500 (ns), 20us, 3ms, 1.5s or 2m, not \"%s\"", option, text);
	return false;
}

/* --- patterns --- */

const char *filter_add_pattern(struct filter *filter, const char *text, bool exclude, char *why, size_t why_bytes)
{
	struct filter_pattern *grown =
	    realloc(filter->patterns, (filter->pattern_count + 1) * sizeof(*filter->patterns));
	const char *wrong;

	if (!grown)
		return "out of memory";
	filter->patterns = grown;
	wrong = filter_pattern_parse(&grown[filter->pattern_count], text, exclude, why, why_bytes);
	if (wrong)
		return wrong;
	filter->pattern_count++;
	filter->includes |= !exclude;
	return NULL;
}

static bool add_pattern(struct filter *filter, const char *verb, const char *text, bool exclude)
{
	char why[128];
	const char *wrong = filter_add_pattern(filter, text, exclude, why, sizeof(why));

	if (wrong)
		cli_misused(verb, "the pattern \"%s\" cannot be used: %s", text, wrong);
	return !wrong;
}

/* The strings of a function that patterns are matched against, each terminated. */
struct names {
	char *bytes;
	const char *at[FILTER_NAMES];
};

static char *put_text(char *at, struct text text)
{
	size_t i;

	/* fnmatch() stops at a NUL. */
	for (i = 0; i < text.length; i++)
		*at++ = text.at[i] ? text.at[i] : ' ';
	*at = 0;
	return at;
}

static bool names_of(struct names *names, const struct wire_definition *definition, bool c_function)
{
	struct text file = trace_string(definition, 0); /* the class, for C functions */
	struct text name = trace_string(definition, 1);
	struct text qualified = trace_string(definition, 2);
	struct text module = trace_string(definition, 3);
	char *at;

	at = names->bytes = malloc(3 * (file.length + name.length + qualified.length + module.length) + 16);
	if (!at)
		return false;
	names->at[0] = at;
	at = c_function ? put_text(at, text_of("~")) : put_text(at, file);
	names->at[1] = ++at;
	at = put_text(at, name);
	names->at[2] = ++at;
	if (c_function && file.length) {
		at = put_text(at, file);
		*at++ = '.';
		at = put_text(at, name);
	} else {
		at = put_text(at, qualified.length ? qualified : name);
	}
	names->at[3] = ++at;
	if (module.length) {
		at = put_text(at, module);
		*at++ = '.';
	}
	put_text(at, text_of(names->at[2]));
	return true;
}

bool filter_has_functions(const struct filter *filter)
{
	return filter->pattern_count || filter->exclude_syspath;
}

int filter_function(const struct filter *filter, const struct wire_definition *definition, bool c_function)
{
	struct names names;
	bool shown;

	if (!filter_has_functions(filter))
		return true;
	if (!definition)
		return !filter->includes;
	if (!names_of(&names, definition, c_function))
		return -ENOMEM;
	shown = filter_includes(filter->patterns, filter->pattern_count, names.at) &&
		(c_function || !filter->exclude_syspath || !filter_in_syspath(names.at[0], names.at[3]));
	free(names.bytes);
	return shown;
}

int filter_hide(const struct filter *filter, const struct trace_process *process, uint32_t keys, uint8_t **hidden)
{
	uint32_t key;

	*hidden = NULL;
	if (!filter_has_functions(filter))
		return 0;
	*hidden = malloc(keys);
	if (!*hidden)
		return -ENOMEM;
	for (key = 0; key < keys; key++) {
		const struct trace_names *names = key & 1 ? &process->functions : &process->codes;
		int shown = filter_function(filter, trace_name(names, key / 2), key & 1);

		if (shown < 0)
			return shown;
		(*hidden)[key] = !shown;
	}
	return 0;
}

bool filter_skips(const struct filter *filter, const struct trace *trace, const struct trace_process *process,
		  const struct trace_place *place)
{
	return (filter->from_given && trace_ns(process, place->last_ticks) - trace->start_ns < filter->from_ns) ||
	       (filter->to_given && trace_ns(process, place->first_ticks) - trace->start_ns >= filter->to_ns);
}

/* --- options --- */

int filter_add_id(struct filter_ids *ids, int64_t id)
{
	int64_t *grown = realloc(ids->at, (ids->count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[ids->count++] = id;
	ids->at = grown;
	return 0;
}

/* The first one is *single; several are a list. */
static bool take_id(struct filter_ids *ids, int64_t *single, const char *verb, const char *option, const char *value)
{
	int64_t id = 0;

	if (!cli_number(verb, option, value, 1, &id))
		return false;
	if (!*single && !ids->count) {
		*single = id;
		return true;
	}
	if ((*single && filter_add_id(ids, *single) < 0) || filter_add_id(ids, id) < 0) {
		output_message("evprof %s: %s", verb, strerror(ENOMEM));
		return false;
	}
	*single = 0;
	return true;
}

bool filter_take(struct filter *filter, const char *verb, int option, const char *value)
{
	int64_t number;

	switch (option) {
	case FILTER_INCLUDE:
		return add_pattern(filter, verb, value, false);
	case FILTER_EXCLUDE:
		return add_pattern(filter, verb, value, true);
	case FILTER_EXCLUDE_SYSPATH:
		filter->exclude_syspath = true;
		return true;
	case FILTER_PROCESS:
		return take_id(&filter->processes, &filter->pid, verb, "--process", value);
	case FILTER_THREAD:
		return take_id(&filter->threads, &filter->tid, verb, "--thread", value);
	case FILTER_FROM:
		filter->from_given = true;
		return filter_duration(verb, "--from", value, &filter->from_ns);
	case FILTER_TO:
		filter->to_given = true;
		return filter_duration(verb, "--to", value, &filter->to_ns);
	case FILTER_MIN_DURATION:
		if (!filter_duration(verb, "--min-duration", value, &number))
			return false;
		filter->min_duration_ns = (uint64_t)number;
		return true;
	case FILTER_CLOCK:
		if (cpu_clock_by_name(value, &filter->clock))
			return true;
		cli_misused(verb, "--clock wants wall, cpu or off-cpu, not \"%s\"", value);
		return false;
	case FILTER_MAX_DEPTH:
		if (!cli_number(verb, "--max-depth", value, 1, &number))
			return false;
		filter->max_depth = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
		return true;
	}
	return false;
}

/* --- opening --- */

static bool fits_together(const struct filter *filter, const char *verb)
{
	if (filter->clock != CPU_CLOCK_WALL && (filter->from_given || filter->to_given))
		cli_misused(verb, "--from and --to are times of the wall clock, and exclude --clock");
	else if (filter->from_given && filter->to_given && filter->from_ns >= filter->to_ns)
		cli_misused(verb, "--to must be later than --from");
	else
		return true;
	return false;
}

/* Whether the process, any if pid is 0, is there, with the thread, any if tid is 0. */
static bool has_ids(const struct trace *trace, int64_t pid, int64_t tid)
{
	for (uint32_t i = 0; i < trace->process_count; i++) {
		const struct trace_process *process = trace->processes[i];

		if (!process || (pid && process->pid != pid))
			continue;
		if (!tid)
			return true;
		for (size_t k = 0; k < process->thread_count; k++)
			if ((int64_t)trace->threads[process->threads[k]]->tid == tid)
				return true;
	}
	return false;
}

/*
 * A process or thread that is not in the trace is an error. An empty result for a mistyped id would look like a program
 * that did nothing, and would be within every limit.
 */
static bool has_process_and_thread(const struct filter *filter, const char *verb, const struct trace *trace,
				   const char *path)
{
	int64_t pid = filter->pid, tid = filter->tid;
	bool found = !pid || has_ids(trace, pid, 0);

	for (size_t i = 0; found && i < filter->processes.count; i++)
		found = has_ids(trace, pid = filter->processes.at[i], 0);
	if (!found) {
		output_message("evprof %s: %s: process %lld is not in the trace; evprof info lists the processes", verb,
			       path, (long long)pid);
		return false;
	}
	found = !tid || has_ids(trace, filter->pid, tid);
	for (size_t i = 0; found && i < filter->threads.count; i++)
		found = has_ids(trace, filter->pid, tid = filter->threads.at[i]);
	if (!found)
		output_message("evprof %s: %s: thread %lld is not in %s; evprof info lists the threads", verb, path,
			       (long long)tid, filter->pid ? "this process" : "the trace");
	return found;
}

static bool has_clock(const struct filter *filter, const char *verb, const struct trace *trace, const char *path)
{
	if (filter->clock == CPU_CLOCK_WALL || cpu_time_known(trace))
		return true;
	output_message("evprof %s: %s: the trace has no CPU times; record with EVPROF_EVENTS=%s", verb, path,
		       trace_sample_rate(trace) ? "sample,cpu" : "call,c_call,cpu");
	return false;
}

static bool any_function(const struct filter *filter, const struct trace_names *names, bool c_function)
{
	for (uint32_t id = 0; id < names->count; id++)
		if (names->at[id] && filter_function(filter, names->at[id], c_function))
			return true;
	return false;
}

/* Warns that the filter matches no function. The output is then empty, as requested. */
static void warn_if_no_function(const struct filter *filter, const char *verb, const struct trace *trace,
				const char *path)
{
	uint32_t i;

	for (i = 0; filter->pattern_count && i < trace->process_count; i++)
		if (trace->processes[i] && filter_process(filter, trace->processes[i]) &&
		    (any_function(filter, &trace->processes[i]->codes, false) ||
		     any_function(filter, &trace->processes[i]->functions, true)))
			return;
	if (filter->pattern_count)
		output_message("evprof %s: %s: no function matches the filter; a glob matches a whole path or name, "
			       "such as \"*/app.py\" or \"*.handle\"",
			       verb, path);
}

struct trace *filter_open(const struct filter *filter, const char *verb, const char *path)
{
	struct trace *trace = fits_together(filter, verb) ? trace_open_with_message(path) : NULL;

	if (trace && (!has_process_and_thread(filter, verb, trace, path) || !has_clock(filter, verb, trace, path))) {
		trace_close(trace);
		return NULL;
	}
	if (trace) {
		trace->clock = filter->clock;
		warn_if_no_function(filter, verb, trace, path);
	}
	return trace;
}

void filter_done(struct filter *filter)
{
	size_t i;

	for (i = 0; i < filter->pattern_count; i++)
		filter_pattern_done(&filter->patterns[i]);
	free(filter->patterns);
	free(filter->processes.at);
	free(filter->threads.at);
	memset(filter, 0, sizeof(*filter));
}
