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

void print_snapshot(struct output *output, const struct snapshot *snapshot)
{
	const struct layout *layout = &snapshot->layout;

	output_format(output, "Process %d: ", (int)snapshot->process.target.pid);
	output_line(output, text_of(*snapshot->command ? snapshot->command : snapshot->process.target.program));
	output_format(output, "\nPython 3.%d.%d%s\n\n", layout->minor, layout->micro,
		      layout->free_threaded ? ", free-threaded" : "");
	for (size_t i = 0; i < snapshot->threads.count; i++)
		print_thread(output, snapshot, &snapshot->threads.at[i]);
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

static void put_thread(struct output *output, const struct snapshot *snapshot, const struct stack_thread *thread)
{
	output_format(output, "{\"tid\":%d,", (int)thread->tid);
	put_member(output, "name", thread->name);
	output_char(output, ',');
	put_member(output, "waits", wait_word(thread->wait.kind));
	output_char(output, ',');
	put_member(output, "detail", thread->wait.detail);
	output_format(output, ",\"complete\":%s,\"frames\":[", thread->changed ? "false" : "true");
	for (size_t i = 0; i < thread->count; i++) {
		output_string(output, i ? "," : "");
		put_frame(output, snapshot, &thread->frames[i]);
	}
	output_string(output, "]}");
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
	output_string(output, "]}");
}
