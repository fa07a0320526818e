/* spawn.h - starting a private collector that is no child of the program. */
#ifndef PRELOAD_SPAWN_H
#define PRELOAD_SPAWN_H

/* The directory of libevprof.so, absolute, links resolved; "" where not known. Set by the constructor. */
extern char library_path[4096];

/*
 * Starts `evprof-collector --private` with listen_fd as its descriptor CONTROL_LISTEN_FD. The collector is no child of
 * this process, is in a session of its own, and has none of its descriptors. scratch: at least SPAWN_SCRATCH_BYTES of
 * private memory, used until the return. Returns 0 or -errno (-ENOENT: no collector beside the library).
 */
int spawn_collector(int listen_fd, void *scratch);

#define SPAWN_SCRATCH_BYTES (256 * 1024)

#endif
