/* elf_symbols.c - see elf_symbols.h. Reads the tables that the loader itself uses. */
#include "base/elf_symbols.h"

#include <link.h>
#include <stddef.h>
#include <string.h>

struct tables {
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash;
	const uint32_t *hash;
	uintptr_t base;
	size_t found_bytes; /* of the definition that was found last */
};

/* The loader has replaced offsets by addresses, except in a read-only section (the vDSO). */
static uintptr_t address_of(const struct dl_phdr_info *library, const ElfW(Dyn) * entry)
{
	return entry->d_un.d_ptr < library->dlpi_addr ? library->dlpi_addr + entry->d_un.d_ptr : entry->d_un.d_ptr;
}

static bool find_tables(const struct dl_phdr_info *library, struct tables *tables)
{
	const ElfW(Dyn) *entry = NULL;

	*tables = (struct tables){.base = library->dlpi_addr};
	for (ElfW(Half) i = 0; i < library->dlpi_phnum; i++)
		if (library->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const ElfW(Dyn) *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_SYMTAB)
			tables->symbols = (const ElfW(Sym) *)address_of(library, entry);
		else if (entry->d_tag == DT_STRTAB)
			tables->strings = (const char *)address_of(library, entry);
		else if (entry->d_tag == DT_GNU_HASH)
			tables->gnu_hash = (const uint32_t *)address_of(library, entry);
		else if (entry->d_tag == DT_HASH)
			tables->hash = (const uint32_t *)address_of(library, entry);
	}
	return tables->symbols && tables->strings;
}

static void *defined_address(struct tables *tables, uint32_t number, const char *name)
{
	const ElfW(Sym) *symbol = &tables->symbols[number];

	if (symbol->st_shndx == SHN_UNDEF || !symbol->st_value || strcmp(tables->strings + symbol->st_name, name) != 0)
		return NULL;
	tables->found_bytes = symbol->st_size;
	return (void *)(tables->base + symbol->st_value); /* NOLINT(performance-no-int-to-ptr) */
}

/*
 * Searches the table that all current linkers write: buckets, number of the first symbol, words of the filter, its
 * shift.
 */
static void *find_by_gnu_hash(struct tables *tables, const char *name)
{
	const uint32_t *table = tables->gnu_hash;
	const ElfW(Addr) *filter = (const ElfW(Addr) *)(table + 4), bits = 8 * sizeof(*filter);
	const uint32_t *buckets = (const uint32_t *)(filter + table[2]), *chain = buckets + table[0];
	uint32_t hash = 5381, number;
	ElfW(Addr) word;

	for (const unsigned char *at = (const unsigned char *)name; *at; at++)
		hash = hash * 33 + *at;
	word = filter[hash / bits % table[2]];
	if (!(word >> hash % bits & word >> (hash >> table[3]) % bits & 1))
		return NULL;
	number = table[0] ? buckets[hash % table[0]] : 0;
	for (; number >= table[1]; number++) {
		uint32_t its = chain[number - table[1]];
		void *found = (its | 1) == (hash | 1) ? defined_address(tables, number, name) : NULL;

		if (found || its & 1)
			return found;
	}
	return NULL;
}

static void *find_in(struct tables *tables, const char *name)
{
	void *found = NULL;

	if (tables->gnu_hash)
		return find_by_gnu_hash(tables, name);
	for (uint32_t i = 1; tables->hash && i < tables->hash[1] && !found;
	     i++) /* a linear search: this table is rare */
		found = defined_address(tables, i, name);
	return found;
}

struct search {
	const char *name, *last;
	void *found;
	size_t found_bytes;
};

static int search_library(struct dl_phdr_info *library, size_t size, void *data)
{
	struct search *search = data;
	struct tables tables;

	(void)size;
	if (!find_tables(library, &tables))
		return 0;
	search->found = find_in(&tables, search->name);
	search->found_bytes = tables.found_bytes;
	return search->found || (search->last && find_in(&tables, search->last));
}

void *elf_symbol(const char *name, const char *last)
{
	struct search search = {.name = name, .last = last};

	dl_iterate_phdr(search_library, &search);
	return search.found;
}

void *elf_symbol_sized(const char *name, size_t *bytes)
{
	struct search search = {.name = name};

	dl_iterate_phdr(search_library, &search);
	*bytes = search.found ? search.found_bytes : 0;
	return search.found;
}

struct search_around {
	uintptr_t own;
	const char *name;
	bool past; /* the object was seen */
	void *within, *before, *after;
};

static bool has_address(const struct dl_phdr_info *object, uintptr_t address)
{
	for (ElfW(Half) i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_LOAD &&
		    address - object->dlpi_addr - object->dlpi_phdr[i].p_vaddr < object->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

static int search_object(struct dl_phdr_info *object, size_t size, void *data)
{
	struct search_around *search = data;
	bool own = has_address(object, search->own);
	struct tables tables;
	void *found;

	(void)size;
	search->past |= own;
	found = find_tables(object, &tables) ? find_in(&tables, search->name) : NULL;
	if (own)
		search->within = found;
	else if (search->past)
		search->after = found;
	else if (!search->before)
		search->before = found;
	return search->after != NULL;
}

void *elf_symbol_after(const void *own, const char *name)
{
	struct search_around search = {.own = (uintptr_t)own, .name = name};

	dl_iterate_phdr(search_object, &search);
	return search.after ? search.after : search.before;
}

void *elf_symbol_within(const void *own, const char *name)
{
	struct search_around search = {.own = (uintptr_t)own, .name = name};

	dl_iterate_phdr(search_object, &search);
	return search.within;
}

static int note_loads(struct dl_phdr_info *library, size_t size, void *data)
{
	*(uint64_t *)data = size > offsetof(struct dl_phdr_info, dlpi_adds) ? library->dlpi_adds : 0;
	return 1;
}

bool elf_symbols_changed(uint64_t *loads)
{
	uint64_t now = 0, before = __atomic_load_n(loads, __ATOMIC_RELAXED);

	dl_iterate_phdr(note_loads, &now);
	__atomic_store_n(loads, now, __ATOMIC_RELAXED);
	return now != before || !now;
}
