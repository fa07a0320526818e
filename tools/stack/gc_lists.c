/*
 * gc_lists.c - see gc_lists.h.
 *
 * An object that the collector tracks has two words before it: the next and the previous one of its list, which is a
 * ring with a head of two words. The heads are in the state of an interpreter, in 3.8 in _PyRuntime: there any two
 * words that others lead back to begin a ring. Rings of other things have objects of no known type.
 *
 * While a list is collected its objects have a mark, and a count in the place of the previous word. Some are moved to
 * lists that only the collector knows. So the head is known by its other side. The list is walked again when that is
 * over.
 */
#include "stack/gc_lists.h"

#include <time.h>

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
#define SECONDS_MAX 10 /* for all lists */
#define LOOKS 3
#define TRIES 10
#define FIRST_PAUSE_NS 1000000	/* between two walks; each is twice the one before: half a second in all */
#define FLAGS UINT64_C(7)	/* in the low bits of both words */
#define COLLECTING UINT64_C(2)	/* in the second, as pycore_gc.h calls it */
#define UNREACHABLE UINT64_C(1) /* in the first of an object that is in a list of the collector's own */

struct heads {
	uint64_t at[HEADS_MAX];
	size_t count;
};

/* Whether the last of the list leads to the head. */
static bool leads_forth(struct process *process, uint64_t head)
{
	uint64_t previous, forth;

	return process_word(process, head + WORD, &previous) && process_range_of(process, previous &= ~FLAGS) &&
	       process_word(process, previous, &forth) && (forth & ~FLAGS) == head;
}

static bool leads_back(struct process *process, uint64_t head, bool *begins)
{
	uint64_t next, back;
	bool forth;

	*begins = process_word(process, head, &next) && (next &= ~FLAGS) != head && process_range_of(process, next) &&
		  process_word(process, next + WORD, &back) && ((back & ~FLAGS) == head || back & COLLECTING);
	if (!*begins)
		return false;
	forth = leads_forth(process, head);
	*begins = forth || (back & ~FLAGS) == head;
	return forth;
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

struct walk {
	const struct layout *layout;
	struct process *process;
	struct heads heads;
	int64_t end_ms; /* CLOCK_MONOTONIC */
	void (*visit)(void *context, uint64_t object, uint64_t type);
	void *context;
};

static bool is_time_over(const struct walk *walk)
{
	return time_ms(CLOCK_MONOTONIC) >= walk->end_ms;
}

static bool is_head(const struct heads *heads, uint64_t node)
{
	for (size_t i = 0; i < heads->count; i++)
		if (heads->at[i] == node)
			return true;
	return false;
}

static void search_heads(struct walk *walk, uint64_t start, uint64_t bytes)
{
	const struct process_range *range = process_range_of(walk->process, start);
	struct heads *heads = &walk->heads;
	uint64_t end;

	if (!range)
		return;
	end = range->end - start < bytes ? range->end : start + bytes;
	for (uint64_t at = start; at + HEAD_BYTES <= end && heads->count < HEADS_MAX; at += WORD) {
		if ((at - start) % 4096 == 0 && is_time_over(walk))
			return;
		if (!is_head(heads, at) && is_ring(walk->process, at))
			heads->at[heads->count++] = at;
	}
}

/* What is read before a collection of its lists and what is read in it do not fit: so they are looked at thrice. */
static void find_heads(struct walk *walk)
{
	const struct timespec pause = {.tv_nsec = FIRST_PAUSE_NS};
	const struct layout *layout = walk->layout;
	uint64_t bytes = layout->interpreter_bytes ? layout->interpreter_bytes : SEARCH_BYTES;

	for (unsigned look = 0; look < LOOKS; look++) {
		if (look)
			nanosleep(&pause, NULL);
		remote_refresh(walk->process->remote);
		if (layout->runtime)
			search_heads(walk, layout->runtime, layout->runtime_bytes);
		for (size_t i = 0; i < layout->interpreter_count; i++)
			if (layout->interpreters[i] - layout->runtime >= layout->runtime_bytes)
				search_heads(walk, layout->interpreters[i], bytes);
	}
}

/*
 * A node: next, previous, and the object's references and type. False: not all may have been visited. What is collected
 * is visited as long as it is in this list.
 */
static bool walk_list(const struct walk *walk, uint64_t head)
{
	struct process *process = walk->process;
	uint64_t node, words[2], type;
	bool collected = false;

	if (!process_word(process, head, &node))
		return false;
	node &= ~FLAGS;
	for (unsigned i = 0; i < OBJECTS_MAX && (i % 4096 || !is_time_over(walk)); i++) {
		if (is_head(&walk->heads, node))
			return node == head && !collected;
		if (!remote_read(process->remote, node, words, sizeof(words)) ||
		    !process_word(process, node + HEAD_BYTES + walk->layout->fields.object_type, &type))
			return false;
		walk->visit(walk->context, node + HEAD_BYTES, type);
		collected |= words[1] & COLLECTING;
		if (collected && words[0] & UNREACHABLE)
			return false;
		node = words[0] & ~FLAGS;
	}
	return false;
}

/* A list that changes, or is collected, is walked from its beginning again. */
static bool walk_again(const struct walk *walk, uint64_t head)
{
	struct timespec pause = {.tv_nsec = FIRST_PAUSE_NS};

	for (unsigned i = 0; i < TRIES && !is_time_over(walk); i++) {
		if (i) {
			nanosleep(&pause, NULL);
			pause.tv_nsec *= 2;
		}
		remote_refresh(walk->process->remote);
		if (walk_list(walk, head))
			return true;
	}
	return false;
}

bool gc_lists_walk(const struct layout *layout, struct process *process,
		   void (*visit)(void *context, uint64_t object, uint64_t type), void *context)
{
	struct walk walk = {.layout = layout,
			    .process = process,
			    .end_ms = time_ms(CLOCK_MONOTONIC) + SECONDS_MAX * 1000,
			    .visit = visit,
			    .context = context};
	bool all;

	find_heads(&walk);
	all = walk.heads.count > 0;
	for (size_t i = 0; i < walk.heads.count; i++)
		all &= walk_again(&walk, walk.heads.at[i]);
	return all;
}
