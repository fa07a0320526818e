/*
 * fuzz_trace.c - any bytes as a trace: opened, checked, counted, dumped and exported in one of the formats.
 *
 * The first byte chooses: the rest is a file as it is; or it is a recipe for a file whose headers and checksums are
 * right, so that the fuzzer gets behind them. A recipe is a row of pieces: chunk type, process, thread, events, extras,
 * length of the payload (two bytes), and the payload. Built by `make fuzz`.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "evprof/trace.h"
#include "tools/export.h"
#include "tools/merge.h"
#include "tools/profile.h"
#include "tools/tally.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PIECE_BYTES 7

struct file {
	uint8_t *bytes;
	size_t size;
};

static void add(struct file *file, const void *bytes, size_t size)
{
	memcpy(file->bytes + file->size, bytes, size);
	file->size += size;
}

static void add_header(struct file *file)
{
	struct trace_header header = {.version = TRACE_VERSION, .header_bytes = sizeof(header)};

	memcpy(header.magic, TRACE_MAGIC, sizeof(header.magic));
	header.crc = (uint32_t)crc32(0, (const uint8_t *)&header, offsetof(struct trace_header, crc));
	add(file, &header, sizeof(header));
}

static void add_piece(struct file *file, const uint8_t *piece, const uint8_t *payload, size_t bytes)
{
	static const uint8_t zeros[8];
	struct trace_chunk chunk = {.magic = TRACE_CHUNK_MAGIC,
				    .type = piece[0] % 7,
				    .stored_bytes = (uint32_t)bytes,
				    .raw_bytes = (uint32_t)bytes,
				    .process = piece[1] == 255 ? TRACE_NOBODY : piece[1],
				    .thread = piece[2] == 255 ? TRACE_NOBODY : piece[2],
				    .first_ticks = (uint64_t)piece[0] << (piece[3] % 64),
				    .last_ticks = (uint64_t)piece[4] << (piece[3] % 64),
				    .events = piece[3],
				    .extras = piece[4]};

	/* Mostly what fits, so that events are read; sometimes the lie that was asked for. */
	if (chunk.type == TRACE_CHUNK_EVENTS && piece[3] % 8)
		chunk.events = (uint32_t)(bytes / 8) - (chunk.extras < bytes / 8 ? chunk.extras : 0);
	chunk.payload_crc = (uint32_t)crc32(0, payload, (uInt)bytes);
	chunk.crc = (uint32_t)crc32(0, (const uint8_t *)&chunk, offsetof(struct trace_chunk, crc));
	add(file, &chunk, sizeof(chunk));
	add(file, payload, bytes);
	add(file, zeros, (8 - bytes % 8) % 8);
}

static void add_end(struct file *file, uint64_t index)
{
	struct trace_end end = {.magic = TRACE_END_MAGIC, .index_offset = index};

	end.crc = (uint32_t)crc32(0, (const uint8_t *)&end, offsetof(struct trace_end, crc));
	add(file, &end, sizeof(end));
}

static void follow_recipe(struct file *file, const uint8_t *data, size_t size)
{
	uint64_t last = 0;

	add_header(file);
	while (size >= PIECE_BYTES) {
		size_t bytes = data[5] | (size_t)data[6] << 8;

		if (bytes > size - PIECE_BYTES)
			bytes = size - PIECE_BYTES;
		last = file->size;
		add_piece(file, data, data + PIECE_BYTES, bytes);
		data += PIECE_BYTES + bytes;
		size -= PIECE_BYTES + bytes;
	}
	if (size > 0)
		add_end(file, last);
}

static void count(struct trace *trace, const struct profile_options *options)
{
	struct profile profile = {0};
	struct progress progress;

	progress_begin(&progress, "", 0);
	profile_add(&profile, trace, options, &progress);
	profile_done(&profile);
}

static void dump(struct trace *trace)
{
	struct merge_event event;
	struct merge merge;

	if (merge_open(&merge, trace, NULL, NULL) < 0)
		return;
	while (merge_next(&merge, &event))
		;
	merge_close(&merge);
}

static void export(struct trace *trace, const struct select *select, unsigned number)
{
	struct export export = {.trace = trace, .select = select};
	struct progress progress;
	struct output output;

	if (output_open_nowhere(&output) < 0)
		return;
	progress_begin(&progress, "", 0);
	export_formats[number % export_format_count].write(&export, &output, &progress);
	output_close(&output);
}

static void tally(struct trace *trace, const struct select *select)
{
	struct tally tally = {0};
	struct progress progress;

	progress_begin(&progress, "", 0);
	tally_trace(&tally, trace, select, &progress);
	tally_done(&tally);
}

static void use(struct trace *trace, unsigned number)
{
	struct select all = {0};
	struct select window = {.from_given = true, .from_ns = 100, .to_given = true, .to_ns = 1000};
	struct select outer = {.max_depth = 2, .min_duration_ns = number};
	char text[1024];

	trace_check(trace, NULL, NULL);
	for (uint32_t i = 0; i < trace->thread_count; i++)
		if (trace->threads[i])
			trace_count_events(trace, trace->threads[i]);
	count(trace, &(struct profile_options){.select = &outer, .edges = true});
	count(trace, &(struct profile_options){.select = &all, .mark_begin = "a", .mark_end = ""});
	count(trace, &(struct profile_options){.select = &window, .modules = true});
	dump(trace);
	tally(trace, &all);
	export(trace, number & 64 ? &window : number & 128 ? &outer : &all, number >> 1);
	trace_verdict(trace, text, sizeof(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct file file = {.bytes = malloc(size * (sizeof(struct trace_chunk) + 8) + 256)};
	struct trace *trace = NULL;
	char error[256];

	if (!file.bytes)
		return 0;
	if (size && data[0] & 1)
		follow_recipe(&file, data + 1, size - 1);
	else if (size)
		add(&file, data + 1, size - 1);
	if (trace_open_memory(&trace, file.bytes, file.size, "fuzz", error, sizeof(error)) == 0)
		use(trace, data[0]);
	trace_close(trace);
	free(file.bytes);
	return 0;
}
