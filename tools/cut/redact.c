/*
 * redact.c - see redact.h. A trace is read chunk by chunk, in the order of the file.
 */
#include "cut/redact.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/json_memory.h"
#include "evprof/proc.h"
#include "file/columns.h"
#include "file/trace_writer.h"
#include "trace/chunk.h"
#include "util/output.h"

struct redacting {
	const struct redact *redact;
	struct trace *trace;
	struct trace_writer writer;
	struct trace_payload payload;
	uint8_t *columns;
	size_t columns_allocated;
	char *text;
	size_t text_allocated;
};

/* --- patterns --- */

const char *redact_add(struct redact *redact, const char *pattern, char *why, size_t why_bytes)
{
	regex_t *grown = realloc(redact->patterns, (redact->count + 1) * sizeof(*grown));
	int error;

	if (!grown)
		return "out of memory";
	redact->patterns = grown;
	error = regcomp(&grown[redact->count], pattern, REG_EXTENDED);
	if (error) {
		regerror(error, &grown[redact->count], why, why_bytes);
		return why;
	}
	redact->count++;
	return NULL;
}

void redact_done(struct redact *redact)
{
	for (size_t i = 0; i < redact->count; i++)
		regfree(&redact->patterns[i]);
	free(redact->patterns);
	*redact = (struct redact){0};
}

static bool goes_on(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Masks the bytes, and the rest of the characters that they are of. Returns whether they were others. */
static bool mask(char *text, size_t from, size_t to, size_t length)
{
	bool changed = false;

	while (from > 0 && from < length && goes_on(text[from]))
		from--;
	while (to < length && goes_on(text[to]))
		to++;
	for (size_t i = from; i < to; i++) {
		changed |= text[i] != '*';
		text[i] = '*';
	}
	return changed;
}

/* Matches may overlap: the next one is looked for behind the first byte of this one. */
static bool mask_matches(const regex_t *pattern, const char *text, size_t length, char *masked)
{
	regmatch_t match = {.rm_so = -1};
	bool changed = false;

	while (match.rm_so + 1 < (regoff_t)length && match.rm_eo < (regoff_t)length) {
		match = (regmatch_t){.rm_so = match.rm_so + 1, .rm_eo = (regoff_t)length};
		if (regexec(pattern, text, 1, &match, REG_STARTEND | (match.rm_so ? REG_NOTBOL : 0)))
			break;
		changed |= mask(masked, (size_t)match.rm_so, (size_t)match.rm_eo, length);
	}
	return changed;
}

bool redact_text(const struct redact *redact, const char *text, size_t length, char *masked)
{
	bool changed = false;

	for (size_t i = 0; i < redact->count; i++)
		changed |= mask_matches(&redact->patterns[i], text, length, masked);
	return changed;
}

/* --- what the trace says of processes --- */

/* Members that readers compare with words of the format, and the version of Python. */
static bool is_structure(const char *member)
{
	static const char *const members[] = {"type", "how", "start", "python", "events", "lost"};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (strcmp(member, members[i]) == 0)
			return true;
	return false;
}

static bool redact_string(const struct redact *redact, json_t *value)
{
	size_t length = json_string_length(value);
	char *masked = json_memory_allocate(length + 1);
	bool changed;

	if (!masked)
		return false;
	memcpy(masked, json_string_value(value), length);
	changed = redact_text(redact, json_string_value(value), length, masked);
	if (changed && json_string_setn(value, masked, length) < 0)
		json_memory_ran_out = true;
	free(masked);
	return changed;
}

/* A newer trace may have texts at any depth, which jansson limits. */
static bool redact_value(const struct redact *redact, json_t *value)
{
	bool changed = false;
	const char *member;
	json_t *one;
	size_t i;

	if (json_is_string(value))
		return redact_string(redact, value);
	json_array_foreach(value, i, one) changed |= redact_value(redact, one);
	json_object_foreach(value, member, one) changed |= redact_value(redact, one);
	return changed;
}

/* The bytes of the first word of a text. Its length: there is no other word. */
static size_t first_word(const char *text)
{
	return strcspn(text, " \t\n");
}

/*
 * A program that sets its title may have its arguments there, too. One that did so before it was recorded has them in
 * its first argument. Returns the text without them; NULL: it has one word.
 */
static json_t *without_words(const json_t *value)
{
	const char *text = json_string_value(value);
	size_t first = text ? first_word(text) : 0;
	json_t *cut;

	if (!text || first == json_string_length(value))
		return NULL;
	cut = json_sprintf("%.*s *", (int)first, text);
	if (!cut)
		json_memory_ran_out = true;
	return cut;
}

/* Whether the name of the program was made of a title (proc_program_name()), not of Python's argument. */
static bool is_named_by_title(const json_t *argv)
{
	const char *title = json_string_value(json_array_get(argv, 0)), *slash = title ? strrchr(title, '/') : NULL;
	const char *script = json_string_value(json_array_get(argv, 1));

	return title && title[first_word(title)] &&
	       (!script || !script[0] || strncmp(slash ? slash + 1 : title, "python", 6) != 0);
}

static void drop_program(json_t *object, const char *title)
{
	char word[256], program[80];

	snprintf(word, sizeof(word), "%.*s", (int)first_word(title), title);
	proc_program_name(word, (ssize_t)strlen(word) + 1, program, sizeof(program));
	if (json_object_set_new(object, "program", json_string(program)) < 0)
		json_memory_ran_out = true;
}

static bool drop_arguments(json_t *object)
{
	json_t *argv = json_object_get(object, "argv"), *first = without_words(json_array_get(argv, 0));
	bool changed = first || json_array_size(argv) > 1;

	if (first && is_named_by_title(argv) && json_object_get(object, "program"))
		drop_program(object, json_string_value(json_array_get(argv, 0)));
	if (first && json_array_set_new(argv, 0, first) < 0)
		json_memory_ran_out = true;
	for (size_t i = 1; i < json_array_size(argv); i++)
		if (json_array_set_new(argv, i, json_string("*")) < 0)
			json_memory_ran_out = true;
	return changed;
}

static bool drop_words(json_t *object)
{
	json_t *cut = without_words(json_object_get(object, "title"));

	if (cut && json_object_set_new(object, "title", cut) < 0)
		json_memory_ran_out = true;
	return cut;
}

bool redact_cuts_program(const struct redact *redact, const struct trace *trace, const char *name)
{
	for (uint32_t i = 0; i < trace->process_count && redact->arguments; i++) {
		const struct trace_process *process = trace->processes[i];
		const char *program = process ? trace_process_text(process, "program") : "";

		if (program[0] && strstr(name, program) && is_named_by_title(json_object_get(process->meta, "argv")))
			return true;
	}
	return false;
}

static bool redact_object(const struct redact *redact, json_t *object)
{
	bool changed = redact->arguments && drop_arguments(object);
	const char *member;
	json_t *value;

	changed |= redact->arguments && drop_words(object);
	json_object_foreach(object, member, value)
	{
		if (!is_structure(member))
			changed |= redact_value(redact, value);
	}
	return changed;
}

static int write_raw(struct redacting *own, const void *raw, size_t bytes)
{
	struct trace_chunk chunk = own->payload.chunk;

	return trace_writer_chunk(&own->writer, &chunk, raw, bytes);
}

static int write_meta(struct redacting *own)
{
	const struct trace_payload *payload = &own->payload;
	json_t *object = json_loadb((const char *)payload->raw, payload->chunk.raw_bytes, JSON_ALLOW_NUL, NULL);
	const char *type = json_string_value(json_object_get(object, "type"));
	char *text = NULL;
	int error = 0;

	/* What no reader can read is no part of the trace. */
	if (object && type && strcmp(type, "kinds") != 0 && redact_object(own->redact, object))
		text = json_dumps(object, JSON_COMPACT);
	if (json_memory_ran_out)
		error = -ENOMEM;
	else if (text)
		error = write_raw(own, text, strlen(text));
	else if (object)
		error = write_raw(own, payload->raw, payload->chunk.raw_bytes);
	free(text);
	json_decref(object);
	return error;
}

/* --- names --- */

/* The strings of a definition that are texts. */
static bool is_text(unsigned type, int string)
{
	switch (type) {
	case WIRE_DEFINE_CALIBRATION:
	case WIRE_DEFINE_LINES:
	case WIRE_DEFINE_BUDGET:
		return false;
	case WIRE_DEFINE_MODULE:
		return string == 0;
	default:
		return true;
	}
}

static int redact_definition(struct redacting *own, const struct wire_definition *definition, char *strings)
{
	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++) {
		size_t length = definition->length[i];

		if (is_text(definition->type, i) && length) {
			if (trace_reserve((void **)&own->text, &own->text_allocated, length + 1) < 0)
				return -ENOMEM;
			memcpy(own->text, strings, length);
			own->text[length] = 0;
			redact_text(own->redact, own->text, length, strings);
		}
		strings += length;
	}
	return 0;
}

/* Whether the record, of which `left` bytes are there, is as large as its strings. */
static bool is_sound(const struct wire_definition *definition, size_t left)
{
	uint64_t bytes = sizeof(*definition);

	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++)
		bytes += definition->length[i];
	return definition->size_bytes <= left && bytes <= definition->size_bytes && !(definition->size_bytes & 7);
}

/* What follows a record that is damaged is left out, as readers do. */
static int write_definitions(struct redacting *own)
{
	uint8_t *raw = own->payload.raw;
	size_t bytes = own->payload.chunk.raw_bytes, at = 0;
	int error = 0;

	while (!error && bytes - at >= sizeof(struct wire_definition)) {
		struct wire_definition definition;

		memcpy(&definition, raw + at, sizeof(definition));
		if (!is_sound(&definition, bytes - at))
			break;
		error = redact_definition(own, &definition, (char *)raw + at + sizeof(definition));
		at += definition.size_bytes;
	}
	return at && !error ? write_raw(own, raw, at) : error;
}

/* --- arguments of spans and marks --- */

/* A text, in pieces: extra words of one event after the other. */
struct argument_pieces {
	uint64_t *at[WIRE_TEXT_MAX_BYTES / WIRE_ARGUMENT_TEXT_BYTES];
	size_t bytes[WIRE_TEXT_MAX_BYTES / WIRE_ARGUMENT_TEXT_BYTES];
	size_t count, total;
	bool headless; /* its beginning is in an earlier chunk */
};

/* last: of the chunk. A text that may be cut there is masked whole, as what matches may go on in the next chunk. */
static bool redact_pieces(const struct redact *redact, struct argument_pieces *pieces, bool last)
{
	char text[WIRE_TEXT_MAX_BYTES + 1], masked[WIRE_TEXT_MAX_BYTES];
	size_t used = 0, shown;
	bool changed;

	for (size_t i = 0; i < pieces->count; used += pieces->bytes[i++])
		memcpy(text + used, pieces->at[i], pieces->bytes[i]);
	text[used] = 0;
	memcpy(masked, text, used);
	shown = used;
	while (shown && !text[shown - 1])
		shown--;
	if (pieces->headless || (last && shown == used && used % WIRE_ARGUMENT_TEXT_BYTES == 0))
		changed = mask(masked, 0, shown, shown);
	else
		changed = redact_text(redact, text, shown, masked);
	used = 0;
	for (size_t i = 0; i < pieces->count; used += pieces->bytes[i++])
		memcpy(pieces->at[i], masked + used, pieces->bytes[i]);
	*pieces = (struct argument_pieces){0};
	return changed;
}

static void add_piece(struct argument_pieces *pieces, uint64_t *words, unsigned count)
{
	if (pieces->count == sizeof(pieces->at) / sizeof(pieces->at[0]) || count > WIRE_ARGUMENT_TEXT_BYTES / 8)
		return;
	pieces->at[pieces->count] = words;
	pieces->bytes[pieces->count++] = count * sizeof(*words);
}

/* Returns whether a text has changed. */
static bool redact_arguments(const struct redact *redact, const struct trace_events *events, uint64_t *extra)
{
	struct argument_pieces pieces = {0};
	bool changed = false;

	for (uint32_t i = 0; i < events->count; i++) {
		uint32_t head = events->heads[i];
		unsigned words = wire_extra_words(head);

		if (wire_head_kind(head) == WIRE_ARGUMENT && words > 1) {
			bool is_text = (head >> WIRE_VALUE_SHIFT & ~(unsigned)WIRE_ARGUMENT_CUT) == WIRE_ARGUMENT_TEXT;

			if (extra[0] && pieces.count)
				changed |= redact_pieces(redact, &pieces, false);
			if (is_text) {
				pieces.headless |= !extra[0] && !pieces.count;
				add_piece(&pieces, extra + 1, words - 1);
			}
		} else if (!wire_is_bookkeeping(wire_head_kind(head)) && pieces.count) {
			changed |= redact_pieces(redact, &pieces, false);
		}
		extra += words;
	}
	return (pieces.count && redact_pieces(redact, &pieces, true)) || changed;
}

static int write_events(struct redacting *own)
{
	struct trace_payload *payload = &own->payload;
	struct trace_events events;
	int error = trace_unpack_events(payload, &events);
	size_t bytes = payload->chunk.raw_bytes;

	if (error)
		return error;
	if (!events.extra_count || !redact_arguments(own->redact, &events, (uint64_t *)(uintptr_t)events.extras))
		return write_raw(own, payload->raw, bytes);
	if (trace_reserve((void **)&own->columns, &own->columns_allocated, bytes) < 0)
		return -ENOMEM;
	columns_pack(own->columns, events.heads, events.ticks, events.count, events.extras, events.extra_count);
	return write_raw(own, own->columns, bytes);
}

/* --- the file --- */

static int write_chunk(struct redacting *own, struct trace_place *place)
{
	int error = trace_read_payload(own->trace, place, &own->payload);

	if (!error && place->type == TRACE_CHUNK_META)
		error = write_meta(own);
	else if (!error && place->type == TRACE_CHUNK_DEFINITIONS)
		error = write_definitions(own);
	else if (!error && place->type == TRACE_CHUNK_EVENTS)
		error = write_events(own);
	else if (!error && place->type == TRACE_CHUNK_CLOCK)
		error = write_raw(own, own->payload.raw, own->payload.chunk.raw_bytes);
	if (error == -EBADMSG)
		trace_note_error(own->trace, place, error);
	return error == -EBADMSG ? 0 : error;
}

static int write_trace(struct redacting *own, int fd)
{
	const struct trace *trace = own->trace;
	struct trace_packer *packer = trace_packer_new();
	int error = packer
			? trace_writer_open(&own->writer, packer, fd, trace->header.created_ns, trace->header.session)
			: -ENOMEM;

	json_memory_begin();
	own->writer.fd = fd;
	for (size_t i = 0; i < trace->place_count && !error; i++)
		error = write_chunk(own, &own->trace->places[i]);
	/* A trace without an end stays without one. */
	if (!error && trace->complete)
		error = trace_writer_finish(&own->writer, trace->end.events, trace->end.lost, trace->end.processes);
	trace_writer_close(&own->writer);
	trace_packer_free(packer);
	trace_payload_done(&own->payload);
	free(own->columns);
	free(own->text);
	return error;
}

int redact_write_file(const struct redact *redact, struct trace *trace, const char *path, bool in_place)
{
	struct redacting own = {.redact = redact, .trace = trace};
	struct output output;
	int error = output_open_trace(&output, path), fd;

	if (error)
		return error;
	if (in_place)
		output_let_read_like(&output, path);
	fd = fcntl(output.fd, F_DUPFD_CLOEXEC, 0);
	error = fd < 0 ? -errno : write_trace(&own, fd);
	if (!error)
		return output_close(&output);
	output_abandon(&output);
	return error;
}
