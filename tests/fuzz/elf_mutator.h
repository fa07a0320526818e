/*
 * elf_mutator.h - the inputs of fuzz_symbols, and changes of them that leave everything in its place in the ELF files,
 * so that a fuzzer gets behind their headers; and now and then those that do not.
 *
 * An input: uint16_t bytes of steps, uint16_t bytes of the library, both little-endian, the steps, the library, and up
 * to the end the debug file.
 */
#ifndef TESTS_FUZZ_ELF_MUTATOR_H
#define TESTS_FUZZ_ELF_MUTATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/fuzz/input.h"

struct elf_input {
	struct input steps, library, debug;
};

/* False: it is too short for its lengths. */
bool elf_input_split(struct elf_input *parts, const uint8_t *data, size_t size);

/* As LLVMFuzzerCustomMutator. */
size_t elf_mutate(uint8_t *data, size_t size, size_t room, unsigned seed);

#endif
