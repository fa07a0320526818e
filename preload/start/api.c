/* api.c - the functions of evprof.h that control the recording. Its spans, counters and marks are in spans.c. */
#include <errno.h>
#include <string.h>

#include "evprof/evprof.h"
#include "hooks/switch.h"
#include "life/flush.h"
#include "life/life.h"
#include "ring/process.h"
#include "start/bootstrap.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC void evprof_stop(void)
{
	switch_stop();
}

PUBLIC void evprof_start(void)
{
	bootstrap_begin();
	switch_start();
}

PUBLIC int evprof_active(void)
{
	return process && atomic_load(&process->status) == PROCESS_JOINED;
}

PUBLIC int evprof_flush(void)
{
	return process && flush_trace();
}

PUBLIC int evprof_finish(void)
{
	int saved_errno = errno, complete = process_detach();

	errno = saved_errno;
	return complete;
}

PUBLIC size_t evprof_trace_path(char *path, size_t bytes)
{
	uint32_t status = process ? atomic_load(&process->status) : PROCESS_UNJOINED, state;
	char text[RING_TEXT_BYTES];
	size_t length;

	if (status != PROCESS_JOINED && status != PROCESS_STOPPED)
		return 0;
	/* Acquire: pairs with the collector's release of state and text. */
	state = atomic_load_explicit(&process->header->collector_state, memory_order_acquire);
	if (state != RING_COLLECTOR_ATTACHED && state != RING_COLLECTOR_DRAINED && state != RING_COLLECTOR_FINISHED)
		return 0;
	memcpy(text, process->header->text, sizeof(text)); /* the collector's: it may lack its NUL */
	length = strnlen(text, sizeof(text) - 1);
	if (bytes) {
		size_t copied = length < bytes ? length : bytes - 1;

		memcpy(path, text, copied);
		path[copied] = 0;
	}
	return length;
}
