/*
 * calibrate_model.h - what the costs of single calls explain of a program that has calls of all kinds. Used by
 * calibrate.c.
 *
 * Computes the same sum as tools/trace/calibration.c does over a trace. What the sum leaves unexplained is published in
 * addition to the costs.
 */
#ifndef PRELOAD_CALIBRATE_MODEL_H
#define PRELOAD_CALIBRATE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* Kinds of calls, as wire.h names them. */
enum model_kind {
	MODEL_CALL,
	MODEL_ENTRY,
	MODEL_CALLBACK,
	MODEL_INIT,
	MODEL_RESUME,
	MODEL_PULL,
	MODEL_GENERATOR,
	MODEL_C_CALL,
	MODEL_METHOD,
	MODEL_KINDS
};

#define MODEL_CODES 96
#define MODEL_FUNCTIONS 16

struct model_code {
	uint32_t id;
	enum model_kind kind; /* if no C function calls it */
};

/* All in ns, except slow and work, which are ratios. wire.h: A, B and C of each kind, and the rest. */
struct model {
	double cost[MODEL_KINDS][3];
	double other, unwind, far, slow, work, work_after;
	double walk;			      /* for each byte */
	struct model_code codes[MODEL_CODES]; /* those of the program */
	unsigned code_count;
	uint32_t functions[MODEL_FUNCTIONS]; /* ids of the C functions that are no methods */
	unsigned function_count;
};

/* Events as they are in a ring. */
struct model_events {
	const uint64_t *words;
	uint64_t count;
	uint64_t begin_ticks; /* when the run began */
	double tick_ns;
};

/* The ns of the events' time that are not the program's, if each event costs `times` times what the model says. */
double model_explained(const struct model *model, const struct model_events *events, double times);

/* The factor with which the costs explain this many ns; 0: none does. */
double model_times(const struct model *model, const struct model_events *events, double ns);

#endif
