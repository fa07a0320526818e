/* print.c - see print.h. */
#include "stack/print.h"

static const struct code *code_of(const struct snapshot *snapshot, const struct stack_frame *frame)
{
	return &snapshot->codes.at[frame->code];
}

/* --- for people --- */

static void print_frame(struct output *output, const struct snapshot *snapshot, const struct stack_frame *frame)
{
	const struct code *code = code_of(snapshot, frame);

	output_string(output, "    ");
	output_line(output, text_of(*code->qualified_name ? code->qualified_name : code->name));
	output_string(output, " (");
	output_line(output, text_of(code->file));
	if (frame->line)
		output_format(output, ":%u", frame->line);
	output_string(output, ")\n");
}

static void print_thread(struct output *output, const struct snapshot *snapshot, const struct stack_thread *thread)
{
	output_format(output, "Thread %d", (int)thread->tid);
	if (thread->name[0]) {
		output_char(output, ' ');
		output_line(output, text_of(thread->name));
	}
	output_string(output, ": ");
	output_string(output, wait_text(thread->wait.kind));
	if (thread->wait.detail[0] && thread->wait.kind != WAIT_GIL) {
		output_string(output, " (");
		output_line(output, text_of(thread->wait.detail));
		output_char(output, ')');
	}
	output_char(output, '\n');
	if (thread->changed)
		output_string(output, thread->count
					  ? "    (the functions called by the next one change too fast to be read)\n"
					  : "    (the functions change too fast to be read)\n");
	else if (!thread->count)
		output_string(output, "    (no Python function)\n");
	for (size_t i = 0; i < thread->count; i++)
		print_frame(output, snapshot, &thread->frames[i]);
}

static void print_task(struct output *output, const struct snapshot *snapshot, const struct suspended_task *task)
{
	output_string(output, task->name[0] ? "Task " : "Coroutine");
	output_line(output, text_of(task->name));
	output_string(output, ": suspended\n");
	for (size_t i = 0; i < task->count; i++)
		print_frame(output, snapshot, &task->frames[i]);
}

void print_snapshot(struct output *output, const struct snapshot *snapshot)
{
	const struct layout *layout = &snapshot->layout;

	output_format(output, "Process %d: ", (int)snapshot->process.target.pid);
	output_line(output, text_of(*snapshot->command ? snapshot->command : snapshot->process.target.program));
	output_format(output, "\nPython 3.%d.%d%s\n\n", layout->minor, layout->micro,
		      layout->free_threaded ? ", free-threaded" : "");
	for (size_t i = 0; i < snapshot->threads.count; i++)
		print_thread(output, snapshot, &snapshot->threads.at[i]);
	for (size_t i = 0; i < snapshot->suspended.count; i++)
		print_task(output, snapshot, &snapshot->suspended.at[i]);
	if (snapshot->suspended.cut)
		output_string(
		    output, "(other suspended coroutines may be missing: the lists of objects are long, or changed)\n");
}

/* --- for programs --- */

static void put_member(struct output *output, const char *name, const char *text)
{
	output_format(output, "\"%s\":\"", name);
	output_json(output, text_of(text));
	output_char(output, '"');
}

static void put_frame(struct output *output, const struct snapshot *snapshot, const struct stack_frame *frame)
{
	const struct code *code = code_of(snapshot, frame);

	output_char(output, '{');
	put_member(output, "function", code->name);
	if (*code->qualified_name) {
		output_char(output, ',');
		put_member(output, "qualified_name", code->qualified_name);
	}
	output_char(output, ',');
	put_member(output, "file", code->file);
	if (frame->line)
		output_format(output, ",\"line\":%u}", frame->line);
	else
		output_string(output, ",\"line\":null}");
}

/* The last member of an object. */
static void put_frames(struct output *output, const struct snapshot *snapshot, const struct stack_frame *frames,
		       size_t count)
{
	output_string(output, "\"frames\":[");
	for (size_t i = 0; i < count; i++) {
		output_string(output, i ? "," : "");
		put_frame(output, snapshot, &frames[i]);
	}
	output_string(output, "]}");
}

static void put_thread(struct output *output, const struct snapshot *snapshot, const struct stack_thread *thread)
{
	output_format(output, "{\"tid\":%d,", (int)thread->tid);
	put_member(output, "name", thread->name);
	output_char(output, ',');
	put_member(output, "waits", wait_word(thread->wait.kind));
	output_char(output, ',');
	put_member(output, "detail", thread->wait.detail);
	output_format(output, ",\"complete\":%s,", thread->changed ? "false" : "true");
	put_frames(output, snapshot, thread->frames, thread->count);
}

static void put_tasks(struct output *output, const struct snapshot *snapshot)
{
	output_string(output, "\"tasks\":[");
	for (size_t i = 0; i < snapshot->suspended.count; i++) {
		const struct suspended_task *task = &snapshot->suspended.at[i];

		output_string(output, i ? ",{" : "{");
		put_member(output, "name", task->name);
		output_char(output, ',');
		put_frames(output, snapshot, task->frames, task->count);
	}
	output_format(output, "],\"tasks_complete\":%s", snapshot->suspended.cut ? "false" : "true");
}

void print_snapshot_json(struct output *output, const struct snapshot *snapshot)
{
	const struct layout *layout = &snapshot->layout;

	output_format(output, "{\"pid\":%d,", (int)snapshot->process.target.pid);
	put_member(output, "program", snapshot->process.target.program);
	output_char(output, ',');
	put_member(output, "command", snapshot->command);
	output_format(output, ",\"python\":\"3.%d.%d\",\"threads\":[", layout->minor, layout->micro);
	for (size_t i = 0; i < snapshot->threads.count; i++) {
		output_string(output, i ? "," : "");
		put_thread(output, snapshot, &snapshot->threads.at[i]);
	}
	output_string(output, "],");
	put_tasks(output, snapshot);
	output_char(output, '}');
}
