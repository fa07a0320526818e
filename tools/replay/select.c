/*
 * select.c - the common options of the verbs, and the decision about a function. See select.h.
 */
#include "replay/select.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cli.h"
#include "util/output.h"

const char select_help[] =
    "What is shown:\n"
    "      --include PATTERN     only these functions: a glob over the file, the name, the qualified name or "
    "module.name,\n"
    "                            or re:EXPRESSION, a regular expression anywhere in one of them; may come again\n"
    "      --exclude PATTERN     not these functions: their time goes to their callers\n"
    "      --exclude-syspath     not the functions of the standard library and of installed packages\n"
    "      --process PID, --thread TID\n"
    "                            only this process or thread\n"
    "      --from T, --to T      only this stretch, since the start of the trace: 1500 (ns), 20us, 3ms, 1.5s\n"
    "      --min-duration T      only calls that last at least so long\n"
    "      --max-depth N         only the N outermost calls of the stack\n"
    "      --clock CLOCK         times by: wall (default), cpu: while the thread ran, or off-cpu: while it waited; "
    "for\n"
    "                            traces recorded with the events cpu\n";

bool select_duration(const char *verb, const char *option, const char *text, int64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
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
	cli_misused(verb, "%s wants a time such as 1500 (ns), 20us, 3ms or 1.5s, not \"%s\"", option, text);
	return false;
}

/* --- patterns --- */

static bool add_pattern(struct select *select, const char *verb, const char *text, bool exclude)
{
	struct choice_pattern *grown =
	    realloc(select->patterns, (select->pattern_count + 1) * sizeof(*select->patterns));
	struct choice_pattern *pattern;
	const char *wrong;
	char why[128];

	if (!grown) {
		output_say("evprof %s: out of memory", verb);
		return false;
	}
	select->patterns = grown;
	pattern = &select->patterns[select->pattern_count];
	wrong = choice_pattern_parse(pattern, text, exclude, why, sizeof(why));
	if (wrong) {
		cli_misused(verb, "the pattern \"%s\" cannot be used: %s", text, wrong);
		return false;
	}
	select->pattern_count++;
	select->includes |= !exclude;
	return true;
}

/* The texts of a function that patterns look at, each terminated. */
struct names {
	char *bytes;
	const char *at[CHOICE_NAMES];
};

static char *put_text(char *at, struct text text)
{
	size_t i;

	/* A NUL would hide the rest from fnmatch(). */
	for (i = 0; i < text.length; i++)
		*at++ = text.at[i] ? text.at[i] : ' ';
	*at = 0;
	return at;
}

static bool names_of(struct names *names, const struct wire_definition *definition, bool native)
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
	at = native ? put_text(at, text_of("~")) : put_text(at, file);
	names->at[1] = ++at;
	at = put_text(at, name);
	names->at[2] = ++at;
	if (native && file.length) {
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

bool select_has_functions(const struct select *select)
{
	return select->pattern_count || select->exclude_syspath;
}

int select_function(const struct select *select, const struct wire_definition *definition, bool native)
{
	struct names names;
	bool shown;

	if (!select_has_functions(select))
		return true;
	if (!definition)
		return !select->includes;
	if (!names_of(&names, definition, native))
		return -ENOMEM;
	shown = choice_takes(select->patterns, select->pattern_count, names.at) &&
		(native || !select->exclude_syspath || !choice_in_syspath(names.at[0], names.at[3]));
	free(names.bytes);
	return shown;
}

int select_hide(const struct select *select, const struct trace_process *process, uint32_t keys, uint8_t **hidden)
{
	uint32_t key;

	*hidden = NULL;
	if (!select_has_functions(select))
		return 0;
	*hidden = malloc(keys);
	if (!*hidden)
		return -ENOMEM;
	for (key = 0; key < keys; key++) {
		const struct trace_names *names = key & 1 ? &process->functions : &process->codes;
		int shown = select_function(select, trace_name(names, key / 2), key & 1);

		if (shown < 0)
			return shown;
		(*hidden)[key] = !shown;
	}
	return 0;
}

bool select_skips(const struct select *select, const struct trace *trace, const struct trace_process *process,
		  const struct trace_place *place)
{
	return (select->from_given && trace_ns(process, place->last_ticks) - trace->start_ns < select->from_ns) ||
	       (select->to_given && trace_ns(process, place->first_ticks) - trace->start_ns >= select->to_ns);
}

/* --- options --- */

bool select_take(struct select *select, const char *verb, int option, const char *value)
{
	int64_t number;

	switch (option) {
	case SELECT_INCLUDE:
		return add_pattern(select, verb, value, false);
	case SELECT_EXCLUDE:
		return add_pattern(select, verb, value, true);
	case SELECT_EXCLUDE_SYSPATH:
		select->exclude_syspath = true;
		return true;
	case SELECT_PROCESS:
		return cli_number(verb, "--process", value, 1, &select->pid);
	case SELECT_THREAD:
		return cli_number(verb, "--thread", value, 1, &select->tid);
	case SELECT_FROM:
		select->from_given = true;
		return select_duration(verb, "--from", value, &select->from_ns);
	case SELECT_TO:
		select->to_given = true;
		return select_duration(verb, "--to", value, &select->to_ns);
	case SELECT_MIN_DURATION:
		if (!select_duration(verb, "--min-duration", value, &number))
			return false;
		select->min_duration_ns = (uint64_t)number;
		return true;
	case SELECT_CLOCK:
		if (cpu_clock_by_name(value, &select->clock))
			return true;
		cli_misused(verb, "--clock wants wall, cpu or off-cpu, not \"%s\"", value);
		return false;
	case SELECT_MAX_DEPTH:
		if (!cli_number(verb, "--max-depth", value, 1, &number))
			return false;
		select->max_depth = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
		return true;
	}
	return false;
}

/* --- opening --- */

static bool fits_together(const struct select *select, const char *verb)
{
	if (select->clock != CPU_CLOCK_WALL && (select->from_given || select->to_given))
		cli_misused(verb, "--from and --to are times of the wall's clock, and do not go with --clock");
	else if (select->from_given && select->to_given && select->from_ns >= select->to_ns)
		cli_misused(verb, "--to must be later than --from");
	else
		return true;
	return false;
}

static bool has_process(const struct trace *trace, int64_t pid)
{
	uint32_t i;

	for (i = 0; i < trace->process_count; i++)
		if (trace->processes[i] && trace->processes[i]->pid == pid)
			return true;
	return false;
}

/* Of any process, or of the one. */
static bool has_thread(const struct trace *trace, int64_t pid, int64_t tid)
{
	uint32_t i;

	for (i = 0; i < trace->thread_count; i++) {
		const struct trace_thread *thread = trace->threads[i];
		const struct trace_process *process = thread ? trace_process_of(trace, thread) : NULL;

		if (thread && thread->tid == tid && (!pid || (process && process->pid == pid)))
			return true;
	}
	return false;
}

/* An empty result for a number that was mistyped looks like a program that did nothing, and keeps every limit. */
static bool is_there(const struct select *select, const char *verb, const struct trace *trace, const char *path)
{
	if (select->pid && !has_process(trace, select->pid))
		output_say("evprof %s: %s: there is no process %lld in it; evprof info names those there are", verb,
			   path, (long long)select->pid);
	else if (select->tid && !has_thread(trace, select->pid, select->tid))
		output_say("evprof %s: %s: there is no thread %lld in %s; evprof info names those there are", verb,
			   path, (long long)select->tid, select->pid ? "this process" : "it");
	else
		return true;
	return false;
}

static bool has_clock(const struct select *select, const char *verb, const struct trace *trace, const char *path)
{
	if (select->clock == CPU_CLOCK_WALL || cpu_time_known(trace))
		return true;
	output_say("evprof %s: %s: there are no CPU times in it; record with EVPROF_EVENTS=%s", verb, path,
		   trace_sample_rate(trace) ? "sample,cpu" : "call,c_call,cpu");
	return false;
}

static bool any_function(const struct select *select, const struct trace_process *process)
{
	uint32_t id;

	for (id = 0; id < process->codes.count; id++)
		if (process->codes.at[id] && select_function(select, process->codes.at[id], false))
			return true;
	for (id = 0; id < process->functions.count; id++)
		if (process->functions.at[id] && select_function(select, process->functions.at[id], true))
			return true;
	return false;
}

/* Nothing is shown then, which is as it was asked for. */
static void say_if_nothing_is_chosen(const struct select *select, const char *verb, const struct trace *trace,
				     const char *path)
{
	uint32_t i;

	for (i = 0; select->pattern_count && i < trace->process_count; i++)
		if (trace->processes[i] && select_process(select, trace->processes[i]) &&
		    any_function(select, trace->processes[i]))
			return;
	if (select->pattern_count)
		output_say(
		    "evprof %s: %s: no function is chosen; a glob is of a whole path or name, as \"*/app.py\" or "
		    "\"*.handle\"",
		    verb, path);
}

struct trace *select_open(const struct select *select, const char *verb, const char *path)
{
	struct trace *trace = fits_together(select, verb) ? trace_open_or_say(path) : NULL;

	if (trace && (!is_there(select, verb, trace, path) || !has_clock(select, verb, trace, path))) {
		trace_close(trace);
		return NULL;
	}
	if (trace) {
		trace->clock = select->clock;
		say_if_nothing_is_chosen(select, verb, trace, path);
	}
	return trace;
}

void select_done(struct select *select)
{
	size_t i;

	for (i = 0; i < select->pattern_count; i++)
		choice_pattern_done(&select->patterns[i]);
	free(select->patterns);
	memset(select, 0, sizeof(*select));
}
