/*
 * unwind.h - the return addresses on the C stack of the calling thread, from its own unwind tables.
 *
 * Called by native.c, in whatever the program is doing. Reads no memory but that of the thread's stack and of loaded
 * modules, opens no descriptor, and never waits for a lock that a fork may have left taken.
 */
#ifndef PRELOAD_UNWIND_H
#define PRELOAD_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the loader has brought: a program or a library. Its texts are the loader's, and good while it is loaded. */
struct unwind_module {
	uintptr_t start, end; /* of its addresses */
	uintptr_t bias;	      /* what the loader adds to the addresses in the file */
	const char *path;     /* "": the program itself */
	const uint8_t *build_id;
	size_t build_id_bytes; /* 0: it has none */
	const void *headers;   /* its program headers */
	unsigned header_count;
	uintptr_t tables; /* .eh_frame_hdr; 0: none */
};

/* Loads libunwind. Returns NULL, or what is missing. Once, GIL held. */
const char *unwind_begin(void);

/*
 * The return addresses from the caller's caller outwards, without those in evprof's library, up to the function that
 * runs Python's instructions, which is left out: at most so many. *cut: there are others, which were not found or had
 * no room. Returns how many.
 */
unsigned unwind_stack(uintptr_t *addresses, unsigned most, bool *cut);

/* What is at an address; false: no module. */
bool unwind_find_module(uintptr_t address, struct unwind_module *module);

/* A module was unloaded: what is known of addresses may not be true any more. */
void unwind_forget(void);

/* How many modules have been unloaded since the program began. */
unsigned long long unwind_unloaded(void);

#endif
