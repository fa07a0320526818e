/*
 * versions.c - what differs between the versions of Python: the one table of it. A new version is a new row.
 *
 * The layouts are those of each release's headers (Include/cpython/code.h, frameobject.h, methodobject.h,
 * descrobject.h, Include/internal/pycore_frame.h), 64-bit, without Py_TRACE_REFS. python_verify() compares them with
 * what the interpreter's functions return before a hook relies on them. Free-threaded builds have the layouts of their
 * version, except for the longer head of objects.
 */
#include "evprof/sampling.h"
#include "python/python.h"

#define SINCE_8 (PYTHON_NAMES_TASKS | PYTHON_NATIVE_IDS)
#define SINCE_11 (SINCE_8 | PYTHON_OWN_FRAMES)
#define ONLY_12 (PYTHON_EVENT_BLOCKS | PYTHON_FRAME_BEHIND_CFRAME | PYTHON_SHARES_FROZEN_CODE)
/* Other free-threaded builds could not be tested: from 3.14 on code is copied for each thread. */
#define ONLY_13 (PYTHON_EVENT_BLOCKS | PYTHON_KNOWN_WITHOUT_GIL)

#define LNOTAB SAMPLING_LINES_LNOTAB
#define RANGES SAMPLING_LINES_RANGES
#define PLACES SAMPLING_LINES_PLACES

struct row {
	unsigned traits; /* enum python_trait */
	uint32_t lines;
	struct python_layout layout; /* 0: the version has no such field, or hooks do not read it */
};

#define FIRST_MINOR 6

/* clang-format off */
static const struct row rows[] = {
	/* what it does, how code stores its lines; YIELD_VALUE,
	 * code, frame: last, unit, inner frame: previous, locals, chain: code, back, globals, owner,
	 * thread state: profile, tracing, cframe, bytes, runtime: ceval */
	[6 - FIRST_MINOR] = {0, LNOTAB, {{0},
		  40,   120,  1,    0,  376,  32,  24,  48,   0,   48,   44,    0,  2272,   0}},
	[7 - FIRST_MINOR] = {PYTHON_CLEARS_PENDING_CALLS, LNOTAB, {{0},
		  40,   104,  1,    0,  360,  32,  24,  48,   0,   56,   48,    0,   280,   0}},
	[8 - FIRST_MINOR] = {SINCE_8, LNOTAB, {{0},
		  48,   104,  1,    0,  360,  32,  24,  48,   0,   56,   48,    0,   264, 584}},
	[9 - FIRST_MINOR] = {SINCE_8 | PYTHON_EVENT_BLOCKS, LNOTAB, {{0},
		  48,   104,  1,    0,  360,  32,  24,  48,   0,   56,   48,    0,   264,   0}},
	[10 - FIRST_MINOR] = {SINCE_8 | PYTHON_EVENT_BLOCKS | PYTHON_WALKS_LINES, RANGES, {{0},
		  48,    96,  2,    0,  352,  32,  24,  48,   0,   56,    0,   48,   280,   0}},
	[11 - FIRST_MINOR] = {SINCE_11 | PYTHON_EVENT_BLOCKS, PLACES, {{0},
		   0,     0,  0,   56,   72,  32,  48,   8,  69,   64,    0,   56,   360,   0}},
	[12 - FIRST_MINOR] = {SINCE_11 | ONLY_12, PLACES, {{150, 243},
		   0,     0,  0,    0,    0,   0,   8,  24,  70,   64,    0,    0,     0,   0}},
	[13 - FIRST_MINOR] = {SINCE_11 | ONLY_13, PLACES, {{118, 241},
		   0,     0,  0,    0,    0,   0,   8,  24,  70,   80,    0,    0,     0,   0}},
	[14 - FIRST_MINOR] = {SINCE_11, PLACES, {{120, 247},
		   0,     0,  0,    0,    0,   0,   8,  24,  74,   80,    0,    0,     0,   0}},
	[15 - FIRST_MINOR] = {SINCE_11 | PYTHON_UNWINDS_PAST, PLACES, {{119, 246},
		   0,     0,  0,    0,    0,   0,   8,  24,  74,  104,    0,    0,     0,   0}},
};
/* clang-format on */

#define ROWS (int)(sizeof(rows) / sizeof(rows[0]))

void python_choose_version(int minor)
{
	static const struct python_layout unknown;
	int number = minor - FIRST_MINOR;
	const struct row *row = &rows[number < ROWS ? number : ROWS - 1];

	python.traits = row->traits;
	python.lines = row->lines;
	python.monitoring = python_has(PYTHON_OWN_FRAMES) && !row->layout.inner_previous;
	python.inner_frames = row->layout.inner_previous != 0;
	python.layout = number < ROWS ? row->layout : unknown;
}
