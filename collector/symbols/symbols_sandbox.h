/*
 * symbols_sandbox.h - the rights that evprof-symbols gives up before it reads any untrusted file, and how it opens
 * files that a recorded program names.
 */
#ifndef COLLECTOR_SYMBOLS_SANDBOX_H
#define COLLECTOR_SYMBOLS_SANDBOX_H

#include <sys/stat.h>
#include <sys/types.h>

/*
 * Afterwards this process has the rights of that user only: no capability, no way to gain privileges, no descriptor but
 * the first, and only the system calls for reading files. 0 or -errno; after a failure the process must end.
 */
int sandbox_enter(uid_t uid, gid_t gid);

/* Begins a request: a signal ends the process if the request exceeds its processor time. */
void sandbox_begin_request(void);

/* Opens a regular file below root for reading; -1: no such file, or no permission. path: as the program sees it. */
int symbols_open(int root, const char *path, struct stat *status);

#endif
