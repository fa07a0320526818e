/*
 * kept.c - see kept.h. Called by trace_output.c.
 *
 *   first ... base chunks ... stretch ... last
 *
 * A chunk leaves the stretch in the order of writing. Then it goes to the base of its owner (a thread, a process, or
 * the trace itself), or is dropped. Gaps between the chunks are given back together: one call to the file system for
 * each of them.
 *
 * Each chunk that stays alone costs a block of the file system. So states move together, in the order in which they
 * were written: a reader needs that order.
 */
#include "trace/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evprof/invariant.h"
#include "evprof/wire.h"
#include "file/trace_writer.h"

#define GIVE_BACK_BYTES (UINT64_C(256) << 10)
/* Times of the events and of the chunks come from different clocks. */
#define MARGIN_NS UINT64_C(10000000)

/* A process, a thread, or (nobody of nobody) the trace. */
struct owner {
	uint32_t process, thread;
	struct kept_chunk *base; /* newest first, by `below` */
	struct kept_chunk *latest;
	uint32_t chunks; /* that remain */
	bool over;	 /* its end has left the stretch */
};

struct kept_chunk {
	struct kept_chunk *before, *after;
	struct kept_chunk *below; /* in the base of its owner */
	struct owner *owner;
	uint64_t written_ns;
	uint64_t bytes; /* in the file */
	struct trace_index_entry entry;
	uint8_t kind;	/* enum kept_kind */
	bool has_stack; /* of KEPT_EVENTS */
	bool gap;	/* dropped chunks before it were not given back */
};

int kept_check(int fd)
{
	/* Beyond the end of the file: nothing changes. */
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)1 << 30, 4096) < 0)
		return -errno;
	return 0;
}

/* --- owners --- */

static int compare_owners(const void *one, const void *other)
{
	const struct owner *a = one, *b = other;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

static struct owner *make_owner(struct kept *kept, uint32_t process, uint32_t thread)
{
	struct owner key = {.process = process, .thread = thread}, *made,
		     **found = tfind(&key, &kept->owners, compare_owners);

	if (found)
		return *found;
	made = malloc(sizeof(*made));
	if (!made)
		return NULL;
	*made = key;
	found = tsearch(made, &kept->owners, compare_owners);
	if (!found)
		free(made);
	return found ? *found : NULL;
}

static void note_spare(struct kept *kept, uint32_t number)
{
	size_t wanted = kept->spare_allocated ? 2 * kept->spare_allocated : 16;
	uint32_t *grown;

	if (kept->spare_count == kept->spare_allocated) {
		grown = realloc(kept->spare, wanted * sizeof(*grown));
		if (!grown)
			return; /* the number is not used again */
		kept->spare = grown;
		kept->spare_allocated = wanted;
	}
	kept->spare[kept->spare_count++] = number;
}

static void remove_owner(struct kept *kept, struct owner *owner)
{
	invariant(!owner->base && !owner->latest && !owner->chunks);
	if (owner->thread != TRACE_NOBODY)
		note_spare(kept, owner->thread);
	tdelete(owner, &kept->owners, compare_owners);
	free(owner);
}

bool kept_spare_number(struct kept *kept, uint32_t *number)
{
	/* What a thread had in the file is there until it is given back. */
	if (!kept->spare_ready)
		return false;
	kept->spare_ready--;
	*number = kept->spare[kept->spare_ready];
	kept->spare[kept->spare_ready] = kept->spare[--kept->spare_count];
	return true;
}

/* --- chunks --- */

/* As a reader that looks back for a stack finds it (tools/replay/initial_stack.c). */
static bool has_recorded_stack(const uint32_t *heads, uint32_t count)
{
	const uint64_t stacks = UINT64_C(1) << WIRE_STACK | UINT64_C(1) << WIRE_GAP | UINT64_C(1) << WIRE_PAUSE;
	bool in_open = true; /* the chunk before may begin a list that continues here */

	for (uint32_t i = 0; i < count; i++) {
		unsigned kind = wire_head_kind(heads[i]);

		if (stacks >> kind & 1 || (kind == WIRE_OPEN && !in_open) ||
		    (kind == WIRE_STACK_CHANGE && !(heads[i] >> WIRE_VALUE_SHIFT & WIRE_CHANGE_STAY_MAX)))
			return true;
		in_open = kind == WIRE_GREENLET_STACK || (in_open && (kind == WIRE_OPEN || kind == WIRE_AT_LINE));
	}
	return false;
}

static void append(struct kept *kept, struct kept_chunk *made)
{
	made->before = kept->last;
	if (kept->last)
		kept->last->after = made;
	else
		kept->first = made;
	kept->last = made;
	if (!kept->stretch)
		kept->stretch = made;
	kept->count++;
	kept->stretch_bytes += made->bytes;
	made->owner->chunks++;
}

int kept_add(struct kept *kept, const struct trace_chunk *chunk, const void *raw, uint64_t offset, uint64_t in_file,
	     enum kept_kind kind, uint64_t now_ns)
{
	struct kept_chunk *made = calloc(1, sizeof(*made));

	if (made)
		made->owner = make_owner(kept, chunk->process, chunk->thread);
	if (!made || !made->owner) {
		kept->out_of_memory = true;
		free(made);
		return -ENOMEM;
	}
	made->written_ns = now_ns;
	made->bytes = in_file;
	made->kind = (uint8_t)kind;
	made->has_stack = kind == KEPT_EVENTS && has_recorded_stack(raw, chunk->events);
	made->entry = trace_index_entry_of(chunk, offset);
	append(kept, made);
	return 0;
}

static void drop(struct kept *kept, struct kept_chunk *chunk)
{
	if (chunk->before)
		chunk->before->after = chunk->after;
	else
		kept->first = chunk->after;
	if (chunk->after)
		chunk->after->before = chunk->before;
	else
		kept->last = chunk->before;
	if (chunk->after)
		chunk->after->gap = true;
	if (kept->moved == chunk)
		kept->moved = chunk->before;
	kept->count--;
	kept->dropped_bytes += chunk->bytes;
	chunk->owner->chunks--;
	free(chunk);
}

static void drop_base(struct kept *kept, struct owner *owner)
{
	struct kept_chunk *next;

	for (struct kept_chunk *chunk = owner->base; chunk; chunk = next) {
		next = chunk->below;
		drop(kept, chunk);
	}
	owner->base = NULL;
}

static void add_to_base(struct kept_chunk *chunk)
{
	chunk->below = chunk->owner->base;
	chunk->owner->base = chunk;
}

/* States of a thread stay while its events go. They are few: its beginning. */
static void drop_events(struct kept *kept, struct owner *owner)
{
	struct kept_chunk **link = &owner->base, *chunk;

	while ((chunk = *link)) {
		if (chunk->kind != KEPT_EVENTS) {
			link = &chunk->below;
			continue;
		}
		*link = chunk->below;
		drop(kept, chunk);
	}
}

/* Symbols of a process may follow its end. */
static void drop_late(struct kept *kept, struct owner *owner, struct kept_chunk *chunk)
{
	drop(kept, chunk);
	if (!owner->chunks)
		remove_owner(kept, owner);
}

static void drop_owner(struct kept *kept, struct owner *owner, struct kept_chunk *end)
{
	drop_base(kept, owner);
	if (owner->latest)
		drop(kept, owner->latest);
	owner->latest = NULL;
	owner->over = true;
	drop_late(kept, owner, end);
}

static uint64_t end_of(const struct kept_chunk *chunk)
{
	return chunk ? chunk->entry.offset + chunk->bytes : sizeof(struct trace_header);
}

static void give_back(const struct trace_writer *writer, uint64_t from, uint64_t to)
{
	if (to > from)
		fallocate(writer->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from));
}

static bool copy_within(const struct trace_writer *writer, uint64_t from, uint64_t to, size_t bytes)
{
	void *copy = malloc(bytes);
	bool done = copy && pread(writer->fd, copy, bytes, (off_t)from) == (ssize_t)bytes &&
		    pwrite(writer->fd, copy, bytes, (off_t)to) == (ssize_t)bytes;

	free(copy);
	return done;
}

static void move_behind(struct kept *kept, struct kept_chunk *chunk, struct kept_chunk *before)
{
	struct kept_chunk *after = before ? before->after : kept->first;

	invariant(chunk->before && chunk->after && after != chunk);
	chunk->before->after = chunk->after;
	chunk->after->before = chunk->before;
	chunk->after->gap = true;
	chunk->before = before;
	chunk->after = after;
	chunk->gap = after->gap;
	after->before = chunk;
	if (before)
		before->after = chunk;
	else
		kept->first = chunk;
}

/* Moves a state to the first gap behind those that have their place, if there is one before it. */
static void move_together(struct kept *kept, const struct trace_writer *writer, struct kept_chunk *chunk)
{
	struct kept_chunk *before = kept->moved, *after = before ? before->after : kept->first;
	uint64_t at;

	while (after != chunk && after->entry.offset - end_of(before) < chunk->bytes) {
		before = after;
		after = after->after;
	}
	at = end_of(before);
	if (after->gap) /* a part of a dropped chunk behind the moved one would be damage to a reader */
		give_back(writer, at, after->entry.offset);
	after->gap = false;
	if (chunk->entry.offset - at >= chunk->bytes && copy_within(writer, chunk->entry.offset, at, chunk->bytes)) {
		chunk->entry.offset = at;
		if (after != chunk)
			move_behind(kept, chunk, before);
		else
			chunk->after->gap = true;
	}
	kept->moved = chunk;
}

/* A chunk has left the stretch. */
static void retire(struct kept *kept, const struct trace_writer *writer, struct kept_chunk *chunk)
{
	struct owner *owner = chunk->owner;

	if (owner->over) {
		drop_late(kept, owner, chunk);
		return;
	}
	switch ((enum kept_kind)chunk->kind) {
	case KEPT_EVENTS:
		if (chunk->has_stack)
			drop_events(kept, owner);
		add_to_base(chunk);
		break;
	case KEPT_STATE:
		move_together(kept, writer, chunk);
		add_to_base(chunk);
		break;
	case KEPT_LATEST:
		if (owner->latest)
			drop(kept, owner->latest);
		owner->latest = chunk;
		break;
	case KEPT_PASSING:
		drop(kept, chunk);
		break;
	case KEPT_END:
		drop_owner(kept, owner, chunk);
		break;
	}
}

/* --- the file --- */

/* Blocks of the file system that are dropped in part become zeros in that part. */
static void give_back_all(struct kept *kept, const struct trace_writer *writer)
{
	uint64_t end = sizeof(struct trace_header);

	for (struct kept_chunk *chunk = kept->first; chunk; chunk = chunk->after) {
		if (chunk->gap)
			give_back(writer, end, chunk->entry.offset);
		chunk->gap = false;
		end = chunk->entry.offset + chunk->bytes;
		if (chunk == kept->stretch)
			break;
	}
	if (!kept->stretch)
		give_back(writer, end, writer->offset);
	kept->freed_bytes += kept->dropped_bytes;
	kept->dropped_bytes = 0;
	kept->spare_ready = kept->spare_count;
}

/*
 * The stretch ends with the last chunk: of a program that waits forever, what it did before is kept. So the last chunk
 * stays.
 */
static bool is_over(const struct kept *kept)
{
	const struct setting_keep *limits = &kept->limits;

	if (!kept->stretch || kept->stretch == kept->last ||
	    (kept->is_read && end_of(kept->stretch) > kept->read_bytes))
		return false;
	return (limits->ns && kept->last->written_ns - kept->stretch->written_ns > limits->ns) ||
	       (limits->bytes && kept->stretch_bytes > limits->bytes);
}

void kept_drop(struct kept *kept, const struct trace_writer *writer, uint64_t byte, uint64_t at_ns)
{
	while (!kept->out_of_memory && kept->stretch && kept->stretch != kept->last &&
	       kept->stretch->entry.offset < byte) {
		struct kept_chunk *chunk = kept->stretch;

		kept->stretch = chunk->after;
		kept->stretch_bytes -= chunk->bytes;
		retire(kept, writer, chunk);
	}
	kept->since_ns = at_ns;
	kept->since_byte = byte;
	give_back_all(kept, writer);
}

void kept_renew(struct kept *kept, const struct trace_writer *writer, uint64_t now_ns)
{
	if (now_ns < kept_held_until(kept) || kept->out_of_memory)
		return;
	while (is_over(kept)) {
		struct kept_chunk *chunk = kept->stretch;

		kept->stretch = chunk->after;
		kept->stretch_bytes -= chunk->bytes;
		kept->since_ns = chunk->written_ns + MARGIN_NS;
		retire(kept, writer, chunk);
	}
	if (kept->dropped_bytes >= GIVE_BACK_BYTES)
		give_back_all(kept, writer);
}

/* --- holds --- */

uint64_t kept_hold(struct kept *kept, const struct trace_writer *writer, uint64_t now_ns, uint32_t hold_ms)
{
	static uint64_t last; /* of all traces: a release names a process, and two containers may have one of its pid */
	struct kept_held made = {.number = ++last, .until_ns = now_ns + (uint64_t)hold_ms * 1000000};
	struct kept_held *first = kept->held; /* free, or the one that ends first */

	if (kept_is_noted(kept))
		give_back_all(kept, writer);
	for (size_t i = 1; i < KEPT_HOLDS; i++)
		if (kept->held[i].until_ns < first->until_ns)
			first = &kept->held[i];
	if (first->until_ns <= made.until_ns)
		*first = made;
	return made.number;
}

void kept_release(struct kept *kept, uint64_t number)
{
	for (size_t i = 0; i < KEPT_HOLDS; i++)
		if (kept->held[i].number == number)
			kept->held[i] = (struct kept_held){0};
}

void kept_release_all(struct kept *kept)
{
	memset(kept->held, 0, sizeof(kept->held));
}

uint64_t kept_held_until(const struct kept *kept)
{
	uint64_t until_ns = 0;

	for (size_t i = 0; i < KEPT_HOLDS; i++)
		if (kept->held[i].until_ns > until_ns)
			until_ns = kept->held[i].until_ns;
	return until_ns;
}

/* --- the end --- */

int kept_index(const struct kept *kept, struct trace_writer *writer)
{
	int error = 0;

	for (const struct kept_chunk *chunk = kept->first; chunk && !error; chunk = chunk->after)
		error = trace_writer_index(writer, &chunk->entry);
	return error;
}

void kept_done(struct kept *kept)
{
	struct kept_chunk *next;

	for (struct kept_chunk *chunk = kept->first; chunk; chunk = next) {
		next = chunk->after;
		free(chunk);
	}
	tdestroy(kept->owners, free);
	free(kept->spare);
	*kept = (struct kept){0};
}
