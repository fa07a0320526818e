/*
 * status.c - evprof status: what the collectors of this host record, as a table and as JSON.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "cmd/verbs.h"
#include "control/collectors.h"
#include "util/cli.h"
#include "util/grow.h"
#include "util/output.h"
#include "util/terminal.h"

static const char help_text[] =
    "usage: evprof status [options] [PID|NAME|all]\n"
    "\n"
    "Shows the collectors of this user on this host, and what each process records: events, losses, bytes of trace.\n"
    "NAME is the program's, as in the name of its trace. Root sees all processes.\n"
    "\n"
    "      --socket SOCKET  ask the collector at this socket (default: EVPROF_SOCKET, or else all of the user's)\n"
    "      --json           for programs: \"collectors\", and \"processes\" of all of them\n"
    "\n"
    "Exit status: 0; 1 if a collector did not answer; 2 if there is no collector, or no such process.\n";

#define ANSWER_MS 5000

struct request {
	const char *socket;
	bool json;
	const char *target;
};

/* --- the answers --- */

static int compare_pids(const void *one, const void *other)
{
	return compare_i64(json_integer_value(json_object_get(*(json_t *const *)one, "pid")),
			   json_integer_value(json_object_get(*(json_t *const *)other, "pid")));
}

/* The processes of an answer in the order of their pids. A new array; NULL: no memory. */
static json_t *sorted_processes(const json_t *answer)
{
	const json_t *processes = json_object_get(answer, "processes");
	size_t count = json_array_size(processes);
	json_t **order = malloc((count + 1) * sizeof(*order)), *list = json_array();

	for (size_t i = 0; order && i < count; i++)
		order[i] = json_array_get(processes, i);
	if (order)
		qsort(order, count, sizeof(*order), compare_pids);
	for (size_t i = 0; order && list && i < count; i++)
		json_array_append(list, order[i]);
	if (!order) {
		json_decref(list);
		list = NULL;
	}
	free(order);
	return list;
}

/* Replaces each answer by an object with "collector" and sorted "processes". Returns the number of processes. */
static size_t sort_answers(struct control_collectors *collectors)
{
	size_t processes = 0;

	for (size_t i = 0; i < collectors->count; i++) {
		struct control_collector *collector = &collectors->at[i];
		json_t *list, *described = json_object_get(collector->answer, "collector");

		if (!collector->answer)
			continue;
		list = sorted_processes(collector->answer);
		processes += json_array_size(list);
		described = described ? json_incref(described) : json_null();
		json_decref(collector->answer);
		collector->answer = json_pack("{s:o, s:o}", "collector", described, "processes", list);
	}
	return processes;
}

/* --- JSON --- */

/* One shape for any number of collectors; "collector" is that of the only one, or null. */
static json_t *json_status(const struct control_collectors *collectors)
{
	json_t *list = json_array(), *processes = json_array(), *only = NULL, *status, *sorted;

	for (size_t i = 0; i < collectors->count; i++) {
		json_t *answer = collectors->at[i].answer;

		if (!answer)
			continue;
		json_array_append(list, answer);
		json_array_extend(processes, json_object_get(answer, "processes"));
	}
	if (json_array_size(list) == 1)
		only = json_object_get(json_array_get(list, 0), "collector");
	status = json_pack("{s:o, s:o, s:o}", "collector", only ? json_incref(only) : json_null(), "processes",
			   processes, "collectors", list);
	sorted = status ? sorted_processes(status) : NULL;
	if (!sorted || json_object_set_new(status, "processes", sorted) < 0) {
		json_decref(status);
		return NULL;
	}
	return status;
}

static int print_json(const struct control_collectors *collectors)
{
	json_t *status = json_status(collectors);
	char *text = status ? json_dumps(status, JSON_INDENT(1) | JSON_REAL_PRECISION(15)) : NULL;
	struct output output;
	int error = text ? output_open(&output, "-") : -ENOMEM;

	if (!error) {
		output_string(&output, text);
		output_char(&output, '\n');
		error = output_close(&output);
	}
	free(text);
	json_decref(status);
	return error;
}

/* --- the table --- */

#define CELL_BYTES 40

/* A column of the table. A terminal needs that many columns for it. */
static const struct column {
	const char *title, *member;
	unsigned from;
	bool bytes; /* with a unit */
	bool text;  /* to the left; not shown where all are null */
} columns_known[] = {
    {"pid", "pid", 0, false, false},
    {"recording", "recording", 40, false, true},
    {"events/s", "events_per_s", 0, false, false},
    {"events", "events", 60, false, false},
    {"lost", "lost", 50, false, false},
    {"trace", "bytes", 70, true, false},
    {"keep", "keep", 60, false, true},
};

#define COLUMNS (sizeof(columns_known) / sizeof(columns_known[0]))

struct table {
	struct output *output;
	const struct terminal *terminal;
	unsigned width[COLUMNS]; /* 0: not shown */
	unsigned all;		 /* of these columns, with the spaces between them */
};

static void format_cell(const struct column *column, const json_t *process, char out[CELL_BYTES])
{
	const json_t *value = json_object_get(process, column->member);

	out[0] = '\0';
	if (json_is_string(value))
		snprintf(out, CELL_BYTES, "%s", json_string_value(value));
	else if (json_is_integer(value) && column->bytes)
		terminal_bytes((uint64_t)json_integer_value(value), out);
	else if (json_is_integer(value))
		snprintf(out, CELL_BYTES, "%" PRId64, (int64_t)json_integer_value(value));
}

/* For all collectors, so that their tables have the same columns. */
static void widen(struct table *table, const json_t *processes)
{
	for (size_t i = 0; i < json_array_size(processes); i++) {
		for (size_t k = 0; k < COLUMNS; k++) {
			char cell[CELL_BYTES];

			format_cell(&columns_known[k], json_array_get(processes, i), cell);
			table->width[k] = MAX(table->width[k], (unsigned)strlen(cell));
		}
	}
}

static void divide(struct table *table)
{
	for (size_t k = 0; k < COLUMNS; k++) {
		const struct column *column = &columns_known[k];

		if (column->text && !table->width[k])
			continue;
		if (table->terminal->is && table->terminal->columns < column->from) {
			table->width[k] = 0;
			continue;
		}
		table->width[k] = MAX(table->width[k], (unsigned)strlen(column->title));
		table->all += table->width[k] + 2;
	}
}

static void put_cell(const struct table *table, size_t k, const char *text)
{
	struct text cell = text_of(text);
	unsigned spare = table->width[k] > cell.length ? table->width[k] - (unsigned)cell.length : 0;

	if (!table->width[k])
		return;
	terminal_put_spaces(table->output, columns_known[k].text ? 2 : 2 + spare);
	output_line(table->output, cell);
	terminal_put_spaces(table->output, columns_known[k].text ? spare : 0);
}

static void put_titles(const struct table *table)
{
	terminal_style(table->terminal, table->output, TERMINAL_BOLD);
	for (size_t k = 0; k < COLUMNS; k++)
		put_cell(table, k, columns_known[k].title);
	output_string(table->output, "  program");
	terminal_style(table->terminal, table->output, TERMINAL_PLAIN);
	output_char(table->output, '\n');
}

static void put_program(const struct table *table, const char *program)
{
	unsigned columns = table->terminal->columns > table->all + 12 ? table->terminal->columns - table->all - 2 : 10;
	struct output line;

	output_string(table->output, "  ");
	if (!program || output_open_memory(&line) < 0)
		return;
	output_line(&line, text_of(program));
	if (table->terminal->is)
		terminal_put_tail(table->output, (struct text){line.buffer, line.used}, columns);
	else
		output_put(table->output, line.buffer, line.used);
	output_abandon(&line);
}

static void put_processes(const struct table *table, const json_t *processes)
{
	put_titles(table);
	for (size_t i = 0; i < json_array_size(processes); i++) {
		const json_t *process = json_array_get(processes, i);

		for (size_t k = 0; k < COLUMNS; k++) {
			char cell[CELL_BYTES];

			format_cell(&columns_known[k], process, cell);
			put_cell(table, k, cell);
		}
		put_program(table, json_string_value(json_object_get(process, "program")));
		output_char(table->output, '\n');
	}
}

/* --- a collector's line --- */

static void put_uptime(struct output *output, double seconds)
{
	uint64_t minutes = (uint64_t)(seconds > 0 ? seconds / 60 : 0);

	if (minutes < 1)
		output_format(output, "%.0f s", seconds);
	else if (minutes < 60)
		output_format(output, "%" PRIu64 " min", minutes);
	else if (minutes < 48 * 60)
		output_format(output, "%" PRIu64 " h %" PRIu64 " min", minutes / 60, minutes % 60);
	else
		output_format(output, "%" PRIu64 " days", minutes / 60 / 24);
}

static void put_bytes(struct output *output, const json_t *collector, const char *member, const char *what)
{
	const json_t *value = json_object_get(collector, member);
	char text[TERMINAL_NUMBER_BYTES];

	if (json_is_integer(value))
		output_format(output, ", %s %s", terminal_bytes((uint64_t)json_integer_value(value), text), what);
}

static void put_collector(struct output *output, const json_t *collector)
{
	char text[TERMINAL_NUMBER_BYTES];

	output_format(output, "collector %d: up ", (int)json_integer_value(json_object_get(collector, "pid")));
	put_uptime(output, json_number_value(json_object_get(collector, "uptime_s")));
	output_format(output, ", %s of CPU",
		      terminal_time(json_number_value(json_object_get(collector, "cpu_s")) * 1e9, text));
	put_bytes(output, collector, "rss_bytes", "resident");
	put_bytes(output, collector, "disk_bytes", "of traces");
	put_bytes(output, collector, "free_bytes", "free");
	output_char(output, '\n');
}

static void put_all(struct table *table, const struct request *request, const struct control_collectors *collectors)
{
	bool all = strcmp(request->target, "all") == 0;

	for (size_t i = 0; i < collectors->count; i++)
		widen(table, json_object_get(collectors->at[i].answer, "processes"));
	divide(table);
	for (size_t i = 0; i < collectors->count; i++) {
		const json_t *answer = collectors->at[i].answer;
		const json_t *processes = json_object_get(answer, "processes");

		if (!answer || (!all && !json_array_size(processes)))
			continue;
		put_collector(table->output, json_object_get(answer, "collector"));
		if (json_array_size(processes))
			put_processes(table, processes);
		else
			output_string(table->output, "  no process is recorded\n");
	}
}

static int print_table(const struct request *request, const struct control_collectors *collectors)
{
	struct terminal terminal = terminal_find(STDOUT_FILENO);
	struct output output;
	struct table table = {.output = &output, .terminal = &terminal};
	int error = terminal_open(&terminal, &output);

	if (error)
		return error;
	put_all(&table, request, collectors);
	return terminal_close(&output);
}

/* --- all --- */

static int show_status(const struct request *request)
{
	struct control_collectors collectors;
	json_t *message = json_pack("{s:s, s:s}", "type", "status", "target", request->target);
	int status = CLI_FAILED, error = 0;

	if (!message) {
		output_message("evprof status: the name of a process is UTF-8, not %s", request->target);
		return CLI_FAILED;
	}
	if (control_collectors_find("status", request->socket, &collectors) == 0) {
		control_collectors_ask(&collectors, message, ANSWER_MS);
		status = control_collectors_complain("status", &collectors);
	}
	if (status != CLI_FAILED && sort_answers(&collectors) == 0 && strcmp(request->target, "all") != 0) {
		output_message("evprof status: no process %s is recorded; evprof status lists those that are",
			       request->target);
		status = CLI_FAILED;
	}
	if (status != CLI_FAILED)
		error = request->json ? print_json(&collectors) : print_table(request, &collectors);
	if (error)
		output_message("evprof status: cannot write: %s", strerror(-error));
	control_collectors_done(&collectors);
	json_decref(message);
	return error ? CLI_FAILED : status;
}

int cmd_status(int argc, char **argv)
{
	static const struct verb_option options_known[] = {VERB_TEXT("socket", 0, request, socket),
							   VERB_FLAG("json", 0, request, json), VERB_OPTIONS_END};
	static const struct verb_usage usage = {"status", options_known, {help_text}};
	struct request request = {.target = "all"};
	int status = verb_parse(&usage, argc, argv, &request, NULL);

	if (status != VERB_PARSED)
		return status;
	return verb_take_target("status", argc, argv, &request.target) ? show_status(&request) : CLI_FAILED;
}
