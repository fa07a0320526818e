/*
 * reader.c - opens a trace, checks the whole file, and reports what is missing. See reader.h.
 */
#include "trace/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evprof/system_calls.h"
#include "trace/chunk.h"
#include "trace/load.h"
#include "util/cli.h"
#include "util/output.h"

/* --- the whole file --- */

static int compare_offset(const void *offset, const void *place)
{
	uint64_t a = *(const uint64_t *)offset, b = ((const struct trace_place *)place)->offset;

	return a < b ? -1 : a > b;
}

static struct trace_place *place_at(struct trace_place *places, size_t count, uint64_t offset)
{
	return count ? bsearch(&offset, places, count, sizeof(*places), compare_offset) : NULL;
}

/* The thread with that number, also if it is the own stream of a sampled thread, which is not in the list. */
static const struct trace_thread *thread_with_number(const struct trace *trace, uint32_t number)
{
	uint32_t i;

	if (number >= trace->thread_count || trace->threads[number])
		return number < trace->thread_count ? trace->threads[number] : NULL;
	for (i = 0; i < trace->thread_count; i++) {
		const struct trace_thread *own = trace->threads[i] ? trace->threads[i]->own : NULL;

		if (own && own->number == number)
			return own;
	}
	return NULL;
}

/* Counts the bad chunk at offset as damage if its place is known, else as a hole. */
static void note_bad_chunk(struct trace *trace, uint64_t offset, uint64_t bytes)
{
	struct trace_place *place = place_at(trace->places, trace->place_count, offset);
	const struct trace_thread *thread = NULL;

	if (place && place->type == TRACE_CHUNK_EVENTS)
		thread = thread_with_number(trace, place->thread);
	if (thread) /* the thread has its own list, which is the one that readers mark */
		place = place_at(thread->places, thread->place_count, offset);
	if (place) {
		trace_note_damage(trace, place);
		return;
	}
	trace->damage.holes++;
	trace->damage.hole_bytes += bytes;
}

static bool zeros_follow(const struct trace *trace, uint64_t offset, size_t count)
{
	uint8_t padding[8] = {0};

	return trace_read_at(trace, offset, padding, count) == count && memcmp(padding, "\0\0\0\0\0\0\0\0", count) == 0;
}

static bool payload_intact(const struct trace *trace, uint64_t offset, struct trace_payload *payload)
{
	uint32_t bytes = payload->chunk.stored_bytes;
	uint64_t at = offset + sizeof(payload->chunk);

	if (trace_reserve((void **)&payload->stored, &payload->stored_allocated, bytes) < 0)
		return true; /* type not checked */
	return trace_read_at(trace, at, payload->stored, bytes) == bytes &&
	       trace_crc(payload->stored, bytes) == payload->chunk.payload_crc &&
	       zeros_follow(trace, at + bytes, (size_t)(trace_padded(bytes) - bytes));
}

void trace_check(struct trace *trace, void (*tick)(void *owner, uint64_t bytes), void *owner)
{
	uint64_t end = trace->size_bytes - (trace->complete ? sizeof(struct trace_end) : trace->damage.cut_bytes);
	bool scanned = !trace->complete || trace->damage.bad_index;
	uint64_t offset = trace->header.header_bytes;
	struct trace_payload payload = {0};

	while (offset < end) {
		if (trace_chunk_read(trace, offset, &payload.chunk) < 0) {
			uint64_t zeros = trace_zeros_end(trace, offset, end), next = zeros;

			if (zeros == offset || (zeros < end && trace_chunk_read(trace, zeros, &payload.chunk) < 0))
				next = trace_find_chunk(trace, offset + 1, end, &payload.chunk);
			if (!scanned && next != zeros)
				note_bad_chunk(trace, offset, next - offset);
			offset = next;
			continue;
		}
		if (!payload_intact(trace, offset, &payload))
			note_bad_chunk(trace, offset, trace_padded(payload.chunk.stored_bytes));
		offset += sizeof(payload.chunk) + trace_padded(payload.chunk.stored_bytes);
		if (tick)
			tick(owner, offset);
	}
	trace_payload_done(&payload);
}

/* Whether something stands between the chunks. Chunks that are no longer in the index have been dropped. */
static bool has_gaps(const struct trace *trace)
{
	uint64_t end = trace->size_bytes - (trace->complete ? sizeof(struct trace_end) : trace->damage.cut_bytes);
	uint64_t offset = trace->header.header_bytes;
	struct trace_chunk chunk;
	size_t count = 0;

	while (offset < end && trace_chunk_read(trace, offset, &chunk) == 0) {
		count += chunk.type != TRACE_CHUNK_INDEX;
		offset += sizeof(chunk) + trace_padded(chunk.stored_bytes);
	}
	return offset < end || count != trace->place_count;
}

bool trace_lacks_beginning(const struct trace *trace)
{
	bool kept = false, any = false;

	for (uint32_t i = 0; i < trace->process_count; i++) {
		const struct trace_process *process = trace->processes[i];

		if (process && json_object_get(process->meta, "since_ns"))
			return true;
		kept |= process && trace_process_is_kept(process);
		any |= process != NULL;
	}
	return !any || (kept && has_gaps(trace));
}

/* --- opening --- */

static int read_header(struct trace *trace, char *error, size_t error_bytes)
{
	struct trace_header *header = &trace->header;

	if (trace_read_at(trace, 0, header, sizeof(*header)) != sizeof(*header) ||
	    memcmp(header->magic, TRACE_MAGIC, sizeof(header->magic)) != 0) {
		snprintf(error, error_bytes, "%s: not an evprof trace", trace->path);
		return -EINVAL;
	}
	if (header->crc != trace_crc(header, offsetof(struct trace_header, crc)) ||
	    header->header_bytes < sizeof(*header) || header->header_bytes > 65536 || header->header_bytes % 8) {
		snprintf(error, error_bytes, "%s: the header of the trace is damaged", trace->path);
		return -EINVAL;
	}
	if (header->version < TRACE_VERSION) {
		snprintf(error, error_bytes,
			 "%s: the trace was written by an earlier evprof (version %u, not %u): record again, or read "
			 "it with that "
			 "one",
			 trace->path, header->version, TRACE_VERSION);
		return -ENOTSUP;
	}
	if (header->version > TRACE_VERSION || header->incompatible) {
		snprintf(error, error_bytes,
			 "%s: the trace was written by a later evprof (version %u, flags %#x): read it with that one",
			 trace->path, header->version, header->incompatible);
		return -ENOTSUP;
	}
	return 0;
}

static struct trace *trace_new(const char *name, char *error, size_t error_bytes)
{
	struct trace *trace = calloc(1, sizeof(*trace));

	if (trace)
		trace->path = strdup(name);
	if (!trace || !trace->path) {
		snprintf(error, error_bytes, "%s: out of memory", name);
		free(trace);
		return NULL;
	}
	trace->fd = -1;
	return trace;
}

/* status: 0, or the error that ends the opening. */
static int trace_begin(struct trace **result, struct trace *trace, int status, char *error, size_t error_bytes)
{
	if (!status)
		status = read_header(trace, error, error_bytes);
	if (!status) {
		status = trace_find_places(trace);
		if (!status)
			status = trace_load(trace);
		if (status)
			snprintf(error, error_bytes, "%s: %s", trace->path, strerror(-status));
	}
	if (status)
		trace_close(trace);
	else
		*result = trace;
	return status;
}

bool trace_is_being_written(int fd)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Returns 0 or -errno. */
static int copy_all(int from, int to)
{
	char bytes[65536];
	ssize_t count;
	int error = 0;

	while (!error && (count = read(from, bytes, sizeof(bytes))) != 0)
		if (count > 0)
			error = system_write_all(to, bytes, (size_t)count);
		else if (errno != EINTR)
			error = -errno;
	return error;
}

/*
 * Opens standard input. Traces are read at random offsets, so a pipe is copied to an unnamed temporary file. Returns a
 * descriptor, or -1 with errno.
 */
static int open_stdin(void)
{
	struct stat status;
	int error, fd;

	if (fstat(STDIN_FILENO, &status) < 0)
		return -1;
	if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || isatty(STDIN_FILENO))
		return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	fd = output_scratch(NULL);
	error = fd < 0 ? fd : copy_all(STDIN_FILENO, fd);
	if (!error)
		return fd;
	if (fd >= 0)
		close(fd);
	errno = -error;
	return -1;
}

static int open_file(struct trace *trace, char *error, size_t error_bytes)
{
	struct stat status;

	if (strcmp(trace->path, "-") == 0)
		trace->fd = open_stdin();
	else
		trace->fd = open(trace->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	/* Checked before the size is read: if nobody was writing then, the size is final. */
	trace->damage.growing = trace->fd >= 0 && trace_is_being_written(trace->fd);
	if (trace->fd < 0 || fstat(trace->fd, &status) < 0) {
		int code = -errno;

		snprintf(error, error_bytes, "%s: %s", trace->path, strerror(-code));
		return code;
	}
	if (!S_ISREG(status.st_mode)) {
		snprintf(error, error_bytes, "%s: not a regular file", trace->path);
		return -EINVAL;
	}
	trace->size_bytes = (uint64_t)status.st_size;
	return 0;
}

int trace_open(struct trace **result, const char *path, char *error, size_t error_bytes)
{
	struct trace *trace = trace_new(path, error, error_bytes);
	int status = trace ? open_file(trace, error, error_bytes) : -ENOMEM;

	return trace_begin(result, trace, status, error, error_bytes);
}

int trace_open_memory(struct trace **result, const void *bytes, size_t size, const char *name, char *error,
		      size_t error_bytes)
{
	struct trace *trace = trace_new(name, error, error_bytes);

	if (!trace)
		return -ENOMEM;
	trace->memory = bytes;
	trace->no_ahead = true; /* memory needs no read-ahead */
	trace->size_bytes = size;
	return trace_begin(result, trace, 0, error, error_bytes);
}

int trace_follow(struct trace *trace)
{
	struct stat status;
	int error;

	trace->no_ahead = true; /* it would read places that are forgotten below */
	trace->damage.growing = trace->fd >= 0 && trace_is_being_written(trace->fd);
	if (trace->fd >= 0 && fstat(trace->fd, &status) == 0 && (uint64_t)status.st_size > trace->size_bytes)
		trace->size_bytes = (uint64_t)status.st_size;
	trace->place_count = 0;
	error = trace->complete ? 0 : trace_find_more_places(trace);
	if (!error)
		error = trace_load_more(trace);
	return error == -ENOMEM ? error : 0;
}

bool trace_is_at(const struct trace *trace, const char *path)
{
	return output_is_at(trace->fd, path);
}

bool trace_is_replaced(const struct trace *trace)
{
	return access(trace->path, F_OK) == 0 && !trace_is_at(trace, trace->path);
}

struct trace *trace_open_with_message(const char *path)
{
	struct trace *trace = NULL;
	char error[4600];

	if (trace_open(&trace, path, error, sizeof(error)) < 0) {
		output_message("evprof: %s", error);
		return NULL;
	}
	return trace;
}

void trace_close(struct trace *trace)
{
	if (!trace)
		return;
	trace_ahead_free(trace->ahead);
	trace_unload(trace);
	free(trace->places);
	trace_unzstd_free(trace->unzstd);
	if (trace->fd >= 0)
		close(trace->fd);
	free(trace->path);
	free(trace);
}

/* --- what is missing --- */

int trace_verdict(const struct trace *trace, char *text, size_t bytes)
{
	const struct trace_damage *damage = &trace->damage;
	bool is_damaged = damage->bad_index || damage->holes || damage->chunks || damage->no_clock ||
			  damage->out_of_memory || (!damage->growing && (damage->bad_end || damage->cut_bytes));
	char cut[80] = "", holes[100] = "", chunks[100] = "";

	text[0] = 0;
	if (!is_damaged && !damage->growing)
		return CLI_FINE;
	if (damage->cut_bytes && !damage->growing)
		snprintf(cut, sizeof(cut), "; its last %" PRIu64 " bytes are an incomplete chunk", damage->cut_bytes);
	if (damage->holes)
		snprintf(holes, sizeof(holes), "; %u damaged stretches (%" PRIu64 " bytes) were skipped", damage->holes,
			 damage->hole_bytes);
	if (damage->chunks)
		snprintf(chunks, sizeof(chunks), "; %u damaged chunks with %" PRIu64 " events were left out",
			 damage->chunks, damage->events);
	snprintf(text, bytes, "%s%s%s%s%s%s%s",
		 damage->growing   ? "; it is still being written, and this is what it holds so far"
		 : damage->bad_end ? "; it has no end: its writing was cut short"
				   : "",
		 cut, damage->bad_index ? "; its index is damaged and was made anew" : "", holes, chunks,
		 damage->no_clock ? "; it has no clock: times are in ticks" : "",
		 damage->out_of_memory ? "; memory ran out while reading it" : "");
	memmove(text, text + 2, strlen(text + 2) + 1);
	return is_damaged ? CLI_DAMAGED : CLI_GROWING;
}

int trace_print_verdict(const struct trace *trace)
{
	char text[1024];
	int status = trace_verdict(trace, text, sizeof(text));

	if (status)
		output_message("evprof: %s: the trace is incomplete: %s", trace->path, text);
	return status;
}
