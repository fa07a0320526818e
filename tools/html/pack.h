/*
 * pack.h - how data travels inside of the HTML report: columns of numbers, deflated, in base64, in a script
 * element that the browser does not run.
 *
 * Used by export_html.c and html_*.c; the other side is unpack() in html/report.js. A block is
 *
 *   <script type="text/plain" id="b7">
 *           base64(zlib(for each column: length in bytes, uint32_t little-endian; bytes)) </script>
 *
 * and a column is a row of numbers as LEB128. No text of the trace stands in the page in any other way, so that no name
 * can end an element or a string.
 */
#ifndef EVPROF_TOOLS_HTML_PACK_H
#define EVPROF_TOOLS_HTML_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/batches.h"
#include "util/output.h"
#include "util/text.h"

/* All zeros: empty. Memory that runs out is kept in failed, and what comes after it is not stored. */
struct html_column {
	uint8_t *bytes;
	size_t used;
	size_t allocated;
	bool failed;
};

/* Makes room for so many more bytes. */
bool html_column_grow(struct html_column *column, size_t more);
void html_column_done(struct html_column *column);
void html_column_bytes(struct html_column *column, const void *bytes, size_t length);

static inline void html_column_put(struct html_column *column, uint64_t value)
{
	if (column->allocated - column->used < 10 && !html_column_grow(column, 10))
		return;
	for (; value >= 0x80; value >>= 7)
		column->bytes[column->used++] = (uint8_t)(value | 0x80);
	column->bytes[column->used++] = (uint8_t)value;
}

/* Small numbers of either sign: 0, -1, 1, -2 as 0, 1, 2, 3. */
static inline void html_column_signed(struct html_column *column, int64_t value)
{
	uint64_t twice = (uint64_t)value << 1;

	html_column_put(column, value < 0 ? ~twice : twice);
}

/*
 * Writes blocks. A second thread deflates them, in order: until html_packer_wait() or html_packer_end() the output is
 * its own. Used by one thread at a time.
 */
struct html_packer {
	struct batches batches;
	struct html_stream *stream;
};

/* Returns 0 or -ENOMEM. */
int html_packer_begin(struct html_packer *packer, struct output *output);
/* All blocks are in the output. Returns 0 or the first -errno, of memory or of writing. */
int html_packer_wait(struct html_packer *packer);
/* The same, and frees. Also for all zeros. */
int html_packer_end(struct html_packer *packer);

/*
 * Writes a block with that number and empties the columns. Returns 0, -ENOMEM (also for a column that failed), or the
 * first -errno of a block before.
 */
int html_block_write(struct html_packer *packer, uint32_t number, struct html_column *columns, unsigned count);

/* Texts by number, counted from 0: lengths and bytes. A browser shows what is no UTF-8 as U+FFFD. */
struct html_texts {
	struct html_column lengths;
	struct html_column bytes;
	uint32_t count;
};

/* Returns the number of the text. */
uint32_t html_text_add(struct html_texts *texts, struct text text);
void html_texts_done(struct html_texts *texts);

#endif
