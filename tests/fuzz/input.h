/* input.h - what a fuzz target has still to read of its input. */
#ifndef TESTS_FUZZ_INPUT_H
#define TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct input {
	const uint8_t *at;
	size_t left;
};

/* So many bytes as a number, at most eight; fewer where no more are left. */
static inline uint64_t take(struct input *input, size_t bytes)
{
	uint64_t value = 0;

	if (bytes > input->left)
		bytes = input->left;
	memcpy(&value, input->at, bytes);
	input->at += bytes;
	input->left -= bytes;
	return value;
}

#endif
