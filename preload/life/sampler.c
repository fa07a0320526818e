/* sampler.c - see sampler.h. */
#include "life/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log_line.h"
#include "join/spawn.h"
#include "python/sampled_layout.h"
#include "ring/process.h"

static pid_t begun; /* the process for which the layout was published, or that cannot be sampled */

void sampler_follow(int memfd, void *scratch)
{
	int memory, r;

	if (!(config.events & EVENT_SAMPLE))
		return;
	memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	r = memory < 0 ? -errno : spawn_sampler(memfd, memory, &sampling, scratch);
	if (memory >= 0)
		close(memory);
	if (r < 0)
		log_line(LOG_ERROR, "cannot start the sampler: %s; this process is not sampled", strerror(-r));
}

bool sampler_wants_layout(void)
{
	return !begun || begun != process->pid;
}

void sampler_publish(void)
{
	begun = process->pid;
	if (!sampled_layout_known)
		return;
	sampled_layout_of_interpreter();
	sampling.rate = config.sample_rate;
	sampling.cpu = (config.events & EVENT_CPU) != 0;
	sampling.recording = (uintptr_t)&process->status;
	sampling.recording_value = PROCESS_JOINED;
	sampling.ready_ticks = clock_now();
	/* Release: the sampler copies the struct when it sees this. */
	__atomic_store_n(&sampling.ready, SAMPLING_READY, __ATOMIC_RELEASE);
}

void sampler_forget(void)
{
	begun = 0;
	__atomic_store_n(&sampling.ready, 0, __ATOMIC_RELEASE);
}
