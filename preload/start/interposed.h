/* interposed.h - how functions of libc are interposed, for interpose.c and interpose_malloc.c. */
#ifndef PRELOAD_INTERPOSED_H
#define PRELOAD_INTERPOSED_H

#define PUBLIC __attribute__((visibility("default")))

/* A call in a return statement is a jump, in builds without optimization, too. */
#if __has_attribute(musttail)
#define JUMPS
#define JUMP_TO(call) __attribute__((musttail)) return call
#else
#define JUMPS __attribute__((optimize("O2"), no_sanitize("address")))
#define JUMP_TO(call) return call
#endif

/*
 * The section of the code with which a thread releases a lock of Python's: it may hold that of the pending calls, so
 * requests.c adds none there.
 */
#define RELEASES __attribute__((section("evprof_releases")))
extern const char __start_evprof_releases[] __attribute__((weak, visibility("hidden"))); /* a test links without it */
extern const char __stop_evprof_releases[] __attribute__((weak, visibility("hidden")));

/*
 * Whether the program's native allocations reach evprof. If they do not, a line says why, and the trace has it; after
 * evprof attach, there is no EVENT_MALLOC then. Called where they are to be recorded, before the process joins.
 */
void interpose_malloc_begin(void);

#endif
