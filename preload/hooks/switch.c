/* switch.c - see switch.h. */
#include "hooks/switch.h"

#include "hooks/hooks.h"
#include "life/life.h"
#include "ring/clock.h"
#include "ring/process.h"

void switch_stop(void)
{
	struct writer *writer;

	if (!process || atomic_load(&process->status) == PROCESS_UNJOINED || !life_recording())
		return;
	writer = writer_reserve(WIRE_PAUSE);
	if (writer) {
		writer_put_number(writer, WIRE_PAUSE, 1); /* readers forget the thread's stack there */
		writer->knows_stack = 0;
		thread_self.stopped = true;
	}
	process_lock(); /* a rejoin changes the status, too */
	if (atomic_load(&process->status) == PROCESS_JOINED) {
		atomic_store(&process->stopped_ticks, clock_now());
		process_set_status(PROCESS_STOPPED);
	}
	process_unlock();
}

static int set_hooks(void *data)
{
	(void)data;
	if (!process_is_stopped())
		install_again();
	return 0;
}

void switch_start(void)
{
	bool started;

	if (!process_is_stopped())
		return;
	process_lock();
	started = atomic_load(&process->status) == PROCESS_STOPPED;
	if (started) {
		atomic_store(&process->started_ticks, clock_now());
		process_expect_pauses();
		process_set_status(PROCESS_JOINED);
	}
	process_unlock();
	if (!started)
		return;
	writer_reserve(WIRE_PAUSE); /* writes the pause of this thread */
	if (python_is_held())
		set_hooks(NULL);
	else if (python_takes_pending_calls()) /* Python's main thread does it, at its next instruction */
		python.Py_AddPendingCall(set_hooks, NULL);
}
