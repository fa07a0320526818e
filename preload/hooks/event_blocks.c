/*
 * event_blocks.c - the Python versions that allocate blocks for recorded events.
 */
#include "hooks/event_blocks.h"

#include "base/config.h"

__thread struct bound_methods bound_methods __attribute__((tls_model("initial-exec")));

bool event_blocks_expected(void)
{
	return config.events & EVENT_MEM && config.events & (EVENT_CALL | EVENT_C_CALL | EVENT_LINE) &&
	       python_has(PYTHON_EVENT_BLOCKS);
}
