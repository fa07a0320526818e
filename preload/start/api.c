/* api.c - implements evprof.h, the functions that a program may call. */
#include "base/config.h"
#include "definitions/names.h"
#include "evprof/evprof.h"
#include "life/life.h"
#include "ring/process.h"

#include <errno.h>

#define PUBLIC __attribute__((visibility("default")))

PUBLIC void evprof_mark(const char *name)
{
	/* A sampled process records no marks: its sampler writes the definitions. */
	struct writer *writer = name && !(config.events & EVENT_SAMPLE) ? writer_reserve(WIRE_MARK) : NULL;
	int saved_errno = errno;
	uint32_t id;

	if (!writer)
		return;
	id = definitions_mark(name);
	if (id)
		writer_put_number(writer, WIRE_MARK, id);
	else
		writer_lose(writer, WIRE_MARK);
	errno = saved_errno;
}

PUBLIC void evprof_stop(void)
{
	struct writer *writer;

	if (!process || atomic_load(&process->status) == PROCESS_UNJOINED || !process_recording())
		return;
	writer = writer_reserve(WIRE_PAUSE);
	if (writer)
		writer_put_number(writer, WIRE_PAUSE, 1);
	process_lock(); /* a rejoin changes the status, too */
	if (atomic_load(&process->status) == PROCESS_JOINED)
		process_set_status(PROCESS_STOPPED);
	process_unlock();
}

PUBLIC void evprof_start(void)
{
	uint32_t stopped = PROCESS_STOPPED;
	struct writer *writer;

	if (!process || !atomic_compare_exchange_strong(&process->status, &stopped, PROCESS_JOINED))
		return;
	writer = writer_reserve(WIRE_PAUSE);
	if (writer)
		writer_put_number(writer, WIRE_PAUSE, 0);
}

PUBLIC int evprof_active(void)
{
	return process && atomic_load(&process->status) == PROCESS_JOINED;
}
