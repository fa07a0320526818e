/* seccomp_probe.h - whether a seccomp filter older than this image ends processes at the calls that evprof needs. */
#ifndef PRELOAD_SECCOMP_PROBE_H
#define PRELOAD_SECCOMP_PROBE_H

#include <stdbool.h>

/*
 * A child makes each kind of call that this image would make; returns whether the child survives. The program does not
 * see the child: there is no signal, and wait() does not find it. Takes as long as a fork; once for each image that
 * starts under a filter. False: the child was ended. True: it survived, or could not be created.
 */
bool seccomp_probe(void);

#endif
