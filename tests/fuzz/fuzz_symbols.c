/*
 * fuzz_symbols.c - evprof-symbols, which reads the files that a recorded program names: any bytes as a library and as
 * its debug file, any description of modules, and addresses anywhere in them.
 *
 * It must not crash, hang or grow, and its answers are whole: each question gets definitions and one end. An input is
 * three parts, of which the lengths of the first two come in front (elf_mutator.h): steps, the library, the debug file.
 * A step is an opcode byte, then its operands. Built by `make fuzz`.
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/types.h>

/* The program as it is, but for its main() and for where its answers go. */
#define main symbols_main
#define send symbols_send
#include "collector/symbols/symbols.c"
#undef main
#undef send

#include "tests/fuzz/elf_mutator.h"
#include "tests/fuzz/input.h"

#define CLIENTS 3
#define LOOK_MAX 16u

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);
const char *__asan_default_options(void);

/* In place of RLIMIT_AS, which the sanitizer does not bear: the program gets no more than that at once. */
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1:max_allocation_size_mb=256";
}

static char directory[64];
static int root = -1;
static unsigned ends; /* answers of the last question that say that they are the last one */

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	return remove(path);
}

static void remove_directory(void)
{
	nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	snprintf(directory, sizeof(directory), "/dev/shm/evprof-fuzz-XXXXXX");
	if (!mkdtemp(directory) || atexit(remove_directory) != 0)
		abort();
	root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mkdirat(root, "usr", 0700) || mkdirat(root, "usr/lib", 0700) || mkdirat(root, "usr/lib/debug", 0700) ||
	    mkdirat(root, "usr/lib/debug/.build-id", 0700) || mkdirat(root, "usr/lib/debug/.build-id/01", 0700) ||
	    mkfifoat(root, "pipe", 0600) || symlinkat("/library.so", root, "link") ||
	    symlinkat("/../../../../../../dev/zero", root, "outside"))
		abort();
	elf_version(EV_CURRENT);
	return 0;
}

/* What the collector would believe (valid_definitions() in resolver.c). */
static void check_definitions(const uint8_t *at, size_t bytes)
{
	struct wire_definition record;

	for (; bytes > 0; at += record.size_bytes, bytes -= record.size_bytes) {
		if (bytes < sizeof(record))
			abort();
		memcpy(&record, at, sizeof(record));
		for (unsigned i = 0; i < WIRE_DEFINITION_STRINGS; i++)
			if (record.length[i] > TEXT_MAX)
				abort();
		if (record.type != WIRE_DEFINE_SYMBOL || record.size_bytes > bytes || !record.length[1] ||
		    record.size_bytes != wire_definition_bytes(&record))
			abort();
	}
}

ssize_t symbols_send(int fd, const void *message, size_t bytes, int flags)
{
	const struct symbols_message *head = message;

	(void)flags;
	if (fd != STDIN_FILENO || bytes < sizeof(*head) || bytes > SYMBOLS_MESSAGE_MAX_BYTES || ends ||
	    (head->kind != SYMBOLS_FOUND && head->kind != SYMBOLS_DONE))
		abort();
	ends += head->kind == SYMBOLS_DONE;
	check_definitions((const uint8_t *)message + sizeof(*head), bytes - sizeof(*head));
	return (ssize_t)bytes;
}

static void write_file(const char *path, struct input contents)
{
	int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, contents.at, contents.left) != (ssize_t)contents.left)
		abort();
	close(fd);
}

static void send_module(struct answer *answer, struct input *input)
{
	static const char *const paths[] = {"/library.so", "library.so", "/link", "/pipe",
					    "/outside",	   "/usr",	 "",	  "/.."};
	struct symbols_message message = {.kind = SYMBOLS_MODULE, .client = (uint32_t)take(input, 1) % CLIENTS};
	uint64_t number = take(input, 1);
	const char *path = paths[number < 128 ? 0 : number % (sizeof(paths) / sizeof(*paths))];

	message.start = take(input, 2) << 12;
	message.end = message.start + (take(input, 1) << 12);
	message.build_id_bytes = (uint32_t)take(input, 1);
	for (uint32_t i = 0; i < message.build_id_bytes && i < sizeof(message.build_id); i++)
		message.build_id[i] = (uint8_t)take(input, 1);
	ends = 0;
	take_message(answer, &message, (const uint8_t *)path, strlen(path), number == 127 ? -1 : root);
	if (ends != 1)
		abort();
	ends = 0;
}

static void ask(struct answer *answer, struct input *input)
{
	struct symbols_message message = {.kind = SYMBOLS_LOOK, .client = (uint32_t)take(input, 1) % CLIENTS};
	struct symbols_address addresses[LOOK_MAX];
	unsigned count = (unsigned)take(input, 1) % LOOK_MAX;

	for (unsigned i = 0; i < count; i++)
		addresses[i] = (struct symbols_address){.address = take(input, 4), .frame = i + 1};
	ends = 0;
	take_message(answer, &message, (const uint8_t *)addresses, count * sizeof(addresses[0]), -1);
	if (ends != 1)
		abort();
	ends = 0;
}

/* A message of any bytes. */
static void send_anything(struct answer *answer, struct input *input)
{
	static uint8_t bytes[SYMBOLS_MESSAGE_MAX_BYTES];
	size_t count = take(input, 2) % sizeof(bytes);
	struct symbols_message message;

	count = count < input->left ? count : input->left;
	memset(&message, 0, sizeof(message));
	memcpy(&message, input->at, count < sizeof(message) ? count : sizeof(message));
	memcpy(bytes, input->at, count);
	input->at += count;
	input->left -= count;
	ends = 0;
	take_message(answer, &message, bytes, count, root);
	ends = 0;
}

static void step(struct answer *answer, struct input *input)
{
	struct symbols_message message = {.kind = SYMBOLS_FORGET};

	switch (take(input, 1) % 8) {
	case 0:
	case 1:
		send_module(answer, input);
		break;
	case 2:
		message.client = (uint32_t)take(input, 1) % CLIENTS;
		take_message(answer, &message, NULL, 0, -1);
		break;
	case 3:
		send_anything(answer, input);
		break;
	default:
		ask(answer, input);
	}
}

/* What the program has until its end. */
static void forget_all(void)
{
	for (unsigned i = 0; i < file_count; i++) {
		struct file *file = files[i];

		dwfl_end(file->dwfl);
		if (file->debug_fd >= 0)
			close(file->debug_fd);
		for (size_t k = 0; k < file->unit_count; k++)
			free(file->units[k].functions.at);
		free(file->units);
		free(file->covered.at);
		free(file);
	}
	file_count = 0;
	free(modules);
	modules = NULL;
	module_count = module_capacity = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct answer answer;
	struct elf_input parts;

	if (!elf_input_split(&parts, data, size))
		return 0;
	write_file("library.so", parts.library);
	write_file("usr/lib/debug/.build-id/01/02030405060708.debug", parts.debug);
	answer.used = 0;
	while (parts.steps.left > 0)
		step(&answer, &parts.steps);
	forget_all();
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	return elf_mutate(data, size, room, seed);
}
