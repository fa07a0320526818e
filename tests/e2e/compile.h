/*
 * compile.h - libraries of C that the programs of the tests load.
 */
#ifndef EVPROF_E2E_COMPILE_H
#define EVPROF_E2E_COMPILE_H

/* As most are compiled; what allocates is called as it is written. */
#define COMPILE_PLAIN ""
#define COMPILE_ALLOCATING "-O1 -fno-builtin"

/*
 * The path of library NAME, of programs/SOURCE compiled with these flags of cc. All scenarios have the same file, which
 * is compiled once: they may not change it. Fails the running test where it does not compile.
 */
const char *compile(const char *source, const char *name, const char *flags);

#endif
