/* spawn.h - starts a private collector or a sampler that is no child of the program. */
#ifndef PRELOAD_SPAWN_H
#define PRELOAD_SPAWN_H

#include <sys/types.h>

struct sampling;

/* The absolute path of libevprof.so, links resolved; "" if unknown. Set by the constructor. */
extern char library_path[4096];

/*
 * Starts `evprof-collector --private` with listen_fd as its descriptor CONTROL_LISTEN_FD. The collector is no child of
 * this process, has its own session, and has no other descriptor of this process. scratch: at least SPAWN_SCRATCH_BYTES
 * of private memory, used until the return. resumes: not 0 if the session had a collector before, whose trace was named
 * after that pid and must be kept. Returns 0 or -errno (-ENOENT: no collector next to the library).
 */
int spawn_collector(int listen_fd, pid_t resumes, void *scratch);

/*
 * Starts `evprof-collector --sample` for this process, with its ring and its memory (evprof/sampling.h), in the same
 * way. Takes over neither descriptor.
 */
int spawn_sampler(int memfd, int memory, const struct sampling *sampling, void *scratch);

#define SPAWN_SCRATCH_BYTES (256 * 1024)

#endif
