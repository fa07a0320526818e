/*
 * arrow.c - see arrow.h. An array or schema and everything below it are one block each, except that a consumer may move
 * a child out of its parent: so each has a reference to what it needs.
 */
#include "api/arrow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS_MAX 3
#define NULLABLE 2 /* ARROW_FLAG_NULLABLE; there are no nulls, but consumers that make columns have them so */

/* The values of a table without rows. */
static const uint64_t no_data[8];

/* Owns what one array points to. */
struct array_owner {
	struct evprof_table *table; /* NULL: texts */
	struct texts *texts;
	const void *buffers[BUFFERS_MAX];
	struct arrow_array dictionary;
	struct arrow_array *children[TABLE_COLUMNS_MAX];
	struct arrow_array child[]; /* of the whole table: one for each column */
};

struct schema_owner {
	struct arrow_schema dictionary;
	struct arrow_schema *children[TABLE_COLUMNS_MAX];
	struct arrow_schema child[];
};

/* --- schemas --- */

static void release_schema(struct arrow_schema *schema)
{
	for (int64_t i = 0; i < schema->child_count; i++)
		if (schema->children[i]->release)
			schema->children[i]->release(schema->children[i]);
	if (schema->dictionary && schema->dictionary->release)
		schema->dictionary->release(schema->dictionary);
	free(schema->owner);
	schema->release = NULL;
}

static struct schema_owner *make_schema(struct arrow_schema *schema, const char *format, const char *name,
					uint32_t children)
{
	struct schema_owner *owner = calloc(1, sizeof(*owner) + children * sizeof(struct arrow_schema));

	if (!owner)
		return NULL;
	for (uint32_t i = 0; i < children; i++)
		owner->children[i] = &owner->child[i];
	*schema = (struct arrow_schema){.format = format,
					.name = name,
					.flags = NULLABLE,
					.child_count = children,
					.children = children ? owner->children : NULL,
					.release = release_schema,
					.owner = owner};
	return owner;
}

static int make_column_schema(const struct table_column *column, struct arrow_schema *schema)
{
	struct schema_owner *owner = make_schema(schema, table_format(column->field->type), column->field->name, 0);

	if (!owner)
		return -ENOMEM;
	if (!column->texts)
		return 0;
	if (!make_schema(&owner->dictionary, "u", "", 0)) {
		release_schema(schema);
		return -ENOMEM;
	}
	schema->dictionary = &owner->dictionary;
	return 0;
}

int arrow_schema_of(const struct evprof_table *table, struct arrow_schema *schema)
{
	struct schema_owner *owner = make_schema(schema, "+s", "", table->column_count);

	if (!owner)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->column_count; i++) {
		if (make_column_schema(&table->columns[i], &owner->child[i]) < 0) {
			release_schema(schema);
			return -ENOMEM;
		}
	}
	return 0;
}

/* --- arrays --- */

static void release_array(struct arrow_array *array)
{
	struct array_owner *owner = array->owner;

	for (int64_t i = 0; i < array->child_count; i++)
		if (array->children[i]->release)
			array->children[i]->release(array->children[i]);
	if (array->dictionary && array->dictionary->release)
		array->dictionary->release(array->dictionary);
	table_drop(owner->table);
	texts_drop(owner->texts);
	free(owner);
	array->release = NULL;
}

static struct array_owner *make_array(struct arrow_array *array, uint64_t length, unsigned buffers, uint32_t children)
{
	struct array_owner *owner = calloc(1, sizeof(*owner) + children * sizeof(struct arrow_array));

	if (!owner)
		return NULL;
	for (uint32_t i = 0; i < children; i++)
		owner->children[i] = &owner->child[i];
	*array = (struct arrow_array){.length = (int64_t)length,
				      .buffer_count = buffers,
				      .buffers = owner->buffers,
				      .child_count = children,
				      .children = children ? owner->children : NULL,
				      .release = release_array,
				      .owner = owner};
	return owner;
}

static int make_texts_array(struct texts *texts, struct arrow_array *array)
{
	struct array_owner *owner = make_array(array, texts->count, 3, 0);

	if (!owner)
		return -ENOMEM;
	owner->texts = texts_share(texts);
	owner->buffers[1] = texts->offsets;
	owner->buffers[2] = texts->bytes;
	return 0;
}

static int make_column_array(struct evprof_table *table, const struct table_column *column, struct arrow_array *array)
{
	struct array_owner *owner = make_array(array, table->rows, 2, 0);

	if (!owner)
		return -ENOMEM;
	owner->table = table_share(table);
	owner->buffers[1] = column->data ? column->data : no_data;
	if (!column->texts)
		return 0;
	if (make_texts_array(column->texts, &owner->dictionary) < 0) {
		release_array(array);
		return -ENOMEM;
	}
	array->dictionary = &owner->dictionary;
	return 0;
}

int arrow_array_of(struct evprof_table *table, struct arrow_array *array)
{
	struct array_owner *owner = make_array(array, table->rows, 1, table->column_count);

	if (!owner)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->column_count; i++) {
		if (make_column_array(table, &table->columns[i], &owner->child[i]) < 0) {
			release_array(array);
			return -ENOMEM;
		}
	}
	return 0;
}

/* --- a table as a stream --- */

struct table_stream {
	struct evprof_table *table;
	int done;
};

static int table_stream_schema(struct arrow_stream *stream, struct arrow_schema *schema)
{
	const struct table_stream *own = stream->owner;

	return -arrow_schema_of(own->table, schema);
}

static int table_stream_next(struct arrow_stream *stream, struct arrow_array *array)
{
	struct table_stream *own = stream->owner;

	if (own->done) {
		array->release = NULL;
		return 0;
	}
	own->done = 1;
	return -arrow_array_of(own->table, array);
}

static const char *table_stream_error(struct arrow_stream *stream)
{
	(void)stream;
	return "out of memory";
}

static void table_stream_release(struct arrow_stream *stream)
{
	struct table_stream *own = stream->owner;

	table_drop(own->table);
	free(own);
	stream->release = NULL;
}

int evprof_table_stream(struct evprof_table *table, struct arrow_stream *stream)
{
	struct table_stream *own = calloc(1, sizeof(*own));

	if (!own)
		return -ENOMEM;
	own->table = table_share(table);
	stream->owner = own;
	stream->get_schema = table_stream_schema;
	stream->get_next = table_stream_next;
	stream->get_last_error = table_stream_error;
	stream->release = table_stream_release;
	return 0;
}

/* --- capsules --- */

static void *(*_Atomic capsule_pointer)(void *capsule, const char *name);

struct arrow_stream *evprof_stream_new(void)
{
	return calloc(1, sizeof(struct arrow_stream));
}

void evprof_stream_free(struct arrow_stream *stream)
{
	if (stream && stream->release)
		stream->release(stream);
	free(stream);
}

void evprof_capsule_setup(void *(*get_pointer)(void *capsule, const char *name))
{
	capsule_pointer = get_pointer;
}

void evprof_capsule_done(void *capsule)
{
	void *(*get_pointer)(void *, const char *) = capsule_pointer;

	if (get_pointer)
		evprof_stream_free(get_pointer(capsule, "arrow_array_stream"));
}
