/*
 * test_tools_stack.c - what evprof stack reads of a process may be anything: cyclic lists, garbage for pointers and
 * huge lengths end within bounds. The process is this one, whose memory is written by the test.
 */
#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stack/codes.h"
#include "stack/greenlets.h"
#include "stack/layout.h"
#include "stack/locals.h"
#include "stack/modules.h"
#include "stack/objects.h"

#define ARENA_WORDS 65536
#define TIMEOUT .timeout = 120

static uint64_t arena[ARENA_WORDS] __attribute__((aligned(4096)));
static struct process process;
static struct layout layout;

static uint64_t at(size_t word)
{
	return (uint64_t)(uintptr_t)&arena[word];
}

/* As in 3.12, with its types at the end of the arena. */
static void set_up(void)
{
	static struct process_range range;
	static struct remote remote;

	range = (struct process_range){at(0), at(ARENA_WORDS), false};
	remote.fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	cr_assert(remote.fd >= 0);
	process = (struct process){.remote = &remote, .ranges = &range, .range_count = 1};
	layout = (struct layout){.minor = 12, .row = python_version_row(12), .text_type = at(ARENA_WORDS - 64)};
	layout.fields = (struct sampling){.lines = SAMPLING_LINES_PLACES,
					  .code_type = at(ARENA_WORDS - 128),
					  .state_next = 8,
					  .state_interpreter = 16,
					  .state_frame = 56,
					  .frame_holder = 1,
					  .frame_back = 8,
					  .frame_instruction = 56,
					  .object_type = 8,
					  .code_file = 112,
					  .code_name = 120,
					  .code_qualified_name = 128,
					  .code_lines = 136,
					  .code_line = 68,
					  .code_flags = 48,
					  .code_instructions = 192,
					  .size = 16,
					  .bytes_data = 32,
					  .text_state = 32,
					  .text_kind = 2,
					  .text_ascii_data = 40,
					  .text_data = 56};
	remote.layout = layout.fields;
	memset(arena, 0, sizeof(arena));
	remote_refresh(&remote);
}

/* An object of a type. */
static uint64_t put_object(size_t word, uint64_t type)
{
	arena[word] = 1;
	arena[word + 1] = type;
	return at(word);
}

static uint64_t put_text(size_t word, const char *text)
{
	put_object(word, layout.text_type);
	arena[word + 2] = strlen(text);
	arena[word + 4] = (1 | 1 << 3 | 1 << 4) << 2;
	strcpy((char *)&arena[word + 5], text);
	return at(word);
}

/* A code object with a name, a file and a table of lines. */
static uint64_t put_code(size_t word)
{
	put_object(word, layout.fields.code_type);
	arena[word + 120 / 8] = arena[word + 128 / 8] = put_text(word + 32, "function");
	arena[word + 112 / 8] = put_text(word + 48, "file.py");
	arena[word + 136 / 8] = put_object(word + 64, at(0));
	return at(word);
}

/* A state whose holder leads to a frame; frames of two words. */
static uint64_t put_state(size_t word, uint64_t frame)
{
	arena[word + 7] = at(word + 10);
	arena[word + 10] = frame;
	return at(word);
}

static void put_frame(size_t word, uint64_t code, uint64_t back)
{
	arena[word] = code;
	arena[word + 1] = back;
	arena[word + 7] = code + 192;
}

static struct remote_frame frames[REMOTE_FRAMES];

Test(stack, frames_are_read, .init = set_up, TIMEOUT)
{
	uint64_t code = put_code(1000);
	struct codes codes = {0};
	uint32_t number;

	put_frame(2000, code, at(2016));
	put_frame(2016, code, 0);
	cr_expect_eq(remote_stack(process.remote, put_state(100, at(2000)), frames), 2);
	cr_assert(codes_find(&codes, &process, frames[0].code, &number));
	cr_expect_str_eq(codes.at[number].name, "function");
	cr_expect_str_eq(codes.at[number].file, "file.py");
	codes_done(&codes);
}

Test(stack, cycles_end, .init = set_up, TIMEOUT)
{
	uint64_t code = put_code(1000);
	uint64_t states[100];

	put_frame(2000, code, at(2016));
	put_frame(2016, code, at(2000));
	cr_expect_lt(remote_stack(process.remote, put_state(100, at(2000)), frames), 100);
	put_frame(2000, 0, at(2000)); /* entry frames alone */
	remote_refresh(process.remote);
	cr_expect_leq(remote_stack(process.remote, at(100), frames), 0);
	layout.interpreter_threads = 8;
	arena[3001] = at(100);
	arena[100 + 1] = at(100);
	arena[100 + 2] = at(3000);
	remote_refresh(process.remote);
	cr_expect_eq(layout_states(&layout, &process, at(3000), states, 100), 1);
	arena[100 + 1] = at(200);
	arena[200 + 1] = at(300);
	arena[300 + 1] = at(200);
	arena[200 + 2] = arena[300 + 2] = at(3000);
	remote_refresh(process.remote);
	cr_expect_lt(layout_states(&layout, &process, at(3000), states, 100), 8);
}

Test(stack, a_stack_without_end_is_none, .init = set_up, TIMEOUT)
{
	uint64_t code = put_code(1000);

	for (size_t word = 2000; word + 16 < ARENA_WORDS - 200; word += 2) {
		arena[word] = code;
		arena[word + 1] = at(word + 2);
	}
	layout.fields.frame_instruction = 0;
	process.remote->layout = layout.fields;
	cr_expect_eq(remote_stack(process.remote, put_state(100, at(2000)), frames), -1);
}

/* A table of lines of any length hides no frame. */
static void expect_no_line(struct codes *codes, uint64_t code)
{
	uint32_t number;

	cr_assert(codes_find(codes, &process, code, &number));
	cr_expect_null(codes->at[number].lines);
	for (int lines = SAMPLING_LINES_LNOTAB; lines <= SAMPLING_LINES_PLACES; lines++) {
		layout.fields.lines = (uint32_t)lines;
		cr_expect_eq(codes_line(codes, &layout, number, 10), 0, "form %d", lines);
	}
}

Test(stack, huge_lengths_are_refused, .init = set_up, TIMEOUT)
{
	static const uint64_t lengths[] = {UINT64_MAX, INT64_MAX, UINT64_C(1) << 62, UINT64_C(1) << 40, 1 << 24};
	uint64_t code = put_code(1000), object = put_text(500, "text");
	struct codes codes = {0};
	char text[64];

	arena[1000 + 68 / 8] = UINT64_C(7) << 32; /* its first line */
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		arena[500 + 2] = arena[1064 + 2] = lengths[i];
		remote_refresh(process.remote);
		cr_expect_not(object_text(&layout, &process, object, text, sizeof(text)), "%zu", i);
		expect_no_line(&codes, code);
		codes_done(&codes);
		arena[500 + 2] = 4;
	}
	remote_refresh(process.remote);
	cr_expect(object_text(&layout, &process, object, text, sizeof(text)));
	codes_done(&codes);
}

/* The object has a dict of its own, whose keys have the sizes. */
static bool finds_attribute(uint64_t sizes, uint64_t entries)
{
	uint64_t type = put_object(4000, at(0)), object = put_object(4500, type), value;
	uint64_t name = put_text(4600, "wanted");

	arena[4000 + PYTHON_TYPE_DICT_OFFSET / 8] = 16;
	arena[4500 + 2] = put_object(4700, at(0));
	arena[4700 + 4] = at(4800);
	arena[4801] = sizes;
	arena[4803] = entries;
	arena[4804 + 1] = name; /* 8 bytes of indices, then key and value */
	arena[4804 + 2] = 4711;
	remote_refresh(process.remote);
	return object_attribute(&layout, &process, object, "wanted", &value) && value == 4711;
}

Test(stack, dicts_are_bounded, .init = set_up, TIMEOUT)
{
	cr_expect(finds_attribute(3 | 3 << 8 | 1 << 16, 1), "one that is right");
	cr_expect_not(finds_attribute(3 | 3 << 8 | 1 << 16, UINT64_MAX));
	cr_expect_not(finds_attribute(3 | 3 << 8 | 1 << 16, 9), "more than the table has");
	cr_expect_not(finds_attribute(3 | 3 << 8 | 1 << 16, UINT64_C(1) << 32));
	cr_expect_not(finds_attribute(255 | 255 << 8 | 1 << 16, 1));
	cr_expect_not(finds_attribute(3 | 3 << 8 | 200 << 16, 1));
	layout.row = python_version_row(8);
	cr_expect_not(finds_attribute(UINT64_MAX, 1));
	cr_expect_not(finds_attribute(0, 1));
}

/* A class of Python's own, which has a name. */
static uint64_t put_type(size_t word, const char *name)
{
	put_object(word, at(0));
	arena[word + PYTHON_TYPE_NAME / 8] = at(word + 40);
	strcpy((char *)&arena[word + 40], name);
	return at(word);
}

static uint64_t random_word(void)
{
	static uint64_t state = UINT64_C(0x2545f4914f6cdd1d);

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Words lead into the arena, to its types, to memory that is not there, or are small numbers. */
static void fill_at_random(void)
{
	for (size_t i = 0; i < ARENA_WORDS; i++) {
		uint64_t word = random_word();

		arena[i] = word % 16 < 8    ? at(word / 16 % ARENA_WORDS)
			   : word % 16 < 10 ? layout.fields.code_type
			   : word % 16 < 12 ? layout.text_type
			   : word % 16 < 14 ? word / 16 % 300
					    : word;
	}
}

Test(stack, anything_ends, .init = set_up, TIMEOUT)
{
	static uint64_t states[LAYOUT_STATES_MAX];
	struct codes codes = {0};
	uint64_t value;
	uint32_t number;

	for (int minor = PYTHON_FIRST_MINOR; minor <= PYTHON_NEWEST_MINOR; minor++) {
		layout.minor = minor;
		layout.row = python_version_row(minor);
		fill_at_random();
		for (int i = 0; i < 2000; i++) {
			uint64_t address = random_word() % 16 ? at(random_word() % ARENA_WORDS) : random_word();
			int count;

			remote_refresh(process.remote);
			count = remote_stack(process.remote, address, frames);
			cr_assert(count >= -1 && count < REMOTE_FRAMES);
			if (codes_find(&codes, &process, address & ~UINT64_C(7), &number))
				codes_line(&codes, &layout, number, (int64_t)random_word());
			object_attribute(&layout, &process, address, "name", &value);
			cr_assert_leq(layout_states(&layout, &process, address, states, LAYOUT_STATES_MAX),
				      LAYOUT_STATES_MAX);
		}
	}
	codes_done(&codes);
}

/* A type of greenlet's, from which one of the program's derives. Returns the latter. */
static uint64_t put_greenlet_type(uint64_t object_bytes)
{
	uint64_t type = put_type(6000, "greenlet.greenlet"), derived = put_type(6100, "Own");

	layout.frame_type = at(ARENA_WORDS - 192);
	arena[6000 + PYTHON_TYPE_BASIC_SIZE / 8] = object_bytes;
	arena[6100 + PYTHON_TYPE_BASE / 8] = type;
	return derived;
}

/* A frame of the interpreter's, and the object that leads to it. Returns that. */
static uint64_t put_greenlet_frame(size_t word, uint64_t back)
{
	put_frame(word, put_code(2000), back);
	put_object(word + 100, layout.frame_type);
	arena[word + 100 + PYTHON_FRAME_INNER / 8] = at(word);
	return at(word + 100);
}

static size_t count_greenlet_frames(uint64_t greenlet, size_t max)
{
	remote_refresh(process.remote);
	return greenlet_stack(&layout, &process, greenlet, frames, max);
}

/* The frame is behind a pointer (greenlet 2.0), or in the object. */
Test(stack, greenlets, .init = set_up, TIMEOUT)
{
	uint64_t greenlet = put_object(7000, put_greenlet_type(40)), frame = put_greenlet_frame(3000, at(3300));

	put_greenlet_frame(3300, 0);
	arena[7004] = at(7100);
	arena[7115] = frame;
	cr_expect(count_greenlet_frames(greenlet, REMOTE_FRAMES) == 2);
	cr_expect(frames[0].frame == at(3000) && frames[0].code == at(2000) && frames[1].frame == at(3300));
	cr_expect(count_greenlet_frames(greenlet, 1) == 1, "no more than there is room");
	arena[7115] = 0;
	arena[7124] = frame;
	cr_expect(count_greenlet_frames(greenlet, REMOTE_FRAMES) == 0, "behind its state");
	put_greenlet_type(112);
	arena[7009] = frame;
	cr_expect(count_greenlet_frames(greenlet, REMOTE_FRAMES) == 2);
	put_frame(3300, at(2000), at(3000));
	cr_expect(count_greenlet_frames(greenlet, REMOTE_FRAMES) == REMOTE_FRAMES, "a cycle ends");
	put_greenlet_type(UINT64_MAX);
	cr_expect(count_greenlet_frames(greenlet, REMOTE_FRAMES) == 0, "it has no such size");
	put_greenlet_type(112);
	strcpy((char *)&arena[6040], "another.type");
	cr_expect(count_greenlet_frames(greenlet, REMOTE_FRAMES) == 0, "it is no greenlet");
}

Test(stack, any_greenlet_ends, .init = set_up, TIMEOUT)
{
	size_t found = 0;

	for (int minor = 8; minor <= PYTHON_NEWEST_MINOR; minor++) {
		layout.minor = minor;
		layout.row = python_version_row(minor);
		for (int i = 0; i < 300; i++) {
			uint64_t type;

			if (i % 100 == 0)
				fill_at_random();
			type = put_greenlet_type(i % 2 ? 40 : random_word() % 300);
			put_object(7000, type);
			layout.frame_type = i % 3 ? layout.text_type : layout.fields.code_type;
			arena[7002 + random_word() % 3] = at(random_word() % ARENA_WORDS);
			found += count_greenlet_frames(at(7000), REMOTE_FRAMES) > 0;
		}
	}
	cr_expect(found > 0);
}

/* What the words of a value are, its text and its length are within bounds. */
Test(stack, any_value_ends, .init = set_up, TIMEOUT)
{
	static const char *const types[] = {"NoneType", "bool", "int",	 "float", "str", "bytes",
					    "list",	"set",	"tuple", "cell",  "dict"};
	struct value value;

	process.ranges[0].python = true;
	for (int i = 0; i < 20000; i++) {
		uint64_t type = put_type(6000, types[random_word() % 11]), object = put_object(7000, type);

		if (random_word() % 2)
			layout.text_type = type;
		layout.minor = 11 + (int)(random_word() % 2);
		for (int word = 2; word < 8; word++)
			arena[7000 + word] = random_word() >> random_word() % 64;
		remote_refresh(process.remote);
		if (!value_read(&layout, &process, object, &value))
			continue;
		cr_assert(value.length >= -1 && value.bytes < sizeof(value.text) && !value.text[value.bytes]);
		cr_assert(value.plain || !value.bytes);
		cr_assert(memchr(value.type, 0, sizeof(value.type)));
	}
}

Test(stack, any_locals_end, .init = set_up, TIMEOUT)
{
	for (int minor = PYTHON_FIRST_MINOR; minor <= PYTHON_NEWEST_MINOR; minor++) {
		layout.minor = minor;
		layout.row = python_version_row(minor);
		fill_at_random();
		for (int i = 0; i < 500; i++) {
			struct remote_frame frame = {.frame = at(random_word() % ARENA_WORDS), .code = at(8000)};
			struct frame_locals locals = {0};
			size_t names =
			    8000 + (layout_has(&layout, PYTHON_OWN_FRAMES) ? layout.fields.code_file / 8 - 2
									   : layout.row->layout.code_bytes / 8 + 3);

			arena[names] = put_object(8200, put_type(9000, "tuple"));
			arena[8202] = i % 16 ? random_word() % 300 : random_word();
			cr_assert(locals_read(&layout, &process, &frame, &locals) == 0);
			cr_assert_leq(locals.count, 3 * 256);
			locals_done(&locals);
		}
	}
}

/* Bytes of memory that this process has touched. */
static uint64_t resident_bytes(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	cr_assert(file && fscanf(file, "%*u %lu", &pages) == 1);
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

#define HOSTILE_SYMBOLS 1000
#define HOSTILE_NAME (1u << 20)

/* A file of code whose symbols all have one name, which is most of the file. */
struct hostile {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[2];
	Elf64_Sym symbols[HOSTILE_SYMBOLS];
	char names[HOSTILE_NAME];
};

static struct hostile *map_hostile(char *path)
{
	static struct hostile file;
	int fd = mkstemp(path);
	void *mapped;

	file.header = (Elf64_Ehdr){.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
				   .e_phoff = offsetof(struct hostile, segment),
				   .e_phentsize = sizeof(Elf64_Phdr),
				   .e_phnum = 1,
				   .e_shoff = offsetof(struct hostile, sections),
				   .e_shentsize = sizeof(Elf64_Shdr),
				   .e_shnum = 2};
	file.segment = (Elf64_Phdr){.p_type = PT_LOAD, .p_memsz = sizeof(file)};
	file.sections[0] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
					.sh_link = 1,
					.sh_offset = offsetof(struct hostile, symbols),
					.sh_size = sizeof(file.symbols)};
	file.sections[1] = (Elf64_Shdr){.sh_offset = offsetof(struct hostile, names), .sh_size = sizeof(file.names)};
	memset(file.names, 'x', sizeof(file.names));
	for (size_t i = 0; i < HOSTILE_SYMBOLS; i++)
		file.symbols[i] =
		    (Elf64_Sym){.st_info = STT_FUNC, .st_shndx = 1, .st_value = 1 + 16 * (Elf64_Addr)i, .st_size = 16};
	cr_assert(fd >= 0 && write(fd, &file, sizeof(file)) == (ssize_t)sizeof(file));
	mapped = mmap(NULL, sizeof(file), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	cr_assert_neq(mapped, MAP_FAILED);
	close(fd);
	return mapped;
}

Test(stack, long_names_of_functions_are_cut, TIMEOUT)
{
	char path[] = "/tmp/evprof-test-XXXXXX", function[MODULES_NAME_BYTES], name[64];
	struct hostile *mapped = map_hostile(path);
	struct modules modules;
	uint64_t before = resident_bytes();

	cr_assert_eq(modules_read(&modules, getpid()), 0);
	modules_name(&modules, (uint64_t)(uintptr_t)mapped + 5, function, name, sizeof(name));
	cr_expect_lt(resident_bytes() - before, 64 * (uint64_t)HOSTILE_NAME);
	cr_expect_str_eq(name, path + strlen("/tmp/"));
	cr_expect_eq(strspn(function, "x"), sizeof(function) - 1);
	cr_expect_eq(modules.functions, HOSTILE_SYMBOLS);
	modules_done(&modules);
	munmap(mapped, sizeof(*mapped));
	unlink(path);
}
