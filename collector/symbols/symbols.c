/*
 * symbols.c - evprof-symbols: reads symbol tables and debug information. The only file that uses elfutils. See
 * symbols.h.
 *
 * It serves one tenant, with the rights of the tenant's user: it reads no other user's files, and its results serve no
 * other tenant. A file is opened once for each build id that processes report for it, and stays open: it may be gone
 * when its addresses are looked up. Only regular files below the root of the process are opened, and a file counts only
 * if it has the reported build id. No network access.
 */
#include "symbols/symbols.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/symbols_sandbox.h"

#define FILES_MAX 1024
#define MODULES_MAX 65536 /* limit for all clients */
#define TEXT_MAX 1024u	  /* limit of a name in bytes */
#define INLINED_MAX 16

/* A range of addresses of a function or a unit, which may have several. */
struct piece {
	Dwarf_Addr start, end;
	Dwarf_Die die;
};

struct pieces {
	struct piece *at;
	size_t count, capacity;
};

/* A compilation unit. */
struct unit {
	Dwarf_Off offset;
	struct pieces functions;
};

struct file {
	dev_t device;
	ino_t inode;
	uint32_t build_id_bytes; /* as the process reported it; another build id is another struct file */
	uint8_t build_id[SYMBOLS_BUILD_ID_MAX_BYTES];
	int debug_fd; /* the separate debug file, until dwfl takes it over; -1: none */
	Dwfl *dwfl;
	Dwfl_Module *module; /* NULL: unusable */
	uint64_t low;	     /* address of its first page, by its program headers */
	struct unit *units;  /* units with looked-up addresses */
	size_t unit_count;
	struct pieces covered; /* ranges of the units, where no table has them; see unit_at() */
	Dwarf_Addr covered_bias;
	bool covered_known;
};

struct module {
	uint32_t client;
	uint64_t start, end;
	struct file *file; /* NULL: it could not be opened */
	char name[64];	   /* base name */
};

/* An answer under construction. */
struct answer {
	struct symbols_message head;
	uint8_t bytes[SYMBOLS_MESSAGE_MAX_BYTES - sizeof(struct symbols_message)];
	size_t used;
};

static struct file *files[FILES_MAX];
static unsigned file_count;
static struct module *modules;
static unsigned module_count, module_capacity;

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Callback of dwfl for a separate debug file. dwfl's own search would use other folders and servers. */
static int find_debuginfo(Dwfl_Module *module, void **owner, const char *name, Dwarf_Addr base, const char *file_name,
			  const char *link, GElf_Word crc, char **path)
{
	struct file *file = *owner;
	int fd = file ? file->debug_fd : -1;

	(void)module, (void)name, (void)base, (void)file_name, (void)link, (void)crc, (void)path;
	if (file)
		file->debug_fd = -1; /* dwfl owns it now */
	return fd;
}

static int find_elf(Dwfl_Module *module, void **owner, const char *name, Dwarf_Addr base, char **file_name, Elf **elf)
{
	(void)module, (void)owner, (void)name, (void)base, (void)file_name, (void)elf;
	return -1;
}

static bool read_low(Elf *elf, uint64_t *low)
{
	size_t count, i;
	GElf_Phdr header;

	if (elf_getphdrnum(elf, &count) < 0)
		return false;
	*low = UINT64_MAX;
	for (i = 0; i < count; i++)
		if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD && header.p_vaddr < *low)
			*low = header.p_vaddr & ~UINT64_C(4095);
	return *low != UINT64_MAX;
}

/* Whether the file has the build id that the process reported. Both may have none. */
static bool same_build_id(Dwfl_Module *module, const struct symbols_message *message)
{
	const unsigned char *bits;
	GElf_Addr address;
	int bytes = dwfl_module_build_id(module, &bits, &address);

	if (bytes <= 0)
		return message->build_id_bytes == 0;
	return (uint32_t)bytes == message->build_id_bytes && !memcmp(bits, message->build_id, (size_t)bytes);
}

/* Opens usr/lib/debug/.build-id/xx/yyyy.debug below the process's root. */
static int open_debug_file(int root, const struct symbols_message *message)
{
	char path[64 + 2 * SYMBOLS_BUILD_ID_MAX_BYTES] = "usr/lib/debug/.build-id/";
	size_t used = strlen(path);
	struct stat status;

	if (message->build_id_bytes < 2)
		return -1;
	for (uint32_t i = 0; i < message->build_id_bytes; i++)
		used += (size_t)snprintf(path + used, sizeof(path) - used, "%02x%s", message->build_id[i],
					 i == 0 ? "/" : "");
	snprintf(path + used, sizeof(path) - used, ".debug");
	return symbols_open(root, path, &status);
}

/* Takes over fd. */
static void read_file(struct file *file, int fd, const struct symbols_message *message)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = find_elf, .find_debuginfo = find_debuginfo};
	GElf_Addr bias;
	void **owner;
	Elf *elf;

	file->dwfl = dwfl_begin(&callbacks);
	if (file->dwfl)
		file->module = dwfl_report_elf(file->dwfl, "module", "module", fd, 0, true);
	if (!file->module) {
		close(fd);
		return;
	}
	dwfl_report_end(file->dwfl, NULL, NULL);
	dwfl_module_info(file->module, &owner, NULL, NULL, NULL, NULL, NULL, NULL);
	*owner = file;
	elf = dwfl_module_getelf(file->module, &bias);
	if (!elf || !read_low(elf, &file->low) || !same_build_id(file->module, message))
		file->module = NULL;
	else
		file->low += bias;
}

static bool is_file(const struct file *file, const struct stat *status, const struct symbols_message *message)
{
	return file->device == status->st_dev && file->inode == status->st_ino &&
	       file->build_id_bytes == message->build_id_bytes &&
	       !memcmp(file->build_id, message->build_id, message->build_id_bytes);
}

static struct file *file_of(int root, const char *path, const struct symbols_message *message)
{
	struct stat status;
	int fd = symbols_open(root, path, &status);
	struct file *file;

	if (fd < 0)
		return NULL;
	for (unsigned i = 0; i < file_count; i++)
		if (is_file(files[i], &status, message)) {
			close(fd);
			return files[i];
		}
	file = file_count < FILES_MAX ? calloc(1, sizeof(*file)) : NULL;
	if (!file) {
		close(fd);
		return NULL;
	}
	file->device = status.st_dev;
	file->inode = status.st_ino;
	file->build_id_bytes = message->build_id_bytes;
	memcpy(file->build_id, message->build_id, message->build_id_bytes);
	file->debug_fd = open_debug_file(root, message);
	read_file(file, fd, message);
	return files[file_count++] = file;
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static void add_module(const struct symbols_message *message, const char *path, int root)
{
	const char *slash = strrchr(path, '/');
	struct module *module;

	if (module_count == module_capacity) {
		unsigned capacity = module_capacity ? module_capacity * 2 : 64;
		struct module *grown = capacity <= MODULES_MAX ? realloc(modules, capacity * sizeof(*grown)) : NULL;

		if (!grown)
			return;
		modules = grown;
		module_capacity = capacity;
	}
	module = &modules[module_count++];
	*module = (struct module){.client = message->client, .start = message->start, .end = message->end};
	snprintf(module->name, sizeof(module->name), "%.63s", slash ? slash + 1 : path);
	if (root >= 0)
		module->file = file_of(root, path, message);
}

static void forget_client(uint32_t client)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < module_count; i++)
		if (modules[i].client != client)
			modules[kept++] = modules[i];
	module_count = kept;
}

/* The module at an address: the last reported one, which replaces earlier ones. */
static const struct module *module_of(uint32_t client, uint64_t address)
{
	for (unsigned i = module_count; i-- > 0;)
		if (modules[i].client == client && address >= modules[i].start && address < modules[i].end)
			return &modules[i];
	return NULL;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static char *(*demangle)(const char *, char *, size_t *, int *);

/* Runs before any untrusted file is read: the sandbox allows no loading of code. */
static void find_demangler(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_NOW);

	if (library)
		*(void **)&demangle = dlsym(library, "__cxa_demangle");
}

/* The demangled name, where the C++ library is present. Allocated by malloc; NULL: not a C++ name. */
static char *demangled_name(const char *name)
{
	int status;

	if (strncmp(name, "_Z", 2) != 0)
		return NULL;
	return demangle ? demangle(name, NULL, NULL, &status) : NULL;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static void send_answer(struct answer *answer, enum symbols_kind kind)
{
	answer->head.kind = kind;
	if (send(STDIN_FILENO, answer, sizeof(answer->head) + answer->used, MSG_NOSIGNAL) < 0)
		_exit(0);
	answer->used = 0;
}

static uint32_t text_length(const char *text)
{
	size_t length = text ? strlen(text) : 0;

	if (length <= TEXT_MAX)
		return (uint32_t)length;
	length = TEXT_MAX;
	while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	return (uint32_t)length;
}

struct place {
	const char *function, *file;
	int line;
	bool inlined;
};

static void put_place(struct answer *answer, const struct symbols_address *address, const char *module,
		      const struct place *place)
{
	char *readable = demangled_name(place->function);
	const char *strings[WIRE_DEFINITION_STRINGS] = {place->file, readable ? readable : place->function,
							readable ? place->function : "", module};
	struct wire_definition record = {.type = WIRE_DEFINE_SYMBOL,
					 .flags = place->inlined ? WIRE_INLINED : 0,
					 .id = address->frame,
					 .number = place->line > 0 ? (uint32_t)place->line : 0,
					 .address = address->address};
	uint8_t *at;

	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++)
		record.length[i] = text_length(strings[i]);
	record.size_bytes = wire_definition_bytes(&record);
	if (record.size_bytes > sizeof(answer->bytes) - answer->used)
		send_answer(answer, SYMBOLS_FOUND);
	at = answer->bytes + answer->used;
	memset(at, 0, record.size_bytes);
	memcpy(at, &record, sizeof(record));
	at += sizeof(record);
	for (int i = 0; i < WIRE_DEFINITION_STRINGS; at += record.length[i++])
		if (record.length[i])
			memcpy(at, strings[i], record.length[i]);
	answer->used += record.size_bytes;
	free(readable);
}

/* ---- lookup ------------------------------------------------------------------------------------------------------ */

/* Empty names count as missing. */
static const char *unless_empty(const char *text)
{
	return text && *text ? text : NULL;
}

static const char *attribute_text(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(die, name, &attribute) ? unless_empty(dwarf_formstring(&attribute)) : NULL;
}

static const char *function_name(Dwarf_Die *die)
{
	const char *name = attribute_text(die, DW_AT_linkage_name);

	return name ? name : attribute_text(die, DW_AT_name);
}

static const char *call_file(Dwarf_Die *unit, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Files *names;
	Dwarf_Word number;
	size_t count;

	if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &number) != 0 ||
	    dwarf_getsrcfiles(unit, &names, &count) != 0 || number >= count)
		return NULL;
	return dwarf_filesrc(names, number, NULL, NULL);
}

static int call_line(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;

	return dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &number) == 0 ? (int)number : 0;
}

static int add_pieces(Dwarf_Die *die, void *context)
{
	struct pieces *pieces = context;
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		if (start <= 1)
			continue; /* linkers move removed functions here */
		if (pieces->count == pieces->capacity) {
			size_t capacity = pieces->capacity ? pieces->capacity * 2 : 64;
			struct piece *grown = realloc(pieces->at, capacity * sizeof(*grown));

			if (!grown)
				return DWARF_CB_ABORT;
			pieces->at = grown;
			pieces->capacity = capacity;
		}
		pieces->at[pieces->count++] = (struct piece){.start = start, .end = end, .die = *die};
	}
	return DWARF_CB_OK;
}

static Dwarf_Die *piece_at(const struct pieces *pieces, Dwarf_Addr at)
{
	for (size_t i = 0; i < pieces->count; i++)
		if (at >= pieces->at[i].start && at < pieces->at[i].end)
			return &pieces->at[i].die;
	return NULL;
}

/*
 * The unit at an address, or NULL. *bias: to be subtracted from the address. elfutils searches the table in
 * .debug_aranges, which gcc writes. clang and rustc write none: for these the ranges of all units are read, once.
 */
static Dwarf_Die *unit_at(struct file *file, Dwarf_Addr at, Dwarf_Addr *bias)
{
	Dwarf_Die *unit = dwfl_module_addrdie(file->module, at, bias);

	if (unit)
		return unit;
	if (!file->covered_known) {
		file->covered_known = true;
		while ((unit = dwfl_module_nextcu(file->module, unit, &file->covered_bias)))
			if (add_pieces(unit, &file->covered) != DWARF_CB_OK)
				break;
	}
	*bias = file->covered_bias;
	return piece_at(&file->covered, at - *bias);
}

/* The functions of a unit. Cached, as reading all of its definitions takes a millisecond. */
static const struct unit *unit_of(struct file *file, Dwarf_Die *die)
{
	Dwarf_Off offset = dwarf_dieoffset(die);
	struct unit *grown;

	for (size_t i = 0; i < file->unit_count; i++)
		if (file->units[i].offset == offset)
			return &file->units[i];
	grown = realloc(file->units, (file->unit_count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	file->units = grown;
	grown += file->unit_count++;
	*grown = (struct unit){.offset = offset};
	dwarf_getfuncs(die, add_pieces, &grown->functions, 0);
	return grown;
}

/* Descends to the child at that address: a block or an inlined function. */
static bool enter_scope(Dwarf_Die *die, Dwarf_Addr at)
{
	Dwarf_Die child;
	int more = dwarf_child(die, &child);

	for (; more == 0; more = dwarf_siblingof(&child, &child)) {
		int tag = dwarf_tag(&child);

		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) && dwarf_haspc(&child, at) > 0) {
			*die = child;
			return true;
		}
	}
	return false;
}

/* Finds the function at the address and, after it, the functions inlined there. Returns their number. */
static unsigned find_inlined(struct file *file, Dwarf_Die *unit_die, Dwarf_Addr at, Dwarf_Die found[1 + INLINED_MAX])
{
	const struct unit *unit = unit_of(file, unit_die);
	Dwarf_Die *function = unit ? piece_at(&unit->functions, at) : NULL;
	unsigned count = 0;
	Dwarf_Die die;

	if (!function)
		return 0;
	found[count++] = die = *function;
	while (count <= INLINED_MAX && enter_scope(&die, at))
		if (dwarf_tag(&die) == DW_TAG_inlined_subroutine)
			found[count++] = die;
	return count;
}

/*
 * Writes the functions inlined at the address, innermost first. at: the address in the unit. place: initially that of
 * the line at the address; finally that of the call in the outermost function. Returns the name of that function in the
 * debug information, or NULL.
 */
static const char *resolve_inlined(struct answer *answer, const struct symbols_address *address, const char *module,
				   struct file *file, Dwarf_Die *unit, Dwarf_Addr at, struct place *place)
{
	Dwarf_Die found[1 + INLINED_MAX];
	unsigned count = find_inlined(file, unit, at, found);

	for (unsigned i = count; i-- > 1;) {
		place->function = function_name(&found[i]);
		place->inlined = true;
		if (place->function)
			put_place(answer, address, module, place);
		place->file = call_file(unit, &found[i]);
		place->line = call_line(&found[i]);
	}
	return count ? function_name(&found[0]) : NULL;
}

static void resolve_address(struct answer *answer, uint32_t client, const struct symbols_address *address)
{
	/* The address of the call, which is before its return address. */
	const struct module *module = module_of(client, address->address - 1);
	struct file *file = module ? module->file : NULL;
	struct place place = {.file = NULL};
	Dwarf_Addr at, bias;
	Dwarf_Die *unit;
	Dwarf_Line *line;
	const char *name;
	GElf_Off offset;
	GElf_Sym symbol;

	if (!file || !file->module)
		return;
	at = address->address - 1 - module->start + file->low;
	unit = unit_at(file, at, &bias);
	line = unit ? dwarf_getsrc_die(unit, at - bias) : NULL;
	place.file = dwarf_linesrc(line, NULL, NULL);
	dwarf_lineno(line, &place.line);
	name = unit ? resolve_inlined(answer, address, module->name, file, unit, at - bias, &place) : NULL;
	place.function = unless_empty(dwfl_module_addrinfo(file->module, at, &offset, &symbol, NULL, NULL, NULL));
	place.inlined = false;
	if (!place.function)
		place.function = name;
	if (place.function)
		put_place(answer, address, module->name, &place);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void take_module(const struct symbols_message *message, const uint8_t *rest, size_t bytes, int root)
{
	char path[PATH_MAX];

	if (bytes >= sizeof(path) || message->build_id_bytes > sizeof(message->build_id))
		return;
	memcpy(path, rest, bytes);
	path[bytes] = 0;
	add_module(message, path, root);
}

static void take_message(struct answer *answer, const struct symbols_message *message, const uint8_t *rest,
			 size_t bytes, int root)
{
	struct symbols_address address;

	answer->head = (struct symbols_message){.client = message->client};
	if (message->kind == SYMBOLS_FORGET) {
		forget_client(message->client);
	} else if (message->kind == SYMBOLS_MODULE) {
		take_module(message, rest, bytes, root);
		send_answer(answer, SYMBOLS_DONE);
	} else if (message->kind == SYMBOLS_LOOK) {
		for (size_t at = 0; at + sizeof(address) <= bytes; at += sizeof(address)) {
			memcpy(&address, rest + at, sizeof(address));
			resolve_address(answer, message->client, &address);
		}
		send_answer(answer, SYMBOLS_DONE);
	}
}

/* Returns the length of a message; 0 at the end. *root: the descriptor in the message, or -1. */
static size_t receive_message(int socket, void *buffer, size_t bytes, int *root)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {.iov_base = buffer, .iov_len = bytes};
	struct msghdr message = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *header;
	ssize_t count;

	do {
		count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	} while (count < 0 && errno == EINTR);
	header = count > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	*root = -1;
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(root, CMSG_DATA(header), sizeof(int));
	return count > 0 ? (size_t)count : 0;
}

/* A user or group id; (uid_t)-1: invalid. */
static unsigned parse_number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	return *text && !*end && value < UINT_MAX ? (unsigned)value : UINT_MAX;
}

int main(int argc, char **argv)
{
	static uint8_t buffer[SYMBOLS_MESSAGE_MAX_BYTES];
	static struct answer answer;
	struct symbols_message message;
	size_t bytes;
	int root;

	int error;

	elf_version(EV_CURRENT);
	find_demangler();
	error = argc == 3 ? sandbox_enter(parse_number(argv[1]), parse_number(argv[2])) : -EINVAL;
	if (error) {
		fprintf(stderr, "evprof-symbols: cannot take the rights of user %s: %s; native frames have no names\n",
			argc == 3 ? argv[1] : "?", strerror(-error));
		return 1;
	}
	while ((bytes = receive_message(STDIN_FILENO, buffer, sizeof(buffer), &root)) >= sizeof(message)) {
		sandbox_begin_request();
		memcpy(&message, buffer, sizeof(message));
		take_message(&answer, &message, buffer + sizeof(message), bytes - sizeof(message), root);
		if (root >= 0)
			close(root);
	}
	return 0;
}
