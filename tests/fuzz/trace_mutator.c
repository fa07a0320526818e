/*
 * trace_mutator.c - changes of a trace. See trace_mutator.h.
 */
#include "trace_mutator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/wire.h"
#include "trace_file.h"

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t count, size_t room);

#define GROW_WORDS 8

/* xorshift: the same seed gives the same changes. */
static uint32_t draw(uint32_t *state, uint32_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state % below;
}

/* Mostly small, as ids, numbers and depths are. */
static uint64_t draw_number(uint32_t *state)
{
	switch (draw(state, 8)) {
	case 0:
		return (uint64_t)draw(state, UINT32_MAX) << 32 | draw(state, UINT32_MAX);
	case 1:
		return UINT64_C(1) << draw(state, 64);
	case 2:
		return (UINT64_C(1) << draw(state, 64)) - 1;
	default:
		return draw(state, 8);
	}
}

/* --- payloads --- */

static void insert(struct trace_piece *piece, size_t at, const void *bytes, size_t count)
{
	if (piece->count + count > TRACE_FILE_PIECE_BYTES)
		return;
	memmove(piece->bytes + at + count, piece->bytes + at, piece->count - at);
	memcpy(piece->bytes + at, bytes, count);
	piece->count += count;
}

/* One event of any kind, with small arguments. Where it lands in the middle of another one, so be it. */
static void insert_event(struct trace_piece *piece, uint32_t *state)
{
	uint64_t words[1 + WIRE_EXTRA_MAX];
	unsigned kind = draw(state, WIRE_KINDS);
	uint32_t head = kind < WIRE_EXTENDED_KIND
			    ? wire_head(kind, (uint32_t)draw_number(state))
			    : wire_extended(kind, draw(state, 4) ? draw(state, 3) : draw(state, WIRE_EXTRA_MAX),
					    draw(state, 4) ? draw(state, 64) : (uint32_t)draw_number(state));
	uint32_t ticks = draw(state, 4) ? draw(state, 64) : (uint32_t)draw_number(state);
	size_t at = draw(state, (uint32_t)(piece->count / 8) + 1) * 8;

	words[0] = wire_word(head, ticks);
	for (unsigned i = 1; i <= WIRE_EXTRA_MAX; i++)
		words[i] = draw_number(state);
	insert(piece, at, words, sizeof(words[0]) * (1 + wire_extra_words(head)));
}

static void repeat_words(struct trace_piece *piece, uint32_t *state)
{
	uint64_t words[GROW_WORDS];
	uint32_t all = (uint32_t)(piece->count / 8);
	uint32_t from = all ? draw(state, all) : 0;
	uint32_t count = all - from < GROW_WORDS ? all - from : GROW_WORDS;

	memcpy(words, piece->bytes + (size_t)from * 8, (size_t)count * 8);
	insert(piece, draw(state, all + 1) * (size_t)8, words, (size_t)count * 8);
}

/* Puts another number in the place of one in JSON. */
static void change_number(struct trace_piece *piece, uint32_t *state)
{
	char text[24];
	size_t at = piece->count ? draw(state, (uint32_t)piece->count) : 0;
	size_t end;
	int length = snprintf(text, sizeof(text), "%llu", (unsigned long long)draw_number(state));

	while (at < piece->count && (piece->bytes[at] < '0' || piece->bytes[at] > '9'))
		at++;
	for (end = at; end < piece->count && piece->bytes[end] >= '0' && piece->bytes[end] <= '9';)
		end++;
	if (at == end)
		return;
	memmove(piece->bytes + at, piece->bytes + end, piece->count - end);
	piece->count -= end - at;
	insert(piece, at, text, (size_t)length);
}

/* Sizes of records that fit their strings again, as far as the bytes go. */
static void mend_definitions(struct trace_piece *piece)
{
	struct wire_definition record;
	size_t at = 0;

	while (piece->count - at >= sizeof(record)) {
		size_t left = piece->count - at - sizeof(record);
		size_t strings = 0;

		memcpy(&record, piece->bytes + at, sizeof(record));
		for (unsigned i = 0; i < WIRE_DEFINITION_STRINGS; i++) {
			if (record.length[i] > left - strings)
				record.length[i] = (uint32_t)(left - strings);
			strings += record.length[i];
		}
		record.size_bytes = (uint32_t)((sizeof(record) + strings + 7) & ~(size_t)7);
		if (record.size_bytes > piece->count - at)
			break;
		memcpy(piece->bytes + at, &record, sizeof(record));
		at += record.size_bytes;
	}
	piece->count = at;
}

static void change_definition(struct trace_piece *piece, uint32_t *state)
{
	struct wire_definition record;
	size_t at = 0;

	for (unsigned skip = draw(state, 8); skip > 0 && piece->count - at >= sizeof(record); skip--) {
		memcpy(&record, piece->bytes + at, sizeof(record));
		if (!record.size_bytes || record.size_bytes % 8 || record.size_bytes >= piece->count - at)
			break;
		at += record.size_bytes;
	}
	if (piece->count - at < sizeof(record))
		return;
	memcpy(&record, piece->bytes + at, sizeof(record));
	if (draw(state, 2))
		record.id = (uint32_t)draw_number(state);
	else if (draw(state, 2))
		record.type = (uint16_t)draw(state, 8);
	else
		record.number = (uint32_t)draw_number(state);
	memcpy(piece->bytes + at, &record, sizeof(record));
}

static void change_payload(struct trace_piece *piece, uint32_t *state)
{
	unsigned way = draw(state, 4);

	if (piece->words && way == 0)
		insert_event(piece, state);
	else if (piece->words && way == 1)
		repeat_words(piece, state);
	else if (piece->chunk.type == TRACE_CHUNK_META && way < 2)
		change_number(piece, state);
	else if (piece->chunk.type == TRACE_CHUNK_DEFINITIONS && way == 0)
		change_definition(piece, state);
	else
		piece->count = LLVMFuzzerMutate(piece->bytes, piece->count, TRACE_FILE_PIECE_BYTES);
	if (piece->chunk.type == TRACE_CHUNK_DEFINITIONS && draw(state, 8))
		mend_definitions(piece);
}

/* --- chunks --- */

static void change_header(struct trace_piece *piece, uint32_t *state)
{
	struct trace_chunk *chunk = &piece->chunk;

	switch (draw(state, 7)) {
	case 0:
		chunk->type = (uint16_t)draw(state, 7);
		break;
	case 1:
		chunk->codec ^= 1;
		break;
	case 2:
		chunk->process = draw(state, 4) ? draw(state, 4) : TRACE_NOBODY;
		break;
	case 3:
		chunk->thread = draw(state, 4) ? draw(state, 4) : TRACE_NOBODY;
		break;
	case 4:
		chunk->first_ticks = draw(state, 2) ? draw_number(state) : chunk->first_ticks + draw(state, 1000);
		break;
	case 5:
		chunk->last_ticks = draw(state, 2) ? draw_number(state) : chunk->last_ticks + draw(state, 1000);
		break;
	default:
		piece->words = false; /* from here on the numbers of events and extra words may be wrong */
	}
}

static void drop_piece(struct trace_file *file, unsigned index)
{
	trace_piece_done(&file->pieces[index]);
	memmove(&file->pieces[index], &file->pieces[index + 1], (file->count - index - 1) * sizeof(file->pieces[0]));
	file->count--;
}

static void repeat_piece(struct trace_file *file, unsigned index)
{
	if (file->count < TRACE_FILE_PIECES && trace_piece_copy(&file->pieces[file->count], &file->pieces[index]))
		file->count++;
}

static void swap_pieces(struct trace_file *file, unsigned one, unsigned other)
{
	struct trace_piece piece = file->pieces[one];

	file->pieces[one] = file->pieces[other];
	file->pieces[other] = piece;
}

static void change_file(struct trace_file *file, uint32_t *state)
{
	unsigned index = draw(state, file->count);

	switch (draw(state, 16)) {
	case 0:
		drop_piece(file, index);
		break;
	case 1:
		repeat_piece(file, index);
		break;
	case 2:
		swap_pieces(file, index, draw(state, file->count));
		break;
	case 3:
	case 4:
		change_header(&file->pieces[index], state);
		break;
	default:
		change_payload(&file->pieces[index], state);
	}
}

/* A header whose checksum is right although what it says is not. */
static void lie(uint8_t *bytes, size_t count, uint32_t *state)
{
	size_t at = sizeof(struct trace_header);

	for (unsigned skip = draw(state, 8); skip > 0; skip--) {
		struct trace_chunk chunk;

		if (count - at < sizeof(chunk))
			return;
		memcpy(&chunk, bytes + at, sizeof(chunk));
		if (chunk.magic != TRACE_CHUNK_MAGIC)
			return;
		if (skip == 1) {
			uint64_t value = draw_number(state);

			memcpy(bytes + at + draw(state, (offsetof(struct trace_chunk, crc) - 8) / 4) * 4, &value,
			       draw(state, 2) ? 4 : 8);
			trace_chunk_seal(bytes + at);
		}
		at += sizeof(chunk) + ((chunk.stored_bytes + UINT64_C(7)) & ~UINT64_C(7));
		if (at > count)
			return;
	}
}

size_t trace_mutate(uint8_t *bytes, size_t count, size_t room, size_t prefix, unsigned seed)
{
	static struct trace_file file;
	uint32_t state = seed | 1;
	size_t built = 0;

	if (count <= prefix || room <= prefix || draw(&state, 16) == 0)
		return LLVMFuzzerMutate(bytes, count, room);
	if (draw(&state, 8) == 0) {
		LLVMFuzzerMutate(bytes, prefix, prefix);
		return count;
	}
	if (trace_file_parse(&file, bytes + prefix, count - prefix)) {
		for (unsigned changes = 1 + draw(&state, 4); changes > 0 && file.count > 0; changes--)
			change_file(&file, &state);
		built = trace_file_build(&file, draw(&state, 8) != 0, bytes + prefix, room - prefix);
		trace_file_done(&file);
	}
	if (built == 0)
		return LLVMFuzzerMutate(bytes, count, room);
	if (draw(&state, 8) == 0)
		lie(bytes + prefix, built, &state);
	return prefix + built;
}

size_t trace_cross(const uint8_t *one, size_t one_count, const uint8_t *other, size_t other_count, uint8_t *out,
		   size_t room, size_t prefix, unsigned seed)
{
	static struct trace_file first;
	static struct trace_file second;
	uint32_t state = seed | 1;
	size_t built = 0;

	if (one_count <= prefix || other_count <= prefix || room <= prefix ||
	    !trace_file_parse(&first, one + prefix, one_count - prefix))
		return 0;
	if (trace_file_parse(&second, other + prefix, other_count - prefix)) {
		unsigned kept = draw(&state, first.count + 1);

		while (first.count > kept)
			trace_piece_done(&first.pieces[--first.count]);
		for (unsigned i = draw(&state, second.count + 1); i < second.count; i++) {
			if (first.count < TRACE_FILE_PIECES &&
			    trace_piece_copy(&first.pieces[first.count], &second.pieces[i]))
				first.count++;
		}
		memcpy(out, one, prefix);
		built = trace_file_build(&first, true, out + prefix, room - prefix);
		trace_file_done(&second);
	}
	trace_file_done(&first);
	return built ? prefix + built : 0;
}
