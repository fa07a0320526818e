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

#include "export/deflate.h"
#include "util/grow.h"

#define VERSION_NEEDED 20	   /* 2.0: deflate */
#define MADE_BY (3u << 8 | 20)	   /* Unix, 2.0 */
#define FLAGS (1u << 3 | 1u << 11) /* lengths follow the data; names are UTF-8 */
#define METHOD_DEFLATE 8
#define REGULAR_FILE_MODE 0100644u

static void put_bytes(struct zip_writer *zip, const void *bytes, size_t length)
{
	output_put(zip->output, bytes, length);
	zip->offset += length;
}

/* Writes fields of 16 bits. U32() is two of them. */
static void put_fields(struct zip_writer *zip, const uint16_t *fields, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put_bytes(zip, (unsigned char[]){(unsigned char)fields[i], (unsigned char)(fields[i] >> 8)}, 2);
}

#define U32(Value) (uint16_t)(Value), (uint16_t)((Value) >> 16)
#define PUT_FIELDS(zip, ...)                                                                                           \
	put_fields(zip, (const uint16_t[]){__VA_ARGS__}, sizeof((const uint16_t[]){__VA_ARGS__}) / sizeof(uint16_t))

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
static void put_shared_fields(struct zip_writer *zip, const struct zip_entry *entry)
{
	PUT_FIELDS(zip, VERSION_NEEDED, FLAGS, METHOD_DEFLATE, U32(entry->time), U32(entry->crc),
		   U32(entry->packed_bytes), U32(entry->bytes), (uint16_t)strlen(entry->name), 0);
}

static int deflate_file(struct zip_writer *zip, struct zip_entry *entry, z_stream *stream, int fd)
{
	unsigned char piece[1 << 16];
	uint64_t bytes = 0, start = zip->offset;
	ssize_t length;

	while ((length = read(fd, piece, sizeof(piece))) != 0) {
		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0)
			return -errno;
		entry->crc = (uint32_t)crc32(entry->crc, piece, (uInt)length);
		zip->offset += deflate_put(stream, zip->output, piece, (size_t)length, Z_NO_FLUSH);
		bytes += (uint64_t)length;
		if (bytes > UINT32_MAX || zip->offset > UINT32_MAX)
			return -EFBIG;
	}
	zip->offset += deflate_put(stream, zip->output, NULL, 0, Z_FINISH);
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
	put_bytes(zip, "PK\3\4", 4);
	put_shared_fields(zip, entry);
	put_bytes(zip, name, strlen(name));
	error = deflate_file(zip, entry, &stream, fd);
	deflateEnd(&stream);
	if (error)
		return error;
	put_bytes(zip, "PK\7\10", 4);
	PUT_FIELDS(zip, U32(entry->crc), U32(entry->packed_bytes), U32(entry->bytes));
	return 0;
}

static void put_central_header(struct zip_writer *zip, const struct zip_entry *entry)
{
	put_bytes(zip, "PK\1\2", 4);
	PUT_FIELDS(zip, MADE_BY);
	put_shared_fields(zip, entry);
	/* Comment, disk, internal attributes. */
	PUT_FIELDS(zip, 0, 0, 0, U32(REGULAR_FILE_MODE << 16), U32((uint32_t)entry->offset));
	put_bytes(zip, entry->name, strlen(entry->name));
}

int zip_end(struct zip_writer *zip)
{
	uint64_t start = zip->offset, size;

	for (uint32_t i = 0; i < zip->count; i++)
		put_central_header(zip, &zip->entries[i]);
	size = zip->offset - start;
	if (zip->offset > UINT32_MAX)
		return -EFBIG;
	put_bytes(zip, "PK\5\6", 4);
	/* Disks before, comment behind. */
	PUT_FIELDS(zip, U32(0), (uint16_t)zip->count, (uint16_t)zip->count, U32((uint32_t)size), U32((uint32_t)start),
		   0);
	return 0;
}

void zip_done(struct zip_writer *zip)
{
	for (uint32_t i = 0; i < zip->count; i++)
		free(zip->entries[i].name);
	free(zip->entries);
	*zip = (struct zip_writer){0};
}
