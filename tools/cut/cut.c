/* cut.c - writes a stretch of a trace, one process and thread after the other. See cut.h. */
#include "cut/cut.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cut/file.h"
#include "cut/thread.h"
#include "replay/initial_stack.h"
#include "util/output.h"

struct cutting {
	struct trace *trace;
	const struct filter *filter;
	struct progress *progress;
	struct cut_file file;
	struct replay replay;
	uint64_t look_back;
};

static struct cut_thread thread_of(struct cutting *cutting, const struct trace_thread *thread, bool own)
{
	return (struct cut_thread){.trace = cutting->trace,
				   .file = &cutting->file,
				   .progress = cutting->progress,
				   .stretch = cutting->file.stretch,
				   .thread = thread,
				   .replay = &cutting->replay,
				   .look_back = &cutting->look_back,
				   .own = own};
}

/* The own events of a sampled thread are a thread of their own in the file. */
static int write_thread(struct cutting *cutting, const struct trace_thread *thread, bool own)
{
	const struct cut_thread cut = thread_of(cutting, thread, own);
	int error;

	replay_begin_thread(&cutting->replay);
	error = cut_thread_write(&cut);
	if (!error && thread->own)
		error = write_thread(cutting, thread->own, true);
	return error;
}

/* Its start does not say so: a process joins some time before its first event. */
static bool began_before(struct cutting *cutting, const struct trace_process *process)
{
	bool before = false;

	for (size_t i = 0; i < process->thread_count && !before; i++) {
		const struct trace_thread *thread = cutting->trace->threads[process->threads[i]];
		const struct cut_thread cut = thread_of(cutting, thread, false);
		const struct cut_thread own = thread_of(cutting, thread->own, true);

		before = cut_thread_has_before(&cut) || (thread->own && cut_thread_has_before(&own));
	}
	return before;
}

static int write_process(struct cutting *cutting, const struct trace_process *process)
{
	int error = replay_init(&cutting->replay, process);

	file_begin_process(&cutting->file, process, began_before(cutting, process));
	for (size_t i = 0; i < process->thread_count && !error && !cutting->file.error; i++) {
		const struct trace_thread *thread = cutting->trace->threads[process->threads[i]];

		if (filter_thread(cutting->filter, thread))
			error = write_thread(cutting, thread, false);
	}
	if (cutting->replay.out_of_memory && !error)
		error = -ENOMEM;
	file_end_process(&cutting->file);
	replay_done(&cutting->replay);
	return error;
}

int cut_write(struct trace *trace, const struct cut_stretch *stretch, const struct filter *filter,
	      struct progress *progress, int fd)
{
	struct cutting cutting = {
	    .trace = trace, .filter = filter, .progress = progress, .look_back = INITIAL_STACK_LOOK_BACK_EVENTS};
	char *kinds = file_kinds(trace);
	int error = 0;

	file_begin(&cutting.file, trace, stretch, kinds, fd);
	free(kinds);
	for (uint32_t i = 0; i < trace->process_count && !error && !cutting.file.error; i++) {
		const struct trace_process *process = trace->processes[i];

		if (process && filter_process(filter, process))
			error = write_process(&cutting, process);
	}
	if (!error)
		file_end(&cutting.file);
	error = error ? error : cutting.file.error;
	file_done(&cutting.file);
	return error;
}

int cut_write_file(struct trace *trace, const struct cut_stretch *stretch, const struct filter *filter,
		   struct progress *progress, const char *verb, const char *path, bool in_place)
{
	struct output output;
	int error = output_open_trace(&output, path), fd;

	if (!error) {
		if (in_place)
			output_let_read_like(&output, path);
		fd = fcntl(output.fd, F_DUPFD_CLOEXEC, 0);
		error = fd < 0 ? -errno : cut_write(trace, stretch, filter, progress, fd);
		if (error)
			output_abandon(&output);
		else
			error = output_close(&output);
	}
	if (error)
		output_complain(verb, path, error);
	return error;
}
