/*
 * ids.c - the table of ids: open addressing with a bounded number of probes, so that removing a key leaves no marker.
 *
 * The first table is part of struct ids; larger ones are mapped on demand. A fork clears both, like all state of a
 * process image (process.h). The child finds its parent's mappings and uses them for its own tables.
 */
#include "ring/ids.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/lock.h"
#include "evprof/invariant.h"

/*
 * By the number of the step. Not in the memory that a fork clears. One for the process, because there is one struct
 * ids.
 */
static struct id_entry *_Atomic mapped[(IDS_BITS_LAST - IDS_BITS_FIRST) / IDS_BITS_STEP + 1];

static uintptr_t table_word(const struct id_entry *entries, unsigned bits)
{
	return (uintptr_t)entries | (64 - bits);
}

static unsigned table_bits(uintptr_t table)
{
	return 64 - (table & 63);
}

static struct id_entry *table_entries(uintptr_t table)
{
	return (struct id_entry *)ids_view_of(table).entries;
}

static struct id_entry *place_of(uintptr_t table, const void *key)
{
	struct ids_view view = ids_view_of(table);

	return ids_place(&view, key);
}

/* Clears a table. Readers then find nothing in it, even if keys have died and their addresses are used again. */
static void clear_keys(uintptr_t table)
{
	struct id_entry *entries = table_entries(table);

	for (size_t i = 0; i < IDS_ENTRIES(table_bits(table)); i++)
		if (atomic_load_explicit(&entries[i].key, memory_order_relaxed))
			atomic_store_explicit(&entries[i].key, NULL, memory_order_release);
}

void ids_begin(struct ids *ids)
{
	atomic_store_explicit(&ids->table, table_word(ids->first, IDS_BITS_FIRST), memory_order_release);
}

/* The entry of a key, or NULL. The search ends at reach: most code objects that die have no entry. */
static struct id_entry *find_entry(const struct ids *ids, uintptr_t table, const void *key)
{
	uint32_t reach = atomic_load_explicit(&ids->reach, memory_order_relaxed);
	struct id_entry *entry = table ? place_of(table, key) : NULL;

	for (uint32_t i = 0; entry && i <= reach; i++, entry++)
		if (atomic_load_explicit(&entry->key, memory_order_acquire) == key)
			return entry;
	return NULL;
}

/* The first free place for a key that is not in the table, or NULL. */
static struct id_entry *find_free(uintptr_t table, const void *key)
{
	struct id_entry *entry = place_of(table, key);

	for (int i = 0; i < IDS_PROBES; i++, entry++)
		if (!atomic_load_explicit(&entry->key, memory_order_relaxed))
			return entry;
	return NULL;
}

/* The number of entries of the key. */
static inline unsigned places_of(uintptr_t table, const void *key)
{
	const struct id_entry *entry = place_of(table, key);
	unsigned count = 0;

	for (int i = 0; i < IDS_PROBES; i++)
		count += atomic_load_explicit(&entry[i].key, memory_order_relaxed) == key;
	return count;
}

static inline uint32_t keys_of(uintptr_t table)
{
	const struct id_entry *entries = table_entries(table);
	uint32_t count = 0;

	for (size_t i = 0; i < IDS_ENTRIES(table_bits(table)); i++)
		count += atomic_load_explicit(&entries[i].key, memory_order_relaxed) != NULL;
	return count;
}

uint64_t ids_find(const struct ids *ids, const void *key)
{
	uintptr_t table, now = atomic_load_explicit(&ids->table, memory_order_acquire);
	const struct id_entry *entry;

	/* A table that was replaced meanwhile is empty. */
	do {
		table = now;
		entry = find_entry(ids, table, key);
		now = atomic_load_explicit(&ids->table, memory_order_acquire);
	} while (!entry && now != table);
	return entry ? atomic_load_explicit(&entry->value, memory_order_relaxed) : 0;
}

/* Lock held. */
static void store_entry(struct ids *ids, uintptr_t table, struct id_entry *entry, const void *key, uint64_t value)
{
	uint32_t distance = (uint32_t)(entry - place_of(table, key));

	invariant(distance < IDS_PROBES && key && value);
	if (distance > atomic_load_explicit(&ids->reach, memory_order_relaxed))
		atomic_store_explicit(&ids->reach, distance, memory_order_relaxed);
	atomic_store_explicit(&entry->value, value, memory_order_relaxed);
	/* Release: a reader that sees the key sees the value. */
	atomic_store_explicit(&entry->key, key, memory_order_release);
	invariant(places_of(table, key) == 1);
}

/* An empty table of 1 << bits places, or NULL. Lock held. Keeps errno. */
static struct id_entry *map_table(unsigned bits)
{
	struct id_entry *_Atomic *known = &mapped[(bits - IDS_BITS_FIRST) / IDS_BITS_STEP];
	size_t size = IDS_ENTRIES(bits) * sizeof(struct id_entry);
	int saved_errno = errno;
	void *memory = atomic_load(known);

	if (memory)
		return memory;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory != MAP_FAILED && madvise(memory, size, MADV_WIPEONFORK) < 0) {
		munmap(memory, size);
		memory = MAP_FAILED;
	}
	errno = saved_errno;
	if (memory == MAP_FAILED)
		return NULL;
	atomic_store(known, memory);
	return memory;
}

/* Replaces the table by a larger one. Lock held. False: there is none. */
static bool grow_table(struct ids *ids)
{
	uintptr_t table = atomic_load_explicit(&ids->table, memory_order_relaxed), larger;
	unsigned bits = table_bits(table) + IDS_BITS_STEP;
	const struct id_entry *entries = table_entries(table);
	struct id_entry *memory = bits <= IDS_BITS_LAST ? map_table(bits) : NULL;

	if (!memory)
		return false;
	larger = table_word(memory, bits);
	for (size_t i = 0; i < IDS_ENTRIES(table_bits(table)); i++) {
		const void *key = atomic_load_explicit(&entries[i].key, memory_order_relaxed);
		struct id_entry *place = key ? find_free(larger, key) : NULL;

		if (place)
			store_entry(ids, larger, place, key,
				    atomic_load_explicit(&entries[i].value, memory_order_relaxed));
		else if (key)
			ids->count--; /* it gets a new id */
	}
	invariant(keys_of(larger) == ids->count && ids->count <= ids_most(bits));
	/* Release: a reader that sees the table sees its keys. */
	atomic_store_explicit(&ids->table, larger, memory_order_release);
	clear_keys(table);
	return true;
}

/* Lock held. */
static bool insert_key(struct ids *ids, const void *key, uint64_t value)
{
	uintptr_t table = atomic_load_explicit(&ids->table, memory_order_relaxed);
	struct id_entry *known = find_entry(ids, table, key), *place = known || !table ? known : find_free(table, key);

	if (!place)
		return false;
	if (known)
		ids->count--;
	store_entry(ids, table, place, key, value);
	if (++ids->count > ids_most(table_bits(table)))
		grow_table(ids);
	return true;
}

bool ids_insert(struct ids *ids, const void *key, uint64_t value)
{
	bool done;

	lock_take(&ids->lock);
	done =
	    insert_key(ids, key, value) || (atomic_load(&ids->table) && grow_table(ids) && insert_key(ids, key, value));
	lock_give(&ids->lock);
	return done;
}

void ids_each(struct ids *ids, uint64_t (*take)(uint64_t value))
{
	struct id_entry *entries;
	uintptr_t table;

	lock_take(&ids->lock);
	table = atomic_load_explicit(&ids->table, memory_order_relaxed);
	entries = table_entries(table);
	for (size_t i = 0; table && i < IDS_ENTRIES(table_bits(table)); i++) {
		uint64_t value, taken;

		if (!atomic_load_explicit(&entries[i].key, memory_order_relaxed))
			continue;
		value = atomic_load_explicit(&entries[i].value, memory_order_relaxed);
		taken = take(value);
		if (taken != value) /* most stay, and threads read them at each event */
			atomic_store_explicit(&entries[i].value, taken, memory_order_relaxed);
	}
	lock_give(&ids->lock);
}

void ids_remove(struct ids *ids, const void *key)
{
	struct id_entry *entry;

	if (!ids_find(ids, key)) /* most code objects that die have never run */
		return;
	lock_take(&ids->lock);
	entry = find_entry(ids, atomic_load_explicit(&ids->table, memory_order_relaxed), key);
	if (entry) {
		invariant(ids->count);
		atomic_store_explicit(&entry->key, NULL, memory_order_release);
		ids->count--;
	}
	invariant(!find_entry(ids, atomic_load_explicit(&ids->table, memory_order_relaxed), key));
	lock_give(&ids->lock);
}

void ids_clear(struct ids *ids)
{
	uintptr_t table;

	lock_take(&ids->lock);
	table = atomic_load_explicit(&ids->table, memory_order_relaxed);
	if (table)
		clear_keys(table);
	ids->count = 0;
	lock_give(&ids->lock);
}
