/*
 * completion.h - what evprof completion knows of the verbs, and the shells that it writes for.
 */
#ifndef EVPROF_TOOLS_CMD_COMPLETION_H
#define EVPROF_TOOLS_CMD_COMPLETION_H

#include <stddef.h>

#include "cmd/verbs.h"

#define COMPLETION_VALUES_BYTES 256
#define COMPLETION_VERBS_MAX 32
#define COMPLETION_LINES_MAX 200 /* of a verb's help */

struct completion_option {
	const char *name;
	char letter;  /* 0: none */
	int argument; /* as in struct verb_option */
	char description[128];
	char values[COMPLETION_VALUES_BYTES]; /* separated by blanks; "": any text, or a file */
};

/* All zeros: the end of a list. */
struct completion_verb {
	const struct verb *verb;
	struct completion_option options[VERB_OPTIONS_MAX];
	size_t count;
};

struct completion_shell {
	const char *name;
	void (*print)(const struct completion_verb *verbs);
};

/* Ended by one without a name. */
extern const struct completion_shell completion_shells[];

#endif
