/*
 * firefox_spool.c - see firefox_spool.h.
 */
#include "export/firefox_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/digits.h"

int spool_open(struct spool *spool, const struct output *output)
{
	int fd = output_scratch(output->path);

	if (fd < 0)
		return fd;
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

struct output *spool_begin(struct spool *spool)
{
	output_put(&spool->column, ",", spool->any);
	spool->any = true;
	return &spool->column;
}

int spool_empty(struct spool *spool)
{
	spool->any = false;
	return lseek(spool->column.fd, 0, SEEK_SET) < 0 || ftruncate(spool->column.fd, 0) < 0 ? -errno : 0;
}

/* Passes the contents to `put` with owner, piece by piece. Returns 0 or the first -errno, also of the output. */
static int read_spool(struct spool *spool, const struct output *output,
		      void (*put)(void *owner, const uint8_t *bytes, size_t length), void *owner)
{
	uint8_t bytes[1 << 14];
	ssize_t length;
	off_t at = 0;

	output_flush(&spool->column);
	if (spool->column.error)
		return spool->column.error;
	while ((length = pread(spool->column.fd, bytes, sizeof(bytes), at)) > 0 && !output->error) {
		put(owner, bytes, (size_t)length);
		at += length;
	}
	return length < 0 ? -errno : output->error;
}

static void copy_bytes(void *owner, const uint8_t *bytes, size_t length)
{
	output_put(owner, bytes, length);
}

int spool_copy(struct spool *spool, struct output *output)
{
	int error = read_spool(spool, output, copy_bytes, output);

	return error ? error : spool_empty(spool);
}

#define MS_BYTES (DIGITS_MAX + 8)

/* Writes the fraction after the whole ms: 234567 as .234567, 200000 as .2, 0 as nothing. */
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

/* Writes ns as ms, exactly: 1234567 as 1.234567. May change up to MS_BYTES bytes. */
static inline char *put_ms(struct digits_near *near, char *at, uint64_t ns)
{
	uint32_t rest = digits_near(near, ns);

	memcpy(at, near->text, DIGITS_MAX);
	return put_fraction(at + near->length, rest);
}

void output_ms(struct output *output, uint64_t ns)
{
	struct digits_near near = {0};
	char *at = output_room(output, MS_BYTES);

	output_take(output, (size_t)(put_ms(&near, at, ns) - at));
}

/* --- columns made from lengths --- */

struct column {
	struct output *output;
	struct digits_near near;
	uint64_t ns; /* begin of the next sample */
	bool weights;
	bool any;
	uint64_t value; /* low bits of a length that ends in the next block of bytes */
	unsigned shift; /* number of these bits */
};

static inline void put_element(struct column *column, uint64_t value)
{
	uint64_t weight = value & 1 ? value >> 1 : 0;
	char *room = output_room(column->output, MS_BYTES + 1);
	char *at = room;

	*at = ',';
	at = put_ms(&column->near, at + column->any, column->weights ? weight : column->ns);
	output_take(column->output, (size_t)(at - room));
	column->ns += value >> 1;
	column->any = true;
}

static void put_elements(void *owner, const uint8_t *bytes, size_t length)
{
	struct column *column = owner;
	uint64_t value = column->value;
	unsigned shift = column->shift;

	for (size_t i = 0; i < length; i++) {
		value |= (uint64_t)(bytes[i] & 0x7f) << shift;
		shift += 7;
		if (bytes[i] & 0x80)
			continue;
		put_element(column, value);
		value = 0;
		shift = 0;
	}
	column->value = value;
	column->shift = shift;
}

int spool_times(struct spool *spool, int64_t first_ns, struct output *output)
{
	return read_spool(spool, output, put_elements, &(struct column){.output = output, .ns = (uint64_t)first_ns});
}

int spool_weights(struct spool *spool, struct output *output)
{
	return read_spool(spool, output, put_elements, &(struct column){.output = output, .weights = true});
}
