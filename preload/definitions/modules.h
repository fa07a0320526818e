/*
 * modules.h - the loaded program and libraries. Reads what the loader has in memory, and opens no file.
 */
#ifndef PRELOAD_MODULES_H
#define PRELOAD_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A loaded program or library. The strings are the loader's, valid while the module is loaded. */
struct module {
	uintptr_t start, end; /* of its addresses */
	uintptr_t bias;	      /* load address minus address in the file */
	const char *path;     /* "": the program itself */
	const uint8_t *build_id;
	size_t build_id_bytes; /* 0: it has none */
	const void *headers;   /* its program headers */
	unsigned header_count;
	uintptr_t tables; /* .eh_frame_hdr; 0: none */
};

/* Before the first search. */
void modules_begin(void);

/* Finds the module at an address. False: none. */
bool module_find(uintptr_t address, struct module *module);

/* Whether the bytes are in a readable segment of the module. */
bool module_has(const struct module *module, uintptr_t at, size_t bytes);

/* Modules unloaded since the program started. */
unsigned long long modules_unloaded(void);

#endif
