/*
 * elf_file.h - the value of a symbol in an ELF file: where a Python defines a function or a variable.
 *
 * The file is another user's choice, so nothing in it is trusted. Little-endian ELF64 only, as evprof itself is.
 * Format: System V ABI, chapter 4 and 5. elfutils is left to evprof-symbols, which reads debug information, too.
 */
#ifndef EVPROF_TOOLS_ATTACH_ELF_FILE_H
#define EVPROF_TOOLS_ATTACH_ELF_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct elf_symbol {
	const char *name;
	uint64_t value, size; /* as in the file: the address before relocation, and bytes; 0: not found */
};

/*
 * Fills the symbols that the file defines: first from the dynamic symbols, then from all. Returns the number found, or
 * -errno; -ENOEXEC: not such a file.
 */
int elf_file_find(int fd, struct elf_symbol *symbols, unsigned count);

/*
 * Calls found() with each function and variable that the file defines, dynamic symbols first; it returns false to end.
 * The name is valid during the call. Returns 0 or -errno, as above.
 */
int elf_file_each(int fd, bool (*found)(void *context, const struct elf_symbol *symbol), void *context);

/*
 * base: the address in the file of the first loaded byte, which begins at the start of the file's first mapping. end:
 * that behind the last one, with the zeroed bytes behind the data, which are not in the file. Returns 0 or -errno.
 */
int elf_file_image(int fd, uint64_t *base, uint64_t *end);

#endif
