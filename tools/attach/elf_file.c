/* elf_file.c - see elf_file.h. */
#include "attach/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTIONS_MOST 4096
#define SEGMENTS_MOST 1024
#define TABLE_MOST_BYTES ((uint64_t)512 << 20)

static int read_at(int fd, void *out, uint64_t bytes, uint64_t offset)
{
	uint8_t *to = out;

	while (bytes) {
		ssize_t n = offset > INT64_MAX ? 0 : pread(fd, to, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOEXEC;
		to += n;
		offset += (uint64_t)n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

/* The caller frees it. NULL: errno says why. */
static void *read_new(int fd, uint64_t bytes, uint64_t offset)
{
	void *memory = bytes && bytes <= TABLE_MOST_BYTES ? malloc(bytes) : NULL;
	int r = memory ? read_at(fd, memory, bytes, offset) : -ENOEXEC;

	if (r < 0) {
		free(memory);
		memory = NULL;
		errno = -r;
	}
	return memory;
}

static int read_header(int fd, Elf64_Ehdr *header)
{
	int r = read_at(fd, header, sizeof(*header), 0);

	if (r < 0)
		return r;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
	    header->e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	return 0;
}

static bool is_defined(const Elf64_Sym *symbol)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	return symbol->st_shndx != SHN_UNDEF && symbol->st_value && (type == STT_FUNC || type == STT_OBJECT);
}

typedef bool report(void *context, const struct elf_symbol *symbol);

/* False: found() has ended it. */
static bool report_table(int fd, const Elf64_Shdr *table, const Elf64_Shdr *strings, report *found, void *context)
{
	Elf64_Sym *symbols = read_new(fd, table->sh_size, table->sh_offset);
	char *texts = symbols ? read_new(fd, strings->sh_size, strings->sh_offset) : NULL;
	bool more = true;

	if (texts) {
		texts[strings->sh_size - 1] = 0;
		for (uint64_t i = 0; i < table->sh_size / sizeof(*symbols) && more; i++)
			if (is_defined(&symbols[i]) && symbols[i].st_name < strings->sh_size)
				more = found(context, &(struct elf_symbol){.name = texts + symbols[i].st_name,
									   .value = symbols[i].st_value,
									   .size = symbols[i].st_size});
	}
	free(texts);
	free(symbols);
	return more;
}

int elf_file_each(int fd, report *found, void *context)
{
	static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};
	Elf64_Ehdr header;
	Elf64_Shdr *sections;
	bool more = true;
	int r = read_header(fd, &header);

	if (r < 0)
		return r;
	if (header.e_shentsize != sizeof(*sections) || !header.e_shnum || header.e_shnum > SECTIONS_MOST)
		return -ENOEXEC;
	sections = read_new(fd, header.e_shnum * sizeof(*sections), header.e_shoff);
	if (!sections)
		return -errno;
	for (unsigned type = 0; type < 2; type++)
		for (unsigned i = 0; i < header.e_shnum && more; i++)
			if (sections[i].sh_type == types[type] && sections[i].sh_link < header.e_shnum)
				more = report_table(fd, &sections[i], &sections[sections[i].sh_link], found, context);
	free(sections);
	return 0;
}

struct search {
	struct elf_symbol *wanted;
	unsigned count, found;
};

static bool match(void *context, const struct elf_symbol *symbol)
{
	struct search *search = context;

	for (unsigned i = 0; i < search->count; i++) {
		struct elf_symbol *wanted = &search->wanted[i];

		if (wanted->value || strcmp(wanted->name, symbol->name) != 0)
			continue;
		wanted->value = symbol->value;
		wanted->size = symbol->size;
		search->found++;
		break;
	}
	return search->found < search->count;
}

int elf_file_find(int fd, struct elf_symbol *symbols, unsigned count)
{
	struct search search = {symbols, count, 0};
	int r;

	for (unsigned i = 0; i < count; i++)
		symbols[i].value = symbols[i].size = 0;
	r = elf_file_each(fd, match, &search);
	return r < 0 ? r : (int)search.found;
}

int elf_file_image(int fd, uint64_t *base, uint64_t *end)
{
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	int r = read_header(fd, &header);

	if (r < 0)
		return r;
	if (header.e_phentsize != sizeof(*segments) || !header.e_phnum || header.e_phnum > SEGMENTS_MOST)
		return -ENOEXEC;
	segments = read_new(fd, header.e_phnum * sizeof(*segments), header.e_phoff);
	if (!segments)
		return -errno;
	r = -ENOEXEC;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		if (segments[i].p_type != PT_LOAD)
			continue;
		/* The mapping with the file's offset 0 begins here, rounded down to a page. */
		if (r)
			*base = segments[i].p_vaddr - segments[i].p_offset;
		*end = segments[i].p_vaddr + segments[i].p_memsz; /* they are in the order of their addresses */
		r = 0;
	}
	free(segments);
	return r;
}
