/*
 * trace_output.c - see trace_output.h. Called by the session, and by what writes for it (drain.c).
 */
#include "trace/trace_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "evprof/settings.h"
#include "trace/folder.h"

/*
 * The first clock records follow each other quickly: a truncated trace without two records at different times has no
 * usable times.
 */
#define CLOCK_FIRST_NS UINT64_C(10000000)
#define CLOCK_EVERY_NS UINT64_C(1000000000)
#define MEMORY_BYTES (UINT64_C(64) << 20) /* of a trace in memory */
#define MEMFD_CLOEXEC 1u		  /* MFD_CLOEXEC, for an old C library */
#define CLOSING_EACH_BYTES 1024		  /* of the file, to end a thread or a process */

void trace_output_init(struct trace_output *trace, const struct users *users, struct user *user, struct folder *folder,
		       void (*on_failure)(struct trace_output *trace))
{
	*trace = (struct trace_output){.writer = {.fd = -1, .error = -EBADF},
				       .users = users,
				       .user = user,
				       .folder = folder,
				       .on_failure = on_failure,
				       .clock_step_ns = CLOCK_FIRST_NS};
}

void trace_output_done(struct trace_output *trace)
{
	trace_writer_close(&trace->writer);
	kept_done(&trace->kept);
	trace->user->trace_bytes -= trace->trace_bytes;
	trace->user->counts[USER_TOOLS] -= trace->tools;
}

bool trace_output_begin_tool(struct trace_output *trace)
{
	char reason[RING_TEXT_BYTES];

	if (!user_begin(trace->users, trace->user, USER_TOOLS, reason, sizeof(reason))) {
		trace->tools++;
		return true;
	}
	if (!trace->user->tools_said)
		log_warning("%s; further traces have no triggers of calls, and the last stretch instead of what is "
			    "alive",
			    reason);
	trace->user->tools_said = true;
	return false;
}

uint64_t trace_output_bytes(const struct trace_output *trace)
{
	return trace->writer.offset - trace->kept.freed_bytes;
}

uint32_t trace_output_thread(struct trace_output *trace)
{
	uint32_t number;

	return kept_spare_number(&trace->kept, &number) ? number : trace->thread_count++;
}

void trace_output_fail(struct trace_output *trace, const char *text)
{
	if (trace->failed)
		return;
	trace->failed = true;
	snprintf(trace->error, sizeof(trace->error), "%s", text);
	log_error("%s", trace->error);
	trace->on_failure(trace);
}

void trace_output_open_failed(struct trace_output *trace, int error)
{
	char text[RING_TEXT_BYTES];

	trace->opened = true;
	if (error == -EEXIST)
		snprintf(text, sizeof(text), "cannot create %.500s: it exists and is not a regular file; %s",
			 trace->path, "set EVPROF_OUTPUT to another path");
	else if (error == -EOPNOTSUPP)
		snprintf(text, sizeof(text), "cannot keep the last stretch only in %.400s: %s; %s", trace->path,
			 "its file system takes back no part of a file", "set EVPROF_OUTPUT to another one");
	else
		snprintf(text, sizeof(text), "cannot create %.500s: %s; set EVPROF_OUTPUT to a writable path",
			 trace->path, strerror(-error));
	trace_output_fail(trace, text);
}

static bool may_rotate(const struct trace_output *trace, int fd)
{
	int error = kept_check(fd);

	if (error)
		log_warning("%s stays one trace: its file system takes back no part of a file (%s)", trace->path,
			    strerror(-error));
	return !error;
}

/* A file without a name, which goes with the collector. A path in /proc leads to it. */
static int create_in_memory(struct trace_output *trace)
{
	int fd = (int)syscall(SYS_memfd_create, "evprof-trace", MEMFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	snprintf(trace->path, sizeof(trace->path), "/proc/%d/fd/%d", (int)getpid(), fd);
	trace->in_memory = true;
	return fd;
}

/* A trace in memory keeps a stretch, and not what is alive: that is made from a file at the end. */
static struct setting_keep stretch_of(const struct trace_output *trace, const struct setting_keep *keep)
{
	struct setting_keep stretch = *keep;

	if (!trace->in_memory)
		return stretch;
	stretch.alive = false;
	if (!stretch.bytes || stretch.bytes > MEMORY_BYTES)
		stretch.bytes = MEMORY_BYTES;
	return stretch;
}

int trace_output_open(struct trace_output *trace, struct trace_packer *packer, const uint8_t session[16],
		      enum output_existing existing, const struct setting_keep *keep, bool rotates)
{
	bool nowhere = strcmp(trace->path, OUTPUT_NOWHERE) == 0;
	int fd = nowhere ? create_in_memory(trace) : output_create(trace->path, sizeof(trace->path), existing);
	int error = fd < 0 ? fd : trace_writer_open(&trace->writer, packer, fd, clock_realtime_ns(), session);

	trace->opened = true;
	trace->kept.limits = stretch_of(trace, keep);
	if (!error && kept_is_limited(&trace->kept))
		error = kept_check(fd);
	else if (!error && rotates)
		trace->kept.rotates = may_rotate(trace, fd);
	trace->writer.indexes_later = kept_is_noted(&trace->kept);
	if (error && fd >= 0) {
		trace->writer.fd = fd;
		trace_writer_close(&trace->writer); /* it would close the number again at the end */
		if (!nowhere)
			unlink(trace->path);
	}
	if (error)
		trace_output_open_failed(trace, error);
	return error;
}

static int write_failed(struct trace_output *trace, int error)
{
	char text[RING_TEXT_BYTES];

	trace->full = error && trace->writer.error == 0;
	if (error == -EDQUOT && trace->disk_short) {
		snprintf(text, sizeof(text), "cannot write %.400s: its disk has less than %llu MiB left, %s",
			 trace->path, (unsigned long long)trace->folder->limits.free_bytes >> 20,
			 "which --min-free keeps free; later events are lost");
		trace_output_fail(trace, text);
	} else if (error == -EDQUOT && user_trace_room(trace->users, trace->user) != UINT64_MAX) {
		snprintf(text, sizeof(text), "cannot write %.400s: user %u has %llu MiB of traces under way, %s",
			 trace->path, (unsigned)trace->user->uid,
			 (unsigned long long)trace->users->limits.trace_bytes >> 20,
			 "the most that this collector allows (--max-trace-bytes-per-user); later events are lost");
		trace_output_fail(trace, text);
	} else if (error) {
		snprintf(text, sizeof(text), "cannot write %.500s: %s; it is whole up to here, later events are lost",
			 trace->path, strerror(-error));
		trace_output_fail(trace, text);
	}
	return error;
}

/* Reserves room in the file for the last records of each open thread and process, and for one that comes meanwhile. */
static void keep_room(struct trace_output *trace)
{
	uint64_t room, disk_room = trace->folder ? folder_room(trace->folder, clock_now_ns()) : UINT64_MAX;

	trace->user->trace_bytes += trace_output_bytes(trace) - trace->trace_bytes;
	trace->trace_bytes = trace_output_bytes(trace);
	room = user_trace_room(trace->users, trace->user);
	trace->disk_short = disk_room < room;
	room = trace->disk_short ? disk_room : room;
	trace->writer.limit_bytes = room == UINT64_MAX ? 0 : trace->writer.offset + room;
	trace->writer.later = trace->kept.count;
	trace->writer.closing_bytes =
	    TRACE_CLOSING_BYTES + (uint64_t)(trace->open_threads + trace->open_processes) * CLOSING_EACH_BYTES;
}

/* Returns the result of writing, after noting a chunk that began at that offset. */
static int note_written(struct trace_output *trace, int error, const struct trace_chunk *chunk, const void *raw,
			uint64_t offset, enum kept_kind kind)
{
	if (!error && kept_is_noted(&trace->kept) &&
	    kept_add(&trace->kept, chunk, raw, offset, trace->writer.offset - offset, kind, clock_now_ns()) < 0)
		log_error("no memory left: %s is kept whole from here on", trace->path);
	return error ? write_failed(trace, error) : 0;
}

static enum kept_kind kind_of(const struct trace_chunk *chunk)
{
	return chunk->type == TRACE_CHUNK_EVENTS ? KEPT_EVENTS : KEPT_STATE;
}

static int write_chunk(struct trace_output *trace, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes,
		       enum kept_kind kind)
{
	uint64_t offset = trace->writer.offset;

	if (trace->failed)
		return -EIO;
	keep_room(trace);
	return note_written(trace, trace_writer_chunk(&trace->writer, chunk, raw, raw_bytes), chunk, raw, offset, kind);
}

static int write_last(struct trace_output *trace, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes,
		      enum kept_kind kind)
{
	uint64_t offset = trace->writer.offset;

	if (trace->failed && !trace->full)
		return -EIO;
	trace->writer.later = trace->kept.count;
	return note_written(trace, trace_writer_last(&trace->writer, chunk, raw, raw_bytes), chunk, raw, offset, kind);
}

int trace_output_chunk(struct trace_output *trace, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes)
{
	return write_chunk(trace, chunk, raw, raw_bytes, kind_of(chunk));
}

int trace_output_last(struct trace_output *trace, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes)
{
	return write_last(trace, chunk, raw, raw_bytes, kind_of(chunk));
}

void trace_output_renew_kept(struct trace_output *trace, uint64_t now_ns)
{
	if (kept_is_limited(&trace->kept) && !trace->failed && !trace->closed && trace->writer.fd >= 0)
		kept_renew(&trace->kept, &trace->writer, now_ns);
}

void trace_output_json(struct trace_output *trace, uint32_t process, uint32_t thread, char *text, enum kept_kind kind)
{
	const struct trace_chunk chunk = {.type = TRACE_CHUNK_META, .process = process, .thread = thread};

	if (text)
		(kind == KEPT_END ? write_last : write_chunk)(trace, &chunk, text, strlen(text), kind);
	else
		log_error("no memory left: a description is missing from %s", trace->path);
	free(text);
}

uint64_t trace_output_count_events(struct trace_output *trace, const uint32_t counts[WIRE_KINDS])
{
	uint64_t sum = 0;

	for (unsigned kind = 1; kind < WIRE_KINDS; kind++)
		sum += wire_is_bookkeeping(kind) ? 0 : counts[kind];
	trace->events += sum;
	return sum;
}

void trace_output_use_clock(struct trace_output *trace, uint32_t kind, uint32_t shift)
{
	for (unsigned i = 0; i < trace->clock_count; i++) {
		if (trace->clocks[i].kind == kind && trace->clocks[i].shift == shift)
			return;
	}
	trace->clock_alone = true;
	if (trace->clock_count < TRACE_OUTPUT_CLOCKS)
		trace->clocks[trace->clock_count++] = (struct trace_output_clock){.kind = kind, .shift = shift};
}

static void write_clocks(struct trace_output *trace, uint64_t now_ns, bool last)
{
	const struct trace_chunk chunk = {.type = TRACE_CHUNK_CLOCK, .process = TRACE_NOBODY, .thread = TRACE_NOBODY};
	struct trace_clock records[TRACE_OUTPUT_CLOCKS];

	trace->clock_next_ns = now_ns + trace->clock_step_ns;
	trace->clock_step_ns *= trace->clock_step_ns < CLOCK_EVERY_NS ? 2 : 1;
	for (unsigned i = 0; i < trace->clock_count; i++)
		clock_calibrate(trace->clocks[i].kind, trace->clocks[i].shift, &records[i]);
	if (trace->clock_count > 0)
		(last ? write_last : write_chunk)(trace, &chunk, records, trace->clock_count * sizeof(records[0]),
						  KEPT_LATEST);
}

void trace_output_write_clocks(struct trace_output *trace, uint64_t now_ns)
{
	write_clocks(trace, now_ns, false);
}

void trace_output_renew_clocks(struct trace_output *trace, bool written, uint64_t now_ns)
{
	if (!(written || trace->clock_alone) || now_ns < trace->clock_next_ns || trace->failed || trace->closed)
		return;
	trace_output_write_clocks(trace, now_ns);
	trace->clock_alone = false;
}

bool trace_output_removed(const struct trace_output *trace)
{
	return !trace->in_memory && trace_writer_removed(&trace->writer);
}

void trace_output_close(struct trace_output *trace, bool release, uint64_t now_ns)
{
	char text[RING_TEXT_BYTES];
	int error = 0;

	if (trace->process_count > 0 && (!trace->failed || trace->full)) {
		write_clocks(trace, now_ns, true);
		error = kept_index(&trace->kept, &trace->writer);
		if (!error)
			error = trace_writer_finish(&trace->writer, trace->events, trace->lost, trace->process_count);
	}
	if (error && !trace->failed) {
		snprintf(text, sizeof(text), "cannot finish %.500s: %s; it is whole but has no index", trace->path,
			 strerror(-error));
		trace_output_fail(trace, text);
	}
	if (!trace->failed && trace->process_count > 0 && trace_output_removed(trace)) {
		snprintf(text, sizeof(text), "%.500s was removed while it was written: nothing is kept", trace->path);
		trace_output_fail(trace, text);
	}
	if (release)
		trace_writer_release(&trace->writer);
	trace_writer_follow(&trace->writer, trace->path); /* formats are written next to it */
	trace->closed = true;
}
