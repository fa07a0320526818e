/*
 * superinstructions.h - pairs of instructions of 3.12 that run as one, such as LOAD_FAST__LOAD_FAST.
 *
 * Code has them from its beginning (_PyCode_Quicken()). When Python instruments code for sys.monitoring, it splits all
 * of them, though LINE and INSTRUCTION alone need that, and joins none again (_Py_Instrument()): nbody takes 5 % more
 * instructions. From 3.13 on the compiler emits them, and until 3.11 nothing is instrumented. Before it instruments
 * code once more, for whatever tool, Python splits them again. GIL held.
 */
#ifndef PRELOAD_PYTHON_SUPERINSTRUCTIONS_H
#define PRELOAD_PYTHON_SUPERINSTRUCTIONS_H

#include <stdbool.h>

struct object;

/* Whether this Python splits them. After python_verify(). */
bool superinstructions_are_split(void);

/* Joins those of a code object. None after an instruction that is instrumented for LINE or INSTRUCTION. */
void superinstructions_join(struct object *code);

/* Likewise, of the code that the current thread runs. */
void superinstructions_join_running(void);

#endif
