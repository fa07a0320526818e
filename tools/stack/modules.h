/*
 * modules.h - the files of code of another process, and the functions in them. The files are the process's choice, and
 * not trusted (attach/elf_file.h).
 */
#ifndef EVPROF_TOOLS_STACK_MODULES_H
#define EVPROF_TOOLS_STACK_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MODULES_NAME_BYTES 160 /* of a function; a longer name is cut */

struct module;

/* All zeros: none. */
struct modules {
	struct module *at;
	size_t count, room;
	size_t functions; /* of all modules */
};

/* Reads what is mapped. 0 or -errno. The caller calls modules_done() in both cases. */
int modules_read(struct modules *modules, pid_t pid);

void modules_done(struct modules *modules);

/*
 * The function at an address, and the file of the code, which is cut to its room. "": not known. Files are read at
 * their first address.
 */
void modules_name(struct modules *modules, uint64_t address, char function[MODULES_NAME_BYTES], char *file,
		  size_t file_bytes);

#endif
