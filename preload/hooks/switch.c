/* switch.c - see switch.h. */
#include "hooks/switch.h"

#include "base/config.h"
#include "hooks/budget.h"
#include "hooks/hooks.h"
#include "life/life.h"
#include "life/memory_stack.h"
#include "ring/clock.h"
#include "ring/process.h"

void switch_stop(void)
{
	struct writer *writer;

	if (!process || atomic_load(&process->status) == PROCESS_UNJOINED || !life_recording())
		return;
	budget_pause();
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

void switch_join_stopped(void)
{
	if (!process_is_stopped_child())
		return;
	thread_self.entered++; /* hooks are not set in between */
	if (life_join_child())
		switch_stop();
	thread_self.entered--;
}

static int set_hooks(void *data)
{
	(void)data;
	if (!process_is_stopped()) {
		install_again();
		budget_resume();
	}
	return 0;
}

void switch_start(void)
{
	bool started;

	if (!process_is_stopped())
		return;
	switch_join_stopped();
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

/* Samples are read from outside; native allocations and the program's own part are followed from its start on. */
static bool may_change_to(unsigned events)
{
	return !((events | config.events) & (EVENT_SAMPLE | EVENT_MALLOC)) && !config.program_only &&
	       !hooks_memory_is_covered();
}

/* As in a library that is loaded now, but that the collector stays. */
static void set_hooks_for(unsigned events)
{
	static bool native;

	native |= config.native_stacks;
	install_remove();
	config.events = events;
	config.native_stacks = native;
	config.start = true;
	life_begin_again(); /* definitions may need lines now */
	switch_start();
	install_in_others(false);
	memory_stack_begin();
}

bool switch_events(const char *list)
{
	bool stopped = process_is_stopped();
	uint64_t stopped_ticks;
	unsigned events;

	if (setting_events(list, &events) || !events || !may_change_to(events))
		return false;
	switch_stop();
	stopped_ticks = atomic_load(&process->stopped_ticks);
	set_hooks_for(events);
	atomic_store(&process->header->events_ticks, atomic_load(&process->started_ticks));
	atomic_store_explicit(&process->header->events, events, memory_order_release); /* after the ticks */
	if (!stopped)
		return true;
	switch_stop();
	atomic_store(&process->stopped_ticks, stopped_ticks); /* threads have not run since, as a reader is to see */
	return true;
}
