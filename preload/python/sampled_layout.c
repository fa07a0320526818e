/*
 * sampled_layout.c - finds the fields of this Python that a sampler reads.
 *
 * Offsets are searched rather than taken from a table where possible: a known word is searched in the place that must
 * hold it, in the running thread, its frame and a few strings.
 */
#include "python/sampled_layout.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log_line.h"
#include "python/python.h"

struct sampling sampling;
bool sampled_layout_known;

/* ---- searching --------------------------------------------------------------------------------------------------- */

#define SEARCH_BYTES 4096

/* The offset of a value of `size` bytes in the memory at an address, at a multiple of its size; 0: not found. */
static uint32_t find_value(const void *at, const void *value, size_t size, uint32_t from, uint32_t to)
{
	char bytes[16];

	for (uint32_t offset = from; offset < to; offset += (uint32_t)size)
		if (python_peek((const char *)at + offset, bytes, size) && !memcmp(bytes, value, size))
			return offset;
	return 0;
}

static uint32_t find_word(const void *at, uintptr_t word, uint32_t from, uint32_t to)
{
	return find_value(at, &word, sizeof(word), from, to);
}

/* ---- threads and frames ------------------------------------------------------------------------------------------ */

#define STATE_BYTES 1024  /* PyThreadState is larger in all versions */
#define THREAD_BYTES 2048 /* struct pthread of glibc, likewise */

/* Until 3.7 no function returns it. */
static const void *interpreter_of(const void *state)
{
	return python.current_interpreter ? python.current_interpreter()
					  : python_field(state, PYTHON_STATE_INTERPRETER);
}

static bool find_threads(void)
{
	const void *state = python.current_thread_state();
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	sampling.state_previous = PYTHON_STATE_PREVIOUS;
	sampling.state_next = PYTHON_STATE_NEXT;
	sampling.state_interpreter = find_word(state, (uintptr_t)interpreter_of(state), 16, 64);
	sampling.state_thread = find_word(state, (uintptr_t)pthread_self(), 24, STATE_BYTES);
	sampling.thread_tid = find_value((const void *)pthread_self(), &tid, sizeof(tid), 16, THREAD_BYTES);
	return sampling.state_interpreter && sampling.state_thread && sampling.thread_tid;
}

static bool find_frame(const void *frame)
{
	const void *at = python.current_thread_state();

	sampling.frame_back = (uint32_t)python.layout.chain_back;
	sampling.frame_code = (uint32_t)python.layout.chain_code;
	sampling.state_frame = PYTHON_STATE_FRAME;
	if (python.monitoring)
		sampling.state_frame = (uint32_t)python.state_frame;
	if (python.inner_frames) {
		sampling.state_frame = (uint32_t)python.layout.state_cframe;
		sampling.frame_holder = 1 + PYTHON_CFRAME_FRAME;
	}
	if (python_has(PYTHON_FRAME_BEHIND_CFRAME)) {
		sampling.frame_holder = 1;
		sampling.frame_owner = (uint32_t)python.layout.frame_owner;
		sampling.frame_owner_c = PYTHON_FRAME_OWNED_BY_C;
	}
	at = python_field(at, sampling.state_frame);
	if (sampling.frame_holder)
		at = python_field(at, sampling.frame_holder - 1);
	return at == frame;
}

/* Finds the running instruction in the frame. last: f_lasti, as Python returns it. */
static bool find_instruction(const void *frame, const struct object *code, long last)
{
	if (!python_has(PYTHON_OWN_FRAMES)) {
		sampling.frame_instruction = (uint32_t)python.layout.frame_last;
		sampling.instruction_unit = python.layout.last_unit;
		return *(const int *)((const char *)frame + python.layout.frame_last) ==
		       last / (long)python.layout.last_unit;
	}
	sampling.frame_instruction = find_word(frame, (uintptr_t)code + sampling.code_instructions + (uintptr_t)last,
					       PYTHON_INSTRUCTION_FIRST, PYTHON_INSTRUCTION_END);
	return sampling.frame_instruction != 0;
}

/* f_lasti; below zero: the function is about to start. */
static long last_instruction(struct object *frame)
{
	struct object *value = python.PyObject_GetAttrString(frame, "f_lasti");
	long last = value ? python.PyLong_AsLong(value) : -1;

	python.Py_DecRef(value);
	python.PyErr_Clear();
	return last;
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

static bool find_code(void)
{
	sampling.object_type = PYTHON_TYPE + (uint32_t)python.object_shift;
	sampling.code_type = (uintptr_t)python.code_type;
	sampling.code_file = (uint32_t)python.code_file;
	sampling.code_name = (uint32_t)python.code_name;
	sampling.code_qualified_name = (uint32_t)python.code_qualified_name;
	sampling.code_line = (uint32_t)python.code_line;
	sampling.code_flags = (uint32_t)python.code_flags;
	sampling.code_lines = (uint32_t)python_member(
	    python.code_type, python.lines == SAMPLING_LINES_LNOTAB ? "co_lnotab" : "co_linetable",
	    PYTHON_MEMBER_OBJECT);
	sampling.code_instructions = python_has(PYTHON_OWN_FRAMES) ? (uint32_t)python_basic_size(python.code_type) : 0;
	sampling.lines = python.lines;
	return sampling.code_file && sampling.code_name && sampling.code_line && sampling.code_lines;
}

static bool find_bytes(const struct object *code)
{
	struct object *bytes = python_field(code, sampling.code_lines);
	char *data;
	ssize_t size;

	if (python.PyBytes_AsStringAndSize(bytes, &data, &size))
		return false;
	sampling.size = PYTHON_SIZE + (uint32_t)python.object_shift;
	sampling.bytes_data = (uint32_t)(data - (char *)bytes);
	return (ssize_t)python_object_field(bytes, PYTHON_SIZE) == size && sampling.bytes_data < 128;
}

/* Strings of one, two and four bytes a character, and their characters. */
static const struct sample {
	const char *utf8;
	unsigned kind, ascii;
	const void *characters;
} samples[] = {
    {"evprof-sample-of", 1, 1, "evprof-sample-of"},
    {"\xc3\xa9vprof-sample-o", 1, 0, "\xe9vprof-sample-o"},
    {"\xc4\x81\xc4\x81\xc4\x81\xc4\x81\xc4\x81\xc4\x81\xc4\x81\xc4\x81", 2, 0,
     u"\x101\x101\x101\x101\x101\x101\x101\x101"},
    {"\xf0\x9f\x90\x8d\xf0\x9f\x90\x8d\xf0\x9f\x90\x8d\xf0\x9f\x90\x8d", 4, 0, U"\x1f40d\x1f40d\x1f40d\x1f40d"},
};
enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

/* Whether all samples have their kind, compact and ASCII at this bit of the state. */
static bool is_kind_at(const uint32_t states[SAMPLES], unsigned bit)
{
	for (int i = 0; i < SAMPLES; i++)
		if ((states[i] >> bit & 31) != (samples[i].kind | 1u << 3 | samples[i].ascii << 4))
			return false;
	return true;
}

static bool find_text(void)
{
	uint32_t states[SAMPLES], places[SAMPLES];

	sampling.text_state = PYTHON_TEXT_STATE + (uint32_t)python.object_shift;
	for (int i = 0; i < SAMPLES; i++) {
		struct object *text = python.PyUnicode_FromString(samples[i].utf8);

		if (!text)
			return false;
		memcpy(&states[i], (char *)text + sampling.text_state, sizeof(states[i]));
		places[i] = 0;
		for (uint32_t offset = sampling.text_state + 4; offset < 112 && !places[i]; offset += 4)
			if (find_value(text, samples[i].characters, 15, offset, offset + 1))
				places[i] = offset;
		python.Py_DecRef(text);
	}
	sampling.text_ascii_data = places[0];
	sampling.text_data = places[1];
	if (!places[0] || !places[1] || places[2] != places[1] || places[3] != places[1])
		return false;
	for (sampling.text_kind = 0; sampling.text_kind < 28; sampling.text_kind++)
		if (is_kind_at(states, sampling.text_kind))
			return true;
	return false;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static const char *find_all(struct object *frame_object, long last)
{
	const void *frame = python_inner_frame(frame_object);
	const struct object *code = python_frame_code(frame);

	if (!find_threads())
		return "threads";
	if (!find_frame(frame))
		return "frames";
	if (!code || !find_code() || !find_bytes(code))
		return "code objects";
	if (!find_instruction(frame, code, last))
		return "instructions";
	return find_text() ? NULL : "text";
}

bool sampled_layout_find(const char *else_what)
{
	struct object *frame = python.PyEval_GetFrame(), *type, *value, *traceback;
	const char *unknown;
	long last;

	if (!frame)
		return false;
	python.PyErr_Fetch(&type, &value, &traceback);
	last = last_instruction(frame);
	if (last >= 0 || !python_has(PYTHON_OWN_FRAMES)) {
		python_find_members();
		unknown = python_knows_frames() ? find_all(frame, last) : "frames";
		python.PyErr_Clear();
		if (unknown)
			log_line(LOG_ERROR, "Python %s lays out its %s in a way unknown to evprof; %s",
				 python_version(), unknown, else_what);
		sampled_layout_known = !unknown;
	}
	python.PyErr_Restore(type, value, traceback);
	return last >= 0 || !python_has(PYTHON_OWN_FRAMES);
}

bool sampled_layout_find_lines(void)
{
	return find_code();
}

/*
 * The thread that began the process, by exec or fork, lives as long as Python does. Elsewhere the oldest state is that
 * thread's: a new one is put before the others. In a child, those of its parent's threads are older, and go.
 */
void sampled_layout_of_interpreter(void)
{
	const struct thread_state *state = python.current_thread_state(), *next;

	sampling.interpreter = (uintptr_t)interpreter_of(state);
	if (syscall(SYS_gettid) != getpid())
		while ((next = python_field(state, PYTHON_STATE_NEXT)))
			state = next;
	sampling.state = (uintptr_t)state;
}

bool sampled_layout_thread_id(const void *thread, uint32_t *tid)
{
	return sampled_layout_known && python_peek((const char *)thread + sampling.thread_tid, tid, sizeof(*tid)) &&
	       *tid;
}

bool sampled_layout_ascii(const void *text, const char **bytes, size_t *length)
{
	const uint32_t compact_ascii = 1 | 1u << 3 | 1u << 4;

	if (!sampled_layout_known || !text ||
	    (*(const uint32_t *)((const char *)text + sampling.text_state) >> sampling.text_kind & 31) != compact_ascii)
		return false;
	*bytes = (const char *)text + sampling.text_ascii_data;
	*length = (uintptr_t)python_field(text, sampling.size);
	return true;
}
