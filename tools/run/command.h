/*
 * command.h - the command that evprof run starts: the words of the user, with Python in front where they name none.
 */
#ifndef EVPROF_TOOLS_RUN_COMMAND_H
#define EVPROF_TOOLS_RUN_COMMAND_H

#include <stdbool.h>

struct run_command {
	const char *python; /* set by the caller: the interpreter; NULL: "python3" */
	const char *option; /* set by the caller: "-m" or "-c"; NULL: none */
	const char *value;  /* set by the caller: of the option */
	char **words;	    /* ends with NULL; the strings are borrowed */
	bool any_python;    /* words begin with "python3", which nobody asked for by name */
};

/*
 * Makes the command of `arguments`, which end with NULL. Python is in front if there is an option, or if the first
 * argument is a script. Returns 0; -EINVAL if there are neither arguments nor an option; -ENOMEM.
 */
int run_command_make(struct run_command *command, char *const *arguments);
/*
 * Why the command could not be run, in one line, from the -errno of run_program(). The caller frees it; NULL: no
 * memory.
 */
char *run_command_problem(const struct run_command *command, int error);
void run_command_done(struct run_command *command);

#endif
