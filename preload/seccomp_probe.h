/* seccomp_probe.h - whether a filter of system calls from before this image ends processes at what evprof needs. */
#ifndef PRELOAD_SECCOMP_PROBE_H
#define PRELOAD_SECCOMP_PROBE_H

#include <stdbool.h>

/*
 * Has a child of its own make each kind of call that this image would make, and looks whether it lives. The program
 * does not meet that child: no signal comes of it, and its wait() does not find it. Takes as long as a fork; once for
 * each image that begins under a filter. False: it was ended. True: it lived, or no child could be made.
 */
bool seccomp_probe(void);

#endif
