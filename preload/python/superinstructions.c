/* superinstructions.c - see superinstructions.h. */
#include "python/superinstructions.h"

#include <stdint.h>

#include "python/python.h"

#define FRAMES_MOST 256

/* opcode.h, the same in all releases of 3.12. */
enum {
	LOAD_CONST__LOAD_FAST = 84,
	LOAD_FAST__LOAD_CONST = 86,
	LOAD_FAST__LOAD_FAST = 88,
	LOAD_CONST = 100,
	LOAD_FAST = 124,
	STORE_FAST = 125,
	RESUME = 151,
	STORE_FAST__LOAD_FAST = 154,
	STORE_FAST__STORE_FAST = 158,
	INSTRUMENTED_RESUME = 240,
	INSTRUMENTED_INSTRUCTION = 253, /* hides which one */
	INSTRUMENTED_LINE = 254,	/* likewise */
};

/* Units of two bytes after an instruction, of its inline cache (pycore_opcode.h, _PyOpcode_Caches). */
/* clang-format off */
static const uint8_t caches[256] = {
	[6 ... 8] = 1, [10] = 1, [13 ... 14] = 1, [16] = 1, [18] = 1, [122] = 1, /* BINARY_OP, and specialized */
	[19 ... 22] = 1, [25] = 1,						 /* BINARY_SUBSCR */
	[57 ... 59] = 1, [107] = 1,						 /* COMPARE_OP */
	[62 ... 65] = 1, [93] = 1, [248] = 1,					 /* FOR_ITER */
	[66 ... 67] = 1, [141] = 1, [237] = 1,					 /* LOAD_SUPER_ATTR */
	[159 ... 160] = 1, [60] = 1,						 /* STORE_SUBSCR */
	[161] = 1, [166 ... 167] = 1, [92] = 1,					 /* UNPACK_SEQUENCE */
	[168] = 1, [123] = 1,							 /* SEND */
	[23 ... 24] = 3, [28 ... 29] = 3, [34] = 3, [38 ... 48] = 3, [56] = 3, [171] = 3, [241] = 3, /* CALL */
	[111 ... 112] = 4, [116] = 4,						 /* LOAD_GLOBAL */
	[113] = 4, [148] = 4, [153] = 4, [95] = 4,				 /* STORE_ATTR */
	[70] = 9, [72 ... 73] = 9, [76 ... 82] = 9, [106] = 9,			 /* LOAD_ATTR */
};
/* clang-format on */

bool superinstructions_are_split(void)
{
	return python_has(PYTHON_SPLITS_SUPERINSTRUCTIONS) && python.code_instructions;
}

/* The instruction itself, whether it is joined to the next one or not. */
static uint8_t first_of(uint8_t opcode)
{
	switch (opcode) {
	case LOAD_CONST__LOAD_FAST:
		return LOAD_CONST;
	case LOAD_FAST__LOAD_CONST:
	case LOAD_FAST__LOAD_FAST:
		return LOAD_FAST;
	case STORE_FAST__LOAD_FAST:
	case STORE_FAST__STORE_FAST:
		return STORE_FAST;
	default:
		return opcode;
	}
}

/* 0: these two are none. */
static uint8_t joined(uint8_t first, uint8_t second)
{
	switch (first << 8 | second) {
	case LOAD_CONST << 8 | LOAD_FAST:
		return LOAD_CONST__LOAD_FAST;
	case LOAD_FAST << 8 | LOAD_CONST:
		return LOAD_FAST__LOAD_CONST;
	case LOAD_FAST << 8 | LOAD_FAST:
		return LOAD_FAST__LOAD_FAST;
	case STORE_FAST << 8 | LOAD_FAST:
		return STORE_FAST__LOAD_FAST;
	case STORE_FAST << 8 | STORE_FAST:
		return STORE_FAST__STORE_FAST;
	default:
		return 0;
	}
}

void superinstructions_join(struct object *code)
{
	uint8_t *instructions = (uint8_t *)code + python.code_instructions, opcode, before = 0, both;
	uint64_t bytes = python_code_size(code);
	int64_t first = python_first_resume(code);

	if (first < 0 || (instructions[first] != RESUME && instructions[first] != INSTRUMENTED_RESUME))
		return;
	for (uint64_t i = 0; i < bytes; i += 2 + 2 * (uint64_t)caches[opcode]) {
		opcode = first_of(instructions[i]);
		if (opcode == INSTRUMENTED_LINE || opcode == INSTRUMENTED_INSTRUCTION)
			return;
		both = joined(before, opcode);
		if (both)
			instructions[i - 2] = both;
		before = opcode;
	}
}

void superinstructions_join_running(void)
{
	/* Whether frames are known was asked before, at a moment that is good for it; or there is no frame yet. */
	const void *frame = python.state_frame && python_knows_frames() ? python_running_frame() : NULL, *code,
		   *last = NULL;

	for (int i = 0; frame && i < FRAMES_MOST; i++, frame = python_frame_back(frame)) {
		code = python_frame_code(frame);
		if (code && code != last)
			superinstructions_join((struct object *)code);
		last = code;
	}
}
