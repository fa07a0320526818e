/*
 * browse.h - evprof top on the screen: shows the pages, and follows the keys.
 */
#ifndef EVPROF_TOOLS_TOP_BROWSE_H
#define EVPROF_TOOLS_TOP_BROWSE_H

#include <stdint.h>

#include "watch/host.h"
#include "top/view.h"

/* What the keys do, for the help. */
extern const char browse_help[];

/*
 * Shows the host until the user leaves, or for so many refreshes (0: without end). The screen is open (screen.h), and
 * the first stretch has begun. Returns 0 or -ENOMEM.
 */
int browse(struct watch_host *host, struct top_view *view, int interval_ms, int64_t count);

#endif
