/*
 * symbols_sandbox.h - what evprof-symbols gives up before it reads anything of others.
 */
#ifndef COLLECTOR_SYMBOLS_SANDBOX_H
#define COLLECTOR_SYMBOLS_SANDBOX_H

#include <sys/types.h>

/*
 * From here on this process has the rights of that user and no other: no capability, no privilege to gain, no
 * descriptor but the first, and no system call but those that reading files takes. 0 or -errno; after a failure it must
 * end.
 */
int sandbox_enter(uid_t uid, gid_t gid);

/* Begins a request: the process ends by a signal when it takes more than its processor time. */
void sandbox_begin_request(void);

#endif
