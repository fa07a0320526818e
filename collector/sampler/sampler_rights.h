/* sampler_rights.h - reduces the rights of a sampler to those of the sampled process, without most of root's. */
#ifndef COLLECTOR_SAMPLER_RIGHTS_H
#define COLLECTOR_SAMPLER_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sampler_rights {
	int status_fd; /* /proc/PID/status of the process */
	uint64_t next_ns;
};

/* Gives up rights that sampling does not need. 0 or -errno. */
int sampler_rights_begin(struct sampler_rights *rights, pid_t pid);

/* Called at each interval: takes the user and the groups of the process when these change. False: not permitted. */
bool sampler_rights_follow(struct sampler_rights *rights, uint64_t now_ns);

#endif
