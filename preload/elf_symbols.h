/*
 * elf_symbols.h - the symbols of what is loaded, without dlsym(): a dlsym() that fails leaves its message for the
 * program's next dlerror(), and one that succeeds takes away a message that the program has not asked for yet. Any
 * thread; needs no memory, keeps errno.
 */
#ifndef PRELOAD_ELF_SYMBOLS_H
#define PRELOAD_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The first definition in the order of loading, whatever scope it was loaded into, or NULL. last: a symbol; libraries
 * after the first that defines it are not searched. NULL: all are.
 */
void *elf_symbol(const char *name, const char *last);

/* Whether libraries were loaded since the same call before. loads: 0 at first. */
bool elf_symbols_changed(uint64_t *loads);

#endif
