/*
 * annotate.c - the tables of evprof annotate. See annotate.h.
 *
 * Sources are read line by line while they are written.
 */
#include "report/annotate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/source.h"

/* --- sources --- */

/* The lines of a file in order; none if the file does not exist. */
struct lines {
	FILE *file;
	char *buffer;
	size_t allocated;
};

static void lines_open(struct lines *lines, const struct report_annotate *annotate, const struct cost_place *place)
{
	int fd;

	*lines = (struct lines){0};
	if (!source_is_file(place->name))
		return;
	fd = source_open(annotate->trace, place->process, place->name, annotate->all_sources);
	if (fd >= 0) {
		if (source_is_newer(annotate->trace, fd))
			source_warn_newer("annotate", place->name);
		lines->file = fdopen(fd, "r");
		if (!lines->file)
			close(fd);
	} else {
		source_warn_missing("annotate", place->name, "shown", fd);
	}
}

/* Reads a line, without white space at its end. False at the end. */
static bool lines_next(struct lines *lines, struct text *line)
{
	ssize_t length = lines->file ? getline(&lines->buffer, &lines->allocated, lines->file) : -1;

	while (length > 0 && strchr(" \t\r\n\f", lines->buffer[length - 1]))
		length--;
	*line = (struct text){lines->buffer, length < 0 ? 0 : (size_t)length};
	return length >= 0;
}

static void lines_close(struct lines *lines)
{
	if (lines->file)
		fclose(lines->file);
	free(lines->buffer);
}

/* Writes source code unchanged, except characters that a terminal would interpret. */
static void put_code(struct output *output, struct text code)
{
	while (code.length) {
		struct text one = code;
		size_t plain = text_plain(code);

		if (!plain)
			text_next(&code);
		one.length = plain ? plain : (size_t)(code.at - one.at);
		if (plain) {
			code.at += plain;
			code.length -= plain;
		}
		if (plain || one.at[0] == '\t' || one.at[0] == '\\' || one.at[0] == '"')
			output_put(output, one.at, one.length);
		else
			output_line(output, one);
	}
}

/* --- text --- */

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static double percent(const struct report_annotate *annotate, uint64_t ns)
{
	return annotate->duration_ns ? (double)ns * 100 / (double)annotate->duration_ns : 0;
}

static void put_numbers(const struct report_annotate *annotate, uint64_t hits, uint64_t ns)
{
	output_format(annotate->output, "|%10llu|%13g|%13g|%6.2f%%|", (unsigned long long)hits, seconds(ns),
		      hits ? seconds(ns) / (double)hits : 0, percent(annotate, ns));
}

static void put_call(const struct report_annotate *annotate, const struct line_costs *costs,
		     const struct cost_call *call)
{
	const struct label *callee = &costs->labels.at[call->callee];

	output_string(annotate->output, "(call)");
	put_numbers(annotate, call->calls, call->total_ns);
	output_string(annotate->output, "# ");
	output_line(annotate->output, callee->file);
	output_format(annotate->output, ":%u ", callee->line);
	output_line(annotate->output, callee->name);
	output_char(annotate->output, '\n');
}

static void put_line(const struct report_annotate *annotate, uint32_t number, const struct line_row *row,
		     struct text code)
{
	if (number)
		output_format(annotate->output, "%6u", number);
	else
		output_string(annotate->output, "     ?");
	put_numbers(annotate, row ? row->hits : 0, row ? row->own_ns : 0);
	put_code(annotate->output, code);
	output_char(annotate->output, '\n');
}

/* Writes every line of the source; without the source, those with data. */
static void put_lines(const struct report_annotate *annotate, const struct line_costs *costs,
		      const struct file_lines *file, struct lines *lines)
{
	const struct line_row *row = file->rows, *rows_end = file->rows + file->row_count;
	const struct line_call *call = file->calls, *calls_end = file->calls + file->call_count;
	bool more = true;
	uint32_t number;

	/* A function without a known line has line 0. */
	for (number = 0; more || row < rows_end; number++) {
		struct text code = {0};
		bool has = row < rows_end && row->line == number;

		if (number && more)
			more = lines_next(lines, &code);
		if (!more && !has) {
			if (row == rows_end)
				break;
			number = row->line - 1;
			continue;
		}
		if (number || has)
			put_line(annotate, number, has ? row : NULL, code);
		row += has;
		for (; call < calls_end && call->line == number; call++)
			put_call(annotate, costs, call->call);
	}
}

static void put_file(const struct report_annotate *annotate, const struct line_table *table,
		     const struct file_lines *file)
{
	const struct cost_place *place = &table->costs->places[file->file];
	struct output *output = annotate->output;
	struct lines lines;

	output_string(output, "File: ");
	output_line(output, place->name);
	output_format(output, "\nFile duration: %gs (%.2f%%)\n", seconds(file->own_ns),
		      percent(annotate, file->own_ns));
	output_string(output, "Line #|      Hits|         Time| Time per hit|      %|Source code\n"
			      "------+----------+-------------+-------------+-------+-----------\n");
	lines_open(&lines, annotate, place);
	put_lines(annotate, table->costs, file, &lines);
	lines_close(&lines);
}

/* --- JSON --- */

static void json_calls(const struct report_annotate *annotate, const struct line_costs *costs,
		       const struct line_call *call, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct label *callee = &costs->labels.at[call[i].call->callee];

		output_string(annotate->output, i ? ",\n     {\"file\": \"" : "\n     {\"file\": \"");
		output_json(annotate->output, callee->file);
		output_format(annotate->output, "\", \"line\": %u, \"function\": \"", callee->line);
		output_json(annotate->output, callee->name);
		output_format(annotate->output, "\", \"calls\": %llu, \"total_ns\": %llu}",
			      (unsigned long long)call[i].call->calls, (unsigned long long)call[i].call->total_ns);
	}
}

static void json_line(const struct report_annotate *annotate, const struct line_row *row, bool known, struct text code)
{
	output_format(annotate->output, "{\"line\": %u, \"hits\": %llu, \"own_ns\": %llu, \"source\": ", row->line,
		      (unsigned long long)row->hits, (unsigned long long)row->own_ns);
	if (known) {
		output_char(annotate->output, '"');
		output_json(annotate->output, code);
		output_char(annotate->output, '"');
	} else {
		output_string(annotate->output, "null");
	}
	output_string(annotate->output, ", \"calls\": [");
}

static void json_file(const struct report_annotate *annotate, const struct line_table *table,
		      const struct file_lines *file)
{
	const struct cost_place *place = &table->costs->places[file->file];
	const struct line_call *call = file->calls, *calls_end = file->calls + file->call_count;
	struct lines lines;
	uint32_t number = 0;
	bool more = true;
	size_t i, calls;

	output_string(annotate->output, "{\"file\": \"");
	output_json(annotate->output, place->name);
	output_format(annotate->output, "\", \"own_ns\": %llu, \"lines\": [", (unsigned long long)file->own_ns);
	lines_open(&lines, annotate, place);
	for (i = 0; i < file->row_count; i++) {
		const struct line_row *row = &file->rows[i];
		struct text code = {0};

		for (; more && number < row->line; number++)
			more = lines_next(&lines, &code);
		for (calls = 0; call + calls < calls_end && call[calls].line == row->line;)
			calls++;
		output_string(annotate->output, i ? ",\n    " : "\n    ");
		json_line(annotate, row, more && row->line, code);
		json_calls(annotate, table->costs, call, calls);
		output_string(annotate->output, "]}");
		call += calls;
	}
	lines_close(&lines);
	output_string(annotate->output, "]}");
}

static void json_files(const struct report_annotate *annotate, const struct line_table *table)
{
	output_string(annotate->output, "\"files\": [");
	for (size_t i = 0; i < table->file_count; i++) {
		output_string(annotate->output, i ? ",\n   " : "\n   ");
		json_file(annotate, table, &table->files[i]);
	}
	output_char(annotate->output, ']');
}

/* --- head, threads, foot --- */

static const struct trace_process *first_process(const struct report_annotate *annotate)
{
	for (uint32_t i = 0; i < annotate->trace->process_count; i++) {
		const struct trace_process *process = annotate->trace->processes[i];

		if (process && filter_process(annotate->filter, process))
			return process;
	}
	return NULL;
}

void report_annotate_begin(const struct report_annotate *annotate)
{
	const struct trace_process *process = first_process(annotate);
	const json_t *arguments = process ? json_object_get(process->meta, "argv") : NULL, *argument;
	struct output *output = annotate->output;
	size_t i;

	if (annotate->json) {
		output_format(output, "{\"duration_ns\": %llu, \"by\": \"%s\",\n ",
			      (unsigned long long)annotate->duration_ns, annotate->by_line ? "line" : "function");
		output_string(output, annotate->by_thread ? "\"threads\": [" : "");
		return;
	}
	output_string(output, "Command line:");
	json_array_foreach((json_t *)arguments, i, argument)
	{
		output_char(output, ' ');
		output_argument(output, text_of(json_string_value(argument)));
	}
	output_format(output, "\nTotal duration: %gs\n", seconds(annotate->duration_ns));
	if (!annotate->by_line)
		output_string(output,
			      "By function: there are no line events; calls and own time of a function stand at its "
			      "first line\n");
}

static void json_thread(const struct report_annotate *annotate, const struct call_walk *walk)
{
	output_format(annotate->output, "%s\n  {\"pid\": %lld, \"tid\": %u, \"name\": \"", annotate->any ? "," : "",
		      (long long)walk->process->pid, walk->thread->tid);
	output_json(annotate->output, text_of(walk->thread->name));
	output_string(annotate->output, "\", ");
}

static void put_thread(const struct report_annotate *annotate, const struct call_walk *walk)
{
	output_format(annotate->output, "Thread: %u of process %lld", walk->thread->tid, (long long)walk->process->pid);
	if (walk->thread->name && walk->thread->name[0]) {
		output_string(annotate->output, ", ");
		output_line(annotate->output, text_of(walk->thread->name));
	}
	output_char(annotate->output, '\n');
}

int report_annotate_table(struct report_annotate *annotate, const struct line_table *table,
			  const struct call_walk *walk)
{
	bool json = annotate->json && (!walk || table->file_count);

	if (walk && table->file_count)
		(json ? json_thread : put_thread)(annotate, walk);
	if (json)
		json_files(annotate, table);
	for (size_t i = 0; i < table->file_count && !json; i++)
		put_file(annotate, table, &table->files[i]);
	if (walk && json)
		output_char(annotate->output, '}');
	annotate->any |= table->file_count > 0;
	return annotate->output->error;
}

void report_annotate_end(const struct report_annotate *annotate)
{
	if (annotate->json)
		output_string(annotate->output, annotate->by_thread ? "]}\n" : "}\n");
}
