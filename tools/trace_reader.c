/*
 * trace_reader.c - the trace file as bytes: header, end, index, scan, chunks. See trace_reader.h.
 *
 * Knows nothing of processes and threads. The only file of the tools that uses zstd.
 */
#include "trace_reader.h"
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define SCAN_BLOCK_BYTES 65536

static uint32_t crc_of(const void *bytes, size_t length)
{
	return (uint32_t)crc32(crc32(0, NULL, 0), bytes, (uInt)length);
}

static uint64_t padded(uint64_t bytes)
{
	return (bytes + 7) & ~UINT64_C(7);
}

/* --- bytes --- */

static size_t read_memory(const struct trace *trace, uint64_t offset, void *buffer, size_t bytes)
{
	if (offset >= trace->size_bytes)
		return 0;
	if (bytes > trace->size_bytes - offset)
		bytes = (size_t)(trace->size_bytes - offset);
	memcpy(buffer, trace->memory + offset, bytes);
	return bytes;
}

size_t trace_read_at(const struct trace *trace, uint64_t offset, void *buffer, size_t bytes)
{
	size_t done = 0;

	if (trace->fd < 0)
		return read_memory(trace, offset, buffer, bytes);
	while (done < bytes) {
		ssize_t count = pread(trace->fd, (char *)buffer + done, bytes - done, (off_t)(offset + done));

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			break;
		done += (size_t)count;
	}
	return done;
}

int trace_reserve(void **buffer, size_t *allocated, size_t bytes)
{
	void *grown;

	if (*buffer && bytes <= *allocated)
		return 0;
	grown = realloc(*buffer, bytes ? bytes : 1);
	if (!grown)
		return -ENOMEM;
	*buffer = grown;
	*allocated = bytes;
	return 0;
}

/* --- chunks --- */

static bool chunk_valid(const struct trace_chunk *chunk)
{
	return chunk->magic == TRACE_CHUNK_MAGIC && chunk->stored_bytes <= TRACE_PAYLOAD_MAX_BYTES &&
	       chunk->raw_bytes <= TRACE_PAYLOAD_MAX_BYTES && chunk->events <= TRACE_PAYLOAD_MAX_BYTES &&
	       chunk->crc == crc_of(chunk, offsetof(struct trace_chunk, crc));
}

/* Returns 0 or -EBADMSG. */
static int read_chunk(const struct trace *trace, uint64_t offset, struct trace_chunk *chunk)
{
	struct trace_chunk copy;

	if (trace_read_at(trace, offset, &copy, sizeof(copy)) != sizeof(copy) || !chunk_valid(&copy))
		return -EBADMSG;
	*chunk = copy;
	return 0;
}

static int unpack_stored(struct trace_payload *payload, void **unzstd)
{
	const struct trace_chunk *chunk = &payload->chunk;
	size_t unpacked;

	if (!*unzstd)
		*unzstd = ZSTD_createDCtx();
	if (!*unzstd)
		return -ENOMEM;
	unpacked = ZSTD_decompressDCtx(*unzstd, payload->raw, chunk->raw_bytes, payload->stored, chunk->stored_bytes);
	return ZSTD_isError(unpacked) || unpacked != chunk->raw_bytes ? -EBADMSG : 0;
}

/* The payload of payload->chunk, which stands at that offset, into payload->raw. */
static int read_payload_at(const struct trace *trace, uint64_t offset, struct trace_payload *payload, void **unzstd)
{
	const struct trace_chunk *chunk = &payload->chunk;
	bool plain = chunk->codec == TRACE_CODEC_NONE;
	uint8_t *stored;

	if (chunk->codec > TRACE_CODEC_ZSTD || (plain && chunk->stored_bytes != chunk->raw_bytes))
		return -EBADMSG;
	if (trace_reserve((void **)&payload->raw, &payload->raw_allocated, chunk->raw_bytes) < 0 ||
	    (!plain && trace_reserve((void **)&payload->stored, &payload->stored_allocated, chunk->stored_bytes) < 0))
		return -ENOMEM;
	stored = plain ? payload->raw : payload->stored;
	if (trace_read_at(trace, offset + sizeof(*chunk), stored, chunk->stored_bytes) != chunk->stored_bytes ||
	    crc_of(stored, chunk->stored_bytes) != chunk->payload_crc)
		return -EBADMSG;
	return plain ? 0 : unpack_stored(payload, unzstd);
}

static bool chunk_is_at(const struct trace_place *place, const struct trace_chunk *chunk)
{
	return chunk->type == place->type && chunk->process == place->process && chunk->thread == place->thread &&
	       (chunk->type != TRACE_CHUNK_EVENTS || chunk->events == place->events);
}

void trace_note_damage(struct trace *trace, struct trace_place *place)
{
	if (place->damaged)
		return;
	place->damaged = true;
	trace->damage.chunks++;
	if (place->type == TRACE_CHUNK_EVENTS)
		trace->damage.events += place->events;
}

int trace_fetch(const struct trace *trace, const struct trace_place *place, struct trace_payload *payload,
		void **unzstd)
{
	if (read_chunk(trace, place->offset, &payload->chunk) < 0 || !chunk_is_at(place, &payload->chunk))
		return -EBADMSG;
	return read_payload_at(trace, place->offset, payload, unzstd);
}

void trace_unzstd_free(void *unzstd)
{
	ZSTD_freeDCtx(unzstd);
}

int trace_note_error(struct trace *trace, struct trace_place *place, int error)
{
	if (error == -EBADMSG)
		trace_note_damage(trace, place);
	if (error == -ENOMEM)
		trace->damage.out_of_memory = true;
	return error;
}

int trace_read_payload(struct trace *trace, struct trace_place *place, struct trace_payload *payload)
{
	int error = place->damaged ? -EBADMSG : trace_fetch(trace, place, payload, &trace->unzstd);

	return trace_note_error(trace, place, error);
}

void trace_payload_done(struct trace_payload *payload)
{
	free(payload->raw);
	free(payload->stored);
	free(payload->ticks);
	memset(payload, 0, sizeof(*payload));
}

/* --- where the chunks are --- */

static int add_place(struct trace *trace, const struct trace_place *place)
{
	if (trace->place_count == trace->place_allocated) {
		size_t allocated = trace->place_allocated ? trace->place_allocated * 2 : 256;
		void *grown = realloc(trace->places, allocated * sizeof(*trace->places));

		if (!grown)
			return -ENOMEM;
		trace->places = grown;
		trace->place_allocated = allocated;
	}
	trace->places[trace->place_count++] = *place;
	return 0;
}

static int add_chunk(struct trace *trace, uint64_t offset, const struct trace_chunk *chunk)
{
	struct trace_place place = {
	    .offset = offset,
	    .first_ticks = chunk->first_ticks,
	    .last_ticks = chunk->last_ticks,
	    .process = chunk->process,
	    .thread = chunk->thread,
	    .events = chunk->events,
	    .type = (uint8_t)chunk->type,
	    .holes = (uint16_t)trace->damage.holes,
	};

	if (chunk->type < TRACE_CHUNK_META || chunk->type > TRACE_CHUNK_CLOCK)
		return 0;
	return add_place(trace, &place);
}

/*
 * The next valid chunk at offset or later, at any byte: a damaged file may have lost some. Returns its offset, or end.
 */
static uint64_t find_chunk(const struct trace *trace, uint64_t offset, uint64_t end, struct trace_chunk *chunk)
{
	static const uint32_t magic = TRACE_CHUNK_MAGIC;
	char *block = malloc(SCAN_BLOCK_BYTES);

	while (block && offset < end) {
		size_t bytes = trace_read_at(trace, offset, block, SCAN_BLOCK_BYTES);
		char *at = block;

		while ((at = memmem(at, bytes - (size_t)(at - block), &magic, sizeof(magic)))) {
			uint64_t found = offset + (uint64_t)(at - block);

			if (found < end && read_chunk(trace, found, chunk) == 0) {
				free(block);
				return found;
			}
			at++;
		}
		if (bytes < SCAN_BLOCK_BYTES)
			break;
		offset += bytes - sizeof(magic) + 1;
	}
	free(block);
	return end;
}

/* Nothing valid stands at offset: goes on at the next chunk after `from`, and counts what is between. */
static uint64_t skip_hole(struct trace *trace, uint64_t from, uint64_t offset, uint64_t end, struct trace_chunk *chunk)
{
	uint64_t found = find_chunk(trace, from, end, chunk);

	if (found == end) {
		trace->damage.cut_bytes = end > offset ? end - offset : 0;
		return end;
	}
	trace->damage.holes++;
	trace->damage.hole_bytes += found > offset ? found - offset : 0;
	return found;
}

/*
 * Finds the chunks without an index. Where one does not follow the other, the search begins behind the last good
 * header and not behind its payload: bytes of that payload may be missing.
 */
static int scan(struct trace *trace)
{
	uint64_t end = trace->size_bytes - (trace->damage.bad_end ? 0 : sizeof(struct trace_end));
	uint64_t offset = trace->header.header_bytes;
	uint64_t search = offset;
	struct trace_chunk chunk;

	trace->place_count = 0;
	while (offset < end) {
		uint64_t next;
		int error;

		if (read_chunk(trace, offset, &chunk) < 0)
			offset = skip_hole(trace, search, offset, end, &chunk);
		if (offset >= end)
			break;
		search = offset + sizeof(chunk);
		next = search + padded(chunk.stored_bytes);
		if (search + chunk.stored_bytes > end) {
			uint64_t start = offset;

			offset = skip_hole(trace, search, offset, end, &chunk);
			if (offset < end)
				continue;
			trace->damage.cut_bytes = end - start;
			break;
		}
		error = add_chunk(trace, offset, &chunk);
		if (error)
			return error;
		offset = next;
	}
	return 0;
}

static bool end_valid(const struct trace *trace, const struct trace_end *end)
{
	return end->magic == TRACE_END_MAGIC && end->crc == crc_of(end, offsetof(struct trace_end, crc)) &&
	       end->index_offset >= trace->header.header_bytes && end->index_offset < trace->size_bytes;
}

static void read_end(struct trace *trace)
{
	struct trace_end end;

	trace->damage.bad_end = true;
	if (trace->size_bytes < trace->header.header_bytes + sizeof(end))
		return;
	if (trace_read_at(trace, trace->size_bytes - sizeof(end), &end, sizeof(end)) != sizeof(end))
		return;
	if (!end_valid(trace, &end))
		return;
	trace->end = end;
	trace->complete = true;
	trace->damage.bad_end = trace->damage.growing = false;
}

static int add_entry(struct trace *trace, const struct trace_index_entry *entry)
{
	uint64_t before = trace->place_count ? trace->places[trace->place_count - 1].offset : 0;
	struct trace_place place = {
	    .offset = entry->offset,
	    .first_ticks = entry->first_ticks,
	    .last_ticks = entry->last_ticks,
	    .process = entry->process,
	    .thread = entry->thread,
	    .events = entry->events,
	    .type = (uint8_t)entry->type,
	};

	if (entry->type < TRACE_CHUNK_META || entry->type > TRACE_CHUNK_CLOCK)
		return 0;
	if (entry->offset <= before || entry->offset >= trace->size_bytes)
		return -EBADMSG;
	if (entry->type == TRACE_CHUNK_EVENTS && entry->events > TRACE_CHUNK_EVENTS_MAX)
		return -EBADMSG;
	return add_place(trace, &place);
}

static int read_index_chunk(struct trace *trace, uint64_t offset, struct trace_payload *payload)
{
	const struct trace_index_entry *entries;
	uint32_t i;
	int error = read_chunk(trace, offset, &payload->chunk);

	if (!error)
		error = read_payload_at(trace, offset, payload, &trace->unzstd);
	if (error)
		return error;
	if (payload->chunk.raw_bytes != (uint64_t)payload->chunk.events * sizeof(*entries))
		return -EBADMSG;
	entries = (const struct trace_index_entry *)payload->raw;
	for (i = 0; i < payload->chunk.events && !error; i++)
		error = add_entry(trace, &entries[i]);
	return error;
}

/* Follows the chain of index chunks from the last to the first. Offsets must fall, so it ends. */
static int index_offsets(const struct trace *trace, uint64_t **offsets, size_t *count)
{
	uint64_t offset = trace->end.index_offset;
	size_t allocated = 0;

	while (offset) {
		struct trace_chunk chunk;
		void *grown = *offsets;

		if (read_chunk(trace, offset, &chunk) < 0 || chunk.type != TRACE_CHUNK_INDEX ||
		    chunk.previous >= offset)
			return -EBADMSG;
		if (trace_reserve(&grown, &allocated, (*count + 1 + *count / 2) * sizeof(**offsets)) < 0)
			return -ENOMEM;
		*offsets = grown;
		(*offsets)[(*count)++] = offset;
		offset = chunk.previous;
	}
	return 0;
}

static int read_index(struct trace *trace)
{
	struct trace_payload payload = {0};
	uint64_t *offsets = NULL;
	size_t count = 0;
	int error = index_offsets(trace, &offsets, &count);

	while (count && !error)
		error = read_index_chunk(trace, offsets[--count], &payload);
	free(offsets);
	trace_payload_done(&payload);
	return error;
}

static int find_places(struct trace *trace)
{
	int error;

	read_end(trace);
	if (trace->complete) {
		error = read_index(trace);
		if (error != -EBADMSG)
			return error;
		trace->damage.bad_index = true;
	}
	return scan(trace);
}

/* --- the whole file --- */

static struct trace_place *place_at(struct trace_place *places, size_t count, uint64_t offset)
{
	size_t low = 0;
	size_t high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (places[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && places[low].offset == offset ? &places[low] : NULL;
}

/* What it wrote beside its sampler is not among the threads. */
static const struct trace_thread *thread_with_number(const struct trace *trace, uint32_t number)
{
	uint32_t i;

	if (number >= trace->thread_count || trace->threads[number])
		return number < trace->thread_count ? trace->threads[number] : NULL;
	for (i = 0; i < trace->thread_count; i++) {
		const struct trace_thread *beside = trace->threads[i] ? trace->threads[i]->beside : NULL;

		if (beside && beside->number == number)
			return beside;
	}
	return NULL;
}

/* The chunk at offset is bad: counts it where it is known, else as a hole. */
static void note_bad_chunk(struct trace *trace, uint64_t offset, uint64_t bytes)
{
	struct trace_place *place = place_at(trace->places, trace->place_count, offset);
	const struct trace_thread *thread = NULL;

	if (place && place->type == TRACE_CHUNK_EVENTS)
		thread = thread_with_number(trace, place->thread);
	if (thread) /* it has its own list, which is the one that readers mark */
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
		return true; /* not looked at */
	return trace_read_at(trace, at, payload->stored, bytes) == bytes &&
	       crc_of(payload->stored, bytes) == payload->chunk.payload_crc &&
	       zeros_follow(trace, at + bytes, (size_t)(padded(bytes) - bytes));
}

void trace_check(struct trace *trace, void (*tick)(void *owner, uint64_t bytes), void *owner)
{
	uint64_t end = trace->size_bytes - (trace->complete ? sizeof(struct trace_end) : trace->damage.cut_bytes);
	bool scanned = !trace->complete || trace->damage.bad_index;
	uint64_t offset = trace->header.header_bytes;
	struct trace_payload payload = {0};

	while (offset < end) {
		if (read_chunk(trace, offset, &payload.chunk) < 0) {
			uint64_t next = find_chunk(trace, offset + 1, end, &payload.chunk);

			if (!scanned)
				note_bad_chunk(trace, offset, next - offset);
			offset = next;
			continue;
		}
		if (!payload_intact(trace, offset, &payload))
			note_bad_chunk(trace, offset, padded(payload.chunk.stored_bytes));
		offset += sizeof(payload.chunk) + padded(payload.chunk.stored_bytes);
		if (tick)
			tick(owner, offset);
	}
	trace_payload_done(&payload);
}

/* --- opening --- */

static int read_header(struct trace *trace, char *error, size_t error_bytes)
{
	struct trace_header *header = &trace->header;

	if (trace_read_at(trace, 0, header, sizeof(*header)) != sizeof(*header) ||
	    memcmp(header->magic, TRACE_MAGIC, sizeof(header->magic)) != 0) {
		snprintf(error, error_bytes, "%s: this is no evprof trace", trace->path);
		return -EINVAL;
	}
	if (header->crc != crc_of(header, offsetof(struct trace_header, crc)) ||
	    header->header_bytes < sizeof(*header) || header->header_bytes > 65536 || header->header_bytes % 8) {
		snprintf(error, error_bytes, "%s: the header of the trace is damaged", trace->path);
		return -EINVAL;
	}
	if (header->version != TRACE_VERSION || header->incompatible) {
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

static int trace_begin(struct trace **result, struct trace *trace, char *error, size_t error_bytes)
{
	int status = read_header(trace, error, error_bytes);

	if (!status) {
		status = find_places(trace);
		if (!status)
			status = trace_model_load(trace);
		if (status)
			snprintf(error, error_bytes, "%s: %s", trace->path, strerror(-status));
	}
	if (status) {
		trace_close(trace);
		return status;
	}
	*result = trace;
	return 0;
}

/* Whoever writes a trace holds a lock on it. */
static bool is_being_written(int fd)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Returns 0 or -errno. */
static int copy_all(int from, int to)
{
	char bytes[65536];
	ssize_t count, written, done;

	while ((count = read(from, bytes, sizeof(bytes))) != 0) {
		if (count < 0 && errno != EINTR)
			return -errno;
		for (done = 0; done < count; done += written) {
			written = write(to, bytes + done, (size_t)(count - done));
			if (written < 0 && errno != EINTR)
				return -errno;
			written = written < 0 ? 0 : written;
		}
	}
	return 0;
}

/*
 * Standard input; a trace is read here and there, so what comes through a pipe is kept in a file without a name.
 * Returns a descriptor, or -1 with errno.
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
	/* Before its size is looked at: if nobody was writing then, the size is the last. */
	trace->damage.growing = trace->fd >= 0 && is_being_written(trace->fd);
	if (trace->fd < 0 || fstat(trace->fd, &status) < 0) {
		int code = -errno;

		snprintf(error, error_bytes, "%s: %s", trace->path, strerror(-code));
		return code;
	}
	if (!S_ISREG(status.st_mode)) {
		snprintf(error, error_bytes, "%s: this is no regular file, and no evprof trace", trace->path);
		return -EINVAL;
	}
	trace->size_bytes = (uint64_t)status.st_size;
	return 0;
}

int trace_open(struct trace **result, const char *path, char *error, size_t error_bytes)
{
	struct trace *trace = trace_new(path, error, error_bytes);
	int status;

	if (!trace)
		return -ENOMEM;
	status = open_file(trace, error, error_bytes);
	if (status) {
		trace_close(trace);
		return status;
	}
	return trace_begin(result, trace, error, error_bytes);
}

int trace_open_memory(struct trace **result, const void *bytes, size_t size, const char *name, char *error,
		      size_t error_bytes)
{
	struct trace *trace = trace_new(name, error, error_bytes);

	if (!trace)
		return -ENOMEM;
	trace->memory = bytes;
	trace->no_ahead = true; /* there is nothing to wait for */
	trace->size_bytes = size;
	return trace_begin(result, trace, error, error_bytes);
}

bool trace_is_at(const struct trace *trace, const char *path)
{
	struct stat own, there;

	return trace->fd >= 0 && fstat(trace->fd, &own) == 0 && stat(path, &there) == 0 && own.st_dev == there.st_dev &&
	       own.st_ino == there.st_ino;
}

struct trace *trace_open_or_say(const char *path)
{
	struct trace *trace = NULL;
	char error[4600];

	if (trace_open(&trace, path, error, sizeof(error)) < 0) {
		output_say("evprof: %s", error);
		return NULL;
	}
	return trace;
}

void trace_close(struct trace *trace)
{
	if (!trace)
		return;
	trace_ahead_free(trace->ahead);
	trace_model_done(trace);
	free(trace->places);
	ZSTD_freeDCtx(trace->unzstd);
	if (trace->fd >= 0)
		close(trace->fd);
	free(trace->path);
	free(trace);
}

/* --- what is missing --- */

__attribute__((format(printf, 4, 5))) static size_t append(char *text, size_t bytes, size_t used, const char *format,
							   ...)
{
	va_list arguments;
	int length;

	if (used >= bytes)
		return used;
	va_start(arguments, format);
	length = vsnprintf(text + used, bytes - used, format, arguments);
	va_end(arguments);
	return length < 0 ? used : used + (size_t)length;
}

int trace_verdict(const struct trace *trace, char *text, size_t bytes)
{
	const struct trace_damage *damage = &trace->damage;
	size_t used = 0, grown;

	text[0] = 0;
	if (damage->growing)
		used = append(text, bytes, used, "; it is still being written, and this is what it holds so far");
	else if (damage->bad_end)
		used = append(text, bytes, used, "; it has no end: its writing was cut short");
	grown = damage->growing ? used : 0;
	if (damage->cut_bytes && !damage->growing)
		used = append(text, bytes, used, "; its last %llu bytes are no whole chunk",
			      (unsigned long long)damage->cut_bytes);
	if (damage->bad_index)
		used = append(text, bytes, used, "; its index is damaged and was made anew");
	if (damage->holes)
		used = append(text, bytes, used, "; %u damaged stretches (%llu bytes) were skipped", damage->holes,
			      (unsigned long long)damage->hole_bytes);
	if (damage->chunks)
		used = append(text, bytes, used, "; %u damaged chunks with %llu events were left out", damage->chunks,
			      (unsigned long long)damage->events);
	if (damage->no_clock)
		used = append(text, bytes, used, "; it has no clock: times are in ticks");
	if (damage->out_of_memory)
		used = append(text, bytes, used, "; memory ran out while reading it");
	if (!used)
		return TRACE_EXIT_FINE;
	memmove(text, text + 2, strlen(text + 2) + 1);
	return used == grown ? TRACE_EXIT_GROWING : TRACE_EXIT_DAMAGED;
}

int trace_say_verdict(const struct trace *trace)
{
	char text[1024];
	int status = trace_verdict(trace, text, sizeof(text));

	if (status)
		output_say("evprof: %s: the trace is incomplete: %s", trace->path, text);
	return status;
}
