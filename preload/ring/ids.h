/*
 * ids.h - maps the address of a code object or C function to its id.
 *
 * Hooks look up an address at each event, with loads alone. Assigning an id, and removing a code object that dies,
 * takes the lock. Interpreters with their own GILs may do all of this at the same time.
 *
 *   invariant: a key is in one place of the table in use, among the IDS_PROBES places from that of its hash on.
 *   invariant: a place changes its key only by way of NULL; its value is stored before the key is.
 *
 * So a reader that finds its key finds its value, as long as the key is not removed meanwhile. Therefore only ids of
 * live objects may be looked up (the caller has a reference), and only those of dying objects removed. After an address
 * is reused, its key is never found with the value of the earlier object.
 *
 * The table grows and never shrinks. Hooks search the table that they saw last (struct ids_view). It stays mapped when
 * a larger one replaces it, but is then empty: the reader finds nothing until it loads the current table.
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
#define IDS_HASH_SHIFT 32 /* the index bits of the largest table fit above */

/*
 * How full a table may get. Nearly all keys should be in their first place, and hardly any beyond the fourth, where
 * hooks do not search: such a function costs more at each of its events. Tables of a MiB and more are filled further,
 * because their memory matters.
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

#define IDS_ENTRIES(bits) (((size_t)1 << (bits)) + IDS_PROBES) /* the last hash has all its places, too */

/* All zeros: no table; nothing is found and nothing stored. */
struct ids {
	/* The address of the table in use; its low six bits hold 64 minus its number of bits: ids_view_of(). */
	_Atomic uintptr_t table;
	_Atomic uint32_t lock;
	uint32_t count;		/* of keys */
	_Atomic uint32_t reach; /* the longest distance of a key from the place of its hash, in all tables so far */
	_Alignas(64) struct id_entry first[IDS_ENTRIES(IDS_BITS_FIRST)];
};

/* Sets up empty ids. */
void ids_begin(struct ids *ids);

/* One thread's view of the table. */
struct ids_view {
	uintptr_t entries;
	uint64_t mask; /* of the distance of a place from entries, in bytes */
};

static inline struct ids_view ids_view_of(uintptr_t table)
{
	return (struct ids_view){table & ~(uintptr_t)63, (UINT64_MAX >> (table & 63)) * sizeof(struct id_entry)};
}

/* Loads the current table. Only after ids_begin(). Acquire: pairs with the release that published the table. */
static inline struct ids_view ids_look(const struct ids *ids)
{
	return ids_view_of(atomic_load_explicit(&ids->table, memory_order_acquire));
}

/*
 * The first place of a key. The golden ratio spreads addresses, which are mostly multiples of 16. The middle bits of
 * the product are used, because the bits above are the same for all addresses of a heap.
 */
static inline struct id_entry *ids_place(const struct ids_view *view, const void *key)
{
	uint64_t hash = (uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15) >> IDS_HASH_SHIFT;

	return (struct id_entry *)(view->entries + (hash & view->mask));
}

/* Acquire: pairs with the release in fill(); the value is then visible, too. */
static inline bool ids_stands_at(const struct id_entry *entry, const void *key)
{
	return atomic_load_explicit(&entry->key, memory_order_acquire) == key;
}

/* Finds the value of a key. May miss an existing one; ids_find() does not. */
static inline bool ids_find_fast(const struct ids_view *view, const void *key, uint64_t *value)
{
	const struct id_entry *entry = ids_place(view, key);

	/* Not a loop, which would cost every event a counter. */
	if (__builtin_expect(!ids_stands_at(entry, key), 0) && !ids_stands_at(++entry, key) &&
	    !ids_stands_at(++entry, key) && !ids_stands_at(++entry, key))
		return false;
	*value = atomic_load_explicit(&entry->value, memory_order_relaxed);
	return true;
}

/* The value of a key, or 0. */
uint64_t ids_find(const struct ids *ids, const void *key);

/* Sets the value of a key. False: there is no place and no memory for a larger table; the key is then not found. */
bool ids_insert(struct ids *ids, const void *key, uint64_t value);

/* Calls take() with the value of each key, which then is what take() returns; not 0. take() does not use ids. */
void ids_each(struct ids *ids, uint64_t (*take)(uint64_t value));

/* Removes a key. */
void ids_remove(struct ids *ids, const void *key);

/* Removes all keys. A concurrent reader may or may not find one. */
void ids_clear(struct ids *ids);

#endif
