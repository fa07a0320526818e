/* modules.c - see modules.h. */
#include "stack/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/elf_file.h"
#include "util/grow.h"

#define MODULES_MAX 65536u
#define FUNCTIONS_MAX (1u << 22) /* of all modules */

/* A function of a file, at its address there. */
struct function {
	uint64_t start, end;
	char *name; /* owned */
};

/* A range of code. */
struct module {
	uint64_t start, end;
	uint64_t first;		    /* of the file's first mapping */
	char *path;		    /* owned */
	bool known;		    /* its functions were read */
	uint64_t base;		    /* the file's address of its first mapping */
	struct function *functions; /* by their starts */
	size_t count, room;
};

/* --- mappings --- */

struct line {
	uint64_t start, end, offset;
	char rights[5];
	const char *path;
};

static bool parse(char *text, struct line *line)
{
	unsigned long long start, end, offset;
	int at = 0;

	if (sscanf(text, "%llx-%llx %4s %llx %*s %*s %n", &start, &end, line->rights, &offset, &at) != 4 || !at)
		return false;
	text[strcspn(text, "\n")] = 0;
	*line = (struct line){.start = start,
			      .end = end,
			      .offset = offset,
			      .rights = {line->rights[0], line->rights[1], line->rights[2], line->rights[3]},
			      .path = text + at};
	return true;
}

static int add_module(struct modules *modules, const struct line *line, uint64_t first)
{
	struct module module = {.start = line->start, .end = line->end, .first = first};

	if (modules->count == MODULES_MAX || !(module.path = strdup(line->path)))
		return -ENOMEM;
	if (grow_by_one(&modules->at, &modules->room, modules->count, sizeof(module)) < 0) {
		free(module.path);
		return -ENOMEM;
	}
	modules->at[modules->count++] = module;
	return 0;
}

int modules_read(struct modules *modules, pid_t pid)
{
	char path[64], *text = NULL;
	uint64_t first = 0;
	struct line line;
	size_t size = 0;
	FILE *maps;
	int r = 0;

	*modules = (struct modules){0};
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	while (r == 0 && getline(&text, &size, maps) > 0) {
		if (!parse(text, &line) || !*line.path)
			continue;
		if (!line.offset)
			first = line.start;
		if (line.rights[2] == 'x')
			r = add_module(modules, &line, first);
	}
	free(text);
	fclose(maps);
	return r;
}

/* --- functions --- */

/* Whose functions are read. */
struct reading {
	struct modules *modules;
	struct module *module;
};

/* Names are cut: a file may give each of its functions the same name, as long as the file. */
static bool add_function(void *context, const struct elf_symbol *symbol)
{
	struct reading *reading = context;
	struct module *module = reading->module;
	struct function function = {symbol->value, symbol->value + symbol->size, NULL};

	if (function.end <= function.start || !*symbol->name)
		return true;
	if (reading->modules->functions == FUNCTIONS_MAX ||
	    grow_by_one(&module->functions, &module->room, module->count, sizeof(function)) < 0 ||
	    !(function.name = strndup(symbol->name, MODULES_NAME_BYTES - 1)))
		return false;
	module->functions[module->count++] = function;
	reading->modules->functions++;
	return true;
}

static int compare(const void *one, const void *other)
{
	const struct function *a = one, *b = other;

	return compare_u64(a->start, b->start);
}

/* Only a regular file: others may wait. */
static void read_functions(struct modules *modules, struct module *module)
{
	struct reading reading = {modules, module};
	int fd = module->path[0] == '/' ? open(module->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	struct stat status;
	uint64_t end;

	module->known = true;
	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && elf_file_image(fd, &module->base, &end) == 0)
		elf_file_each(fd, add_function, &reading);
	close(fd);
	if (module->functions)
		qsort(module->functions, module->count, sizeof(*module->functions), compare);
}

/* The function that begins last of those that have the address. */
static const char *function_at(const struct module *module, uint64_t at)
{
	size_t low = 0, high = module->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (module->functions[middle].start <= at)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = 0; i < 8 && low > i; i++)
		if (at < module->functions[low - 1 - i].end)
			return module->functions[low - 1 - i].name;
	return "";
}

void modules_name(struct modules *modules, uint64_t address, char function[MODULES_NAME_BYTES], char *file,
		  size_t file_bytes)
{
	struct module *module = NULL;
	const char *slash;

	function[0] = file[0] = 0;
	for (size_t i = 0; i < modules->count && !module; i++)
		if (address >= modules->at[i].start && address < modules->at[i].end)
			module = &modules->at[i];
	if (!module)
		return;
	if (!module->known)
		read_functions(modules, module);
	slash = strrchr(module->path, '/');
	snprintf(file, file_bytes, "%s", slash ? slash + 1 : module->path);
	snprintf(function, MODULES_NAME_BYTES, "%s", function_at(module, address - module->first + module->base));
}

void modules_done(struct modules *modules)
{
	for (size_t i = 0; i < modules->count; i++) {
		struct module *module = &modules->at[i];

		for (size_t k = 0; k < module->count; k++)
			free(module->functions[k].name);
		free(module->functions);
		free(module->path);
	}
	free(modules->at);
	*modules = (struct modules){0};
}
