/*
 * test_collector_kept.c - which chunks of a trace that keeps its last stretch are still in the file.
 *
 * Random threads, processes and chunks are written. A model, which never forgets anything, says what must be there: the
 * test reads the file itself, chunk by chunk.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "collector/trace/kept.h"
#include "collector/trace/trace_output.h"
#include "evprof/wire.h"
#include "tools/shared/file/trace_writer.h"

#define MS UINT64_C(1000000)
#define CHUNKS 4000
#define THREADS 6
#define PAYLOAD_BYTES 3000

/* A chunk of the model. Its number is the first_ticks of the chunk. */
struct written {
	uint64_t ns, bytes;
	enum kept_kind kind;
	uint32_t process, thread;
	bool has_stack;
	bool over; /* its thread's or process's end was written */
};

static struct kept kept;
static struct trace_writer writer;
static struct trace_packer *packer;
static struct written model[CHUNKS];
static unsigned count;
static char path[] = "/tmp/evprof-kept-XXXXXX";
static uint32_t random_state;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % below;
}

static void begin(uint32_t seed, struct setting_keep limits)
{
	static const uint8_t session[16];
	int fd = mkstemp(path);

	cr_assert(fd >= 0);
	unlink(path);
	strcpy(path + strlen(path) - 6, "XXXXXX");
	packer = trace_packer_new();
	cr_assert(packer && trace_writer_open(&writer, packer, fd, 0, session) == 0);
	if (kept_check(fd) == -EOPNOTSUPP)
		cr_skip_test("the file system of /tmp takes back no part of a file");
	writer.indexes_later = true;
	kept = (struct kept){.limits = limits};
	random_state = seed;
	count = 0;
}

static void end(void)
{
	kept_done(&kept);
	trace_writer_close(&writer);
	trace_packer_free(packer);
}

/* Writes a chunk that zstd does not shrink much, so that bytes matter. */
static void write_one(enum kept_kind kind, uint32_t process, uint32_t thread, bool has_stack, uint64_t ns)
{
	static uint32_t heads[PAYLOAD_BYTES / 8];
	struct trace_chunk chunk = {.type = kind == KEPT_EVENTS ? TRACE_CHUNK_EVENTS : TRACE_CHUNK_DEFINITIONS,
				    .process = process,
				    .thread = thread};
	uint32_t words = 8 + draw(PAYLOAD_BYTES / 8 - 8);
	uint64_t offset = writer.offset;

	/* The head of an event; what a definition has in it is nobody's business here. */
	for (uint32_t i = 0; i < words; i++)
		heads[i] = wire_head(WIRE_CALL, draw(1 << 20));
	if (has_stack)
		heads[words / 2] = wire_head(WIRE_STACK, 0);
	chunk.first_ticks = count;
	chunk.events = kind == KEPT_EVENTS ? words : 0;
	cr_assert_eq(trace_writer_chunk(&writer, &chunk, heads, words * sizeof(heads[0])), 0);
	cr_assert_eq(kept_add(&kept, &chunk, heads, offset, writer.offset - offset, kind, ns), 0);
	model[count++] = (struct written){ns, writer.offset - offset, kind, process, thread, has_stack, false};
}

static void end_owner(uint32_t process, uint32_t thread, uint64_t ns)
{
	write_one(KEPT_END, process, thread, false, ns);
	for (unsigned i = 0; i < count; i++)
		if (model[i].process == process && model[i].thread == thread)
			model[i].over = true;
}

/* Random threads of two processes; a thread that ends begins again under another number. */
static void write_many(void)
{
	uint32_t numbers[THREADS], next = THREADS, processes = 2;
	uint64_t ns = 1000 * MS;

	for (uint32_t i = 0; i < THREADS; i++)
		write_one(KEPT_STATE, i % 2, numbers[i] = i, false, ns);
	while (count < CHUNKS - 8) {
		uint32_t which = draw(THREADS), what = draw(100), process = which % 2 ? processes - 1 : 0;

		ns += draw(3) * MS;
		if (what < 70) {
			write_one(KEPT_EVENTS, process, numbers[which], draw(12) == 0, ns);
		} else if (what < 90) {
			write_one(KEPT_STATE, process, TRACE_NOBODY, false, ns);
		} else if (what < 94) {
			write_one(KEPT_LATEST, process, TRACE_NOBODY, false, ns);
		} else if (what < 96) {
			write_one(KEPT_PASSING, process, TRACE_NOBODY, false, ns);
		} else if (what < 99) {
			end_owner(process, numbers[which], ns);
			numbers[which] = next++;
			write_one(KEPT_STATE, process, numbers[which], false, ns);
		}
		kept_renew(&kept, &writer, ns);
	}
	kept_renew(&kept, &writer, ns + 1);
}

/* How often the chunk with that number is in the file's list. */
static unsigned char present[CHUNKS];

/* Reads what is listed: from the file, so a chunk that was dropped too early, or moved wrongly, is none. */
static void read_index(void)
{
	uint64_t before = 0;

	memset(present, 0, sizeof(present));
	writer.entry_count = 0; /* what was listed before */
	cr_assert_eq(kept_index(&kept, &writer), 0);
	for (unsigned i = 0; i < writer.entry_count; i++) {
		const struct trace_index_entry *entry = &writer.entries[i];
		uint8_t payload[2 * PAYLOAD_BYTES];
		struct trace_chunk chunk;

		cr_assert(entry->offset > before, "offsets rise");
		before = entry->offset;
		cr_assert_eq(pread(writer.fd, &chunk, sizeof(chunk), (off_t)entry->offset), sizeof(chunk));
		cr_assert(chunk.magic == TRACE_CHUNK_MAGIC && chunk.process == entry->process &&
			      chunk.thread == entry->thread && chunk.type == entry->type,
			  "entry %u has a chunk at %llu", i, (unsigned long long)entry->offset);
		cr_assert_eq(pread(writer.fd, payload, chunk.stored_bytes, (off_t)(entry->offset + sizeof(chunk))),
			     chunk.stored_bytes);
		cr_assert_eq(crc32(0, payload, chunk.stored_bytes), chunk.payload_crc, "its payload is whole");
		cr_assert(chunk.first_ticks < count && chunk.first_ticks == entry->first_ticks);
		present[chunk.first_ticks]++;
	}
}

/* The first chunk that is in the stretch for certain. */
static unsigned first_in_stretch(void)
{
	uint64_t bytes = 0;
	unsigned i = count;

	while (i > 0) {
		bytes += model[i - 1].bytes;
		if ((kept.limits.ns && model[count - 1].ns - model[i - 1].ns > kept.limits.ns) ||
		    (kept.limits.bytes && bytes > kept.limits.bytes))
			break;
		i--;
	}
	return i;
}

/* Whether a chunk from before the stretch has to be there. */
static bool is_needed(unsigned at, unsigned first)
{
	const struct written *chunk = &model[at];

	for (unsigned i = at + 1; i < first; i++) {
		const struct written *later = &model[i];
		bool same = later->process == chunk->process && later->thread == chunk->thread;

		if (same && later->kind == KEPT_END)
			return false;
		if (same && chunk->kind == KEPT_LATEST && later->kind == KEPT_LATEST)
			return false;
		if (same && chunk->kind == KEPT_EVENTS && later->kind == KEPT_EVENTS && later->has_stack)
			return false;
	}
	return chunk->kind != KEPT_PASSING && chunk->kind != KEPT_END;
}

static void expect_model(void)
{
	unsigned first = first_in_stretch();

	read_index();
	for (unsigned i = 0; i < count; i++)
		cr_assert_eq(present[i], i >= first || is_needed(i, first),
			     "chunk %u of %u, kind %d, first of the stretch %u", i, count, (int)model[i].kind, first);
	for (unsigned i = 0; i < count && i < first; i++)
		cr_assert(model[i].ns <= kept.since_ns, "the stretch begins behind what left it");
}

/* States stand in the order in which they were written, wherever they have moved. */
static void expect_order_of_states(void)
{
	uint32_t before[2] = {0};

	for (unsigned i = 0; i < writer.entry_count; i++) {
		const struct trace_index_entry *entry = &writer.entries[i];
		uint32_t number = (uint32_t)entry->first_ticks;

		if (entry->thread != TRACE_NOBODY || model[number].kind != KEPT_STATE)
			continue;
		cr_assert(number >= before[entry->process], "state %u comes after %u", number, before[entry->process]);
		before[entry->process] = number;
	}
}

Test(collector_kept, by_time)
{
	for (uint32_t seed = 1; seed <= 20; seed++) {
		begin(seed, (struct setting_keep){.ns = (20 + 30 * seed) * MS});
		write_many();
		expect_model();
		expect_order_of_states();
		end();
	}
}

Test(collector_kept, by_bytes)
{
	for (uint32_t seed = 1; seed <= 20; seed++) {
		begin(seed, (struct setting_keep){.bytes = 20000 * seed});
		write_many();
		expect_model();
		expect_order_of_states();
		end();
	}
}

/* What the file takes is what is listed, the steps of giving back aside; and all else in it is zeros. */
Test(collector_kept, space_goes_back)
{
	struct stat status;
	uint64_t listed = 0;

	begin(7, (struct setting_keep){.bytes = 100000});
	write_many();
	for (unsigned i = 0; i < count; i++)
		listed += model[i].bytes;
	trace_writer_release(&writer);
	cr_assert_eq(fstat(writer.fd, &status), 0);
	cr_expect(status.st_size == (off_t)writer.offset && listed > 2000000, "%llu bytes were written",
		  (unsigned long long)listed);
	read_index();
	listed = 0;
	for (unsigned i = 0; i < count; i++)
		listed += present[i] ? model[i].bytes + 4096 : 0;
	cr_expect((uint64_t)status.st_blocks * 512 < listed + (512 << 10), "%llu of %llu bytes on disk",
		  (unsigned long long)status.st_blocks * 512, (unsigned long long)listed);
	end();
}

/* A state that moves into a gap takes nothing from what remains, and gives nothing back either. */
Test(collector_kept, moved_states_are_not_counted_twice)
{
	uint64_t left = sizeof(struct trace_header);
	struct trace_output trace;

	begin(13, (struct setting_keep){.bytes = 60000});
	write_many();
	kept_hold(&kept, &writer, 1, 1);
	read_index();
	for (unsigned i = 0; i < count; i++)
		left += present[i] * model[i].bytes;
	trace = (struct trace_output){.writer = writer, .kept = kept};
	cr_expect_eq(trace_output_bytes(&trace), left, "%lld bytes on disk, %llu in chunks",
		     (long long)trace_output_bytes(&trace), (unsigned long long)left);
	end();
}

/* A reader without an index meets chunks that are listed, and zeros: nothing else, however chunks have moved. */
Test(collector_kept, only_chunks_and_zeros)
{
	struct trace_chunk chunk;
	uint64_t at = sizeof(struct trace_header), word;

	begin(11, (struct setting_keep){.bytes = 60000});
	write_many();
	kept_hold(&kept, &writer, 1, 1);
	read_index();
	while (at < writer.offset) {
		cr_assert_eq(pread(writer.fd, &word, sizeof(word), (off_t)at), sizeof(word));
		if (!word) {
			at += sizeof(word);
			continue;
		}
		cr_assert(pread(writer.fd, &chunk, sizeof(chunk), (off_t)at) == sizeof(chunk) &&
			      chunk.magic == TRACE_CHUNK_MAGIC,
			  "there is neither a chunk nor a zero at %llu", (unsigned long long)at);
		cr_assert(chunk.first_ticks < count && present[chunk.first_ticks], "chunk %llu has left the file",
			  (unsigned long long)chunk.first_ticks);
		at += sizeof(chunk) + ((chunk.stored_bytes + 7) & ~UINT64_C(7));
	}
	end();
}

/* Nothing leaves a file that is held. */
Test(collector_kept, held)
{
	begin(3, (struct setting_keep){.bytes = 50000});
	kept_hold(&kept, &writer, 1000 * MS, 1000000);
	write_many();
	read_index();
	for (unsigned i = 0; i < count; i++)
		cr_assert_eq(present[i], 1);
	cr_expect_eq(kept.since_ns, 0);
	end();
}

/* A hold lasts until it is given up itself, whatever others do. */
Test(collector_kept, held_by_two)
{
	uint64_t first, second;

	begin(3, (struct setting_keep){.bytes = 50000});
	first = kept_hold(&kept, &writer, 0, 1000000);
	second = kept_hold(&kept, &writer, 0, 2000000);
	cr_expect_eq(kept_held_until(&kept), 2000000 * MS);
	kept_release(&kept, second);
	kept_release(&kept, second + 1);
	cr_expect_eq(kept_held_until(&kept), 1000000 * MS);
	write_many();
	cr_expect_eq(kept.since_ns, 0);
	kept_release(&kept, first);
	cr_expect_eq(kept_held_until(&kept), 0);
	kept_renew(&kept, &writer, model[count - 1].ns);
	cr_expect_gt(kept.since_ns, 0);
	end();
}

/* Of too many, the one that ends first gives way, be it the newest. */
Test(collector_kept, holds_are_bounded)
{
	uint64_t numbers[KEPT_HOLDS];

	begin(3, (struct setting_keep){.bytes = 50000});
	for (unsigned i = 0; i < KEPT_HOLDS; i++)
		numbers[i] = kept_hold(&kept, &writer, 0, 100 + i);
	kept_hold(&kept, &writer, 0, 1);
	kept_release(&kept, kept_hold(&kept, &writer, 0, 1000));
	for (unsigned i = KEPT_HOLDS - 1; i > 0; i--) {
		cr_expect_eq(kept_held_until(&kept), (100 + i) * MS);
		kept_release(&kept, numbers[i]);
	}
	cr_expect_eq(kept_held_until(&kept), 0);
	end();
}

/* The number of a thread is free once all that it had in the file is gone, and not before. */
Test(collector_kept, numbers_are_used_again)
{
	uint32_t number;

	begin(5, (struct setting_keep){.bytes = 50000});
	write_many();
	read_index();
	for (unsigned got = 0; kept_spare_number(&kept, &number); got++) {
		for (unsigned i = 0; i < count; i++)
			cr_assert(!present[i] || model[i].thread != number, "chunk %u is of thread %u", i, number);
		cr_assert(got < CHUNKS);
	}
	end();
}

/* Nothing leaves a file before it was read. */
Test(collector_kept, read_first)
{
	uint64_t offset = sizeof(struct trace_header);
	unsigned gone = 0;

	begin(9, (struct setting_keep){.bytes = 50000});
	kept.is_read = true;
	write_many();
	read_index();
	for (unsigned i = 0; i < count; i++)
		cr_assert_eq(present[i], 1);
	kept.read_bytes = writer.offset / 2;
	kept_renew(&kept, &writer, 1000000 * MS);
	read_index();
	for (unsigned i = 0; i < count; i++) {
		offset += model[i].bytes;
		gone += !present[i];
		cr_assert(present[i] || offset <= kept.read_bytes, "chunk %u is not read yet", i);
	}
	cr_expect(gone > count / 4, "%u of %u chunks are gone", gone, count);
	cr_expect_not(kept_is_behind(&kept, kept.read_bytes + KEPT_BEHIND_BYTES));
	cr_expect(kept_is_behind(&kept, kept.read_bytes + KEPT_BEHIND_BYTES + 1));
	kept.is_read = false;
	cr_expect_not(kept_is_behind(&kept, UINT64_MAX));
	end();
}

static void note_failure(struct trace_output *trace)
{
	(void)trace;
}

static struct trace_end end_of_file(const struct trace_writer *file)
{
	struct trace_end last = {0};

	cr_assert_eq(pread(file->fd, &last, sizeof(last), (off_t)(file->offset - sizeof(last))), sizeof(last));
	return last;
}

/* Its index is written at the end only. Where the disk is full, there is room for it, and for the ends of threads. */
Test(collector_kept, index_of_a_full_file)
{
	static const uint8_t session[16];
	const struct setting_keep keep = {.ns = 3600 * 1000 * MS};
	const struct rlimit small = {.rlim_cur = 500000, .rlim_max = RLIM_INFINITY};
	struct trace_chunk chunk = {.type = TRACE_CHUNK_META, .process = 0, .thread = 0};
	struct users users = {0};
	struct trace_output trace;
	unsigned written = 0;

	packer = trace_packer_new();
	trace_output_init(&trace, &users, users_get(&users, geteuid()), NULL, note_failure);
	snprintf(trace.path, sizeof(trace.path), "/tmp/evprof-kept-%d.evp", (int)getpid());
	if (trace_output_open(&trace, packer, session, OUTPUT_REPLACE, &keep, false) == -EOPNOTSUPP)
		cr_skip_test("the file system of /tmp takes back no part of a file");
	unlink(trace.path);
	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	random_state = 1;
	trace.process_count = 1;
	for (; !trace.failed; written++) {
		chunk.first_ticks = (uint64_t)draw(1u << 24) << 32 | draw(1u << 24); /* zstd finds nothing in it */
		trace_output_chunk(&trace, &chunk, &written, sizeof(written));
	}
	cr_expect(trace.full && written > 3000, "%u chunks", written);
	trace.kept.limits.ns = 1;
	trace_output_renew_kept(&trace, UINT64_MAX);
	cr_expect_eq(trace.kept.count, written - 1, "what was kept when it became full stays");
	while (trace_output_last(&trace, &chunk, &written, sizeof(written)) == 0)
		chunk.first_ticks = (uint64_t)draw(1u << 24) << 32 | draw(1u << 24);
	trace_output_close(&trace, false, 1);
	cr_expect_eq(trace.writer.error, 0, "%s", strerror(-trace.writer.error));
	cr_expect_eq(end_of_file(&trace.writer).magic, TRACE_END_MAGIC);
	trace_output_done(&trace);
	users_put(&users, users.first);
	trace_packer_free(packer);
}
