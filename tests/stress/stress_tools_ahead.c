/*
 * stress_tools_ahead.c - many streams of one trace, opened, read in turn, left in the middle and opened again, while
 * the thread of trace_ahead.c reads for them. Run by `make stress`, and under the thread sanitizer by `make TSAN=1
 * stress`.
 *
 *   stress_tools_ahead [SECONDS]     default: 3
 *
 * Every chunk must be what it is when it is read without that thread; so must what is missing, in a trace of which some
 * chunks are damaged.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/trace_fixture.h"
#include "tools/trace/reader.h"

#define THREADS 5
#define CHUNKS 40
#define STREAMS 7  /* open at once; two may be of one thread */
#define DAMAGED 23 /* one of that number of chunks */

/* By thread and place: what the stream says when it stands there. */
static uint64_t expected[THREADS][CHUNKS];
static uint64_t chunks_read;

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "stress_tools_ahead: %s\n", what);
	exit(1);
}

static char *make_trace(void)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 10, 1), number = 0;
	char *path;

	fixture_code(fixture, process, 1, "a.py", 1, "f");
	for (uint32_t i = 0; i < THREADS; i++)
		fixture_thread(fixture, process, 10 + i, 1000);
	for (uint32_t chunk = 0; chunk < CHUNKS; chunk++)
		for (uint32_t thread = 0; thread < THREADS; thread++) {
			size_t end;

			for (uint32_t i = 0; i < 200 + 37 * (number % 29); i++) {
				fixture_event(fixture, thread, i % 2 ? WIRE_RETURN : WIRE_CALL, 1, number + i);
				if (i % 5 == 0)
					fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, number + i, i, 0,
						       1);
			}
			fixture_flush(fixture, thread);
			end = fixture->size - 9;
			if (++number % DAMAGED == 0)
				fixture->bytes[end] ^= 1;
		}
	fixture_end(fixture);
	path = fixture_save(fixture);
	fixture_free(fixture);
	return path;
}

static uint64_t mixed(uint64_t hash, const void *bytes, size_t length)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t hash_of(const struct trace_events *events)
{
	uint64_t hash = mixed(events->first_ticks, &events->missing, sizeof(events->missing)) + events->hole;

	hash = mixed(hash, events->heads, events->count * sizeof(*events->heads));
	hash = mixed(hash, events->ticks, events->count * sizeof(*events->ticks));
	return mixed(hash, events->extras, events->extra_count * sizeof(*events->extras));
}

/* One after the other, without the thread. */
static void read_expected(const char *path)
{
	struct trace *trace = trace_open_with_message(path);

	require(trace, "the trace does not open");
	trace->no_ahead = true;
	for (uint32_t i = 0; i < THREADS; i++) {
		struct trace_stream stream;
		struct trace_events events;

		trace_stream_open(&stream, trace, trace->threads[i]);
		while (trace_stream_next(&stream, &events))
			expected[i][stream.next - 1] = hash_of(&events);
		trace_stream_close(&stream);
	}
	require(!trace->ahead, "a thread was made although it was not to be");
	require(trace->damage.chunks == THREADS * CHUNKS / DAMAGED, "not all damage was found");
	trace_close(trace);
}

struct reader {
	struct trace_stream stream;
	bool open;
};

static void begin(struct reader *reader, struct trace *trace)
{
	reader->open = true;
	trace_stream_open(&reader->stream, trace, trace->threads[rand() % THREADS]);
}

/* Reads a few, and sometimes leaves. */
static void go_on(struct reader *reader)
{
	struct trace_events events;
	int chunks = 1 + rand() % 6;

	while (chunks-- && reader->open) {
		reader->open = trace_stream_next(&reader->stream, &events);
		require(!reader->open ||
			    hash_of(&events) == expected[reader->stream.thread->number][reader->stream.next - 1],
			"a chunk is not what it was");
		chunks_read++;
	}
	if (rand() % 20 == 0)
		reader->open = false;
	if (!reader->open)
		trace_stream_close(&reader->stream);
}

/* One life of a trace. */
static bool read_in_turn(const char *path, unsigned rounds)
{
	struct reader readers[STREAMS] = {0};
	struct trace *trace = trace_open_with_message(path);
	bool ahead;

	require(trace, "the trace does not open");
	while (rounds--) {
		struct reader *reader = &readers[rand() % STREAMS];

		if (!reader->open)
			begin(reader, trace);
		go_on(reader);
	}
	for (unsigned i = 0; i < STREAMS; i++)
		if (readers[i].open)
			trace_stream_close(&readers[i].stream);
	ahead = trace->ahead != NULL;
	trace_close(trace);
	return ahead;
}

int main(int argc, char **argv)
{
	char *path = make_trace();
	unsigned lives = 0, ahead = 0;
	time_t end;

	read_expected(path);
	end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 3);
	while (time(NULL) < end) {
		ahead += read_in_turn(path, 1 + (unsigned)rand() % 400);
		lives++;
	}
	unlink(path);
	free(path);
	printf("%llu chunks in %u lives of a trace, in %u with a thread that reads ahead\n",
	       (unsigned long long)chunks_read, lives, ahead);
	require(ahead || sysconf(_SC_NPROCESSORS_ONLN) < 2, "nothing was read ahead");
	return 0;
}
