/*
 * zip_writer.c - zip with deflate (APPNOTE.TXT 6.3), on top of zlib. See zip_writer.h.
 *
 * No zip library is used. libzip reads sources when it closes the archive, replaces files itself, and depends on
 * libraries for encryption and four more compressions; minizip seeks in its output. Both would need a layer as large as
 * this file to write through util/output.h, which handles stdout and files that appear only when they are complete.
 * libarchive writes to a callback, would save 130 lines, and brings libxml2, ICU and seven more libraries (38 MB) to
 * each start of evprof, which takes 2.3 to 3.0 ms then instead of 0.8. Without updating, encryption and 64-bit sizes,
 * zip is three records around zlib's deflate(), and zlib is linked already.
 *
 *   for each file: local header, deflated bytes, data descriptor with the lengths
 *   for each file: central header
 *   end
 */
#include "export/zip_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "util/grow.h"

#define VERSION_NEEDED 20	   /* 2.0: deflate */
#define MADE_BY (3u << 8 | 20)	   /* Unix, 2.0 */
#define FLAGS (1u << 3 | 1u << 11) /* lengths follow the data; names are UTF-8 */
#define METHOD_DEFLATE 8
#define REGULAR_FILE_MODE 0100644u
#define PIECE_BYTES 65536

static void put(struct zip_writer *zip, const void *bytes, size_t length)
{
	output_put(zip->output, bytes, length);
	zip->offset += length;
}

static void put16(struct zip_writer *zip, uint32_t value)
{
	put(zip, (unsigned char[]){(unsigned char)value, (unsigned char)(value >> 8)}, 2);
}

static void put32(struct zip_writer *zip, uint32_t value)
{
	put16(zip, value & 0xffff);
	put16(zip, value >> 16);
}

static uint32_t dos_time(time_t when)
{
	struct tm parts;

	/* DOS time starts in 1980 and ends in 2107. */
	if (!localtime_r(&when, &parts) || parts.tm_year < 80 || parts.tm_year > 207)
		return 1u << 21 | 1u << 16;
	return (uint32_t)(parts.tm_year - 80) << 25 | (uint32_t)(parts.tm_mon + 1) << 21 |
	       (uint32_t)parts.tm_mday << 16 | (uint32_t)parts.tm_hour << 11 | (uint32_t)parts.tm_min << 5 |
	       (uint32_t)parts.tm_sec / 2;
}

void zip_begin(struct zip_writer *zip, struct output *output)
{
	*zip = (struct zip_writer){.output = output};
}

static struct zip_entry *new_entry(struct zip_writer *zip, const char *name, int fd)
{
	struct zip_entry *entry;
	struct stat status;

	if (grow_by_one(&zip->entries, &zip->allocated, zip->count, sizeof(*zip->entries)))
		return NULL;
	entry = &zip->entries[zip->count];
	*entry = (struct zip_entry){.name = strdup(name), .offset = zip->offset};
	if (!entry->name)
		return NULL;
	entry->time = dos_time(fstat(fd, &status) == 0 ? status.st_mtime : 0);
	zip->count++;
	return entry;
}

/* Writes the fields that local and central headers share. */
static void put_common(struct zip_writer *zip, const struct zip_entry *entry)
{
	put16(zip, VERSION_NEEDED);
	put16(zip, FLAGS);
	put16(zip, METHOD_DEFLATE);
	put32(zip, entry->time);
	put32(zip, entry->crc);
	put32(zip, entry->packed_bytes);
	put32(zip, entry->bytes);
	put16(zip, (uint32_t)strlen(entry->name));
	put16(zip, 0);
}

static void deflate_piece(struct zip_writer *zip, z_stream *stream, int flush)
{
	unsigned char packed[PIECE_BYTES];

	do {
		stream->next_out = packed;
		stream->avail_out = sizeof(packed);
		deflate(stream, flush);
		put(zip, packed, sizeof(packed) - stream->avail_out);
	} while (stream->avail_out == 0);
}

static int deflate_all(struct zip_writer *zip, struct zip_entry *entry, z_stream *stream, int fd)
{
	unsigned char piece[PIECE_BYTES];
	uint64_t bytes = 0, start = zip->offset;
	ssize_t length;

	while ((length = read(fd, piece, sizeof(piece))) != 0) {
		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0)
			return -errno;
		entry->crc = (uint32_t)crc32(entry->crc, piece, (uInt)length);
		stream->next_in = piece;
		stream->avail_in = (uInt)length;
		deflate_piece(zip, stream, Z_NO_FLUSH);
		bytes += (uint64_t)length;
		if (bytes > UINT32_MAX || zip->offset > UINT32_MAX)
			return -EFBIG;
	}
	stream->avail_in = 0;
	deflate_piece(zip, stream, Z_FINISH);
	entry->bytes = (uint32_t)bytes;
	entry->packed_bytes = (uint32_t)(zip->offset - start);
	return zip->offset > UINT32_MAX ? -EFBIG : 0;
}

int zip_add(struct zip_writer *zip, const char *name, int fd)
{
	struct zip_entry *entry;
	z_stream stream = {0};
	int error;

	if (zip->count == UINT16_MAX || strlen(name) > UINT16_MAX)
		return -EFBIG;
	entry = new_entry(zip, name, fd);
	if (!entry ||
	    deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	put(zip, "PK\3\4", 4);
	put_common(zip, entry);
	put(zip, name, strlen(name));
	error = deflate_all(zip, entry, &stream, fd);
	deflateEnd(&stream);
	if (error)
		return error;
	put(zip, "PK\7\10", 4);
	put32(zip, entry->crc);
	put32(zip, entry->packed_bytes);
	put32(zip, entry->bytes);
	return 0;
}

static void put_central(struct zip_writer *zip, const struct zip_entry *entry)
{
	put(zip, "PK\1\2", 4);
	put16(zip, MADE_BY);
	put_common(zip, entry);
	put16(zip, 0); /* comment */
	put16(zip, 0); /* disk */
	put16(zip, 0); /* internal attributes */
	put32(zip, REGULAR_FILE_MODE << 16);
	put32(zip, (uint32_t)entry->offset);
	put(zip, entry->name, strlen(entry->name));
}

int zip_end(struct zip_writer *zip)
{
	uint64_t start = zip->offset, size;

	for (uint32_t i = 0; i < zip->count; i++)
		put_central(zip, &zip->entries[i]);
	size = zip->offset - start;
	if (zip->offset > UINT32_MAX)
		return -EFBIG;
	put(zip, "PK\5\6", 4);
	put32(zip, 0); /* disks */
	put16(zip, zip->count);
	put16(zip, zip->count);
	put32(zip, (uint32_t)size);
	put32(zip, (uint32_t)start);
	put16(zip, 0); /* comment */
	return 0;
}

void zip_done(struct zip_writer *zip)
{
	for (uint32_t i = 0; i < zip->count; i++)
		free(zip->entries[i].name);
	free(zip->entries);
	*zip = (struct zip_writer){0};
}
