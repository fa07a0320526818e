/*
 * callgrind.c - the Callgrind Profile Format, version 1, for KCachegrind and callgrind_annotate.
 *
 * All threads are in one part: callgrind_annotate reports each header line of a second part as an error, and adds parts
 * up anyway. Each thread is a function, the caller of all calls without a caller. So the time of what C called without
 * Python below it is included, too. With --thread the file has that thread only.
 *
 *   ob=   the module      fl=   co_filename, "~" for C functions      fn=   qualified name:first line
 *
 * KCachegrind takes functions with the same name and ob= for the same, whatever their fl=. Both readers add up the
 * costs of all calls of a function for its inclusive cost, so in analysis/line_costs.h only the outermost of recursive
 * calls has a cost. A function, line or call is written once for each thread, and the readers add these up.
 *
 * With zip, the file is in a zip together with the sources, and fl= is their path in the zip.
 */
#include "export/export.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "evprof/version.h"
#include "analysis/line_costs.h"
#include "export/zip_writer.h"
#include "trace/source.h"
#include "util/grow.h"

/* Names are compressed, with the numbers of analysis/line_costs.h. Names of threads are not, as each occurs once. */
struct callgrind {
	struct output *output;
	bool relative; /* names of files are paths in the zip */
	bool begun;    /* the header is written */
	/* By number: whether the name is written. */
	struct written {
		uint8_t *at;
		uint32_t allocated;
	} functions, modules, files;
};

/* --- names --- */

/* Writes a path relative to the root of the zip: no leading slash, no "..". */
static void put_relative(struct output *output, struct text name)
{
	const char *at = name.at, *end = name.at + name.length;
	bool any = false;

	while (at < end) {
		const char *slash = memchr(at, '/', (size_t)(end - at));
		struct text part = {at, (size_t)((slash ? slash : end) - at)};

		at += part.length + 1;
		if (!part.length || text_same(part, text_of(".")) || text_same(part, text_of("..")))
			continue;
		output_string(output, any ? "/" : "");
		output_line(output, part);
		any = true;
	}
}

/* Readers treat an empty name as none. "???" is callgrind's own name for an unknown one. */
static void put_name(struct output *output, struct text name)
{
	output_line(output, name.length ? name : text_of("???"));
}

static void put_file(const struct callgrind *callgrind, struct text name)
{
	if (callgrind->relative && source_is_file(name))
		put_relative(callgrind->output, name);
	else
		put_name(callgrind->output, name);
}

/* Writes "ob=(3)". True if the name must follow. Numbers in the file count from 1. */
static bool put_id(struct callgrind *callgrind, const char *position, uint32_t number, struct written *written)
{
	bool first;

	if (grow_for(&written->at, &written->allocated, number, 1) < 0) {
		callgrind->output->error = -ENOMEM;
		return false;
	}
	first = !written->at[number];
	written->at[number] = 1;
	output_string(callgrind->output, position);
	output_char(callgrind->output, '(');
	output_u64(callgrind->output, (uint64_t)number + 1);
	output_string(callgrind->output, first ? ") " : ")");
	return first;
}

/* called: "" or "c". */
static void put_function(struct callgrind *callgrind, const struct line_costs *costs, uint32_t number,
			 const char *called)
{
	const struct cost_function *function = &costs->functions[number];
	struct output *output = callgrind->output;

	output_string(output, called);
	if (put_id(callgrind, "ob=", function->module, &callgrind->modules))
		put_name(output, costs->places[function->module].name);
	output_char(output, '\n');
	output_string(output, called);
	if (put_id(callgrind, "fl=", function->file, &callgrind->files))
		put_file(callgrind, costs->places[function->file].name);
	output_char(output, '\n');
	output_string(output, called);
	if (put_id(callgrind, "fn=", number, &callgrind->functions))
		output_line(output, text_of(function->name));
	output_char(output, '\n');
}

/* --- costs --- */

/* Hits is present only if lines were recorded. */
#define EVENT_NAMES(by_line) ((by_line) ? "ns Calls Hits" : "ns Calls")

static void put_costs(struct output *output, uint32_t line, uint64_t ns, uint64_t calls, uint64_t hits)
{
	output_u64(output, line);
	output_char(output, ' ');
	output_u64(output, ns);
	output_char(output, ' ');
	output_u64(output, calls);
	if (hits) {
		output_char(output, ' ');
		output_u64(output, hits);
	}
	output_char(output, '\n');
}

static void put_call(struct callgrind *callgrind, const struct line_costs *costs, const struct cost_call *call)
{
	put_function(callgrind, costs, call->callee, "c");
	/*
	 * All calls began with a stack snapshot: written as 1, because readers add the cost of 0 calls to the caller's
	 * own.
	 */
	output_format(callgrind->output, "calls=%llu %u\n", (unsigned long long)(call->calls ? call->calls : 1),
		      costs->labels.at[call->callee].line);
	put_costs(callgrind->output, call->from == LINE_COSTS_NOBODY ? 0 : costs->lines[call->from].line,
		  call->total_ns, call->inner_calls, call->inner_hits);
}

static void put_lines(struct callgrind *callgrind, const struct line_costs *costs)
{
	uint32_t i, call = 0;

	for (i = 0; i < costs->line_count; i++) {
		const struct cost_line *line = &costs->lines[i];

		if (!i || line->function != line[-1].function) {
			output_char(callgrind->output, '\n');
			put_function(callgrind, costs, line->function, "");
		}
		put_costs(callgrind->output, line->line, line->own_ns, line->starts, line->hits);
		for (; call < costs->call_count && costs->calls[call].from == i; call++)
			put_call(callgrind, costs, &costs->calls[call]);
	}
}

/* Writes the thread as the caller of the calls without a caller. */
static void put_thread(struct callgrind *callgrind, const struct line_costs *costs, const struct call_walk *walk)
{
	const struct trace_thread *thread = walk->thread;
	uint32_t call = costs->call_count;

	output_format(callgrind->output, "\nob=process %lld\nfl=~\nfn=thread %u of process %lld",
		      (long long)walk->process->pid, thread->tid, (long long)walk->process->pid);
	if (thread->name && thread->name[0]) {
		output_string(callgrind->output, ", ");
		output_line(callgrind->output, text_of(thread->name));
	}
	output_char(callgrind->output, '\n');
	while (call && costs->calls[call - 1].from == LINE_COSTS_NOBODY)
		call--;
	for (; call < costs->call_count; call++)
		put_call(callgrind, costs, &costs->calls[call]);
}

/* --- parts --- */

/* The command and the PID are those of the first process. */
static void put_header(struct callgrind *callgrind, const struct line_costs *costs, const struct call_walk *walk)
{
	struct output *output = callgrind->output;
	char sampling[TRACE_SAMPLING_BYTES];
	const char *argument;

	output_string(output, "# callgrind format\nversion: 1\ncreator: evprof " EVPROF_VERSION "\n");
	output_format(output, "pid: %lld\ncmd:", (long long)walk->process->pid);
	for (size_t i = 0; (argument = export_argument(walk->process, i)); i++) {
		output_char(output, ' ');
		output_argument(output, text_of(argument));
	}
	output_char(output, '\n');
	if (trace_sample_rate(walk->trace))
		output_format(output, "desc: Sampling: %s\n",
			      trace_sampling_text(trace_sample_rate(walk->trace), sampling));
	output_string(output, "event: ns : Nanoseconds\nevent: Calls : Calls of functions\n");
	output_string(output, costs->by_line ? "event: Hits : Line events\n" : "");
	output_format(output, "positions: line\nevents: %s\n", EVENT_NAMES(costs->by_line));
	callgrind->begun = true;
}

static int callgrind_thread(void *owner, struct line_costs *costs, const struct call_walk *walk)
{
	struct callgrind *callgrind = owner;

	if (!costs->call_count)
		return 0;
	if (line_costs_sort(costs) < 0)
		return -ENOMEM;
	if (!callgrind->begun)
		put_header(callgrind, costs, walk);
	put_thread(callgrind, costs, walk);
	put_lines(callgrind, costs);
	line_costs_clear(costs);
	return callgrind->output->error;
}

static int write_callgrind(const struct export *export, struct line_costs *costs, struct output *output,
			   struct progress *progress)
{
	struct callgrind callgrind = {.output = output, .relative = export->zip};
	int error;

	error = line_costs_add(costs, export->trace, export->filter, progress, callgrind_thread, &callgrind);
	if (!error && !callgrind.begun)
		output_string(output, "# callgrind format\nversion: 1\ncreator: evprof " EVPROF_VERSION
				      "\npositions: line\nevents: ns Calls\n");
	free(callgrind.functions.at);
	free(callgrind.modules.at);
	free(callgrind.files.at);
	return error;
}

/* --- zip --- */

/* The path in the zip; NULL if memory ran out. */
static char *relative_name(struct text name)
{
	struct output piece;
	size_t length;

	if (output_open_memory(&piece) < 0)
		return NULL;
	put_relative(&piece, name);
	output_char(&piece, 0);
	return output_close_memory(&piece, &length);
}

/* Two names may map to the same path in the zip; the first one is kept. */
static bool is_in(const struct zip_writer *zip, const char *name)
{
	for (uint32_t i = 0; i < zip->count; i++)
		if (strcmp(zip->entries[i].name, name) == 0)
			return true;
	return false;
}

static int add_source(struct zip_writer *zip, const struct export *export, const struct cost_place *place)
{
	char *name = relative_name(place->name);
	int fd, error = name ? 0 : -ENOMEM;

	if (error || !*name || is_in(zip, name)) {
		free(name);
		return error;
	}
	fd = source_open(export->trace, place->process, place->name, export->all_sources);
	if (fd < 0) {
		source_warn_missing("export", text_of(name), "in the zip", fd);
	} else {
		if (source_is_newer(export->trace, fd))
			source_warn_newer("export", place->name);
		error = zip_add(zip, name, fd);
		close(fd);
	}
	free(name);
	return error;
}

static int add_sources(struct zip_writer *zip, const struct export *export, const struct line_costs *costs)
{
	uint8_t *is_file = calloc((size_t)costs->place_count + 1, 1);
	int error = is_file ? 0 : -ENOMEM;

	for (uint32_t i = 0; !error && i < costs->labels.count && i < costs->functions_allocated; i++)
		if (costs->functions[i].known && !costs->functions[i].c_function)
			is_file[costs->functions[i].file] =
			    source_is_file(costs->places[costs->functions[i].file].name);
	for (uint32_t i = 0; !error && i < costs->place_count; i++)
		if (is_file[i])
			error = add_source(zip, export, &costs->places[i]);
	free(is_file);
	return error;
}

/*
 * Writes the costs to a temporary file, because zip_add() reads a descriptor. Its size grows with functions and call
 * sites.
 */
static int add_costs(struct zip_writer *zip, const struct export *export, struct line_costs *costs,
		     struct progress *progress)
{
	struct output piece;
	int error = output_open_nowhere(&piece);

	if (error)
		return error;
	piece.fd = output_scratch(NULL);
	error = piece.fd < 0 ? piece.fd : write_callgrind(export, costs, &piece, progress);
	output_flush(&piece);
	error = error ? error : piece.error;
	if (!error && lseek(piece.fd, 0, SEEK_SET) < 0)
		error = -errno;
	if (!error)
		error = zip_add(zip, "callgrind.out.evprof", piece.fd);
	output_abandon(&piece);
	return error;
}

static int write_zip(const struct export *export, struct line_costs *costs, struct output *output,
		     struct progress *progress)
{
	struct zip_writer zip;
	int error;

	zip_begin(&zip, output);
	error = add_costs(&zip, export, costs, progress);
	if (!error)
		error = add_sources(&zip, export, costs);
	if (!error)
		error = zip_end(&zip);
	zip_done(&zip);
	return error;
}

int export_callgrind(const struct export *export, struct output *output, struct progress *progress)
{
	struct line_costs costs = {0};
	int error;

	error = export->zip ? write_zip(export, &costs, output, progress)
			    : write_callgrind(export, &costs, output, progress);
	line_costs_done(&costs);
	return error;
}

const struct export_option export_callgrind_options[] = {
    {"zip", NULL, "                            FILE is a zip, with the sources as they are now\n", NULL,
     offsetof(struct export, zip)},
    {SOURCE_ALL_OPTION, NULL,
     "                            also sources whose name does not end as Python's and whose first line does not\n"
     "                            name python\n",
     NULL, offsetof(struct export, all_sources)},
    {0}};
