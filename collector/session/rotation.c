/*
 * rotation.c - see rotation.h.
 */
#include "session/rotation.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "evprof/system_calls.h"
#include "trace/trace_output.h"

#define AGAIN_NS UINT64_C(60000000000)
#define STOP_MS 20000
#define LOOK_US 1000000
#define LEAST_BYTES (UINT64_C(64) << 10) /* of a part: else the names alone would be due */

bool rotation_is_due(struct rotation *rotation, const struct setting_keep *limits, const struct trace_output *trace,
		     uint64_t now_ns)
{
	if (!trace->kept.rotates || rotation->edge_byte || trace->failed || trace->closed ||
	    trace->kept.out_of_memory || now_ns < rotation->again_ns)
		return false;
	if (!rotation->began_ns)
		rotation->began_ns = now_ns;
	if (trace->kept.stretch_bytes < LEAST_BYTES)
		return false;
	return (limits->ns && now_ns - rotation->began_ns >= limits->ns) ||
	       (limits->bytes && trace->kept.stretch_bytes >= limits->bytes);
}

/* A name that is free. False: it is too long. */
static bool name_part(struct rotation *rotation, const char *trace)
{
	const char *name = strrchr(trace, '/'), *ending = strrchr(name ? name : trace, '.');
	int stem = ending ? (int)(ending - trace) : (int)strlen(trace);

	do {
		if (snprintf(rotation->path, PATH_MAX, "%.*s-part-%u.evp", stem, trace, ++rotation->parts) >= PATH_MAX)
			return false;
	} while (access(rotation->path, F_OK) == 0);
	return true;
}

static void start(struct rotation *rotation, struct loop *loop, const struct trace_output *trace)
{
	const struct kept *kept = &trace->kept;
	char since[32], since_byte[32], until[32], until_byte[32];
	const char *argv[] = {"evprof",	      "cut",
			      "-o",	      rotation->path,
			      "--until",      until,
			      "--until-byte", until_byte,
			      trace->path,    kept->since_byte ? "--since" : NULL,
			      since,	      "--since-byte",
			      since_byte,     NULL};

	snprintf(since, sizeof(since), "%llu", (unsigned long long)kept->since_ns);
	snprintf(since_byte, sizeof(since_byte), "%llu", (unsigned long long)kept->since_byte);
	snprintf(until, sizeof(until), "%llu", (unsigned long long)rotation->edge_ns);
	snprintf(until_byte, sizeof(until_byte), "%llu", (unsigned long long)rotation->edge_byte);
	rotation->run = (struct tool_run){0};
	tool_run_start(&rotation->run, loop, argv);
}

void rotation_begin(struct rotation *rotation, struct loop *loop, struct trace_output *trace, uint64_t now_ns)
{
	trace_writer_follow(&trace->writer, trace->path);
	if (!name_part(rotation, trace->path)) {
		rotation->again_ns = UINT64_MAX;
		log_error("%s stays one trace: its path is too long for a part", trace->path);
		return;
	}
	trace_output_write_clocks(trace, now_ns);
	rotation->edge_ns = rotation->began_ns = now_ns;
	rotation->edge_byte = trace->writer.offset;
	rotation->made = false;
	start(rotation, loop, trace);
}

/* As the trace: see let_user_read() in session.c. */
static void let_user_read(const struct rotation *rotation, const struct trace_output *trace)
{
	uid_t uid = trace->user->uid;
	int fd = uid == 0 || uid == system_geteuid() || uid == USER_NOBODY
		     ? -1
		     : open(rotation->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return;
	output_let_read(fd, uid);
	close(fd);
}

/* Exports the part to the formats of its session. What fails leaves the part as it is. */
static void convert(struct rotation *rotation, const char *formats)
{
	const char *argv[] = {"evprof", "export", "--beside", "--format", formats, rotation->path, NULL};

	tool_run_start(&rotation->run, rotation->run.loop, argv);
}

static void note_made(struct rotation *rotation, const struct trace_output *trace, const char *formats, uint64_t now_ns)
{
	rotation->made = tool_run_wrote(&rotation->run) && access(rotation->path, F_OK) == 0;
	if (rotation->made) {
		let_user_read(rotation, trace);
		log_info("%s is complete", rotation->path);
		if (*formats)
			convert(rotation, formats);
		return;
	}
	rotation->edge_byte = 0;
	rotation->again_ns = now_ns + AGAIN_NS;
	log_warning("%s cannot be written: %s has its events, too; the next try is in a minute", rotation->path,
		    trace->path);
}

bool rotation_check(struct rotation *rotation, struct trace_output *trace, const char *formats, uint64_t now_ns)
{
	if (!rotation->edge_byte)
		return false;
	if (rotation->run.running)
		return true;
	if (!rotation->made)
		note_made(rotation, trace, formats, now_ns);
	if (!rotation->made)
		return false;
	if (rotation->run.running || now_ns < kept_held_until(&trace->kept))
		return true;
	kept_drop(&trace->kept, &trace->writer, rotation->edge_byte, rotation->edge_ns);
	rotation->edge_byte = 0;
	return false;
}

void rotation_stop(struct rotation *rotation, struct trace_output *trace, uint64_t now_ns)
{
	if (!rotation->edge_byte)
		return;
	tool_run_wait(&rotation->run, STOP_MS);
	if (rotation->run.running)
		tool_run_stop(&rotation->run);
	kept_release_all(&trace->kept);
	rotation_check(rotation, trace, "", now_ns);
}

int rotation_patience_us(const struct rotation *rotation, const struct setting_keep *limits)
{
	return rotation->edge_byte || limits->ns ? LOOK_US : -1;
}
