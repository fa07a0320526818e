/* rights.h - gives up rights that a process of evprof does not need. Used by evprof-symbols and the sampler. */
#ifndef COLLECTOR_RIGHTS_H
#define COLLECTOR_RIGHTS_H

#include <stdint.h>

/* Capabilities up to 31, one bit each, for rights_drop(). */
#define RIGHT_TO(capability) (UINT32_C(1) << (capability))

/*
 * Keeps the capabilities of the mask that the process has. Passes none on, gains none by exec, and forbids tracing and
 * dumping of the process. 0 or -errno.
 */
int rights_drop(uint32_t kept);

#endif
