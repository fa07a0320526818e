/*
 * status.c - see status.h. Called by collector.c, after a round.
 *
 * All numbers have been counted anyway, or are the kernel's: a request costs something, an event does not.
 */
#include "server/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/control.h"
#include "base/users.h"
#include "evprof/json_memory.h"
#include "evprof/proc.h"
#include "session/drain.h"
#include "session/session.h"
#include "trace/folder.h"

static json_t *json_u64(uint64_t value)
{
	return json_integer(value <= INT64_MAX ? (json_int_t)value : INT64_MAX);
}

/* In seconds, to the ms. */
static json_t *json_seconds(double seconds)
{
	return json_real((double)(int64_t)(seconds * 1000 + 0.5) / 1000);
}

static json_t *cpu_seconds(void)
{
	struct rusage used;

	if (getrusage(RUSAGE_SELF, &used) < 0)
		return json_null();
	return json_seconds((double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
			    (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
}

static json_t *resident_bytes(void)
{
	unsigned long long pages;
	char text[256];

	if (proc_read("/proc/self/statm", text, sizeof(text)) <= 0 || sscanf(text, "%*u %llu", &pages) != 1)
		return json_null();
	return json_u64(pages * (uint64_t)sysconf(_SC_PAGESIZE));
}

static bool has_trace(const struct session *session)
{
	return session->trace.writer.fd >= 0;
}

/* A daemon's are all those in its folder. */
static json_t *trace_bytes(const struct status_source *source, uint64_t now_ns)
{
	uint64_t sum = 0;

	if (source->folder->path)
		return json_u64(folder_bytes(source->folder, now_ns));
	for (const struct session *session = source->sessions; session; session = session->next)
		sum += has_trace(session) ? trace_output_bytes(&session->trace) : 0;
	return json_u64(sum);
}

/* What the file system of the traces has left. Null: before the first trace. */
static json_t *free_bytes(const struct status_source *source)
{
	struct statvfs disk;
	int error = source->folder->path ? statvfs(source->folder->path, &disk) : -1;

	for (const struct session *session = source->sessions; session && error; session = session->next)
		error = has_trace(session) ? fstatvfs(session->trace.writer.fd, &disk) : -1;
	return error ? json_null() : json_u64((uint64_t)disk.f_bavail * disk.f_frsize);
}

static json_t *describe_collector(const struct status_source *source, uint64_t now_ns)
{
	return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "pid", (int)getpid(), "uptime_s",
			 json_seconds((double)(now_ns - source->started_ns) / 1e9), "cpu_s", cpu_seconds(), "rss_bytes",
			 resident_bytes(), "disk_bytes", trace_bytes(source, now_ns), "free_bytes", free_bytes(source));
}

static uint64_t lost_events(const struct process *process)
{
	uint64_t sum = process->totals.lost + drain_lost(process);

	for (unsigned kind = 1; kind < WIRE_KINDS; kind++)
		sum += atomic_load_explicit(&process->header->lost_unslotted[kind], memory_order_relaxed);
	return sum;
}

static const char *recording_of(const struct process *process)
{
	if (process->trace->failed || process->totals.paused)
		return "off";
	return process->sampler.wanted ? "sample" : "events";
}

/* Of a process that is younger than the stretch of a rate: since its begin. */
static uint64_t rate_of(const struct process *process, uint64_t now_ns)
{
	const struct process_totals *totals = &process->totals;
	uint64_t passed_ns = now_ns > totals->rate_ns ? now_ns - totals->rate_ns : 0;

	if (totals->rate_events || totals->events_per_s || !passed_ns)
		return totals->events_per_s;
	return (uint64_t)((double)totals->events * 1e9 / (double)passed_ns + 0.5);
}

/* As EVPROF_KEEP has it: "30s,256M", "alive,1s". Null: the whole trace is kept. */
static json_t *keep_of(const struct setting_keep *keep)
{
	char time[32] = "", bytes[32] = "";

	if (keep->ns)
		snprintf(time, sizeof(time), "%llus", (unsigned long long)(keep->ns / 1000000000));
	if (keep->bytes)
		snprintf(bytes, sizeof(bytes), "%lluM", (unsigned long long)(keep->bytes >> 20));
	if (keep->bytes && keep->bytes % (1 << 20))
		snprintf(bytes, sizeof(bytes), "%lluK", (unsigned long long)(keep->bytes >> 10));
	if (!keep->ns && !keep->bytes)
		return json_null();
	return json_sprintf("%s%s%s%s", keep->alive ? "alive," : "", time, keep->ns && keep->bytes ? "," : "", bytes);
}

/* Null where it is no UTF-8, or where there is none. */
static json_t *text_of(const char *text)
{
	json_t *string = text[0] ? json_string(text) : NULL;

	return string ? string : json_null();
}

static json_t *describe_process(const struct process *process, uint64_t now_ns)
{
	uint32_t events = atomic_load(&process->header->events); /* the trace may not have it yet */
	char records[80];

	setting_events_text(events ? events : process->events, records, sizeof(records));
	return json_pack(
	    "{s:i, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "pid", (int)process_shown_pid(process),
	    "number", json_u64(process->joined), "program", process->program ? process->program : "", "recording",
	    recording_of(process), "records", records, "events_per_s", json_u64(rate_of(process, now_ns)), "events",
	    json_u64(process->totals.events), "lost", json_u64(lost_events(process)), "bytes",
	    json_u64(process->totals.trace_bytes), "keep", keep_of(&process->trace->kept.limits), "trace",
	    text_of(process->trace->path), "error", text_of(process->trace->failed ? process->trace->error : ""));
}

/* The newest session, and in it the newest process, comes first. */
static json_t *describe_processes(const struct session *sessions, const char *target, const struct peer_rights *rights,
				  uint64_t now_ns)
{
	json_t *list = json_array();

	for (const struct session *session = sessions; session; session = session->next) {
		for (const struct process *process = session->processes; process; process = process->next) {
			if (!process->complete && peer_may(rights, process->user->uid) &&
			    control_target_has(target, process_shown_pid(process),
					       process->program ? process->program : ""))
				json_array_append_new(list, describe_process(process, now_ns));
		}
	}
	return list;
}

json_t *status_answer(const struct status_source *source, const char *target, const struct peer_rights *rights,
		      uint64_t now_ns)
{
	json_t *answer;

	json_memory_begin();
	answer = json_pack("{s:o, s:o}", "collector", describe_collector(source, now_ns), "processes",
			   describe_processes(source->sessions, target, rights, now_ns));
	if (!json_memory_ran_out)
		return answer;
	json_decref(answer);
	return NULL;
}
