/*
 * zip_writer.h - writes a zip file sequentially into an output. For export --zip.
 *
 * Names are UTF-8 and relative, which the caller ensures. Limits: each file and the whole zip are below 4 GiB, with at
 * most 65535 files.
 */
#ifndef EVPROF_TOOLS_EXPORT_ZIP_WRITER_H
#define EVPROF_TOOLS_EXPORT_ZIP_WRITER_H

#include <stdint.h>

#include "util/output.h"

struct zip_entry {
	char *name;
	uint64_t offset;
	uint32_t crc;
	uint32_t packed_bytes;
	uint32_t bytes;
	uint32_t time; /* DOS: date << 16 | time */
};

struct zip_writer {
	struct output *output;
	uint64_t offset; /* bytes written so far */
	struct zip_entry *entries;
	uint32_t count;
	size_t allocated;
};

void zip_begin(struct zip_writer *zip, struct output *output);
/*
 * Adds the contents of fd from its current position to its end, with its time of last change. Returns 0, the -errno of
 * reading, -ENOMEM, or -EFBIG. After an error the zip is unusable. Errors in writing are kept in the output.
 */
int zip_add(struct zip_writer *zip, const char *name, int fd);
/* Writes the central directory. Returns 0 or -EFBIG. */
int zip_end(struct zip_writer *zip);
void zip_done(struct zip_writer *zip);

#endif
