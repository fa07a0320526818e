/*
 * ids.h - which id a code object or a C function has, by its address.
 *
 * Hooks look here at each event, with loads alone. Whoever gives an id, or sees a code object die, takes the lock.
 * Interpreters with a GIL each may do all of this at the same time.
 *
 *   invariant: a key stands in one place of the table in use, among the IDS_PROBES places from that of its hash on.
 *   invariant: a place changes its key only by way of NULL; its value is there before the key is.
 *
 * So a reader that meets its key has its value, as long as the key is not removed meanwhile: only ids of what is alive
 * may be asked for (the caller has a reference), and only what dies may be removed. A key of an address that is used
 * again is therefore never met with the value of what was there before.
 *
 * The table grows, never shrinks. Hooks look at the one that they saw last (struct ids_view), so it stays where it is
 * when there is a larger one, but it is empty then: nothing is found there until the reader looks for the table again.
 */
#ifndef PRELOAD_IDS_H
#define PRELOAD_IDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDS_BITS_FIRST 12
#define IDS_BITS_STEP 2
#define IDS_BITS_LAST 24
#define IDS_PROBES 32
#define IDS_HASH_SHIFT 32 /* the bits of the largest table's places fit above */

/*
 * How full a table may get. Nearly all keys are to stand in their first place, and hardly any beyond the fourth, where
 * hooks do not look: such a function costs more at each of its events. Tables of a MiB and more are filled further,
 * because memory counts there.
 */
#define IDS_SPARSE_BITS_LAST 15
static inline uint32_t ids_most(unsigned bits)
{
	return (uint32_t)1 << (bits <= IDS_SPARSE_BITS_LAST ? bits - 3 : bits - 1);
}

struct id_entry {
	_Atomic(const void *) key;
	_Atomic uint64_t value; /* not 0 */
};

#define IDS_ENTRIES(bits) (((size_t)1 << (bits)) + IDS_PROBES) /* the last hash has its places, too */

/* All zeros: no table, nothing is found and nothing kept. */
struct ids {
	/* The address of the table in use, and in its low six bits 64 - its bits: ids_view_of(). */
	_Atomic uintptr_t table;
	_Atomic uint32_t lock;
	uint32_t count;		/* of the keys */
	_Atomic uint32_t reach; /* no key stands further from the place of its hash; of all tables there were */
	_Alignas(64) struct id_entry first[IDS_ENTRIES(IDS_BITS_FIRST)];
};

/* Makes the empty ids ready. */
void ids_begin(struct ids *ids);

/* A table, as one thread saw it. */
struct ids_view {
	uintptr_t entries;
	uint64_t mask; /* of the distance of a place from there, in bytes */
};

static inline struct ids_view ids_view_of(uintptr_t table)
{
	return (struct ids_view){table & ~(uintptr_t)63, (UINT64_MAX >> (table & 63)) * sizeof(struct id_entry)};
}

/* Only after ids_begin(). Acquire: pairs with the release of whoever published the table. */
static inline struct ids_view ids_look(const struct ids *ids)
{
	return ids_view_of(atomic_load_explicit(&ids->table, memory_order_acquire));
}

/*
 * The place of a key in a table: the golden ratio spreads addresses, which are multiples of 16 mostly. Of the product
 * the bits in the middle are taken, because what stands above them all the addresses of a heap have in common.
 */
static inline struct id_entry *ids_place(const struct ids_view *view, const void *key)
{
	uint64_t hash = (uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15) >> IDS_HASH_SHIFT;

	return (struct id_entry *)(view->entries + (hash & view->mask));
}

/* Acquire: pairs with the release of whoever stored the key; its value is seen then, too. */
static inline bool ids_stands_at(const struct id_entry *entry, const void *key)
{
	return atomic_load_explicit(&entry->key, memory_order_acquire) == key;
}

/* Whether there is a value of a key. May miss one that is there: ids_find() does not. */
static inline bool ids_find_fast(const struct ids_view *view, const void *key, uint64_t *value)
{
	const struct id_entry *entry = ids_place(view, key);

	/* No loop, which would have every event count. */
	if (__builtin_expect(!ids_stands_at(entry, key), 0) && !ids_stands_at(++entry, key) &&
	    !ids_stands_at(++entry, key) && !ids_stands_at(++entry, key))
		return false;
	*value = atomic_load_explicit(&entry->value, memory_order_relaxed);
	return true;
}

/* The value of a key, or 0. */
uint64_t ids_find(const struct ids *ids, const void *key);

/* Gives a key a value, or another one. False: there is no place for it and no memory for more; it is not found then. */
bool ids_insert(struct ids *ids, const void *key, uint64_t value);

/* The key is no more. */
void ids_remove(struct ids *ids, const void *key);

/* All keys are gone. Who reads meanwhile may find one or not. */
void ids_clear(struct ids *ids);

#endif
