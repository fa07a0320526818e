/* start_time.h - when a process started: with its pid, the identity of a process. */
#ifndef PRELOAD_START_TIME_H
#define PRELOAD_START_TIME_H

#include <stdint.h>
#include <sys/types.h>

/* Field 22 of /proc/PID/stat; pid 0: of this process; 0: it cannot be read. state: gets the state letter, or NULL. */
uint64_t start_time_of(pid_t pid, char *state);

#endif
