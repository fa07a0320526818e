/*
 * trace_writer.c - chunks, checksums, compression and the index of a trace file. The only file that packs with zstd.
 *
 * The meaning of payloads is not known here, but for what columns.h says of those of EVENTS chunks.
 */
#include "file/trace_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "evprof/invariant.h"
#include "file/columns.h"

#define ZSTD_LEVEL 1
/*
 * For noise: so large a step that nothing is searched, and all is Huffman-coded, in a fifth of the time of level 1.
 * The parameter is among zstd's experimental ones (ZSTD_c_literalCompressionMode, since 1.4); its value is "always".
 */
#define NOISE_LEVEL (-1000)
#define NOISE_LITERALS ZSTD_c_experimentalParam5
#define NOISE_LITERALS_ALWAYS 1
#define TRIAL_EVERY 64 /* chunks of a thread, after the first ones: so often it is tried whether its noise recurs */
#define COMPRESS_MIN_BYTES 64 /* smaller payloads do not shrink */
#define RESERVE_MIN_BYTES (UINT64_C(256) << 10)
#define RESERVE_MAX_BYTES (UINT64_C(4) << 20)

struct trace_packer {
	ZSTD_CCtx *context, *noise;
	size_t capacity;
	uint8_t out[]; /* a chunk: header, payload, padding */
};

struct trace_packer *trace_packer_new(void)
{
	size_t capacity = sizeof(struct trace_chunk) + ZSTD_COMPRESSBOUND(TRACE_WRITER_RAW_MAX_BYTES) + 8;
	struct trace_packer *packer = malloc(sizeof(*packer) + capacity);

	if (packer)
		*packer = (struct trace_packer){.context = NULL, .capacity = capacity};
	return packer;
}

void trace_packer_free(struct trace_packer *packer)
{
	if (!packer)
		return;
	ZSTD_freeCCtx(packer->context);
	ZSTD_freeCCtx(packer->noise);
	free(packer);
}

static uint32_t checksum(const void *bytes, size_t count)
{
	return (uint32_t)crc32_z(0, bytes, count);
}

static int preallocate(struct trace_writer *writer, uint64_t bytes)
{
	while (fallocate(writer->fd, FALLOC_FL_KEEP_SIZE, (off_t)writer->offset, (off_t)bytes) < 0) {
		if (errno == ENOSPC || errno == EDQUOT)
			return -errno;
		if (errno == EINTR)
			continue;
		writer->reserved_end = UINT64_MAX; /* not supported here: a full disk fails the write */
		return 0;
	}
	writer->reserved_end = writer->offset + bytes;
	return 0;
}

/*
 * Reserves room for that many bytes in the file system, whatever else is written to that disk: in large steps while
 * there is much. 0 or -errno.
 */
static int reserve_space(struct trace_writer *writer, uint64_t bytes)
{
	uint64_t wanted = writer->offset + bytes;
	uint64_t more = writer->indexes_later ? 0 : writer->offset / 4; /* a part of the file may have left it */
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < wanted)
		return -EFBIG;
	if (writer->limit_bytes && writer->limit_bytes < wanted)
		return -EDQUOT;
	if (wanted <= writer->reserved_end)
		return 0;
	more = more < RESERVE_MIN_BYTES ? RESERVE_MIN_BYTES : more > RESERVE_MAX_BYTES ? RESERVE_MAX_BYTES : more;
	if (writer->limit_bytes && more > writer->limit_bytes - wanted)
		more = writer->limit_bytes - wanted; /* what is reserved is taken from others, too */
	return preallocate(writer, bytes + more) == 0 ? 0 : preallocate(writer, bytes);
}

void trace_writer_release(struct trace_writer *writer)
{
	if (writer->fd < 0 || writer->reserved_end == UINT64_MAX || writer->reserved_end <= writer->offset)
		return;
	if (ftruncate(writer->fd, (off_t)writer->offset) == 0)
		writer->reserved_end = writer->offset;
}

/* Writes all bytes at the end of the file, or leaves the file unchanged. */
static int append_bytes(struct trace_writer *writer, const void *bytes, size_t count)
{
	size_t done = 0;

	while (done < count) {
		ssize_t wrote =
		    pwrite(writer->fd, (const char *)bytes + done, count - done, (off_t)(writer->offset + done));

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0) {
			writer->error = wrote < 0 ? -errno : -EIO;
			if (ftruncate(writer->fd, (off_t)writer->offset) < 0)
				return writer->error; /* a reader stops at the last complete chunk anyway */
			return writer->error;
		}
		done += (size_t)wrote;
	}
	writer->offset += count;
	invariant(writer->offset % 8 == 0);
	return 0;
}

/*
 * Locks the file, which shows readers that the trace still grows. The lock ends with the descriptor. Nobody waits for
 * the lock.
 */
static void lock_file(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	fcntl(fd, F_OFD_SETLK, &lock);
}

int trace_writer_open(struct trace_writer *writer, struct trace_packer *packer, int fd, uint64_t created_ns,
		      const uint8_t session[16])
{
	struct trace_header header = {
	    .version = TRACE_VERSION, .header_bytes = sizeof(header), .created_ns = created_ns};
	int error;

	memcpy(header.magic, TRACE_MAGIC, sizeof(header.magic));
	memcpy(header.session, session, sizeof(header.session));
	header.crc = checksum(&header, offsetof(struct trace_header, crc));
	*writer = (struct trace_writer){.fd = fd, .packer = packer};
	lock_file(fd);
	error = append_bytes(writer, &header, sizeof(header));
	if (error)
		writer->fd = -1;
	return error;
}

/* Returns whether both are there. */
static bool make_contexts(struct trace_packer *packer)
{
	if (!packer->context)
		packer->context = ZSTD_createCCtx();
	if (!packer->noise && (packer->noise = ZSTD_createCCtx())) {
		ZSTD_CCtx_setParameter(packer->noise, ZSTD_c_compressionLevel, NOISE_LEVEL);
		ZSTD_CCtx_setParameter(packer->noise, NOISE_LITERALS, NOISE_LITERALS_ALWAYS);
	}
	return packer->context && packer->noise;
}

static size_t compress_part(struct trace_packer *packer, uint8_t *out, size_t room, const uint8_t *raw, size_t bytes,
			    bool noise)
{
	return noise ? ZSTD_compress2(packer->noise, out, room, raw, bytes)
		     : ZSTD_compressCCtx(packer->context, out, room, raw, bytes, ZSTD_LEVEL);
}

/*
 * Packs noise both ways, and keeps what a search found only where it is smaller by a fifth, as in a loop that does
 * nothing else.
 */
static size_t try_noise(struct trace_packer *packer, uint8_t *out, size_t room, const uint8_t *raw, size_t bytes,
			bool *recurs)
{
	size_t searched = compress_part(packer, out, room, raw, bytes, false);
	size_t coded = compress_part(packer, out, room, raw, bytes, true);

	*recurs = !ZSTD_isError(searched) && !ZSTD_isError(coded) && searched * 5 < coded * 4;
	return *recurs ? compress_part(packer, out, room, raw, bytes, false) : coded;
}

/* What was found of the noise of the chunk's thread. A trace numbers its threads in a row, whatever their processes. */
static struct noise_trial *find_trial(struct trace_writer *writer, const struct trace_chunk *chunk)
{
	struct noise_trial *trial = &writer->trials[chunk->thread % TRACE_WRITER_TRIALS];

	if (trial->process != chunk->process || trial->thread != chunk->thread)
		*trial = (struct noise_trial){.process = chunk->process, .thread = chunk->thread};
	return trial;
}

/* Whether a thread's noise is tried after that many chunks. The first trials are close: programs begin with imports. */
static bool is_trial_due(uint32_t chunks)
{
	return chunks < TRIAL_EVERY ? !(chunks & (chunks - 1)) : chunks % TRIAL_EVERY == 0;
}

/* A frame for each part, one after the other. Returns their size, or an error of zstd's. */
static size_t compress_parts(struct trace_packer *packer, uint8_t *out, size_t room, const uint8_t *raw,
			     const struct columns_part *parts, unsigned count, struct noise_trial *trial)
{
	bool due = is_trial_due(trial->chunks++);
	size_t stored = 0;

	for (unsigned i = 0; i < count; raw += parts[i++].bytes) {
		size_t bytes = parts[i].bytes, left = room - stored, size;

		if (parts[i].noise && due)
			size = try_noise(packer, out + stored, left, raw, bytes, &trial->recurs[i]);
		else
			size =
			    compress_part(packer, out + stored, left, raw, bytes, parts[i].noise && !trial->recurs[i]);
		if (ZSTD_isError(size))
			return size;
		stored += size;
	}
	return stored;
}

/* Stores the payload in out, compressed where that helps. Returns its size. */
static size_t compress_payload(struct trace_writer *writer, uint8_t *out, const struct trace_chunk *chunk,
			       const void *raw, size_t raw_bytes, uint16_t *codec)
{
	struct trace_packer *packer = writer->packer;
	struct columns_part parts[COLUMNS_PARTS] = {{.bytes = raw_bytes}};
	size_t events = chunk->events, extras = chunk->extras, stored;
	struct noise_trial none = {0}, *trial = &none;
	unsigned count = 1;

	*codec = TRACE_CODEC_NONE;
	if (raw_bytes >= COMPRESS_MIN_BYTES && make_contexts(packer)) {
		if (chunk->type == TRACE_CHUNK_EVENTS && (events + extras) * 8 == raw_bytes)
			count = columns_parts(events, extras, parts);
		if (count > 1)
			trial = find_trial(writer, chunk);
		stored = compress_parts(packer, out, packer->capacity - sizeof(*chunk) - 8, raw, parts, count, trial);
		if (!ZSTD_isError(stored) && stored < raw_bytes) {
			*codec = TRACE_CODEC_ZSTD;
			return stored;
		}
	}
	if (raw_bytes > 0)
		memcpy(out, raw, raw_bytes);
	return raw_bytes;
}

/* Of all that is not in an index yet, with one entry more. */
static uint64_t index_bytes(const struct trace_writer *writer)
{
	uint64_t entries = writer->entry_count + writer->later + 1;

	return entries * sizeof(writer->entries[0]) + (entries / TRACE_INDEX_EVERY + 1) * sizeof(struct trace_chunk);
}

static uint64_t closing_bytes(const struct trace_writer *writer)
{
	return writer->closing_bytes + index_bytes(writer);
}

/* last: may use the room that is reserved for the end of the file. */
static int write_chunk(struct trace_writer *writer, struct trace_chunk chunk, const void *raw, size_t raw_bytes,
		       bool last)
{
	struct trace_packer *packer = writer->packer;
	uint8_t *payload = packer->out + sizeof(chunk);
	size_t stored;
	size_t padded;

	if (writer->error)
		return writer->error;
	if (raw_bytes > TRACE_WRITER_RAW_MAX_BYTES)
		return -EMSGSIZE;
	chunk.magic = TRACE_CHUNK_MAGIC;
	stored = compress_payload(writer, payload, &chunk, raw, raw_bytes, &chunk.codec);
	chunk.stored_bytes = (uint32_t)stored;
	chunk.raw_bytes = (uint32_t)raw_bytes;
	chunk.payload_crc = checksum(payload, stored);
	chunk.crc = checksum(&chunk, offsetof(struct trace_chunk, crc));
	memcpy(packer->out, &chunk, sizeof(chunk));
	padded = (stored + 7) & ~(size_t)7;
	invariant(stored <= raw_bytes && sizeof(chunk) + padded <= packer->capacity);
	memset(payload + stored, 0, padded - stored);
	if (!last)
		writer->full = reserve_space(writer, sizeof(chunk) + padded + closing_bytes(writer));
	if (!last && writer->full) {
		writer->last_end = writer->offset + closing_bytes(writer);
		return writer->full;
	}
	return append_bytes(writer, packer->out, sizeof(chunk) + padded);
}

static int write_index(struct trace_writer *writer)
{
	struct trace_chunk chunk = {.type = TRACE_CHUNK_INDEX,
				    .process = TRACE_NOBODY,
				    .thread = TRACE_NOBODY,
				    .events = writer->entry_count,
				    .previous = writer->index_offset};
	uint64_t at = writer->offset;
	int error = write_chunk(writer, chunk, writer->entries, writer->entry_count * sizeof(writer->entries[0]), true);

	if (error)
		return error;
	invariant(writer->index_offset < at && at < writer->offset);
	writer->index_offset = at;
	writer->entry_count = 0;
	return 0;
}

/* Makes room for one more entry. The array grows to at most TRACE_INDEX_EVERY entries. */
static int reserve_entry(struct trace_writer *writer)
{
	struct trace_index_entry *entries;
	unsigned capacity = writer->entry_capacity ? writer->entry_capacity * 2 : 64;

	if (writer->entry_count < writer->entry_capacity)
		return 0;
	entries = realloc(writer->entries, capacity * sizeof(entries[0]));
	if (!entries)
		return -ENOMEM;
	writer->entries = entries;
	writer->entry_capacity = capacity;
	return 0;
}

/* Room for it was made. */
static int add_entry(struct trace_writer *writer, const struct trace_index_entry *entry)
{
	invariant(writer->entry_count < writer->entry_capacity && writer->entry_count < TRACE_INDEX_EVERY);
	invariant(!writer->entry_count || writer->entries[writer->entry_count - 1].offset < entry->offset);
	writer->entries[writer->entry_count++] = *entry;
	return writer->entry_count < TRACE_INDEX_EVERY ? 0 : write_index(writer);
}

int trace_writer_index(struct trace_writer *writer, const struct trace_index_entry *entry)
{
	int error = writer->error ? writer->error : reserve_entry(writer);

	return error ? error : add_entry(writer, entry);
}

static int write_indexed(struct trace_writer *writer, const struct trace_chunk *chunk, const void *raw,
			 size_t raw_bytes, bool last)
{
	const struct trace_index_entry entry = trace_index_entry_of(chunk, writer->offset);
	int error = writer->error ? writer->error : reserve_entry(writer);

	if (!error)
		error = write_chunk(writer, *chunk, raw, raw_bytes, last);
	if (error) {
		writer->error = writer->full ? writer->error : error;
		return error;
	}
	return writer->indexes_later ? 0 : add_entry(writer, &entry);
}

int trace_writer_chunk(struct trace_writer *writer, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes)
{
	return writer->full ? writer->full : write_indexed(writer, chunk, raw, raw_bytes, false);
}

/* Whether a chunk leaves room for the index and the end. */
static bool fits_the_end(const struct trace_writer *writer, size_t raw_bytes)
{
	uint64_t chunk_bytes = sizeof(struct trace_chunk) + ((raw_bytes + 7) & ~(size_t)7);

	return writer->offset + chunk_bytes + index_bytes(writer) + sizeof(struct trace_end) <= writer->last_end;
}

int trace_writer_last(struct trace_writer *writer, const struct trace_chunk *chunk, const void *raw, size_t raw_bytes)
{
	if (!writer->error && writer->full && !fits_the_end(writer, raw_bytes))
		return writer->full;
	return write_indexed(writer, chunk, raw, raw_bytes, true);
}

int trace_writer_finish(struct trace_writer *writer, uint64_t events, uint64_t lost, uint32_t processes)
{
	struct trace_end end = {.magic = TRACE_END_MAGIC, .events = events, .lost = lost, .processes = processes};
	int error = writer->error;

	if (!error && (writer->entry_count > 0 || writer->index_offset == 0))
		error = write_index(writer);
	if (error)
		return error;
	end.index_offset = writer->index_offset;
	end.crc = checksum(&end, offsetof(struct trace_end, crc));
	return append_bytes(writer, &end, sizeof(end));
}

bool trace_writer_removed(const struct trace_writer *writer)
{
	struct stat status;

	return writer->fd >= 0 && fstat(writer->fd, &status) == 0 && status.st_nlink == 0;
}

void trace_writer_follow(const struct trace_writer *writer, char path[PATH_MAX])
{
	char link[40], moved[PATH_MAX];
	struct stat own, named;
	ssize_t length;

	if (writer->fd < 0 || fstat(writer->fd, &own) < 0 || own.st_nlink == 0 ||
	    (stat(path, &named) == 0 && named.st_dev == own.st_dev && named.st_ino == own.st_ino))
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", writer->fd);
	length = readlink(link, moved, sizeof(moved) - 1);
	if (length <= 0 || moved[0] != '/')
		return;
	moved[length] = 0;
	strcpy(path, moved);
}

void trace_writer_close(struct trace_writer *writer)
{
	trace_writer_release(writer);
	if (writer->fd >= 0)
		close(writer->fd);
	free(writer->entries);
	*writer = (struct trace_writer){.fd = -1, .error = -EBADF};
}
