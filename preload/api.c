/* api.c - evprof.h: what a program may ask of evprof. */
#include "evprof/evprof.h"

#include <errno.h>

#include "definitions.h"
#include "process.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC void evprof_mark(const char *name)
{
	struct writer *writer = name ? writer_reserve(WIRE_MARK) : NULL;
	int saved_errno = errno;
	uint32_t id;

	if (!writer)
		return;
	id = definitions_mark(name);
	if (id)
		writer_put(writer, wire_head(WIRE_MARK, id));
	else
		writer_lose(writer, WIRE_MARK);
	errno = saved_errno;
}

PUBLIC void evprof_stop(void)
{
	struct writer *writer;
	uint32_t joined = PROCESS_JOINED;

	if (!process || atomic_load(&process->status) != PROCESS_JOINED)
		return;
	writer = writer_reserve(WIRE_PAUSE);
	if (writer)
		writer_put(writer, wire_head(WIRE_PAUSE, 1));
	/* Status first, then the limits: a thread that sets its limit in between looks at the status afterwards. */
	if (!atomic_compare_exchange_strong(&process->status, &joined, PROCESS_STOPPED))
		return;
	for (uint32_t i = 0; i < atomic_load(&process->header->slots_used); i++) {
		__atomic_store_n(&process->writers[i].limit, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&process->writers[i].room, 0, __ATOMIC_RELAXED);
	}
}

PUBLIC void evprof_start(void)
{
	uint32_t stopped = PROCESS_STOPPED;
	struct writer *writer;

	if (!process || !atomic_compare_exchange_strong(&process->status, &stopped, PROCESS_JOINED))
		return;
	writer = writer_reserve(WIRE_PAUSE);
	if (writer)
		writer_put(writer, wire_head(WIRE_PAUSE, 0));
}

PUBLIC int evprof_active(void)
{
	return process && atomic_load(&process->status) == PROCESS_JOINED;
}
