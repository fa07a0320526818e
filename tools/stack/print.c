/* print.c - see print.h. */
#include "stack/print.h"

#include <string.h>

static const struct code *code_of(const struct snapshot *snapshot, const struct stack_frame *frame)
{
	return &snapshot->codes.at[frame->code];
}

/* The local variables of the frame with that number; NULL: not read. */
static const struct frame_locals *locals_at(const struct snapshot *snapshot, size_t number)
{
	return snapshot->locals ? snapshot->locals + number : NULL;
}

/* --- for people --- */

/* A str in quotes, as repr() has them. output_line() writes the rest as repr() does. */
static void print_str(struct output *output, const struct value *value)
{
	bool single = memchr(value->text, '\'', value->bytes), other = memchr(value->text, '"', value->bytes);
	char quote = single && !other ? '"' : '\'';
	const char *at = value->text, *end = at + value->bytes, *found;

	output_char(output, quote);
	while ((found = memchr(at, quote, (size_t)(end - at)))) {
		output_line(output, (struct text){at, (size_t)(found - at)});
		output_format(output, "\\%c", quote);
		at = found + 1;
	}
	output_line(output, (struct text){at, (size_t)(end - at)});
	output_char(output, quote);
}

static void print_local(struct output *output, const struct local *local)
{
	const struct value *value = &local->value;

	output_string(output, "        ");
	output_line(output, text_of(local->name));
	output_string(output, value->plain ? " = " : ": ");
	if (value->is_str)
		print_str(output, value);
	else if (!value->plain)
		output_line(output, text_of(value->type));
	if (value->plain && !value->is_str)
		output_string(output, value->text);
	if (value->plain && value->cut)
		output_format(output, "... (%lld in all)", (long long)value->length);
	else if (!value->plain && value->length >= 0)
		output_format(output, " of %lld", (long long)value->length);
	output_char(output, '\n');
}

static void print_locals(struct output *output, const struct frame_locals *locals)
{
	for (size_t i = 0; locals && i < locals->count; i++)
		print_local(output, &locals->at[i]);
}

/* locals: NULL: not read. */
static void print_frame(struct output *output, const struct snapshot *snapshot, const struct stack_frame *frame,
			const struct frame_locals *locals)
{
	const struct code *code = code_of(snapshot, frame);

	output_string(output, "    ");
	output_line(output, text_of(*code->qualified_name ? code->qualified_name : code->name));
	output_string(output, " (");
	output_line(output, text_of(code->file));
	if (frame->line)
		output_format(output, ":%u", frame->line);
	output_string(output, ")\n");
	print_locals(output, locals);
}

static void print_native(struct output *output, const struct native_frame *frame)
{
	output_string(output, "    ");
	if (frame->name[0])
		output_line(output, text_of(frame->name));
	else
		output_format(output, "0x%llx", (unsigned long long)frame->address);
	output_string(output, " [");
	output_line(output, text_of(frame->module));
	output_string(output, "]\n");
}

static void print_frames(struct output *output, const struct snapshot *snapshot, const struct stack_thread *thread,
			 const struct frame_locals *locals, const struct native_stack *native)
{
	if (native && !native->merged_count)
		output_string(output, "    (no native frames: the thread cannot be stopped)\n");
	if (native && native->apart)
		output_string(output, "    (which native frames run which Python functions is not known)\n");
	for (size_t i = 0; native && i < native->merged_count; i++) {
		uint32_t number = native->merged[i].number;

		if (native->merged[i].native)
			print_native(output, &native->at[number]);
		else
			print_frame(output, snapshot, &thread->frames[number], locals ? &locals[number] : NULL);
	}
	for (size_t i = 0; i < thread->count && !(native && native->merged_count); i++)
		print_frame(output, snapshot, &thread->frames[i], locals ? &locals[i] : NULL);
}

/* native: NULL: not read. */
static void print_thread(struct output *output, const struct snapshot *snapshot, const struct stack_thread *thread,
			 const struct frame_locals *locals, const struct native_stack *native)
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
	print_frames(output, snapshot, thread, locals, native);
}

/* kind: of those with a name. */
static void print_task(struct output *output, const struct snapshot *snapshot, const struct suspended_task *task,
		       const char *kind, const struct frame_locals *locals)
{
	output_string(output, task->name[0] ? kind : "Coroutine");
	output_line(output, text_of(task->name));
	output_string(output, ": suspended\n");
	for (size_t i = 0; i < task->count; i++)
		print_frame(output, snapshot, &task->frames[i], locals ? &locals[i] : NULL);
}

void print_snapshot(struct output *output, const struct snapshot *snapshot)
{
	const struct layout *layout = &snapshot->layout;
	size_t at = 0;

	output_format(output, "Process %d: ", (int)snapshot->process.target.pid);
	output_line(output, text_of(*snapshot->command ? snapshot->command : snapshot->process.target.program));
	output_format(output, "\nPython 3.%d.%d%s\n\n", layout->minor, layout->micro,
		      layout->free_threaded ? ", free-threaded" : "");
	for (size_t i = 0; i < snapshot->threads.count; i++) {
		print_thread(output, snapshot, &snapshot->threads.at[i], locals_at(snapshot, at),
			     snapshot->native ? &snapshot->native[i] : NULL);
		at += snapshot->threads.at[i].count;
	}
	if (snapshot->threads.cut)
		output_string(
		    output, "(other threads are missing: they are too many to be read in ten seconds, or too deep)\n");
	for (size_t i = 0; i < snapshot->suspended.count; i++) {
		print_task(output, snapshot, &snapshot->suspended.at[i],
			   i < snapshot->suspended.tasks ? "Task " : "Greenlet ", locals_at(snapshot, at));
		at += snapshot->suspended.at[i].count;
	}
	if (snapshot->suspended.cut)
		output_string(output, "(other suspended coroutines and greenlets may be missing: the lists of objects "
				      "are long, or changed)\n");
}

/* --- for programs --- */

static void put_member(struct output *output, const char *name, const char *text)
{
	output_format(output, "\"%s\":\"", name);
	output_json(output, text_of(text));
	output_char(output, '"');
}

/* The value of a str is the str; others have the text of repr(). */
static void put_local(struct output *output, const struct local *local)
{
	const struct value *value = &local->value;

	output_char(output, '{');
	put_member(output, "name", local->name);
	output_char(output, ',');
	put_member(output, "type", value->type);
	if (value->plain) {
		output_string(output, ",\"value\":\"");
		output_json(output, (struct text){value->text, value->bytes});
		output_format(output, "\",\"complete\":%s", value->cut ? "false" : "true");
	}
	if (value->length >= 0)
		output_format(output, ",\"length\":%lld", (long long)value->length);
	output_char(output, '}');
}

static void put_locals(struct output *output, const struct frame_locals *locals)
{
	output_string(output, ",\"locals\":[");
	for (size_t i = 0; i < locals->count; i++) {
		output_string(output, i ? "," : "");
		put_local(output, &locals->at[i]);
	}
	output_char(output, ']');
}

static void put_frame(struct output *output, const struct snapshot *snapshot, const struct stack_frame *frame,
		      const struct frame_locals *locals)
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
		output_format(output, ",\"line\":%u", frame->line);
	else
		output_string(output, ",\"line\":null");
	if (locals)
		put_locals(output, locals);
	output_char(output, '}');
}

/* The last member of an object. first: the number of the first frame. */
static void put_frames(struct output *output, const struct snapshot *snapshot, const struct stack_frame *frames,
		       size_t count, size_t first)
{
	output_string(output, "\"frames\":[");
	for (size_t i = 0; i < count; i++) {
		output_string(output, i ? "," : "");
		put_frame(output, snapshot, &frames[i], locals_at(snapshot, first + i));
	}
	output_string(output, "]}");
}

/* The last member of an object. */
static void put_merged(struct output *output, const struct snapshot *snapshot, const struct stack_thread *thread,
		       const struct native_stack *native, size_t first)
{
	output_format(output, "\"merged\":%s,\"frames\":[", native->apart ? "false" : "true");
	for (size_t i = 0; i < native->merged_count; i++) {
		uint32_t number = native->merged[i].number;
		const struct native_frame *frame = &native->at[number];

		output_string(output, i ? "," : "");
		if (!native->merged[i].native) {
			put_frame(output, snapshot, &thread->frames[number], locals_at(snapshot, first + number));
			continue;
		}
		output_char(output, '{');
		put_member(output, "native", frame->name);
		output_char(output, ',');
		put_member(output, "module", frame->module);
		output_format(output, ",\"address\":\"0x%llx\"}", (unsigned long long)frame->address);
	}
	output_string(output, "]}");
}

/* native: NULL: not read. */
static void put_thread(struct output *output, const struct snapshot *snapshot, const struct stack_thread *thread,
		       const struct native_stack *native, size_t first)
{
	output_format(output, "{\"tid\":%d,", (int)thread->tid);
	put_member(output, "name", thread->name);
	output_char(output, ',');
	put_member(output, "waits", wait_word(thread->wait.kind));
	output_char(output, ',');
	put_member(output, "detail", thread->wait.detail);
	output_format(output, ",\"complete\":%s,", thread->changed ? "false" : "true");
	if (native)
		output_format(output, "\"native\":%s,", native->merged_count ? "true" : "false");
	if (native && native->merged_count)
		put_merged(output, snapshot, thread, native, first);
	else
		put_frames(output, snapshot, thread->frames, thread->count, first);
}

/* Those of a range. named: the member that has the name. Returns the number of the first frame behind them. */
static size_t put_suspended(struct output *output, const struct snapshot *snapshot, const char *named, size_t begin,
			    size_t end, size_t first)
{
	for (size_t i = begin; i < end; i++) {
		const struct suspended_task *task = &snapshot->suspended.at[i];

		output_string(output, i > begin ? ",{" : "{");
		put_member(output, named, task->name);
		output_char(output, ',');
		put_frames(output, snapshot, task->frames, task->count, first);
		first += task->count;
	}
	return first;
}

static void put_tasks(struct output *output, const struct snapshot *snapshot, size_t first)
{
	const struct suspended *suspended = &snapshot->suspended;

	output_string(output, "\"tasks\":[");
	first = put_suspended(output, snapshot, "name", 0, suspended->tasks, first);
	output_string(output, "],\"greenlets\":[");
	put_suspended(output, snapshot, "type", suspended->tasks, suspended->count, first);
	output_format(output, "],\"tasks_complete\":%s", suspended->cut ? "false" : "true");
}

void print_snapshot_json(struct output *output, const struct snapshot *snapshot)
{
	const struct layout *layout = &snapshot->layout;
	size_t at = 0;

	output_format(output, "{\"pid\":%d,", (int)snapshot->process.target.pid);
	put_member(output, "program", snapshot->process.target.program);
	output_char(output, ',');
	put_member(output, "command", snapshot->command);
	output_format(output, ",\"python\":\"3.%d.%d\",\"threads\":[", layout->minor, layout->micro);
	for (size_t i = 0; i < snapshot->threads.count; i++) {
		output_string(output, i ? "," : "");
		put_thread(output, snapshot, &snapshot->threads.at[i], snapshot->native ? &snapshot->native[i] : NULL,
			   at);
		at += snapshot->threads.at[i].count;
	}
	output_format(output, "],\"threads_complete\":%s,", snapshot->threads.cut ? "false" : "true");
	put_tasks(output, snapshot, at);
	output_char(output, '}');
}
