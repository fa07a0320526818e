/*
 * trace_mutator.h - changes of a trace that leave its checksums, sizes and compression right, so that a fuzzer gets
 * behind them; and now and then those that do not.
 */
#ifndef TESTS_FUZZ_TRACE_MUTATOR_H
#define TESTS_FUZZ_TRACE_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

/* As LLVMFuzzerCustomMutator and LLVMFuzzerCustomCrossOver; the first `prefix` bytes are not of the trace. */
size_t trace_mutate(uint8_t *bytes, size_t count, size_t room, size_t prefix, unsigned seed);
size_t trace_cross(const uint8_t *one, size_t one_count, const uint8_t *other, size_t other_count, uint8_t *out,
		   size_t room, size_t prefix, unsigned seed);

#endif
