/*
 * trace_fixture.c - see trace_fixture.h. Used by the unit tests of the tools.
 */
#include "trace_fixture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

static void *grown(void *memory, size_t bytes)
{
	memory = realloc(memory, bytes ? bytes : 1);
	if (!memory)
		abort();
	return memory;
}

/* Room for one more in an array that has room for a power of two. The sanitizer copies each time that memory grows. */
static void *with_one_more(void *array, size_t count, size_t size)
{
	return count & (count - 1) ? array : grown(array, (count ? 2 * count : 1) * size);
}

static void append(struct fixture *fixture, const void *bytes, size_t count)
{
	fixture->bytes = grown(fixture->bytes, fixture->size + count);
	memcpy(fixture->bytes + fixture->size, bytes, count);
	fixture->size += count;
}

static uint32_t checksum(const void *bytes, size_t count)
{
	return (uint32_t)crc32(0, bytes, (uInt)count);
}

struct fixture *fixture_new(void)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct trace_header header = {.magic = "\x89"
					       "EVP\r\n\x1a\n",
				      .version = 3,
				      .header_bytes = 64};

	if (!fixture)
		abort();
	header.crc = checksum(&header, 60);
	append(fixture, &header, sizeof(header));
	return fixture;
}

void fixture_free(struct fixture *fixture)
{
	uint32_t i;

	for (i = 0; i < fixture->thread_count; i++) {
		free(fixture->threads[i].heads);
		free(fixture->threads[i].ticks);
		free(fixture->threads[i].extras);
	}
	free(fixture->threads);
	free(fixture->entries);
	free(fixture->bytes);
	free(fixture);
}

char *fixture_save(const struct fixture *fixture)
{
	const char *directory = getenv("TMPDIR");
	char *path = NULL;
	int fd;

	if (asprintf(&path, "%s/evprof-fixture-XXXXXX", directory ? directory : "/tmp") < 0)
		abort();
	fd = mkstemp(path);
	if (fd < 0 || write(fd, fixture->bytes, fixture->size) != (ssize_t)fixture->size)
		abort();
	close(fd);
	return path;
}

static void note_entry(struct fixture *fixture, const struct trace_chunk *chunk)
{
	struct trace_index_entry entry = trace_index_entry_of(chunk, fixture->size);

	fixture->entries = grown(fixture->entries, (fixture->entry_count + 1) * sizeof(entry));
	fixture->entries[fixture->entry_count++] = entry;
}

void fixture_chunk(struct fixture *fixture, struct trace_chunk chunk, const void *payload, size_t bytes)
{
	static const uint8_t zeros[8];
	size_t bound = ZSTD_compressBound(bytes);
	void *stored = grown(NULL, bound + bytes);

	chunk.magic = 0x4b435645;
	chunk.raw_bytes = (uint32_t)bytes;
	chunk.codec = fixture->plain ? 0 : 1;
	chunk.stored_bytes = (uint32_t)(fixture->plain ? bytes : ZSTD_compress(stored, bound, payload, bytes, 1));
	if (fixture->plain && bytes)
		memcpy(stored, payload, bytes);
	chunk.payload_crc = checksum(stored, chunk.stored_bytes);
	chunk.crc = checksum(&chunk, 60);
	if (chunk.type != TRACE_CHUNK_INDEX)
		note_entry(fixture, &chunk);
	append(fixture, &chunk, sizeof(chunk));
	append(fixture, stored, chunk.stored_bytes);
	append(fixture, zeros, (8 - chunk.stored_bytes % 8) % 8);
	free(stored);
}

void fixture_meta(struct fixture *fixture, uint32_t process, const char *format, ...)
{
	struct trace_chunk chunk = {.type = TRACE_CHUNK_META, .process = process, .thread = TRACE_NOBODY};
	va_list arguments;
	char *text = NULL;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		abort();
	fixture_chunk(fixture, chunk, text, (size_t)length);
	free(text);
}

uint32_t fixture_process(struct fixture *fixture, int pid, int ppid)
{
	uint32_t number = fixture->processes++;

	fixture_meta(
	    fixture, number,
	    "{\"type\":\"process\",\"process\":%u,\"pid\":%d,\"ppid\":%d,\"start\":\"exec\",\"python\":\"3.11.2\","
	    "\"argv\":[\"python\",\"a b.py\"],\"exe\":\"/bin/python\",\"cwd\":\"/\",\"host\":\"h\","
	    "\"program\":\"a\",\"clock_kind\":0,\"clock_shift\":0,\"start_ticks\":0,\"events\":[\"call\"]}",
	    number, pid, ppid);
	return number;
}

uint32_t fixture_process_with(struct fixture *fixture, const char *members)
{
	uint32_t number = fixture->processes++;

	fixture_meta(
	    fixture, number,
	    "{\"type\":\"process\",\"process\":%u,\"pid\":10,\"ppid\":1,\"start\":\"exec\",\"python\":\"3.11.2\","
	    "\"argv\":[],\"exe\":\"\",\"cwd\":\"/\",\"host\":\"h\",\"program\":\"a\",\"clock_kind\":0,"
	    "\"clock_shift\":0,\"start_ticks\":0,%s}",
	    number, members);
	return number;
}

uint32_t fixture_thread(struct fixture *fixture, uint32_t process, uint32_t tid, uint64_t start_ticks)
{
	uint32_t number = fixture->thread_count++;

	fixture->threads = grown(fixture->threads, fixture->thread_count * sizeof(*fixture->threads));
	fixture->threads[number] =
	    (struct fixture_thread){.process = process, .first_ticks = start_ticks, .now = start_ticks};
	fixture_meta(fixture, process,
		     "{\"type\":\"thread\",\"process\":%u,\"thread\":%u,\"tid\":%u,\"start_ticks\":%llu}", process,
		     number, tid, (unsigned long long)start_ticks);
	return number;
}

static void put_definition(struct fixture *fixture, uint32_t process, struct wire_definition definition,
			   const char *const strings[4])
{
	struct trace_chunk chunk = {.type = TRACE_CHUNK_DEFINITIONS, .process = process, .thread = TRACE_NOBODY};
	size_t bytes = sizeof(definition);
	uint8_t *payload;
	int i;

	for (i = 0; i < 4; i++) {
		definition.length[i] = (uint32_t)strlen(strings[i]);
		bytes += strlen(strings[i]);
	}
	definition.size_bytes = (uint32_t)((bytes + 7) / 8 * 8);
	payload = calloc(1, definition.size_bytes);
	if (!payload)
		abort();
	memcpy(payload, &definition, sizeof(definition));
	bytes = sizeof(definition);
	for (i = 0; i < 4; i++) {
		memcpy(payload + bytes, strings[i], strlen(strings[i]));
		bytes += strlen(strings[i]);
	}
	fixture_chunk(fixture, chunk, payload, definition.size_bytes);
	free(payload);
}

void fixture_define(struct fixture *fixture, uint32_t process, unsigned type, uint32_t id, uint32_t number,
		    const char *string0, const char *string1, const char *string2, const char *string3)
{
	const char *const strings[4] = {string0, string1, string2, string3};

	put_definition(fixture, process, (struct wire_definition){.type = (uint16_t)type, .id = id, .number = number},
		       strings);
}

void fixture_native(struct fixture *fixture, uint32_t process, uint32_t id, uint32_t caller, uint64_t address,
		    unsigned flags)
{
	const char *const strings[4] = {"", "", "", ""};
	struct wire_definition record = {
	    .type = WIRE_DEFINE_NATIVE_FRAME, .flags = (uint16_t)flags, .id = id, .number = caller, .address = address};

	put_definition(fixture, process, record, strings);
}

void fixture_symbol(struct fixture *fixture, uint32_t process, uint32_t id, uint64_t address, unsigned flags,
		    const char *function, const char *file, uint32_t line, const char *module)
{
	const char *const strings[4] = {file, function, "", module};
	struct wire_definition record = {
	    .type = WIRE_DEFINE_SYMBOL, .flags = (uint16_t)flags, .id = id, .number = line, .address = address};

	put_definition(fixture, process, record, strings);
}

void fixture_module(struct fixture *fixture, uint32_t process, uint32_t id, uint64_t address, uint32_t pages,
		    const char *path)
{
	const char *const strings[4] = {path, "", "", ""};
	struct wire_definition record = {.type = WIRE_DEFINE_MODULE, .id = id, .number = pages, .address = address};

	put_definition(fixture, process, record, strings);
}

void fixture_code_of_size(struct fixture *fixture, uint32_t process, uint32_t id, const char *name, uint64_t size)
{
	const char *const strings[4] = {"sized.py", name, "", "__main__"};

	put_definition(fixture, process, (struct wire_definition){.type = WIRE_DEFINE_CODE, .id = id, .address = size},
		       strings);
}

void fixture_code_entered(struct fixture *fixture, uint32_t process, uint32_t id, const char *name)
{
	const char *const strings[4] = {"entered.py", name, "", "__main__"};

	put_definition(fixture, process,
		       (struct wire_definition){.type = WIRE_DEFINE_CODE, .id = id, .flags = WIRE_ENTERED}, strings);
}

void fixture_code(struct fixture *fixture, uint32_t process, uint32_t id, const char *file, uint32_t line,
		  const char *name)
{
	fixture_define(fixture, process, WIRE_DEFINE_CODE, id, line, file, name, "", "__main__");
}

void fixture_function(struct fixture *fixture, uint32_t process, uint32_t id, const char *class, const char *name,
		      const char *module)
{
	fixture_define(fixture, process, WIRE_DEFINE_C_FUNCTION, id, 0, class, name, "", module);
}

void fixture_clock(struct fixture *fixture, uint32_t kind, uint32_t shift, uint64_t ticks, uint64_t ns)
{
	struct trace_chunk chunk = {.type = TRACE_CHUNK_CLOCK, .process = TRACE_NOBODY, .thread = TRACE_NOBODY};
	struct trace_clock clock = {
	    .clock_kind = kind, .clock_shift = shift, .ticks = ticks, .monotonic_ns = ns, .realtime_ns = ns};

	fixture_chunk(fixture, chunk, &clock, sizeof(clock));
}

static void put_event(struct fixture *fixture, uint32_t thread, uint32_t head, uint32_t ticks)
{
	struct fixture_thread *to = &fixture->threads[thread];

	to->heads = with_one_more(to->heads, to->count, sizeof(*to->heads));
	to->ticks = with_one_more(to->ticks, to->count, sizeof(*to->ticks));
	to->heads[to->count] = head;
	to->ticks[to->count++] = ticks;
	to->now += ticks;
	if (!wire_is_bookkeeping(wire_head_kind(head)))
		fixture->events++;
}

void fixture_event(struct fixture *fixture, uint32_t thread, unsigned kind, uint32_t argument, uint32_t ticks)
{
	if (kind < 32) {
		put_event(fixture, thread, kind | argument << 5, ticks);
	} else if (argument < 1u << 18) {
		put_event(fixture, thread, 19 | (kind - 32) << 5 | argument << 14, ticks);
	} else {
		put_event(fixture, thread, 19 | (kind - 32) << 5 | 1 << 10, ticks);
		fixture_extra(fixture, thread, argument);
	}
}

void fixture_extra(struct fixture *fixture, uint32_t thread, uint64_t word)
{
	struct fixture_thread *to = &fixture->threads[thread];

	to->extras = with_one_more(to->extras, to->extra_count, sizeof(*to->extras));
	to->extras[to->extra_count++] = word;
	if ((to->heads[to->count - 1] & 31) == WIRE_TIME || (to->heads[to->count - 1] & 31) == WIRE_CPU)
		to->now = word;
}

void fixture_extended(struct fixture *fixture, uint32_t thread, unsigned kind, uint32_t value, const uint64_t *words,
		      unsigned count, uint32_t ticks)
{
	put_event(fixture, thread, 19 | (kind - 32) << 5 | count << 10 | value << 14, ticks);
	for (unsigned i = 0; i < count; i++)
		fixture_extra(fixture, thread, words[i]);
}

void fixture_memory(struct fixture *fixture, uint32_t thread, unsigned kind, unsigned domain, uint64_t address,
		    uint64_t size, uint64_t old, uint32_t ticks)
{
	uint32_t low = (uint32_t)(size & 0x1ffffff);

	put_event(fixture, thread, kind | domain << 5 | low << 7, ticks);
	fixture_extra(fixture, thread, (size >> 25) << 48 | address);
	if (kind == WIRE_REALLOC)
		fixture_extra(fixture, thread, old);
}

void fixture_flush(struct fixture *fixture, uint32_t thread)
{
	struct fixture_thread *from = &fixture->threads[thread];
	struct trace_chunk chunk = {.type = TRACE_CHUNK_EVENTS,
				    .process = from->process,
				    .thread = thread,
				    .first_ticks = from->first_ticks,
				    .last_ticks = from->now,
				    .events = from->count,
				    .extras = from->extra_count};
	size_t bytes = (size_t)from->count * 8 + (size_t)from->extra_count * 8;
	uint8_t *payload = grown(NULL, bytes);
	size_t at = 0;
	uint32_t i;
	int plane;

	for (i = 0; i < from->count; i++, at += 4)
		memcpy(payload + at, &from->heads[i], 4);
	for (plane = 0; plane < 4; plane++)
		for (i = 0; i < from->count; i++)
			payload[at++] = (uint8_t)(from->ticks[i] >> (8 * plane));
	for (plane = 0; plane < 8; plane++)
		for (i = 0; i < from->extra_count; i++)
			payload[at++] = (uint8_t)(from->extras[i] >> (8 * plane));
	if (from->count)
		fixture_chunk(fixture, chunk, payload, bytes);
	free(payload);
	from->first_ticks = from->now;
	from->count = 0;
	from->extra_count = 0;
}

void fixture_index(struct fixture *fixture)
{
	struct trace_chunk chunk = {.type = TRACE_CHUNK_INDEX,
				    .process = TRACE_NOBODY,
				    .thread = TRACE_NOBODY,
				    .events = fixture->entry_count,
				    .previous = fixture->last_index};
	uint64_t offset = fixture->size;

	fixture_chunk(fixture, chunk, fixture->entries, fixture->entry_count * sizeof(*fixture->entries));
	fixture->last_index = offset;
	fixture->entry_count = 0;
}

void fixture_end(struct fixture *fixture)
{
	struct trace_end end = {.magic = 0x444e4545, .events = fixture->events, .processes = fixture->processes};
	uint32_t i;

	for (i = 0; i < fixture->thread_count; i++)
		fixture_flush(fixture, i);
	fixture_index(fixture);
	end.index_offset = fixture->last_index;
	end.crc = checksum(&end, 36);
	append(fixture, &end, sizeof(end));
}
