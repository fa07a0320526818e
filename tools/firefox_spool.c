/*
 * firefox_spool.c - see firefox_spool.h.
 *
 * The columns that are made of lengths are most of the output: two threads write them, a piece each in turn.
 */
#include "firefox_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batches.h"
#include "digits.h"

int spool_open(struct spool *spool, const struct output *output)
{
	const char *slash = output->path ? strrchr(output->path, '/') : NULL;
	const char *fallback = getenv("TMPDIR");
	char *name;
	int fd, length;

	if (output->path)
		length =
		    asprintf(&name, "%.*s.evprof-XXXXXX", slash ? (int)(slash + 1 - output->path) : 0, output->path);
	else
		length = asprintf(&name, "%s/evprof-XXXXXX", fallback && fallback[0] ? fallback : "/tmp");
	if (length < 0)
		return -ENOMEM;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	free(name);
	if (fd < 0)
		return -errno;
	if (output_open_nowhere(&spool->column) < 0) {
		close(fd);
		return -ENOMEM;
	}
	spool->column.fd = fd;
	return 0;
}

void spool_close(struct spool *spool)
{
	if (spool->column.buffer)
		output_abandon(&spool->column);
}

void spool_put(struct spool *spool, const char *text, size_t length)
{
	output_put(&spool->column, ",", spool->any);
	spool->any = true;
	output_put(&spool->column, text, length);
}

int spool_empty(struct spool *spool)
{
	spool->any = false;
	return lseek(spool->column.fd, 0, SEEK_SET) < 0 || ftruncate(spool->column.fd, 0) < 0 ? -errno : 0;
}

int spool_copy(struct spool *spool, struct output *output)
{
	char bytes[1 << 14];
	ssize_t length;
	off_t at = 0;

	output_flush(&spool->column);
	if (spool->column.error)
		return spool->column.error;
	while ((length = pread(spool->column.fd, bytes, sizeof(bytes), at)) > 0) {
		output_put(output, bytes, (size_t)length);
		at += length;
	}
	if (length < 0)
		return -errno;
	return output->error ? output->error : spool_empty(spool);
}

#define MS_BYTES (DIGITS_MAX + 8)

/* Behind the digits of the whole ms: 234567 as .234567, 200000 as .2, 0 as nothing. */
static inline char *put_fraction(char *at, uint32_t ns)
{
	if (!ns)
		return at;
	*at = '.';
	digits_six(at + 1, ns);
	for (at += 7; at[-1] == '0'; at--)
		;
	return at;
}

/* ns as ms, exactly: 1234567 as 1.234567. At most MS_BYTES may be changed. */
static inline char *put_ms(struct digits_near *near, char *at, uint64_t ns)
{
	uint32_t rest = digits_near(near, ns);

	memcpy(at, near->text, DIGITS_MAX);
	return put_fraction(at + near->length, rest);
}

void spool_ms(struct spool *spool, uint64_t ns)
{
	struct digits_near near = {0};
	char *room = output_room(&spool->column, MS_BYTES + 1);
	char *at = room;

	*at = ',';
	at = put_ms(&near, at + spool->any, ns);
	output_take(&spool->column, (size_t)(at - room));
	spool->any = true;
}

void output_ms(struct output *output, uint64_t ns)
{
	struct digits_near near = {0};
	char *at = output_room(output, MS_BYTES);

	output_take(output, (size_t)(put_ms(&near, at, ns) - at));
}

/* --- columns that are made of lengths --- */

#define PIECE 32768 /* elements that are written at a time */

struct column {
	const struct spool *spool;
	off_t at;    /* in the spool */
	uint64_t ns; /* where the next sample begins */
	bool weights;
	uint64_t value;	 /* of the length that ends in the next bytes */
	unsigned shift;	 /* bits of it that are there */
	uint8_t *bytes;	 /* PIECE of them */
	uint64_t *piece; /* of this thread, PIECE elements */
	/* The second thread's, until batches_wait(). */
	size_t given; /* elements of its piece */
	char *text;   /* which it makes of them */
	char *text_end;
};

static inline uint64_t next_element(struct column *column, uint64_t value)
{
	uint64_t begins = column->ns;

	column->ns += value >> 1;
	if (column->weights)
		return value & 1 ? value >> 1 : 0;
	return begins;
}

/* The elements of the next bytes; there are no more of them than bytes. */
static size_t decode(struct column *column, size_t length, uint64_t *piece)
{
	size_t count = 0, i;

	for (i = 0; i < length; i++) {
		column->value |= (uint64_t)(column->bytes[i] & 0x7f) << column->shift;
		column->shift += 7;
		if (column->bytes[i] & 0x80)
			continue;
		piece[count++] = next_element(column, column->value);
		column->value = 0;
		column->shift = 0;
	}
	return count;
}

/* Reads the next piece. Returns the number of its elements, 0 behind the last, or -errno. */
static ssize_t take_piece(struct column *column, uint64_t *piece)
{
	ssize_t length;
	size_t count = 0;

	do {
		length = pread(column->spool->column.fd, column->bytes, PIECE, column->at);
		if (length > 0) {
			column->at += length;
			count = decode(column, (size_t)length, piece);
		}
	} while ((length > 0 && !count) || (length < 0 && errno == EINTR));
	return length < 0 ? -errno : (ssize_t)count;
}

/* With a comma before each. Returns the place behind. */
static char *put_elements(char *at, const uint64_t *elements, size_t count)
{
	struct digits_near near = {0};
	size_t i;

	for (i = 0; i < count; i++) {
		*at = ',';
		at = put_ms(&near, at + 1, elements[i]);
	}
	return at;
}

/* The second thread's. */
static int write_piece(void *owner, const char *bytes, size_t used)
{
	struct column *column = owner;

	(void)used;
	column->text_end = put_elements(column->text, (const uint64_t *)bytes, column->given);
	return 0;
}

static void output_elements(struct output *output, const uint64_t *elements, size_t count)
{
	size_t step = OUTPUT_BUFFER_BYTES / (MS_BYTES + 1), i;

	for (i = 0; i < count; i += step) {
		size_t some = count - i < step ? count - i : step;
		char *room = output_room(output, some * (MS_BYTES + 1));

		output_take(output, (size_t)(put_elements(room, elements + i, some) - room));
	}
}

/* Gives the next piece to the second thread. Returns as take_piece(). */
static ssize_t give_piece(struct column *column, struct batches *batches)
{
	uint64_t *room = batches_room(batches, PIECE * sizeof(*room));
	ssize_t count = room ? take_piece(column, room) : -ENOMEM;

	column->given = count > 0 ? (size_t)count : 0;
	batches_pass(batches);
	return count;
}

/* What is behind the first piece. */
static int put_rest(struct column *column, struct output *output)
{
	struct batches batches;
	ssize_t own, given = 0;

	batches_begin(&batches, write_piece, column);
	while ((own = take_piece(column, column->piece)) > 0 && !output->error) {
		given = give_piece(column, &batches);
		output_elements(output, column->piece, (size_t)own);
		batches_wait(&batches);
		if (given < 0)
			break;
		output_put(output, column->text, (size_t)(column->text_end - column->text));
	}
	batches_end(&batches);
	if (own < 0 || given < 0)
		return (int)(own < 0 ? own : given);
	return output->error;
}

static int put_column(struct column *column, struct output *output)
{
	ssize_t count = take_piece(column, column->piece);

	if (count <= 0)
		return (int)count;
	output_ms(output, column->piece[0]);
	output_elements(output, column->piece + 1, (size_t)count - 1);
	/* The file stands where it was written to. */
	return column->at < lseek(column->spool->column.fd, 0, SEEK_CUR) ? put_rest(column, output) : output->error;
}

static int make_column(struct column *column, struct output *output)
{
	int error = -ENOMEM;

	column->bytes = malloc(PIECE);
	column->piece = malloc(PIECE * sizeof(*column->piece));
	column->text = column->text_end = malloc(PIECE * (MS_BYTES + 1));
	if (column->bytes && column->piece && column->text)
		error = put_column(column, output);
	free(column->bytes);
	free(column->piece);
	free(column->text);
	return error;
}

static int flushed(struct spool *spool)
{
	output_flush(&spool->column);
	return spool->column.error;
}

int spool_times(struct spool *spool, int64_t first_ns, struct output *output)
{
	struct column column = {.spool = spool, .ns = (uint64_t)first_ns};
	int error = flushed(spool);

	return error ? error : make_column(&column, output);
}

int spool_weights(struct spool *spool, struct output *output)
{
	struct column column = {.spool = spool, .weights = true};
	int error = flushed(spool);

	return error ? error : make_column(&column, output);
}
