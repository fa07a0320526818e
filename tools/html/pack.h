/*
 * pack.h - the encoding of data in the HTML report: columns of numbers, deflated, in base64, in a script element that
 * the browser does not run.
 *
 * Used by the files of tools/html; script/data.js decodes it in unpack(). A block is
 *
 *   <script type="text/plain" id="b7">
 *           base64(zlib(for each column: length in bytes, uint32_t little-endian; bytes)) </script>
 *
 * and a column is a sequence of numbers as LEB128. The page holds text of the trace in this form only, so no name can
 * end an element or a string.
 */
#ifndef EVPROF_TOOLS_HTML_PACK_H
#define EVPROF_TOOLS_HTML_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/batches.h"
#include "util/output.h"
#include "util/text.h"

/* All zeros: empty. If memory runs out, failed is set and later values are dropped. */
struct html_column {
	uint8_t *bytes;
	size_t used;
	size_t allocated;
	bool failed;
};

/* Makes room for more bytes. */
bool html_column_grow(struct html_column *column, size_t more);
void html_columns_done(struct html_column *columns, unsigned count);
void html_column_bytes(struct html_column *column, const void *bytes, size_t length);

static inline void html_column_put(struct html_column *column, uint64_t value)
{
	if (column->allocated - column->used < 10 && !html_column_grow(column, 10))
		return;
	for (; value >= 0x80; value >>= 7)
		column->bytes[column->used++] = (uint8_t)(value | 0x80);
	column->bytes[column->used++] = (uint8_t)value;
}

/* Appends a row: a number to each column. */
static inline void html_row_put(struct html_column *columns, const uint64_t *row, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		html_column_put(&columns[i], row[i]);
}

/* Appends a signed number, zigzag-encoded: 0, -1, 1, -2 as 0, 1, 2, 3. */
static inline void html_column_signed(struct html_column *column, int64_t value)
{
	uint64_t twice = (uint64_t)value << 1;

	html_column_put(column, value < 0 ? ~twice : twice);
}

/*
 * Writes blocks. A second thread deflates them, in order; it owns the output until html_packer_wait() or
 * html_packer_end(). For use by one thread at a time.
 */
struct html_packer {
	struct batches batches;
	struct html_stream *stream;
};

/* Returns 0 or -ENOMEM. */
int html_packer_begin(struct html_packer *packer, struct output *output);
/* Waits until all blocks are in the output. Returns 0 or the first -errno, of memory or of writing. */
int html_packer_wait(struct html_packer *packer);
/* Like html_packer_wait(), and frees the packer. An all-zero struct is fine. */
int html_packer_end(struct html_packer *packer);

/*
 * Writes a block with that number and empties the columns. Returns 0 or the first -errno of any block: -ENOMEM also if
 * a column failed. html_packer_wait() returns it, too.
 */
int html_block_write(struct html_packer *packer, uint32_t number, struct html_column *columns, unsigned count);

/* Texts by number, from 0: lengths and bytes. Browsers show invalid UTF-8 as U+FFFD. */
struct html_texts {
	struct html_column columns[2];
	uint32_t count;
};

/* Returns the number of the text. */
uint32_t html_text_add(struct html_texts *texts, struct text text);

#endif
