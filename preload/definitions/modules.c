/*
 * modules.c - see modules.h.
 */
#include "definitions/modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "base/elf_symbols.h"

static void read_build_id(struct module *module, const char *note, size_t bytes)
{
	while (bytes >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) header;
		size_t name, whole;

		memcpy(&header, note, sizeof(header));
		name = sizeof(header) + ((header.n_namesz + 3u) & ~3u);
		whole = name + ((header.n_descsz + 3u) & ~3u);
		if (header.n_namesz > bytes || header.n_descsz > bytes || whole > bytes)
			return;
		if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
		    !memcmp(note + sizeof(header), "GNU", 4)) {
			module->build_id = (const uint8_t *)note + name;
			module->build_id_bytes = header.n_descsz;
			return;
		}
		note += whole;
		bytes -= whole;
	}
}

/* bias, headers and header_count are set. */
static void read_headers(struct module *module)
{
	const ElfW(Phdr) *header = module->headers;

	module->start = UINTPTR_MAX;
	for (unsigned i = 0; i < module->header_count; i++, header++) {
		uintptr_t at = module->bias + header->p_vaddr;

		if (header->p_type == PT_LOAD && at < module->start)
			module->start = at & ~(uintptr_t)4095;
		if (header->p_type == PT_LOAD && at + header->p_memsz > module->end)
			module->end = at + header->p_memsz;
		if (header->p_type == PT_GNU_EH_FRAME)
			module->tables = at;
		if (header->p_type == PT_NOTE && !module->build_id_bytes)
			read_build_id(module, (const char *)at, header->p_filesz);
	}
}

struct search {
	uintptr_t address;
	struct module *module;
	unsigned long long unloaded;
	bool found;
};

static bool covers_address(const struct dl_phdr_info *info, uintptr_t address)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD && address - (info->dlpi_addr + header->p_vaddr) < header->p_memsz)
			return true;
	}
	return false;
}

static int check_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct search *search = context;

	(void)size;
	search->unloaded = info->dlpi_subs;
	if (!search->module)
		return 1;
	if (!covers_address(info, search->address))
		return 0;
	*search->module = (struct module){.bias = info->dlpi_addr,
					  .path = info->dlpi_name ? info->dlpi_name : "",
					  .headers = info->dlpi_phdr,
					  .header_count = info->dlpi_phnum};
	search->found = true;
	return 1;
}

/* glibc 2.35 and later: takes no lock of the loader, which a fork may have left locked. */
#ifdef DLFO_STRUCT_HAS_EH_DBASE
static int (*find_object)(void *address, struct dl_find_object *result);

static bool find_quickly(uintptr_t address, struct module *module)
{
	struct dl_find_object object;
	const ElfW(Ehdr) * header;

	if (find_object((void *)address, &object) != 0 || !object.dlfo_link_map)
		return false;
	header = object.dlfo_map_start;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phoff > 4096)
		return false;
	*module = (struct module){.bias = object.dlfo_link_map->l_addr,
				  .path = object.dlfo_link_map->l_name ? object.dlfo_link_map->l_name : "",
				  .headers = (const char *)header + header->e_phoff,
				  .header_count = header->e_phnum};
	return true;
}
#else
static void *find_object;

static bool find_quickly(uintptr_t address, struct module *module)
{
	(void)address;
	(void)module;
	return false;
}
#endif

bool module_find(uintptr_t address, struct module *module)
{
	struct search search = {.address = address, .module = module};

	if (find_object) {
		search.found = find_quickly(address, module);
	} else {
		dl_iterate_phdr(check_object, &search);
	}
	if (search.found)
		read_headers(module);
	return search.found;
}

unsigned long long modules_unloaded(void)
{
	struct search search = {0};

	dl_iterate_phdr(check_object, &search);
	return search.unloaded;
}

bool module_has(const struct module *module, uintptr_t at, size_t bytes)
{
	const ElfW(Phdr) *header = module->headers;

	for (unsigned i = 0; i < module->header_count; i++, header++) {
		uintptr_t start = module->bias + header->p_vaddr;

		if (header->p_type == PT_LOAD && header->p_flags & PF_R && at >= start && bytes <= header->p_memsz &&
		    at - start <= header->p_memsz - bytes)
			return true;
	}
	return false;
}

void modules_begin(void)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
	*(void **)&find_object = elf_symbol("_dl_find_object", NULL);
#endif
}
