/* sampling.c - see sampling.h. */
#include "hooks/sampling.h"

#include <errno.h>

#include "base/config.h"
#include "life/life.h"
#include "life/sampler.h"
#include "python/python.h"
#include "python/sampled_layout.h"

void sampling_begin(void)
{
	int saved_errno;

	if (!(config.events & EVENT_SAMPLE) || thread_self.entered || !sampler_wants_layout())
		return;
	saved_errno = errno;
	thread_self.entered = 1; /* reading a frame raises audit events, which come back here */
	thread_self.nesting++;
	python_lock();
	if (process_recording() && sampler_wants_layout() && (sampled_layout_known || sampled_layout_find()))
		sampler_publish();
	python_unlock();
	thread_self.nesting--;
	thread_self.entered = 0;
	errno = saved_errno;
}
