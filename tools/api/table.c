/*
 * table.c - see table.h. Columns are mapped, not allocated: an estimate that is too high costs nothing, growing moves
 * pages instead of copying, and large columns get huge pages, without which half of the time of a large table goes to
 * page faults.
 */
#include "api/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/api.h"

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1U
#endif
#define HUGE_BYTES ((size_t)2 << 20)
#define HUGE_FROM_BYTES (2 * HUGE_BYTES)

size_t table_value_bytes(enum table_type type)
{
	static const uint8_t bytes[] = {
	    [TABLE_INT8] = 1, [TABLE_INT16] = 2, [TABLE_INT32] = 4, [TABLE_INT64] = 8, [TABLE_DOUBLE] = 8};

	return bytes[type];
}

const char *table_format(enum table_type type)
{
	static const char *const formats[] = {
	    [TABLE_INT8] = "c", [TABLE_INT16] = "s", [TABLE_INT32] = "i", [TABLE_INT64] = "l", [TABLE_DOUBLE] = "g"};

	return formats[type];
}

struct evprof_table *table_new(const struct table_field *fields, uint32_t count)
{
	struct evprof_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->references = 1;
	table->column_count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct table_column *column = &table->columns[i];

		column->field = &fields[i];
		if (!fields[i].text)
			continue;
		column->texts = texts_new();
		if (!column->texts) {
			table_drop(table);
			return NULL;
		}
	}
	return table;
}

void table_use_texts(struct evprof_table *table, uint32_t column, struct texts *texts)
{
	texts_drop(table->columns[column].texts);
	table->columns[column].texts = texts ? texts_share(texts) : NULL;
}

struct evprof_table *table_share(struct evprof_table *table)
{
	atomic_fetch_add_explicit(&table->references, 1, memory_order_relaxed);
	return table;
}

void table_drop(struct evprof_table *table)
{
	if (!table || atomic_fetch_sub_explicit(&table->references, 1, memory_order_acq_rel) > 1)
		return;
	for (uint32_t i = 0; i < table->column_count; i++) {
		if (table->columns[i].map)
			munmap(table->columns[i].map, table->columns[i].map_bytes);
		texts_drop(table->columns[i].texts);
	}
	free(table);
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t to_pages(size_t bytes)
{
	size_t page = page_bytes();

	return (bytes + page - 1) / page * page;
}

/* The first memory of a column. */
static int map_column(struct table_column *column, size_t bytes)
{
	bool large = bytes >= HUGE_FROM_BYTES;
	size_t map_bytes = to_pages(bytes) + (large ? HUGE_BYTES : 0);
	char *map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return -ENOMEM;
	column->map = column->data = map;
	column->map_bytes = map_bytes;
	if (large) {
		column->data = map + (HUGE_BYTES - (uintptr_t)map % HUGE_BYTES) % HUGE_BYTES;
		madvise(column->data, to_pages(bytes), MADV_HUGEPAGE);
	}
	return 0;
}

static int grow_column(struct table_column *column, size_t bytes)
{
	size_t before = (size_t)((char *)column->data - (char *)column->map);
	size_t map_bytes = to_pages(before + bytes);
	char *map = mremap(column->map, column->map_bytes, map_bytes, MREMAP_MAYMOVE);

	if (map == MAP_FAILED)
		return -ENOMEM;
	column->map = map;
	column->map_bytes = map_bytes;
	column->data = map + before;
	if (bytes >= HUGE_FROM_BYTES)
		madvise(map, map_bytes, MADV_HUGEPAGE);
	return 0;
}

int table_reserve(struct evprof_table *table, uint64_t rows)
{
	if (rows <= table->allocated)
		return 0;
	for (uint32_t i = 0; i < table->column_count; i++) {
		struct table_column *column = &table->columns[i];
		size_t bytes;
		int error;

		if (__builtin_mul_overflow(rows, table_value_bytes(column->field->type), &bytes) ||
		    bytes > SIZE_MAX / 4)
			return -ENOMEM;
		error = column->map ? grow_column(column, bytes) : map_column(column, bytes);
		if (error)
			return error;
	}
	table->allocated = rows;
	return 0;
}

int table_reserve_one(struct evprof_table *table)
{
	if (table->rows < table->allocated)
		return 0;
	return table_reserve(table, table->allocated ? 2 * table->allocated : 512);
}

/* A descriptor of HUGE_BYTES of memory with the value in all places, or -1. */
static int make_block(int32_t value)
{
	int fd = (int)syscall(SYS_memfd_create, "evprof-table", MFD_CLOEXEC);
	int32_t *block = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, (off_t)HUGE_BYTES) == 0)
		block = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (block == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	for (size_t i = 0; i < HUGE_BYTES / sizeof(*block); i++)
		block[i] = value;
	munmap(block, HUGE_BYTES);
	return fd;
}

/* Maps the block over as many whole blocks of the column as there are. Returns the number of bytes that have it. */
static size_t map_blocks(char *data, size_t bytes, int32_t value)
{
	size_t done = 0;
	int fd = bytes >= HUGE_FROM_BYTES ? make_block(value) : -1;

	if (fd < 0)
		return 0;
	while (bytes - done >= HUGE_BYTES &&
	       mmap(data + done, HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) != MAP_FAILED)
		done += HUGE_BYTES;
	close(fd);
	return done;
}

void table_fill_int32(struct evprof_table *table, uint32_t column, int32_t value)
{
	int32_t *data = table_int32(table, column);
	size_t bytes = (size_t)table->rows * sizeof(*data);
	size_t done = (uintptr_t)data % page_bytes() == 0 ? map_blocks((char *)data, bytes, value) : 0;

	for (uint64_t i = done / sizeof(*data); i < table->rows; i++)
		data[i] = value;
}

void table_trim(struct evprof_table *table)
{
	for (uint32_t i = 0; i < table->column_count; i++) {
		struct table_column *column = &table->columns[i];
		size_t bytes = table->rows * table_value_bytes(column->field->type);
		size_t kept = to_pages((size_t)((char *)column->data - (char *)column->map) + bytes);

		kept = kept ? kept : page_bytes();
		if (!column->map || kept >= column->map_bytes)
			continue;
		munmap((char *)column->map + kept, column->map_bytes - kept);
		column->map_bytes = kept;
	}
	table->allocated = table->rows;
}

bool table_put_text(struct evprof_table *table, uint32_t column, struct text text)
{
	uint32_t number = texts_add(table->columns[column].texts, text);

	table_int32(table, column)[table->rows] = (int32_t)number;
	return number != TEXTS_NONE;
}

int table_begin_row(struct evprof_table *table, struct text file, uint32_t line, struct text name)
{
	if (table_reserve_one(table) < 0)
		return -ENOMEM;
	table_int32(table, 1)[table->rows] = (int32_t)(line & INT32_MAX);
	return table_put_text(table, 0, file) && table_put_text(table, 2, name) ? 0 : -ENOMEM;
}

void table_end_row(struct evprof_table *table, uint32_t column, const uint64_t *numbers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		table_int64(table, column + i)[table->rows] = (int64_t)numbers[i];
	table->rows++;
}

/* --- for callers of the library --- */

uint64_t evprof_table_rows(const struct evprof_table *table)
{
	return table->rows;
}

uint32_t evprof_table_columns(const struct evprof_table *table)
{
	return table->column_count;
}

void evprof_table_column(const struct evprof_table *table, uint32_t number, struct evprof_column *column)
{
	const struct table_column *own = &table->columns[number];

	*column = (struct evprof_column){
	    .name = own->field->name, .format = table_format(own->field->type), .data = own->data};
	if (!own->texts)
		return;
	column->text_bytes = own->texts->bytes;
	column->text_offsets = own->texts->offsets;
	column->text_count = own->texts->count;
}

void evprof_table_free(struct evprof_table *table)
{
	table_drop(table);
}
