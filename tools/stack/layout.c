/* layout.c - see layout.h. */
#include "stack/layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "util/grow.h"
#include "util/why.h"

#define WORD sizeof(uint64_t)
#define ROOT_BYTES 65536      /* of _PyRuntime, in which it leads to its interpreters */
#define STATE_BYTES 1024      /* PyThreadState is larger in all versions */
#define STATE_FRAME_BYTES 160 /* in which it leads to its frame */
#define THREAD_BYTES 2048     /* struct pthread of the C library, likewise */
#define MEMBERS_MAX 64
#define SAMPLES_MAX 256 /* thread states to which a search looks */
#define OFFSET_MAX (1u << 20)

/* --- the version --- */

#define BLOCK_BYTES 65536
#define VERSION_BYTES 32
#define TRIES 20 /* to read the stacks of a program that runs, with a pause between */
#define PAUSE_NS 5000000
#define STATES_TRIES 100 /* to read the list of thread states, in which threads begin and end ... */
#define STATES_MS 1000	 /* ... for so long at most */

/* "3.8.18 (default, ...": what Py_GetVersion() returns is in Python's data. */
static bool parse_version(const char *text, int *minor, int *micro)
{
	int length = 0;

	if (sscanf(text, "3.%2d.%2d%n", minor, micro, &length) != 2)
		return false;
	length += (int)strcspn(text + length, " "); /* +, rc1 */
	return !strncmp(text + length, " (", 2);
}

static bool search_version(struct process *process, uint64_t start, uint64_t end, struct layout *layout)
{
	static char block[BLOCK_BYTES + VERSION_BYTES + 1];

	for (uint64_t at = start; at + VERSION_BYTES < end; at += BLOCK_BYTES) {
		size_t size = end - at < BLOCK_BYTES + VERSION_BYTES ? end - at : BLOCK_BYTES + VERSION_BYTES;
		const char *found = block;

		memset(block, 0, sizeof(block));
		if (!remote_read(process->remote, at, block, size))
			continue;
		while ((found = memchr(found, '3', (size_t)(block + size - found)))) {
			if (!strncmp(found, "3.", 2) && parse_version(found, &layout->minor, &layout->micro))
				return true;
			found++;
		}
	}
	return false;
}

static bool find_version(struct layout *layout, struct process *process)
{
	uint32_t version = process->target.version;

	if (version >> 24 == 3) {
		layout->minor = (int)(version >> 16 & 0xff);
		layout->micro = (int)(version >> 8 & 0xff);
		return true;
	}
	for (size_t i = 0; i < process->range_count; i++) {
		const struct process_range *range = &process->ranges[i];

		if (range->python && search_version(process, range->start, range->end, layout))
			return true;
	}
	return false;
}

/* --- symbols, fields of objects --- */

enum {
	CODE_TYPE,
	RUNTIME,
	TEXT_TYPE,
	COROUTINE_TYPE,
	GENERATOR_TYPE,
	ASYNC_GENERATOR_TYPE,
	INT_TYPE,
	FRAME_TYPE,
	SYMBOLS
};

static uint32_t read_int(struct process *process, uint64_t address)
{
	uint32_t value = 0;

	return remote_read(process->remote, address, &value, sizeof(value)) ? value : 0;
}

static bool reads_as(struct process *process, uint64_t address, const char *text)
{
	char bytes[32];
	size_t size = strlen(text) + 1;

	return size <= sizeof(bytes) && remote_read(process->remote, address, bytes, size) &&
	       !memcmp(bytes, text, size);
}

/* PyMemberDef: name, type, offset, flags, doc */
enum { MEMBER_OFFSET = 16, MEMBER_BYTES = 40 };

static uint32_t find_member(const struct layout *layout, struct process *process, const char *name)
{
	uint64_t members, at, offset;

	if (!process_word(process, layout->fields.code_type + layout->object_shift + PYTHON_TYPE_MEMBERS, &members))
		return 0;
	for (unsigned i = 0; i < MEMBERS_MAX; i++, members += MEMBER_BYTES) {
		if (!process_word(process, members, &at) || !at)
			return 0;
		if (reads_as(process, at, name))
			return process_word(process, members + MEMBER_OFFSET, &offset) && offset < STATE_BYTES
				   ? (uint32_t)offset
				   : 0;
	}
	return 0;
}

static bool find_code(struct layout *layout, struct process *process)
{
	struct sampling *fields = &layout->fields;
	uint32_t shift = layout->object_shift;

	fields->object_type = PYTHON_TYPE + shift;
	fields->lines = layout->row->lines;
	fields->code_file = find_member(layout, process, "co_filename");
	fields->code_name = find_member(layout, process, "co_name");
	fields->code_qualified_name = find_member(layout, process, "co_qualname");
	fields->code_line = find_member(layout, process, "co_firstlineno");
	fields->code_flags = find_member(layout, process, "co_flags");
	fields->code_lines =
	    find_member(layout, process, fields->lines == SAMPLING_LINES_LNOTAB ? "co_lnotab" : "co_linetable");
	if (layout_has(layout, PYTHON_OWN_FRAMES))
		fields->code_instructions = read_int(process, fields->code_type + shift + PYTHON_TYPE_BASIC_SIZE);
	return fields->code_file && fields->code_name && fields->code_line && fields->code_flags && fields->code_lines;
}

/* A str has its characters behind its head: 3.12 has no wchar_t of it any more, so the head is shorter. */
static bool find_text(struct layout *layout, struct process *process)
{
	struct sampling *fields = &layout->fields;
	uint32_t shift = layout->object_shift;
	uint32_t bytes = read_int(process, layout->text_type + shift + PYTHON_TYPE_BASIC_SIZE) - shift;

	fields->size = PYTHON_SIZE + shift;
	fields->bytes_data = PYTHON_BYTES_DATA + shift;
	fields->text_state = PYTHON_TEXT_STATE + shift;
	fields->text_kind = layout->free_threaded ? 8 : 2;
	fields->text_data = bytes - (uint32_t)WORD + shift;
	fields->text_ascii_data = fields->text_data - (bytes >= PYTHON_TEXT_WITH_WCHAR_BYTES ? 24 : 16);
	return bytes == PYTHON_TEXT_WITH_WCHAR_BYTES || bytes == PYTHON_TEXT_BYTES;
}

/* --- interpreters --- */

static bool is_state_of(struct process *process, uint64_t state, uint64_t interpreter)
{
	uint64_t owner;

	return process_word(process, state + PYTHON_STATE_INTERPRETER, &owner) && owner == interpreter;
}

static bool is_known(const struct layout *layout, uint64_t interpreter)
{
	for (size_t i = 0; i < layout->interpreter_count; i++)
		if (layout->interpreters[i] == interpreter)
			return true;
	return false;
}

static bool add_interpreter(struct layout *layout, uint64_t interpreter)
{
	if (layout->interpreter_count == LAYOUT_INTERPRETERS_MAX ||
	    grow_by_one(&layout->interpreters, &layout->interpreter_room, layout->interpreter_count,
			sizeof(interpreter)) < 0)
		return false;
	layout->interpreters[layout->interpreter_count++] = interpreter;
	return true;
}

static void add_chain(struct layout *layout, struct process *process, uint64_t interpreter)
{
	while (interpreter && !is_known(layout, interpreter) && add_interpreter(layout, interpreter))
		if (!process_word(process, interpreter + layout->interpreter_next, &interpreter))
			return;
}

/* The first words of _Py_DebugOffsets (Include/internal/pycore_debug_offsets.h), since 3.13. */
enum {
	WORD_FREE_THREADED = 2,
	WORD_INTERPRETERS = 5,
	WORD_INTERPRETER_BYTES = 6,
	WORD_INTERPRETER_NEXT = 8,
	WORD_INTERPRETER_THREADS = 9,
	WORDS = 10
};

static bool follow_debug_offsets(struct layout *layout, struct process *process)
{
	uint64_t words[WORDS], first;

	if (!layout->runtime || !remote_read(process->remote, layout->runtime, words, sizeof(words)) ||
	    memcmp(words, "xdebugpy", WORD) != 0)
		return false;
	for (unsigned i = WORD_INTERPRETERS; i < WORDS; i++)
		if (words[i] > OFFSET_MAX)
			return false;
	layout->free_threaded = words[WORD_FREE_THREADED] == 1;
	layout->object_shift = layout->free_threaded ? PYTHON_OBJECT_SHIFT : 0;
	layout->interpreter_bytes = words[WORD_INTERPRETER_BYTES];
	layout->interpreter_next = (uint32_t)words[WORD_INTERPRETER_NEXT];
	layout->interpreter_threads = (uint32_t)words[WORD_INTERPRETER_THREADS];
	if (process_word(process, layout->runtime + words[WORD_INTERPRETERS], &first))
		add_chain(layout, process, first);
	return true;
}

/*
 * Whether the memory at the address begins as an interpreter does, which leads to its newest thread state. In 3.11 that
 * looks so, too: it leads to the interpreter as that to its state. What _PyRuntime leads to first is the interpreter.
 */
static bool looks_like_interpreter(const struct layout *layout, struct process *process, uint64_t address)
{
	uint64_t state, previous;

	return process_word(process, address + layout->interpreter_threads, &state) &&
	       process_range_of(process, state) && !is_known(layout, state) && is_state_of(process, state, address) &&
	       process_word(process, state + PYTHON_STATE_PREVIOUS, &previous) && !previous;
}

static void search_interpreters(struct layout *layout, struct process *process, uint64_t start, uint64_t end)
{
	uint64_t word, before = 0;

	for (uint64_t at = start; at + WORD <= end; at += WORD) {
		if (!process_word(process, at, &word) || word == before || word % WORD ||
		    !process_range_of(process, word))
			continue;
		before = word;
		if (!is_known(layout, word) && looks_like_interpreter(layout, process, word))
			add_chain(layout, process, word);
	}
}

/* Until 3.12. The 3.6 has them in a variable of Python's data. */
static void search_roots(struct layout *layout, struct process *process)
{
	uint64_t bytes = layout->runtime_bytes < ROOT_BYTES ? layout->runtime_bytes : ROOT_BYTES;

	layout->interpreter_threads = (uint32_t)layout->row->layout.interpreter_threads;
	if (layout->runtime) {
		search_interpreters(layout, process, layout->runtime, layout->runtime + bytes);
		return;
	}
	for (size_t i = 0; i < process->range_count; i++)
		if (process->ranges[i].python)
			search_interpreters(layout, process, process->ranges[i].start, process->ranges[i].end);
}

/* --- thread states --- */

/* *whole: the list was read to its end. One that leads to a state passed before has none. */
static size_t read_states(const struct layout *layout, struct process *process, uint64_t interpreter, uint64_t *states,
			  size_t max, bool *whole)
{
	size_t count = 0, turn = 1;
	uint64_t state, passed = 0;

	*whole = false;
	if (!process_word(process, interpreter + layout->interpreter_threads, &state))
		return 0;
	while (state && state != passed && count < max && is_state_of(process, state, interpreter)) {
		states[count++] = state;
		if (count == turn) {
			passed = state;
			turn *= 2;
		}
		if (!process_word(process, state + PYTHON_STATE_NEXT, &state))
			return count;
	}
	*whole = !state || count == max;
	return count;
}

size_t layout_states(const struct layout *layout, struct process *process, uint64_t interpreter, uint64_t *states,
		     size_t max)
{
	int64_t end_ms = time_ms(CLOCK_MONOTONIC) + STATES_MS;
	bool whole = false;
	size_t count = 0;

	for (int i = 0; i < STATES_TRIES && !whole && time_ms(CLOCK_MONOTONIC) < end_ms; i++) {
		remote_refresh(process->remote);
		count = read_states(layout, process, interpreter, states, max, &whole);
	}
	return count;
}

pid_t layout_tid(const struct layout *layout, struct process *process, uint64_t state)
{
	uint64_t thread;
	uint32_t own;

	return process_word(process, state + layout->fields.state_thread, &thread) && thread &&
		       remote_read(process->remote, thread + layout->fields.thread_tid, &own, sizeof(own))
		   ? process_tid(process, own)
		   : 0;
}

/* A search compares candidates in all of these thread states. */
struct samples {
	uint64_t states[SAMPLES_MAX];
	size_t count;
};

static void take_samples(const struct layout *layout, struct process *process, struct samples *samples)
{
	samples->count = 0;
	for (size_t i = 0; i < layout->interpreter_count && samples->count < SAMPLES_MAX; i++)
		samples->count += layout_states(layout, process, layout->interpreters[i],
						samples->states + samples->count, SAMPLES_MAX - samples->count);
}

static bool is_among(const uint32_t *ids, size_t count, uint32_t id)
{
	for (size_t i = 0; i < count; i++)
		if (ids[i] == id)
			return true;
	return false;
}

/*
 * How many threads of the process have their id at that offset of the memory to which a word of their states leads. One
 * of these ids may be in each thread's memory: half of an address is 32767 where addresses are not random.
 */
static size_t count_threads(struct process *process, const struct samples *samples, uint32_t word, uint32_t offset)
{
	uint32_t ids[SAMPLES_MAX];
	size_t found = 0;

	for (size_t i = 0; i < samples->count; i++) {
		uint64_t thread;
		uint32_t own;

		if (process_word(process, samples->states[i] + word, &thread) &&
		    remote_read(process->remote, thread + offset, &own, sizeof(own)) && process_tid(process, own) &&
		    !is_among(ids, found, own))
			ids[found++] = own;
	}
	return found;
}

/* On x86-64 the thread's memory begins with its own address, in glibc and in musl. */
static bool begins_with_itself(struct process *process, uint64_t thread)
{
	uint64_t first;

	return process_word(process, thread, &first) && first == thread;
}

static size_t search_thread_id(struct layout *layout, struct process *process, const struct samples *samples,
			       uint32_t word, size_t best)
{
	uint64_t thread;
	uint32_t own;

	for (uint32_t offset = 16; offset < THREAD_BYTES; offset += sizeof(own)) {
		size_t found = 0;

		for (size_t i = 0; i < samples->count && !found; i++)
			if (process_word(process, samples->states[i] + word, &thread) &&
			    remote_read(process->remote, thread + offset, &own, sizeof(own)) &&
			    process_tid(process, own))
				found = count_threads(process, samples, word, offset);
		if (found <= best)
			continue;
		best = found;
		layout->fields.state_thread = word;
		layout->fields.thread_tid = offset;
	}
	return best;
}

/* Whether the word is an address outside of the state, of memory that may be a thread's. */
static bool may_be_thread(struct process *process, const struct samples *samples, uint32_t word, bool itself)
{
	for (size_t i = 0; i < samples->count; i++) {
		uint64_t state = samples->states[i], thread;

		if (process_word(process, state + word, &thread) && process_range_of(process, thread) &&
		    thread - state >= STATE_BYTES && (!itself || begins_with_itself(process, thread)))
			return true;
	}
	return false;
}

static bool find_threads(struct layout *layout, struct process *process, const struct samples *samples)
{
	size_t best = 0;

	layout->fields.state_previous = PYTHON_STATE_PREVIOUS;
	layout->fields.state_next = PYTHON_STATE_NEXT;
	layout->fields.state_interpreter = PYTHON_STATE_INTERPRETER;
	for (int itself = 1; itself >= 0 && !best; itself--)
		for (uint32_t word = PYTHON_STATE_INTERPRETER + WORD; word < STATE_BYTES; word += WORD)
			if (may_be_thread(process, samples, word, itself))
				best = search_thread_id(layout, process, samples, word, best);
	return best > 0;
}

/* --- frames --- */

static bool read_first_frame(const struct layout *layout, struct process *process, uint64_t state, uint64_t *frame)
{
	const struct sampling *fields = &layout->fields;

	return process_word(process, state + fields->state_frame, frame) &&
	       (!fields->frame_holder || process_word(process, *frame + fields->frame_holder - 1, frame));
}

/* The code of a frame, or 0. */
static uint64_t code_of(const struct layout *layout, struct process *process, uint64_t frame)
{
	uint64_t code, type;

	return frame % WORD == 0 && process_word(process, frame + layout->fields.frame_code, &code) &&
		       process_word(process, (code &= ~UINT64_C(7)) + layout->fields.object_type, &type) &&
		       type == layout->fields.code_type
		   ? code
		   : 0;
}

/* The number of states that lead to a frame by that word. */
static size_t count_frames(struct layout *layout, struct process *process, const struct samples *samples, uint32_t word)
{
	size_t found = 0;
	uint64_t frame;

	layout->fields.state_frame = word;
	for (size_t i = 0; i < samples->count; i++)
		found += read_first_frame(layout, process, samples->states[i], &frame) &&
			 code_of(layout, process, frame) != 0;
	return found;
}

static void find_state_frame(struct layout *layout, struct process *process, const struct samples *samples)
{
	uint32_t best_word = 0;
	size_t best = 0;

	for (uint32_t word = PYTHON_STATE_INTERPRETER + WORD; word < STATE_FRAME_BYTES; word += WORD) {
		size_t found = count_frames(layout, process, samples, word);

		if (found > best) {
			best = found;
			best_word = word;
		}
	}
	layout->fields.state_frame = best_word;
}

/* The word of a frame that is the address of an instruction of its code, from 3.11 on. */
static uint32_t search_instruction(const struct layout *layout, struct process *process, uint64_t frame)
{
	uint64_t code = code_of(layout, process, frame), first = code + layout->fields.code_instructions, word, units;

	if (!code || !process_word(process, code + layout->fields.size, &units) || units > INT32_MAX)
		return 0;
	for (uint32_t offset = PYTHON_INSTRUCTION_FIRST; offset < PYTHON_INSTRUCTION_END; offset += WORD)
		if (process_word(process, frame + offset, &word) && word + 2 >= first && word < first + 2 * units)
			return offset;
	return 0;
}

static bool find_instruction(struct layout *layout, struct process *process, const struct samples *samples)
{
	struct sampling *fields = &layout->fields;
	uint64_t frame;
	bool any = false;

	if (!layout_has(layout, PYTHON_OWN_FRAMES)) {
		fields->frame_instruction = (uint32_t)layout->row->layout.frame_last;
		fields->instruction_unit = layout->row->layout.last_unit;
		return true;
	}
	for (size_t i = 0; i < samples->count && !fields->frame_instruction; i++) {
		if (!read_first_frame(layout, process, samples->states[i], &frame) || !code_of(layout, process, frame))
			continue;
		any = true;
		fields->frame_instruction = search_instruction(layout, process, frame);
	}
	return fields->frame_instruction || !any;
}

static bool find_frames(struct layout *layout, struct process *process, const struct samples *samples)
{
	const struct python_layout *known = &layout->row->layout;
	struct sampling *fields = &layout->fields;

	fields->frame_back = (uint32_t)known->chain_back;
	fields->frame_code = (uint32_t)known->chain_code;
	if (!layout_has(layout, PYTHON_OWN_FRAMES)) {
		fields->state_frame = PYTHON_STATE_FRAME;
	} else if (known->inner_previous) {
		fields->state_frame = (uint32_t)known->state_cframe;
		fields->frame_holder = 1 + PYTHON_CFRAME_FRAME;
	} else {
		if (layout_has(layout, PYTHON_FRAME_BEHIND_CFRAME)) {
			fields->frame_holder = 1;
			fields->frame_owner = (uint32_t)known->frame_owner;
			fields->frame_owner_c = PYTHON_FRAME_OWNED_BY_C;
		}
		find_state_frame(layout, process, samples);
	}
	return find_instruction(layout, process, samples);
}

/* --- the whole --- */

/* What is not where it is expected; NULL: all is. */
static const char *find_fields(struct layout *layout, struct process *process)
{
	static struct samples samples;

	if (!find_code(layout, process))
		return "code objects";
	if (!find_text(layout, process))
		return "text";
	process->remote->layout = layout->fields;
	take_samples(layout, process, &samples);
	if (!samples.count || !find_threads(layout, process, &samples))
		return "threads";
	if (!find_frames(layout, process, &samples))
		return "frames";
	process->remote->layout = layout->fields;
	return NULL;
}

static bool find_symbols(struct layout *layout, struct process *process)
{
	struct elf_symbol symbols[SYMBOLS] = {
	    [CODE_TYPE] = {.name = "PyCode_Type"},     [RUNTIME] = {.name = "_PyRuntime"},
	    [TEXT_TYPE] = {.name = "PyUnicode_Type"},  [COROUTINE_TYPE] = {.name = "PyCoro_Type"},
	    [GENERATOR_TYPE] = {.name = "PyGen_Type"}, [ASYNC_GENERATOR_TYPE] = {.name = "PyAsyncGen_Type"},
	    [INT_TYPE] = {.name = "PyLong_Type"},      [FRAME_TYPE] = {.name = "PyFrame_Type"},
	};

	if (target_symbols(&process->target, symbols, SYMBOLS) < 0)
		return false;
	layout->fields.code_type = symbols[CODE_TYPE].value;
	layout->runtime = symbols[RUNTIME].value;
	layout->runtime_bytes = symbols[RUNTIME].size;
	layout->text_type = symbols[TEXT_TYPE].value;
	layout->coroutine_type = symbols[COROUTINE_TYPE].value;
	layout->generator_type = symbols[GENERATOR_TYPE].value;
	layout->async_generator_type = symbols[ASYNC_GENERATOR_TYPE].value;
	layout->int_type = symbols[INT_TYPE].value;
	layout->frame_type = symbols[FRAME_TYPE].value;
	return layout->fields.code_type && layout->text_type;
}

/* Free-threaded, of a version whose layout without the GIL is not known. */
static bool is_foreign(const struct layout *layout)
{
	return layout->free_threaded && !layout_has(layout, PYTHON_KNOWN_WITHOUT_GIL);
}

/* What is not where it is expected; NULL: all is. */
static const char *look(struct layout *layout, struct process *process)
{
	remote_refresh(process->remote);
	layout->interpreter_count = 0;
	if (!follow_debug_offsets(layout, process))
		search_roots(layout, process);
	return layout->interpreter_count && !is_foreign(layout) ? find_fields(layout, process) : "interpreters";
}

/*
 * The program runs meanwhile: threads begin and end, and one that calls or returns has no stack for a moment. Where no
 * thread has one in all looks, none is in Python code, and none is searched for.
 */
static const char *look_in_time(struct layout *layout, struct process *process)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	const struct sampling before = layout->fields;
	const char *unknown = look(layout, process);

	for (int tries = 1; (unknown || !layout->fields.frame_instruction) && !is_foreign(layout) && tries < TRIES;
	     tries++) {
		nanosleep(&pause, NULL);
		layout->fields = before;
		unknown = look(layout, process);
	}
	return unknown;
}

int layout_find(struct layout *layout, struct process *process, char *why, size_t bytes)
{
	int pid = (int)process->target.pid;
	const char *unknown;

	*layout = (struct layout){0};
	if (!find_symbols(layout, process))
		return complain(why, bytes, "the Python of process %d has no symbols that evprof needs (stripped)",
				pid);
	if (!find_version(layout, process) || layout->minor < PYTHON_FIRST_MINOR)
		return complain(why, bytes, "the version of the Python of process %d is not known", pid);
	layout->row = python_version_row(layout->minor);
	if (!layout->row)
		return complain(why, bytes, "process %d runs Python 3.%d, which this evprof does not know yet", pid,
				layout->minor);
	unknown = look_in_time(layout, process);
	if (is_foreign(layout))
		return complain(why, bytes, "process %d runs a free-threaded Python 3.%d, which evprof does not know",
				pid, layout->minor);
	if (!layout->interpreter_count)
		return complain(why, bytes, "the Python of process %d runs no interpreter: it begins, or has ended",
				pid);
	if (unknown)
		return complain(why, bytes, "Python 3.%d.%d of process %d has its %s where evprof does not find them",
				layout->minor, layout->micro, pid, unknown);
	return 0;
}

void layout_done(struct layout *layout)
{
	free(layout->interpreters);
	layout->interpreters = NULL;
}
