/*
 * elf_symbols.h - finds symbols of loaded libraries without dlsym(). A failing dlsym() leaves its message for the
 * program's next dlerror(), and a successful one removes a message that the program has not read yet. Any thread; needs
 * no memory, keeps errno.
 */
#ifndef PRELOAD_ELF_SYMBOLS_H
#define PRELOAD_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The first definition in load order, in whatever scope its library was loaded, or NULL. last: a symbol; libraries
 * after the first that defines it are not searched. NULL: all are.
 */
void *elf_symbol(const char *name, const char *last);

/* Whether libraries were loaded since the previous call with the same counter. loads: initially 0. */
bool elf_symbols_changed(uint64_t *loads);

#endif
