/*
 * process_end.c - how a process image ended, and its record in the trace. See process_end.h.
 */
#include "session/process_end.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/log.h"
#include "session/drain.h"
#include "trace/trace_output.h"

#define EXEC_CHECK_NS UINT64_C(50000000)

const char *process_end_reason(struct process *process, struct user *user, uint64_t now_ns)
{
	uint32_t state = atomic_load_explicit(&process->header->target_state, memory_order_acquire);
	int gone;

	if (state == RING_TARGET_EXITING)
		return "exit";
	if (state == RING_TARGET_REPLACED)
		return "detached";
	if (process->dead)
		return process->exec_seen ? "exec" : process->exited ? "exit" : "killed";
	if (!process->exec_seen || now_ns < process->exec_check_ns)
		return NULL;
	gone = process_image_gone(process, user);
	if (gone != -EAGAIN)
		process->exec_check_ns = now_ns + EXEC_CHECK_NS;
	return gone == 1 ? "exec" : NULL;
}

/* The end of the image: its last event, or its death where it was killed. */
static uint64_t end_ticks_of(const struct process *process, const char *how)
{
	bool announced =
	    atomic_load_explicit(&process->header->target_state, memory_order_acquire) != RING_TARGET_RUNNING;

	if (!process->dead || announced || !strcmp(how, "exec") || process->death_ticks < process->last_ticks)
		return process->last_ticks;
	return process->death_ticks;
}

/* An image that announced its signal counts as killed by it. */
static const char *end_by_own_signal(struct process *process, const char *how)
{
	uint32_t number = atomic_load_explicit(&process->header->ending_signal, memory_order_relaxed);

	if (strcmp(how, "exit") != 0 || number == 0 || number >= (uint32_t)_NSIG)
		return how;
	process->signal = (int)number;
	return "killed";
}

void process_end_write(struct process *process, const char *how, uint64_t now_ns)
{
	struct meta_process_end end = {.process = process->number};
	struct drain_result ignored = {0};

	if (!process->drained)
		drain_process(process, DRAIN_LAST, UINT64_MAX, now_ns, &ignored);
	/* Known only after the last drain: the new program may have ended quickly. */
	if (process->dead && process->exec_seen)
		how = "exec";
	end.how = how = end_by_own_signal(process, how);
	end.signal = process->signal;
	end.end_ticks = end_ticks_of(process, how);
	drain_end(process, end.end_ticks);
	for (unsigned kind = 1; kind < WIRE_KINDS; kind++)
		end.lost.of[kind] = atomic_load_explicit(&process->header->lost_unslotted[kind], memory_order_relaxed);
	end.lost_definitions = atomic_load_explicit(&process->header->lost_definitions, memory_order_relaxed);
	end.waits = atomic_load_explicit(&process->header->waits, memory_order_relaxed);
	end.waited_us = atomic_load_explicit(&process->header->waited_us, memory_order_relaxed);
	end.samples = atomic_load_explicit(&process->header->samples, memory_order_relaxed);
	end.samples_torn = atomic_load_explicit(&process->header->samples_torn, memory_order_relaxed);
	end.samples_dropped = atomic_load_explicit(&process->header->samples_dropped, memory_order_relaxed);
	end.status = process->status;
	end.sampler_lost = process->sampler.lost;
	process->trace->lost += meta_lost(&end.lost);
	trace_output_json(process->trace, process->number, TRACE_NOBODY, meta_process_end(&end));
	process->complete = true;
	process->replaced = !strcmp(how, "exec");
	log_info("process %d has ended (%s)", (int)process->pid, how);
}
