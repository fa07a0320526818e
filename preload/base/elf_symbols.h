/*
 * elf_symbols.h - finds symbols of loaded libraries without dlsym(). A failing dlsym() leaves its message for the
 * program's next dlerror(), and a successful one removes a message that the program has not read yet. Any thread; needs
 * no memory, keeps errno.
 */
#ifndef PRELOAD_ELF_SYMBOLS_H
#define PRELOAD_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The first definition in load order, in whatever scope its library was loaded, or NULL. last: a symbol; libraries
 * after the first that defines it are not searched. NULL: all are.
 */
void *elf_symbol(const char *name, const char *last);

/* The first definition in load order, or NULL. *bytes: its size. */
void *elf_symbol_sized(const char *name, size_t *bytes);

/*
 * The definition that the object with this address calls without its own: that of the next object in load order, or if
 * there is none (the object was loaded late) the first in another object. NULL: none.
 */
void *elf_symbol_after(const void *own, const char *name);

/* The definition in the object with this address, or NULL. */
void *elf_symbol_within(const void *own, const char *name);

/* Whether libraries were loaded since the previous call with the same counter. loads: initially 0. */
bool elf_symbols_changed(uint64_t *loads);

#endif
