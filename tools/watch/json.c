/*
 * json.c - see json.h.
 */
#include "watch/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "util/grow.h"
#include "watch/followed.h"

#define STACK_FRAMES_MAX 64
#define NO_ID UINT32_MAX

/* --- parts --- */

void watch_json_put_text(struct output *output, const char *member, struct text text)
{
	output_format(output, "\"%s\": \"", member);
	output_json(output, text);
	output_char(output, '"');
}

static void put_times(struct output *output, const struct watch_times *times)
{
	output_format(output,
		      "\"calls\": %" PRIu64 ", \"own_ns\": %" PRIu64 ", \"total_ns\": %" PRIu64
		      ", \"allocations\": %" PRIu64 ", \"bytes\": %" PRIu64,
		      times->calls, times->own_ns, times->total_ns, times->allocations, times->bytes);
}

static void put_label(struct output *output, const struct label *label)
{
	watch_json_put_text(output, "function", label->display.length ? label->display : label->name);
	output_string(output, ", ");
	watch_json_put_text(output, "file", label->file);
	output_format(output, ", \"line\": %u", label->line);
}

static void put_known(struct output *output, const char *member, int64_t value)
{
	if (value < 0)
		output_format(output, ", \"%s\": null", member);
	else
		output_format(output, ", \"%s\": %" PRId64, member, value);
}

static void put_head(struct output *output, const struct watch_host *host)
{
	output_format(output, "\"stretch_ns\": %" PRIu64 ", \"events\": %" PRIu64 ", \"lost\": %" PRIu64,
		      host->stretch_ns, host->events, host->lost);
}

static void put_processes(struct output *output, const struct watch_host *host)
{
	output_string(output, ", \"processes\": [");
	for (size_t i = 0; i < host->process_count; i++) {
		const struct watch_process_row *row = &host->processes[i];

		output_format(output, "%s{\"pid\": %" PRId64 ", ", i ? ", " : "", row->pid);
		watch_json_put_text(output, "program", text_of(row->name));
		output_format(output,
			      ", \"sampled\": %s, \"events\": %" PRIu64 ", \"lost\": %" PRIu64
			      ", \"threads\": %u, \"tasks\": %u",
			      row->sampled ? "true" : "false", row->events, row->lost, row->threads, row->tasks);
		put_known(output, "cpu_ns", row->cpu_ns);
		put_known(output, "rss_bytes", row->rss_bytes);
		output_string(output, ", ");
		put_times(output, &row->now);
		output_char(output, '}');
	}
	output_char(output, ']');
}

/* Without the brace at its end. */
static void put_thread(struct output *output, const struct watch_host *host, const struct watch_thread_row *row)
{
	output_format(output, "{\"pid\": %" PRId64 ", \"tid\": %u, ", row->pid, row->tid);
	watch_json_put_text(output, "name", text_of(row->name));
	output_string(output, ", ");
	put_times(output, &row->now);
	output_string(output, ", \"runs\": ");
	if (row->top == UINT32_MAX) {
		output_string(output, "null");
		return;
	}
	output_char(output, '{');
	put_label(output, &host->labels.at[row->top]);
	output_char(output, '}');
}

/* id: NO_ID: left out. Without the brace at its end. */
static void put_function(struct output *output, const struct label *label, uint32_t id, const struct watch_times *times)
{
	output_char(output, '{');
	if (id != NO_ID)
		output_format(output, "\"id\": %u, ", id);
	put_label(output, label);
	output_string(output, ", ");
	put_times(output, times);
}

/* rows: NULL: no memory. Frees them. */
static void put_functions(struct output *output, const struct watch_host *host, const struct watch_function *functions,
			  struct watch_row *rows, size_t count, bool has_ids)
{
	output_string(output, "\"functions\": [");
	for (size_t i = 0; rows && i < count; i++) {
		uint32_t number = (uint32_t)rows[i].number;

		output_string(output, i ? ", " : "");
		put_function(output, &host->labels.at[number], has_ids ? number : NO_ID, &functions[number].now);
		output_string(output, ", \"since\": {");
		put_times(output, &functions[number].since);
		output_string(output, "}}");
	}
	output_char(output, ']');
	free(rows);
}

/* --- evprof top --- */

int watch_json_put(struct output *output, const struct watch_view *view, const struct watch_host *host, size_t most)
{
	size_t count;
	struct watch_row *rows =
	    watch_function_rows(view, &host->labels, host->functions, host->allocated, WATCH_ALL, &count);

	if (!rows)
		return -ENOMEM;
	output_char(output, '{');
	put_head(output, host);
	put_processes(output, host);
	output_string(output, ", \"threads\": [");
	for (size_t i = 0; i < host->thread_count; i++) {
		output_string(output, i ? ", " : "");
		put_thread(output, host, &host->threads[i]);
		output_char(output, '}');
	}
	output_string(output, "], ");
	put_functions(output, host, host->functions, rows, count < most ? count : most, false);
	output_string(output, "}\n");
	return output->error;
}

/* --- a page --- */

/* `at` is the current line of a frame, where lines are recorded. */
static int put_stack(struct output *output, struct watch_host *host, const struct watch_thread_row *row)
{
	struct watch_frame frames[STACK_FRAMES_MAX];
	int depth = watch_query_stack(host, row, frames, STACK_FRAMES_MAX);

	if (depth < 0)
		return depth;
	output_format(output, ", \"depth\": %d, \"stack\": [", depth);
	for (int i = 0; i < depth && i < STACK_FRAMES_MAX; i++) {
		output_format(output, "%s{\"id\": %u, ", i ? ", " : "", frames[i].number);
		put_label(output, &host->labels.at[frames[i].number]);
		output_format(output, ", \"at\": %u}", frames[i].line);
	}
	output_char(output, ']');
	return 0;
}

static int put_threads(struct output *output, const struct watch_detail *detail, struct watch_host *host)
{
	size_t count, put = 0;
	struct watch_view all = {.order = detail->view.order, .filter = ""};
	struct watch_row *rows = watch_thread_rows(&all, host, &count);
	int error = rows ? 0 : -ENOMEM;

	output_string(output, ", \"threads\": [");
	for (size_t i = 0; i < count && put < detail->rows && !error; i++) {
		const struct watch_thread_row *row = &host->threads[rows[i].number];

		if (detail->query.pid && row->pid != detail->query.pid)
			continue;
		output_string(output, put++ ? ", " : "");
		put_thread(output, host, row);
		if (detail->has_stacks)
			error = put_stack(output, host, row);
		output_char(output, '}');
	}
	output_char(output, ']');
	free(rows);
	return error;
}

static int put_task(struct output *output, struct watch_host *host, struct watch_followed *followed,
		    const struct watch_task *task)
{
	const struct trace_process *process = followed->counted.process;
	const struct wire_definition *name = task->name ? trace_name(&process->marks, task->name) : NULL;
	uint32_t number = watch_number_of(host, followed, 2 * task->code);

	if (number == UINT32_MAX)
		return -ENOMEM;
	output_format(output, "{\"pid\": %" PRId64 ", \"tid\": %u, \"steps\": %" PRIu64 ", ",
		      watch_followed_pid(followed), task->tid, task->steps);
	watch_json_put_text(output, "name", name ? trace_string(name, 1) : text_of(""));
	output_format(output, ", \"id\": %u, ", number);
	put_label(output, &host->labels.at[number]);
	output_char(output, '}');
	return 0;
}

struct task_row {
	struct watch_followed *followed;
	const struct watch_task *task;
	size_t number; /* in the order of processes */
};

/* The tasks of the shown processes. */
struct task_rows {
	struct task_row *at;
	size_t count, allocated;
};

static int add_tasks(struct task_rows *rows, struct watch_followed *followed)
{
	for (uint32_t i = 0; i < followed->counted.task_count; i++) {
		if (grow_by_one(&rows->at, &rows->allocated, rows->count, sizeof(*rows->at)))
			return -ENOMEM;
		rows->at[rows->count] = (struct task_row){followed, &followed->counted.tasks[i], rows->count};
		rows->count++;
	}
	return 0;
}

/* Those with the most steps first. */
static int compare_tasks(const void *a, const void *b)
{
	const struct task_row *left = a, *right = b;

	if (left->task->steps != right->task->steps)
		return compare_u64(right->task->steps, left->task->steps);
	return compare_u64(left->number, right->number);
}

static int put_tasks(struct output *output, const struct watch_detail *detail, struct watch_host *host)
{
	struct task_rows rows = {0};
	int error = 0;

	for (size_t i = 0; i < host->source_count; i++) {
		for (size_t k = 0; k < host->sources[i]->process_count && !error; k++) {
			struct watch_followed *followed = host->sources[i]->processes[k];

			if (!detail->query.pid || watch_followed_pid(followed) == detail->query.pid)
				error = add_tasks(&rows, followed);
		}
	}
	if (rows.count)
		qsort(rows.at, rows.count, sizeof(*rows.at), compare_tasks);
	output_string(output, ", \"tasks\": [");
	for (size_t i = 0; i < rows.count && i < detail->rows && !error; i++) {
		output_string(output, i ? ", " : "");
		error = put_task(output, host, rows.at[i].followed, rows.at[i].task);
	}
	output_char(output, ']');
	free(rows.at);
	return error;
}

static int put_side(struct output *output, const struct watch_detail *detail, const struct watch_host *host,
		    const struct watch_function *functions, uint32_t known, enum watch_side side)
{
	struct watch_view all = {.order = detail->view.order, .filter = ""};
	size_t count;
	struct watch_row *rows = watch_function_rows(&all, &host->labels, functions, known, side, &count);

	if (!rows)
		return -ENOMEM;
	output_format(output, ", \"%s\": [", side == WATCH_CALLERS ? "callers" : "callees");
	for (size_t i = 0; i < count && i < detail->rows; i++) {
		uint32_t number = (uint32_t)rows[i].number;

		output_string(output, i ? ", " : "");
		put_function(output, &host->labels.at[number], number, watch_times_of(&functions[number], side));
		output_char(output, '}');
	}
	output_char(output, ']');
	free(rows);
	return 0;
}

static int put_focus(struct output *output, const struct watch_detail *detail, const struct watch_host *host,
		     const struct watch_function *functions, uint32_t known, uint32_t number)
{
	int error;

	output_string(output, ", \"focus\": ");
	put_function(output, &host->labels.at[number], number, &functions[number].now);
	output_string(output, ", \"since\": {");
	put_times(output, &functions[number].since);
	output_char(output, '}');
	error = put_side(output, detail, host, functions, known, WATCH_CALLERS);
	if (!error)
		error = put_side(output, detail, host, functions, known, WATCH_CALLEES);
	output_char(output, '}');
	return error;
}

int watch_json_put_detail(struct output *output, const struct watch_detail *detail, struct watch_host *host)
{
	struct watch_function *functions;
	struct watch_row *rows;
	size_t count;
	bool has_rows;
	unsigned slot = detail->query.focus;
	uint32_t focus = slot < WATCH_FOCI ? host->foci[slot] : 0;
	uint32_t known = host->labels.count; /* more come with stacks and tasks */
	int error = watch_query_functions(host, &detail->query, &functions);

	if (error)
		return error;
	put_head(output, host);
	put_processes(output, host);
	error = put_threads(output, detail, host);
	if (!error)
		error = put_tasks(output, detail, host);
	rows = watch_function_rows(&detail->view, &host->labels, functions, known, WATCH_ALL, &count);
	has_rows = rows != NULL; /* they are freed with the next line */
	output_format(output, ", \"function_count\": %zu, ", has_rows ? count : 0);
	put_functions(output, host, functions, rows, count < detail->rows ? count : detail->rows, true);
	if (has_rows && !error && focus && focus <= known)
		error = put_focus(output, detail, host, functions, known, focus - 1);
	free(functions);
	return error ? error : has_rows ? output->error : -ENOMEM;
}
