/* pending_calls.c - see pending_calls.h. */
#include "python/pending_calls.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/elf_symbols.h"
#include "python/python.h"

#define CALLS 300
#define SEARCHED_BYTES 65536 /* of Python's runtime; the calls are in its first 4 KiB */

/* struct _pending_calls without its first member. Calls are a ring. */
struct pending_calls {
	uint8_t lock; /* PyMutex: 0 if nobody holds it */
	int32_t count, most, most_at_once;
	struct {
		int (*call)(void *);
		void *argument;
		int flags;
	} calls[CALLS];
	int32_t first, next;
};

static const uint8_t *lock;

static int do_nothing(void *data)
{
	(void)data;
	return 0;
}

/* Whether the call with this index is the last one of those that are there. */
static bool is_last(const struct pending_calls *pending, int32_t index)
{
	int32_t count = (index + 1 - pending->first + CALLS) % CALLS;

	return pending->next == (index + 1) % CALLS && pending->first >= 0 && pending->first < CALLS &&
	       pending->count == count && pending->most >= count && pending->most <= CALLS && !pending->lock;
}

/* The calls of which one is at that place. */
static const struct pending_calls *around(const char *place, const char *begin, const char *end)
{
	const size_t stride = sizeof(((struct pending_calls *)NULL)->calls[0]);

	for (int32_t i = 0; i < CALLS; i++) {
		size_t before = offsetof(struct pending_calls, calls) + (size_t)i * stride;
		const struct pending_calls *pending = (const void *)(place - before);

		if ((size_t)(place - begin) < before || (size_t)(end - place) < sizeof(*pending) - before)
			continue;
		if (is_last(pending, i))
			return pending;
	}
	return NULL;
}

void pending_calls_find(void)
{
	const struct pending_calls *pending = NULL;
	size_t bytes = 0;
	const char *begin = elf_symbol_sized("_PyRuntime", &bytes);
	static const char mark;

	if (lock || !python.monitoring || !begin || python.Py_AddPendingCall(do_nothing, (void *)&mark))
		return;
	bytes = bytes < SEARCHED_BYTES ? bytes : SEARCHED_BYTES;
	for (const char *at = begin; !pending && at + 2 * sizeof(void *) <= begin + bytes; at += sizeof(void *)) {
		int (*call)(void *);
		const void *argument;

		memcpy(&call, at, sizeof(call));
		memcpy(&argument, at + sizeof(call), sizeof(argument));
		if (call == do_nothing && argument == &mark)
			pending = around(at, begin, begin + bytes);
	}
	lock = pending ? &pending->lock : NULL;
}

bool pending_calls_are_free(void)
{
	return lock && !__atomic_load_n(lock, __ATOMIC_ACQUIRE);
}
