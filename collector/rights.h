/*
 * rights.h - gives up what a process of ours does not need of its rights. Used by evprof-symbols and the sampler.
 */
#ifndef COLLECTOR_RIGHTS_H
#define COLLECTOR_RIGHTS_H

#include <stdint.h>

/* Capabilities up to 31, one bit each, for rights_drop(). */
#define RIGHT_TO(capability) (UINT32_C(1) << (capability))

/*
 * Keeps of the capabilities those of the mask that there are, hands none on, gains nothing by an exec, and cannot be
 * traced or dumped. 0 or -errno.
 */
int rights_drop(uint32_t kept);

#endif
