/*
 * gc_lists.c - see gc_lists.h.
 *
 * An object that the collector tracks has two words before it: the next and the previous one of its list, which is a
 * ring with a head of two words. The heads are in the state of an interpreter, in 3.8 in _PyRuntime: there any two
 * words that others lead back to begin a ring. Rings of other things have objects of no known type.
 */
#include "stack/gc_lists.h"
#include "util/clock.h"

#define WORD sizeof(uint64_t)
#define HEAD_BYTES (2 * WORD)
/*
 * Of an interpreter whose size is not known: all heads are there. Behind an interpreter are other objects, which are in
 * the lists and would be taken for heads.
 */
#define SEARCH_BYTES 1024
#define HEADS_MAX 256
#define OBJECTS_MAX 8000000
#define SECONDS_MAX 3 /* for a list */
#define TRIES 10
#define FLAGS UINT64_C(7) /* in the low bits of both words */

struct heads {
	uint64_t at[HEADS_MAX];
	size_t count;
};

static bool leads_back(struct process *process, uint64_t head, bool *begins)
{
	uint64_t next, previous, back, forth;

	*begins = process_word(process, head, &next) && (next &= ~FLAGS) != head && process_range_of(process, next) &&
		  process_word(process, next + WORD, &back) && (back & ~FLAGS) == head;
	return *begins && process_word(process, head + WORD, &previous) &&
	       process_range_of(process, previous &= ~FLAGS) && process_word(process, previous, &forth) &&
	       (forth & ~FLAGS) == head;
}

/* The end of a list changes with each new object, so it is looked at again. */
static bool is_ring(struct process *process, uint64_t head)
{
	bool begins = true, is = false;

	for (unsigned i = 0; i < TRIES && begins && !is; i++) {
		is = leads_back(process, head, &begins);
		if (begins && !is)
			remote_refresh(process->remote);
	}
	return is;
}

static void search_heads(struct process *process, uint64_t start, uint64_t bytes, struct heads *heads)
{
	const struct process_range *range = process_range_of(process, start);
	uint64_t end;

	if (!range)
		return;
	end = range->end - start < bytes ? range->end : start + bytes;
	for (uint64_t at = start; at + HEAD_BYTES <= end && heads->count < HEADS_MAX; at += WORD)
		if (is_ring(process, at))
			heads->at[heads->count++] = at;
}

static bool is_head(const struct heads *heads, uint64_t node)
{
	for (size_t i = 0; i < heads->count; i++)
		if (heads->at[i] == node)
			return true;
	return false;
}

/* A node: next, previous, and the object's references and type. */
static bool walk(const struct layout *layout, struct process *process, const struct heads *heads, uint64_t head,
		 void (*visit)(void *, uint64_t, uint64_t), void *context)
{
	uint64_t node, words[2], type;
	int64_t end_ms = time_ms(CLOCK_MONOTONIC) + SECONDS_MAX * 1000;

	if (!process_word(process, head, &node))
		return false;
	node &= ~FLAGS;
	for (unsigned i = 0; i < OBJECTS_MAX && (i % 4096 || time_ms(CLOCK_MONOTONIC) < end_ms); i++) {
		if (is_head(heads, node))
			return node == head;
		if (!remote_read(process->remote, node, words, sizeof(words)) ||
		    !process_word(process, node + HEAD_BYTES + layout->fields.object_type, &type))
			return false;
		visit(context, node + HEAD_BYTES, type);
		node = words[0] & ~FLAGS;
	}
	return false;
}

/* A list that changes is walked from its beginning again. */
static bool walk_again(const struct layout *layout, struct process *process, const struct heads *heads, uint64_t head,
		       void (*visit)(void *, uint64_t, uint64_t), void *context)
{
	for (unsigned i = 0; i < TRIES; i++) {
		remote_refresh(process->remote);
		if (walk(layout, process, heads, head, visit, context))
			return true;
	}
	return false;
}

bool gc_lists_walk(const struct layout *layout, struct process *process,
		   void (*visit)(void *context, uint64_t object, uint64_t type), void *context)
{
	static struct heads heads;
	bool all = true;

	heads.count = 0;
	if (layout->runtime)
		search_heads(process, layout->runtime, layout->runtime_bytes, &heads);
	for (size_t i = 0; i < layout->interpreter_count; i++)
		if (layout->interpreters[i] - layout->runtime >= layout->runtime_bytes)
			search_heads(process, layout->interpreters[i],
				     layout->interpreter_bytes ? layout->interpreter_bytes : SEARCH_BYTES, &heads);
	for (size_t i = 0; i < heads.count; i++)
		all &= walk_again(layout, process, &heads, heads.at[i], visit, context);
	return all;
}
