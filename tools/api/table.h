/*
 * table.h - a table: columns of numbers, or of indices of texts, each in one block of memory.
 *
 * It is filled by one thread; after that it never changes, and any thread may read it. References are counted.
 */
#ifndef EVPROF_TOOLS_API_TABLE_H
#define EVPROF_TOOLS_API_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/texts.h"

enum table_type { TABLE_INT8, TABLE_INT16, TABLE_INT32, TABLE_INT64, TABLE_DOUBLE };

/* What a column is, in a table of constants. */
struct table_field {
	const char *name;
	enum table_type type;
	bool text;
};

struct table_column {
	const struct table_field *field;
	struct texts *texts; /* NULL: numbers */
	void *data;
	void *map; /* of mmap(); NULL: none. data is in it */
	size_t map_bytes;
};

#define TABLE_COLUMNS_MAX 16

struct evprof_table {
	_Atomic uint32_t references;
	uint32_t column_count;
	uint64_t rows;
	uint64_t allocated; /* rows that there is room for */
	struct table_column columns[TABLE_COLUMNS_MAX];
};

size_t table_value_bytes(enum table_type type);
const char *table_format(enum table_type type); /* of Arrow */

/* A table without rows, with one reference. fields are constant. NULL if memory ran out. */
struct evprof_table *table_new(const struct table_field *fields, uint32_t count);
/* Has a column share these texts, in place of its own. NULL: it is one of numbers. Before there are rows. */
void table_use_texts(struct evprof_table *table, uint32_t column, struct texts *texts);
struct evprof_table *table_share(struct evprof_table *table);
void table_drop(struct evprof_table *table); /* may be NULL */

/*
 * Makes room for so many rows. New memory is zero. Addresses of columns may change. Memory that is not written takes no
 * room, so a generous estimate at first is cheaper than growing. Returns 0 or -ENOMEM.
 */
int table_reserve(struct evprof_table *table, uint64_t rows);
/* Makes room for one more row. */
int table_reserve_one(struct evprof_table *table);
/*
 * Writes a value to all rows of a column of int32 in which nothing was written. The pages of a long column are one
 * block of memory, mapped again and again: to clear and write new ones takes longer than what makes the rows.
 */
void table_fill_int32(struct evprof_table *table, uint32_t column, int32_t value);
/* Gives back the memory beyond the rows. */
void table_trim(struct evprof_table *table);

static inline int64_t *table_int64(const struct evprof_table *table, uint32_t column)
{
	return table->columns[column].data;
}

static inline int32_t *table_int32(const struct evprof_table *table, uint32_t column)
{
	return table->columns[column].data;
}

static inline double *table_double(const struct evprof_table *table, uint32_t column)
{
	return table->columns[column].data;
}

/* Sets a column of texts in row number table->rows. False if memory ran out. */
bool table_put_text(struct evprof_table *table, uint32_t column, struct text text);

/* The first columns of most tables. */
#define TABLE_PLACE_FIELDS                                                                                             \
	{"file", TABLE_INT32, true}, {"line", TABLE_INT32, false},                                                     \
	{                                                                                                              \
		"name", TABLE_INT32, true                                                                              \
	}
#define TABLE_PLACE_COLUMNS 3u

/* Begins one more row, with its place. Returns 0 or -ENOMEM. */
int table_begin_row(struct evprof_table *table, struct text file, uint32_t line, struct text name);
/* Sets columns of 64 bits, from that one on, and ends the row. */
void table_end_row(struct evprof_table *table, uint32_t column, const uint64_t *numbers, uint32_t count);

#endif
