/*
 * sampler_rights.h - a sampler has the rights of the process that it samples, and fewer of root's.
 */
#ifndef COLLECTOR_SAMPLER_RIGHTS_H
#define COLLECTOR_SAMPLER_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sampler_rights {
	int status_fd; /* /proc/PID/status of the process */
	uint64_t next_ns;
};

/* Gives up what sampling does not take. 0 or -errno. */
int sampler_rights_begin(struct sampler_rights *rights, pid_t pid);

/* Each turn: takes the user and the groups of the process when it has others. False: they cannot be taken. */
bool sampler_rights_follow(struct sampler_rights *rights, uint64_t now_ns);

#endif
