/* sample.h - samples the stacks of a Python from outside, for evprof attach --sample: nothing is loaded into it. */
#ifndef EVPROF_TOOLS_CMD_SAMPLE_H
#define EVPROF_TOOLS_CMD_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sample_request {
	pid_t pid;
	uint32_t rate;	     /* samples a second */
	const char *socket;  /* of the host's collector; NULL: a private one is started */
	const char *output;  /* the trace's path, absolute */
	const char *program; /* path of evprof-collector */
	int64_t for_ms;	     /* 0: until the user interrupts, or the process ends */
	bool quiet;
};

/* Returns the exit status of evprof. */
int sample_process(const struct sample_request *request);

#endif
