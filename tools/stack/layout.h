/*
 * layout.h - where the Python of another process keeps its interpreters, threads, frames and code objects.
 *
 * Python 3.13 and later say where their interpreters are (_Py_DebugOffsets). In older ones a word of _PyRuntime, or of
 * Python's data, is an interpreter if it leads to a thread state that leads back. Code objects have a table of their
 * fields (PyCode_Type.tp_members). Frames have the places of the table of versions (evprof/python_versions.h). What is
 * left is searched, as the library does in its own process (sampled_layout.c): the word that leads to a frame, the
 * memory of pthread_t that has the kernel's thread id.
 */
#ifndef EVPROF_TOOLS_STACK_LAYOUT_H
#define EVPROF_TOOLS_STACK_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evprof/python_versions.h"
#include "stack/process.h"

#define LAYOUT_INTERPRETERS_MAX 4096
#define LAYOUT_STATES_MAX 65536

struct layout {
	int minor, micro;
	bool free_threaded;
	uint32_t object_shift;
	const struct python_version *row;
	uint64_t runtime, runtime_bytes; /* _PyRuntime; 0: 3.6 has none */
	uint64_t *interpreters;
	size_t interpreter_count, interpreter_room;
	uint64_t interpreter_bytes; /* 0: not known */
	uint32_t interpreter_next, interpreter_threads;
	uint64_t text_type, int_type, coroutine_type, generator_type, async_generator_type; /* PyUnicode_Type, ... */
	uint64_t frame_type;
	struct sampling fields; /* also the process's remote->layout */
};

static inline bool layout_has(const struct layout *layout, enum python_trait trait)
{
	return (layout->row->traits & trait) != 0;
}

/*
 * Returns 0, or -1 with one line, without a period, in why; that after a tenth of a second of looks, because a program
 * that runs changes its stacks meanwhile. The caller calls layout_done() in both cases.
 */
int layout_find(struct layout *layout, struct process *process, char *why, size_t why_bytes);

void layout_done(struct layout *layout);

/*
 * The thread states of an interpreter, in Python's order, the newest first: at most `max`. Returns their number. A list
 * that changes meanwhile is read again; one that still does ends where it no longer leads on.
 */
size_t layout_states(const struct layout *layout, struct process *process, uint64_t interpreter, uint64_t *states,
		     size_t max);

/* Our id of the thread of a thread state; 0: it has none that lives. */
pid_t layout_tid(const struct layout *layout, struct process *process, uint64_t state);

#endif
