/*
 * spans.c - spans, counters and marks of evprof.h: names become ids, arguments become words.
 *
 * Nothing of the program's is kept: a span is its number. So a program that begins spans without end costs room in the
 * ring and no memory.
 */
#include <errno.h>
#include <string.h>

#include "definitions/names.h"
#include "definitions/tasks.h"
#include "evprof/evprof.h"
#include "life/life.h"
#include "ring/process.h"

#define PUBLIC __attribute__((visibility("default")))

_Static_assert((int)EVPROF_TEXT == WIRE_ARGUMENT_TEXT && (int)EVPROF_INT == WIRE_ARGUMENT_INT &&
		   (int)EVPROF_DOUBLE == WIRE_ARGUMENT_DOUBLE && (int)EVPROF_BOOL == WIRE_ARGUMENT_BOOL,
	       "types are those of the wire");
_Static_assert(3 + 1 + WIRE_ARGUMENT_TEXT_BYTES / sizeof(uint64_t) <= WRITER_SPARE_WORDS,
	       "a reservation has room for a WIRE_TIME, the head, the key and the text");
_Static_assert(WIRE_TEXT_MAX_BYTES % WIRE_ARGUMENT_TEXT_BYTES == 0, "a whole number of events");

/* The last number. Outside of the memory that a fork clears: a child does not use its parent's numbers again. */
static _Atomic uint64_t spans;

/* What precedes an event: some of its arguments are written, or it is lost. */
struct group {
	unsigned kind; /* of the event */
	bool lost;
};

/* Counts the loss of the event, once. */
static struct writer *reserve(struct group *group)
{
	struct writer *writer = group->lost ? NULL : writer_reserve(group->kind);

	group->lost = !writer;
	return writer;
}

/* The id of a name, for which the writer is reserved. 0: the event is lost. */
static uint32_t name_of(struct group *group, struct writer *writer, const char *name)
{
	uint32_t id = definitions_mark(name);

	if (!id) {
		writer_lose(writer, group->kind);
		group->lost = true;
	}
	return id;
}

static uint64_t double_word(double number)
{
	uint64_t word;

	memcpy(&word, &number, sizeof(word));
	return number == number ? word : WIRE_NAN;
}

/* The longest part that ends with a character. Bytes that no character has are replaced, see wire.h: no word is -32. */
static size_t copy_text(uint64_t *words, const char *text, size_t length, size_t most)
{
	unsigned char *bytes = (unsigned char *)words;

	if (length > most) {
		length = most;
		while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
			length--;
		length = length ? length : most;
	}
	memset(words, 0, (length + 7) / 8 * 8);
	for (size_t i = 0; i < length; i++)
		bytes[i] = (unsigned char)text[i] < 0xf8 ? (unsigned char)text[i] : '?';
	return length;
}

static void put_text(struct group *group, const char *key, const char *text)
{
	size_t length = strnlen(text, WIRE_TEXT_MAX_BYTES + 1), done = 0;
	bool first = true;

	do {
		uint64_t words[1 + WIRE_ARGUMENT_TEXT_BYTES / sizeof(uint64_t)];
		struct writer *writer = reserve(group);
		size_t part, left = length - done;
		bool last;

		if (!writer)
			return;
		words[0] = first ? name_of(group, writer, key) : 0;
		if (group->lost)
			return;
		part = copy_text(words + 1, text + done, left, WIRE_ARGUMENT_TEXT_BYTES);
		done += part;
		last = part == left || done + WIRE_ARGUMENT_TEXT_BYTES > WIRE_TEXT_MAX_BYTES;
		writer_put_words(writer,
				 wire_extended(WIRE_ARGUMENT, 1 + (unsigned)(part + 7) / 8,
					       WIRE_ARGUMENT_TEXT | (last && part < left ? WIRE_ARGUMENT_CUT : 0)),
				 words);
		first = false;
		if (last)
			return;
	} while (true);
}

static void put_word(struct group *group, const struct evprof_argument *argument)
{
	unsigned type = (unsigned)argument->type;
	struct writer *writer = reserve(group);
	uint64_t words[2] = {writer ? name_of(group, writer, argument->key) : 0, 0};

	if (group->lost)
		return;
	if (type == EVPROF_INT && argument->value.integer > INT64_MAX - 32) { /* no word is -32 */
		type = EVPROF_DOUBLE;
		words[1] = double_word((double)argument->value.integer);
	} else if (type == EVPROF_INT) {
		words[1] = (uint64_t)argument->value.integer + (UINT64_C(1) << 63);
	} else {
		words[1] = type == EVPROF_DOUBLE ? double_word(argument->value.number) : argument->value.integer != 0;
	}
	writer_put_words(writer, wire_extended(WIRE_ARGUMENT, 2, type), words);
}

static void put_arguments(struct group *group, const struct evprof_argument *arguments, size_t count)
{
	if (count > WIRE_ARGUMENTS_MAX)
		count = WIRE_ARGUMENTS_MAX;
	for (size_t i = 0; i < count; i++) {
		const struct evprof_argument *argument = &arguments[i];

		if (argument->key && argument->type == EVPROF_TEXT && argument->value.text)
			put_text(group, argument->key, argument->value.text);
		else if (argument->key && argument->type > EVPROF_TEXT && argument->type <= EVPROF_BOOL)
			put_word(group, argument);
	}
}

PUBLIC void evprof_mark_with(const char *name, const struct evprof_argument *arguments, size_t count)
{
	struct group group = {.kind = WIRE_MARK};
	struct writer *writer;
	int saved_errno = errno;
	uint32_t id;

	if (!name || !process)
		return;
	put_arguments(&group, arguments, count);
	writer = reserve(&group);
	id = writer ? name_of(&group, writer, name) : 0;
	if (id)
		writer_put_number(writer, WIRE_MARK, id);
	errno = saved_errno;
}

PUBLIC void evprof_mark(const char *name)
{
	evprof_mark_with(name, NULL, 0);
}

PUBLIC uint64_t evprof_span_begin(const char *name, const struct evprof_argument *arguments, size_t count)
{
	struct group group = {.kind = WIRE_SPAN_BEGIN};
	uint64_t words[3] = {0, 0};
	struct writer *writer;
	int saved_errno = errno;

	if (!name || !process)
		return 0;
	words[2] = definitions_hidden_task();
	put_arguments(&group, arguments, count);
	writer = reserve(&group);
	words[0] = writer ? name_of(&group, writer, name) : 0;
	if (words[0]) {
		words[1] = atomic_fetch_add_explicit(&spans, 1, memory_order_relaxed) + 1;
		writer_put_words(writer, wire_extended(WIRE_SPAN_BEGIN, words[2] ? 3 : 2, 0), words);
	}
	errno = saved_errno;
	return words[1];
}

PUBLIC void evprof_span_end(uint64_t span)
{
	struct writer *writer;
	int saved_errno = errno;

	if (!span || !process)
		return;
	writer = writer_reserve(WIRE_SPAN_END);
	if (writer)
		writer_put_number(writer, WIRE_SPAN_END, span);
	errno = saved_errno;
}

PUBLIC void evprof_counter(const char *name, double value)
{
	struct group group = {.kind = WIRE_COUNTER};
	uint64_t words[2] = {0, double_word(value)};
	struct writer *writer;
	int saved_errno = errno;

	if (!name || !process)
		return;
	writer = reserve(&group);
	words[0] = writer ? name_of(&group, writer, name) : 0;
	if (words[0])
		writer_put_words(writer, wire_extended(WIRE_COUNTER, 2, 0), words);
	errno = saved_errno;
}
