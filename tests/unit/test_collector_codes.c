/*
 * test_collector_codes.c - the code objects that a sampler sees: code with one definition has one id, and what the
 * sampler keeps does not grow with code that a program compiles anew. The objects are this program's own memory.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/sampler/sampled_code.h"
#include "file/line_table.h"
#include "tests/unit/fake_target.h"

#define ADDRESSES 200000
#define ASCII_STATE (1u | 1u << 3 | 1u << 4) /* one byte a character, compact, ASCII */

/* Both a text and bytes. */
struct text {
	uint64_t size;
	uint32_t state, nothing;
	char bytes[16];
};

struct code {
	const void *type;
	const struct text *file, *name, *lines;
	int32_t line, flags;
};

static struct remote remote;
static struct sampled_codes codes;
static struct ring_writer writer;
static struct fake_target target;

static struct text text_of(const char *bytes)
{
	struct text text = {.size = strlen(bytes), .state = ASCII_STATE};

	memcpy(text.bytes, bytes, text.size);
	return text;
}

static void setup(void)
{
	struct sampling *layout = &remote.layout;

	layout->code_type = (uintptr_t)&remote;
	layout->object_type = offsetof(struct code, type);
	layout->code_file = offsetof(struct code, file);
	layout->code_name = offsetof(struct code, name);
	layout->code_line = offsetof(struct code, line);
	layout->code_flags = offsetof(struct code, flags);
	layout->code_lines = offsetof(struct code, lines);
	layout->size = offsetof(struct text, size);
	layout->text_state = offsetof(struct text, state);
	layout->text_ascii_data = layout->text_data = layout->bytes_data = offsetof(struct text, bytes);
	remote.fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 4), 0);
	writer = (struct ring_writer){.layout = target.header->layout, .base = target.map, .header = target.header};
}

static void teardown(void)
{
	sampled_codes_done(&codes);
	fake_target_free(&target);
	close(remote.fd);
}

TestSuite(codes, .init = setup, .fini = teardown);

static uint32_t id_of(const struct code *code)
{
	const struct sampled_code *found;

	remote_refresh(&remote);
	found = sampled_code(&codes, &remote, &writer, (uintptr_t)code);
	return found ? found->id : 0;
}

Test(codes, a_definition_has_one_id)
{
	struct text a = text_of("a.py"), b = text_of("b.py"), f = text_of("f"), g = text_of("g"), la = text_of("\1\2"),
		    lb = text_of("\1\3"), again = text_of("f");
	const struct code first = {&remote, &a, &f, &la, 4, 0}, same = {&remote, &a, &again, &la, 4, 0};
	const struct code others[] = {{&remote, &b, &f, &la, 4, 0},
				      {&remote, &a, &g, &la, 4, 0},
				      {&remote, &a, &f, &lb, 4, 0},
				      {&remote, &a, &f, &la, 5, 0},
				      {&remote, &a, &f, &la, 4, 0x20}};

	cr_assert_eq(id_of(&first), 1);
	cr_expect_eq(id_of(&same), 1);
	for (uint32_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_expect_eq(id_of(&others[i]), 2 + i);
	cr_expect_eq(id_of(&first), 1);
	cr_expect_eq(id_of((const struct code *)&a), 0, "no code");
}

/* A table that is not read is none: with the old form an empty one says that all is on the first line. */
Test(codes, a_table_of_lines_that_is_too_large_is_not_known)
{
	struct text file = text_of("a.py"), name = text_of("f"), large = text_of("\1\2"), empty = text_of("");
	const struct code codes_of[] = {{&remote, &file, &name, &large, 4, 0}, {&remote, &file, &name, &empty, 4, 0}};
	const int expected[] = {0, 4};

	large.size = (1 << 20) + 2;
	for (int i = 0; i < 2; i++) {
		const struct sampled_code *found = sampled_code(&codes, &remote, &writer, (uintptr_t)&codes_of[i]);

		cr_assert(found);
		cr_expect_eq(line_of(SAMPLING_LINES_LNOTAB, found->lines, found->lines_size, found->is.line, 10),
			     expected[i]);
	}
}

/* Each id is also found when its code has long been forgotten. */
Test(codes, what_is_kept_is_bounded)
{
	struct text file = text_of("a.py"), name = text_of("f"), lines = text_of("\1\2");
	struct code *all = calloc(ADDRESSES, sizeof(*all));
	size_t most = 0;

	cr_assert(all);
	for (int i = 0; i < ADDRESSES; i++) {
		all[i] = (struct code){&remote, &file, &name, &lines, i % 3, 0};
		cr_assert_eq(id_of(&all[i]), 1 + (uint32_t)i % 3);
		most = codes.size > most ? codes.size : most;
	}
	cr_expect_eq(codes.last_id, 3);
	cr_expect_leq(most, 1u << 17);
	free(all);
}

/* More functions than the first table of ids has places for. */
Test(codes, many_functions)
{
	struct text file = text_of("a.py"), name = text_of("f"), lines = text_of("\1\2");
	struct code code = {&remote, &file, &name, &lines, 0, 0};

	for (int round = 0; round < 2; round++)
		for (code.line = 1; code.line <= 2000; code.line++)
			cr_assert_eq(id_of(&code), (uint32_t)code.line);
	cr_expect_eq(codes.last_id, 2000);
}
