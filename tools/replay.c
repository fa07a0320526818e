/*
 * replay.c - the parts of replay.h that are not in the inner loop.
 */
#include "replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int replay_init(struct replay *replay, const struct trace_process *process)
{
	uint32_t ids =
	    process->codes.count > process->functions.count ? process->codes.count : process->functions.count;

	memset(replay, 0, sizeof(*replay));
	replay->codes = process->codes.count;
	replay->begins_inside = strcmp(trace_process_text(process, "start"), "rejoin") == 0;
	replay->functions = process->functions.count;
	replay->keys = 2 * (ids + 1);
	replay->open = calloc(replay->keys, sizeof(*replay->open));
	return replay->open ? 0 : -ENOMEM;
}

void replay_done(struct replay *replay)
{
	free(replay->frames);
	free(replay->open);
	memset(replay, 0, sizeof(*replay));
}

void replay_begin_thread(struct replay *replay)
{
	replay_forget(replay);
	replay->now = 0;
	replay->base_unknown = replay->begins_inside;
	replay->natives_unknown = false;
}

void replay_forget(struct replay *replay)
{
	while (replay->depth)
		replay->open[replay->frames[--replay->depth].key]--;
}

bool replay_grow(struct replay *replay)
{
	uint32_t allocated = replay->allocated ? replay->allocated * 2 : 1024;
	struct replay_frame *grown;

	if (allocated > REPLAY_DEPTH_MAX)
		return false;
	grown = realloc(replay->frames, allocated * sizeof(*grown));
	if (!grown) {
		replay->out_of_memory = true;
		return false;
	}
	replay->frames = grown;
	replay->allocated = allocated;
	return true;
}
