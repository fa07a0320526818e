/*
 * shipped.h - which traces of a folder have been shipped: a line each in its file .evprof-shipped, with size and time
 * of the last change, so that another trace with the same name is not taken for it.
 */
#ifndef EVPROF_TOOLS_SHIP_SHIPPED_H
#define EVPROF_TOOLS_SHIP_SHIPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHIPPED_FILE ".evprof-shipped"

struct shipped_one {
	char *name;
	uint64_t size_bytes;
	int64_t changed_ns;
	bool there;	 /* in the folder, in the last look */
	bool done;	 /* shipped */
	int failures;	 /* so far */
	int64_t next_ns; /* not tried before */
};

struct shipped {
	struct shipped_one *at;
	size_t count, allocated;
};

/* Reads the file of the folder; a line that makes no sense is dropped. Returns 0 or -errno. */
int shipped_load(struct shipped *shipped, int folder);
/* Writes it anew, with what is still there. Returns 0 or -errno. */
int shipped_save(const struct shipped *shipped, int folder);
void shipped_done(struct shipped *shipped);

/* The entry of that trace, a new one if it is not known. NULL: memory ran out. */
struct shipped_one *shipped_find(struct shipped *shipped, const char *name, uint64_t size_bytes, int64_t changed_ns);

#endif
