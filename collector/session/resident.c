/*
 * resident.c - reads /proc/PID/status repeatedly. See resident.h.
 */
#include "session/resident.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "evprof/proc.h"
#include "evprof/ring.h"
#include "evprof/settings.h"

#define FIRST_PAUSE_NS UINT64_C(250000000)
#define LONGEST_PAUSE_NS UINT64_C(4000000000)
#define READS_OF_PAUSE 1200		     /* then it doubles: after five minutes at first */
#define LONGEST_STAY_NS UINT64_C(4000000000) /* of a sample before it is written */

void resident_begin(struct resident *resident, unsigned events)
{
	if (resident->wanted || !(events & (EVENT_MEM | EVENT_MALLOC)))
		return;
	resident->wanted = true;
	resident->pause_ns = FIRST_PAUSE_NS;
}

/* A line of the file, "VmRSS:	  1234 kB", in bytes. 0: there is none, as for a dead process. */
static uint64_t line_bytes(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? strtoull(at + strlen(name), NULL, 10) << 10 : 0;
}

static bool read_sample(pid_t pid, struct meta_resident_sample *sample, uint64_t *peak_bytes)
{
	char status[4096];

	if (pid <= 0 || proc_read_of(pid, 0, "status", status, sizeof(status)) <= 0)
		return false;
	*peak_bytes = line_bytes(status, "\nVmHWM:");
	sample->anonymous = line_bytes(status, "\nRssAnon:");
	sample->file = line_bytes(status, "\nRssFile:");
	sample->shared = line_bytes(status, "\nRssShmem:");
	return *peak_bytes > 0;
}

static bool is_same(const struct meta_resident_sample *a, const struct meta_resident_sample *b)
{
	return a->anonymous == b->anonymous && a->file == b->file && a->shared == b->shared;
}

static void add_sample(struct resident *resident, pid_t pid, const struct ring_layout *layout, uint64_t now_ns)
{
	struct meta_resident_sample sample;
	uint64_t peak_bytes;

	if (!read_sample(pid, &sample, &peak_bytes))
		return;
	if (peak_bytes > resident->read.peak_bytes)
		resident->read.peak_bytes = peak_bytes;
	sample.ticks = clock_ticks(layout->clock_kind) >> layout->clock_shift;
	if (is_same(&sample, &resident->before))
		return;
	if (!resident->read.count)
		resident->since_ns = now_ns;
	resident->before = resident->read.samples[resident->read.count++] = sample;
}

bool resident_look(struct resident *resident, pid_t pid, const struct ring_layout *layout, bool ends, uint64_t now_ns)
{
	bool last = ends && !resident->last;

	if (!resident->wanted || (now_ns < resident->due_ns && !last))
		return false;
	resident->last |= ends;
	resident->due_ns = ends ? UINT64_MAX : now_ns + resident->pause_ns;
	if (++resident->reads == READS_OF_PAUSE && resident->pause_ns < LONGEST_PAUSE_NS) {
		resident->pause_ns *= 2;
		resident->reads = 0;
	}
	add_sample(resident, pid, layout, now_ns);
	return resident->read.count == META_RESIDENT_SAMPLES ||
	       (resident->read.count && now_ns - resident->since_ns >= LONGEST_STAY_NS);
}
