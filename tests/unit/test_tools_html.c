/*
 * test_tools_html.c - the parts of the HTML report: packing, levels of calls, the tree, the curve, memory, and the page
 * over a trace of the fixture. The blocks are read back with zlib and a base64 of this file's own.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "tools/analysis/memory_estimate.h"
#include "tools/html/calls.h"
#include "tools/html/heaps.h"
#include "tools/html/memory.h"
#include "tools/html/page.h"
#include "tools/html/tree.h"
#include "tools/cmd/verbs.h"
#include "trace_fixture.h"

/* --- reading blocks --- */

struct block {
	uint8_t *bytes;
	size_t length;
};

static char *page; /* the text with blocks in it */

static int digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

static struct block read_block(unsigned number)
{
	struct block block = {calloc(1, 1 << 24), 0};
	uint8_t *packed = malloc(strlen(page)), *out = packed;
	char head[64], *at;
	unsigned bits = 0, word = 0;
	uLongf length = 1 << 24;

	snprintf(head, sizeof(head), "<script type=\"text/plain\" id=\"b%u\">", number);
	at = strstr(page, head);
	cr_assert(at, "block %u is there", number);
	for (at += strlen(head); digit(*at) >= 0; at++) {
		word = word << 6 | (unsigned)digit(*at);
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			*out++ = (uint8_t)(word >> bits);
		}
	}
	at += strspn(at, "=");
	cr_assert(strncmp(at, "</script>\n", 10) == 0, "block %u ends well", number);
	cr_assert(uncompress(block.bytes, &length, packed, (uLong)(out - packed)) == Z_OK);
	block.length = length;
	free(packed);
	return block;
}

/* Number i of column k. */
static uint64_t number_at(const struct block *block, unsigned k, size_t i)
{
	const uint8_t *at = block->bytes;
	uint64_t value = 0;
	uint32_t length;
	unsigned shift = 0;

	for (;; at += 4 + length) {
		memcpy(&length, at, 4);
		if (!k--)
			break;
	}
	for (at += 4; i; at++)
		i -= *at < 0x80;
	for (; *at >= 0x80; at++, shift += 7)
		value |= (uint64_t)(*at & 0x7f) << shift;
	return value | (uint64_t)*at << shift;
}

static size_t numbers_in(const struct block *block, unsigned k)
{
	const uint8_t *at = block->bytes;
	size_t count = 0;
	uint32_t length, i;

	for (;; at += 4 + length) {
		memcpy(&length, at, 4);
		if (!k--)
			break;
	}
	for (i = 0; i < length; i++)
		count += at[4 + i] < 0x80;
	return count;
}

static struct html_packer packer;

static void begin_page(struct output *output)
{
	cr_assert(output_open_nowhere(output) == 0);
	cr_assert(html_packer_begin(&packer, output) == 0);
}

static void end_page(struct output *output)
{
	cr_assert(html_packer_end(&packer) == 0);
	free(page);
	page = calloc(1, output->used + 1);
	memcpy(page, output->buffer, output->used);
	output_abandon(output);
}

/* --- packing --- */

Test(html_pack, numbers_come_back)
{
	static const uint64_t values[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_C(1) << 53, UINT64_MAX};
	struct html_column columns[2] = {0};
	struct output output;
	struct block block;
	size_t i;

	begin_page(&output);
	for (i = 0; i < 9; i++) {
		html_column_put(&columns[0], values[i]);
		html_column_signed(&columns[1], i % 2 ? -(int64_t)i : (int64_t)i);
	}
	cr_assert(html_block_write(&packer, 3, columns, 2) == 0);
	cr_assert(columns[0].used == 0, "the columns are empty again");
	end_page(&output);
	block = read_block(3);
	cr_assert(numbers_in(&block, 0) == 9 && numbers_in(&block, 1) == 9);
	for (i = 0; i < 9; i++) {
		cr_assert(number_at(&block, 0, i) == values[i]);
		cr_assert(number_at(&block, 1, i) == (i % 2 ? 2 * i - 1 : 2 * i));
	}
	free(block.bytes);
	html_columns_done(columns, 2);
}

/* A full disk is reported by a block behind the one that did not fit, and at the end. */
Test(html_pack, a_failed_write_is_reported)
{
	struct html_column column = {0};
	struct output output;
	int error = 0;

	if (access("/dev/full", W_OK) != 0)
		cr_skip_test("there is no /dev/full");
	cr_assert(output_open(&output, "/dev/full") == 0);
	cr_assert(html_packer_begin(&packer, &output) == 0);
	for (unsigned i = 0; i < 1000 && !error; i++) {
		uint32_t random = i;

		for (size_t k = 0; k < 100000; k++)
			html_column_put(&column, (random = random * 1664525 + 1013904223) >> 25);
		error = html_block_write(&packer, i, &column, 1);
	}
	cr_assert(error == -ENOSPC, "a block says so: %d", error);
	cr_assert(html_packer_wait(&packer) == -ENOSPC && html_packer_end(&packer) == -ENOSPC);
	output_abandon(&output);
	html_columns_done(&column, 1);
}

/* Lengths around the size of the packer's buffer, of bytes that deflate cannot make smaller. */
Test(html_pack, any_length_comes_back)
{
	static const size_t lengths[] = {0, 1, 2, 3, 49000, 49152, 49153, 60000};
	size_t i, k;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct html_column column = {0};
		struct output output;
		struct block block;
		uint32_t random = 1;

		begin_page(&output);
		for (k = 0; k < lengths[i]; k++) {
			uint8_t byte = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);

			html_column_bytes(&column, &byte, 1);
		}
		cr_assert(html_block_write(&packer, 0, &column, 1) == 0);
		end_page(&output);
		block = read_block(0);
		cr_assert(block.length == lengths[i] + 4, "%zu bytes", lengths[i]);
		cr_assert(!lengths[i] || memcmp(block.bytes + 4, column.bytes, lengths[i]) == 0, "%zu bytes",
			  lengths[i]);
		free(block.bytes);
		html_columns_done(&column, 1);
	}
}

/* --- calls --- */

static struct html_calls calls;
static uint32_t blocks;

static void add(int64_t start, int64_t end, uint32_t function, uint32_t depth)
{
	html_calls_add(&calls, &(struct html_call){start, end, function, depth, 1});
}

Test(html_calls, each_call_is_in_the_level_of_its_duration)
{
	struct html_plan plan = html_plan_make(NULL, INT64_C(1000000000), 0, 0);
	unsigned level;

	html_calls_init(&calls, NULL, &blocks, plan);
	html_calls_thread(&calls, 0);
	add(0, 16383, 1, 1);
	add(20000, 20000 + 16384, 1, 1);
	add(40000, 40000 + 65535, 1, 1);
	add(110000, 110000 + 65536, 1, 1);
	add(0, 1000000000, 1, 0);
	html_calls_thread_end(&calls);
	cr_assert(html_calls_finish(&calls) == 0);
	cr_assert(calls.census.calls[0] == 1 && calls.census.calls[1] == 2 && calls.census.calls[2] == 1);
	cr_assert(calls.census.calls[plan.top] == 1, "what is longer than all levels is in the top one");
	/* Slivers of level 1 hold the one below 16 us, those of level 2 three calls in two buckets, 65.5 us each. */
	cr_assert(calls.census.slivers[1] == 1 && calls.census.slivers[2] == 2);
	for (level = 4; level <= plan.top; level++)
		cr_assert(calls.census.slivers[level] == 1, "level %u: %llu", level,
			  (unsigned long long)calls.census.slivers[level]);
	html_calls_done(&calls);
}

/* The row of the directory with that kind; -1: none. */
static long kind_row(const struct block *directory, uint64_t kind)
{
	size_t i;

	for (i = 0; i < numbers_in(directory, 0); i++)
		if (number_at(directory, 0, i) == kind)
			return (long)i;
	return -1;
}

Test(html_calls, what_is_written_can_be_read)
{
	unsigned long_block;
	struct html_plan plan = html_plan_make(NULL, 100000, 0, 0);
	struct output output;
	struct block block;

	begin_page(&output);
	html_calls_init(&calls, &packer, &blocks, plan);
	html_calls_thread(&calls, 7);
	add(100, 200, 5, 1);
	add(150, 90000, 6, 2);
	add(91000, 91000, 5, 1);
	add(50, 92000, 9, 0);
	html_calls_thread_end(&calls);
	cr_assert(html_calls_finish(&calls) == 0);
	end_page(&output);
	/* Of level 0: two calls; their sequence numbers leave room for the long one between. */
	block = read_block(0);
	cr_assert(numbers_in(&block, 0) == 2);
	cr_assert(number_at(&block, 0, 0) == 200 && number_at(&block, 0, 1) == 91000 - 200);
	cr_assert(number_at(&block, 1, 0) == 100 && number_at(&block, 1, 1) == 0);
	cr_assert(number_at(&block, 2, 0) == 5 && number_at(&block, 3, 0) == 2 && number_at(&block, 3, 1) == 0);
	cr_assert(number_at(&block, 5, 0) == 0 && number_at(&block, 5, 1) == 1);
	free(block.bytes);
	/* The directory: of level 0 and 1 the calls, of level 1 the slivers, all of thread 7. */
	block = read_block(blocks - 1);
	cr_assert(numbers_in(&block, 0) == 3);
	for (unsigned i = 0; i < 3; i++)
		cr_assert(number_at(&block, 2, i) == 7);
	cr_assert(kind_row(&block, 0) >= 0 && kind_row(&block, 2) >= 0 && kind_row(&block, 3) >= 0);
	cr_assert(number_at(&block, 4, (size_t)kind_row(&block, 0)) == 100);
	cr_assert(number_at(&block, 5, (size_t)kind_row(&block, 0)) == 91000);
	long_block = (unsigned)number_at(&block, 1, (size_t)kind_row(&block, 2));
	free(block.bytes);
	block = read_block(long_block);
	cr_assert(numbers_in(&block, 0) == 2 && number_at(&block, 2, 0) == 6 && number_at(&block, 2, 1) == 9);
	free(block.bytes);
	html_calls_done(&calls);
}

Test(html_calls, slivers_add_up)
{
	struct html_plan plan = {.top = 3, .floor = 1, .shortest_ns = html_level_ns(1)};
	struct output output;
	struct block block;
	unsigned i;

	begin_page(&output);
	html_calls_init(&calls, &packer, &blocks, plan);
	html_calls_thread(&calls, 0);
	for (i = 0; i < 100; i++) /* ten of 1 us in each 16 us, one of them longer */
		add(i * 2000, i * 2000 + (i == 50 ? 1900 : 1000), i == 50 ? 8 : 3, 4);
	html_calls_thread_end(&calls);
	cr_assert(html_calls_finish(&calls) == 0);
	end_page(&output);
	cr_assert(html_plan_merged(&plan, &calls.census) == 100);
	block = read_block(0); /* level 1's: 200 us in buckets of 16 us */
	cr_assert(numbers_in(&block, 0) == 13);
	uint64_t sum = 0;
	for (i = 0; i < 13; i++) {
		sum += number_at(&block, 3, i);
		cr_assert(number_at(&block, 1, i) == 4);
		cr_assert(number_at(&block, 2, i) == (i == 6 ? 8 : 3), "bucket %u is called after the longest", i);
	}
	cr_assert(sum == 100);
	free(block.bytes);
	block = read_block(2); /* level 3's: one bucket of 262 us */
	cr_assert(numbers_in(&block, 0) == 1 && number_at(&block, 3, 0) == 100 && number_at(&block, 2, 0) == 8);
	cr_assert(number_at(&block, 4, 0) == (100900 * 255 + 262143) / 262144);
	free(block.bytes);
	html_calls_done(&calls);
}

Test(html_calls, the_plan_keeps_within_its_bounds)
{
	struct html_census census = {.calls = {1000000, 500000, 100000, 10000, 100},
				     .slivers = {0, 90000, 30000, 8000, 2000}};
	struct html_plan plan = html_plan_make(&census, INT64_C(1) << 40, 2000000, 1000000);

	cr_assert(plan.floor == 0 && plan.shortest_ns == 0 && html_plan_merged(&plan, &census) == 0);
	/* Of the short ones those that there is room for: here the longer half. */
	census.steps[2] = census.steps[10] = 500000;
	plan = html_plan_make(&census, INT64_C(1) << 40, 1200000, 1000000);
	cr_assert(plan.floor == 0 && plan.shortest_ns == 3 * HTML_STEP_NS);
	cr_assert(html_plan_merged(&plan, &census) == 500000);
	plan = html_plan_make(&census, INT64_C(1) << 40, 400000, 1000000);
	cr_assert(plan.floor == 1 && html_plan_merged(&plan, &census) == 1000000);
	plan = html_plan_make(&census, INT64_C(1) << 40, 2000000, 20000);
	cr_assert(plan.floor == 3 && html_plan_merged(&plan, &census) == 1600000);
	plan = html_plan_make(&census, 1000000, 0, 0);
	cr_assert(plan.top == 1 && plan.floor == 1, "what cannot be within the bounds is cut as far as it can");
	cr_assert(html_plan_make(NULL, 0, 0, 0).top == 1);
	cr_assert(html_plan_make(NULL, INT64_MAX, 0, 0).top == HTML_LEVELS - 1);
}

/* --- tree and curve --- */

Test(html_tree, stacks_and_their_times)
{
	struct html_tree tree = {0};
	struct html_column columns[HTML_TREE_COLUMNS] = {0};
	struct output output;
	struct block block;
	uint32_t root = html_tree_root(&tree, 0), a = html_tree_child(&tree, root, 11);
	uint32_t b = html_tree_child(&tree, a, 12), again = html_tree_child(&tree, a, 12);

	cr_assert(b == again && b != a && html_tree_child(&tree, root, 12) != b);
	html_tree_add(&tree, b, a, 30, true);
	html_tree_add(&tree, b, a, 5, false);
	html_tree_add(&tree, a, root, 100, true);
	cr_assert(tree.nodes[b].calls == 1 && tree.nodes[b].total_ns == 35 && tree.nodes[root].total_ns == 100);
	begin_page(&output);
	/* With room for three, the one without any time goes, and the page has the time from which on they are in. */
	cr_assert(html_tree_columns(&tree, 3, columns) == 1);
	cr_assert(html_block_write(&packer, 0, columns, HTML_TREE_COLUMNS) == 0);
	end_page(&output);
	block = read_block(0);
	cr_assert(numbers_in(&block, 0) == 3 && number_at(&block, 0, 2) == 1 && number_at(&block, 3, 2) == 35);
	cr_assert(html_tree_columns(&tree, 4, columns) == 0, "where all are in, none is left out");
	free(block.bytes);
	html_columns_done(columns, HTML_TREE_COLUMNS);
	html_tree_done(&tree);
}

Test(html_curve, keeps_the_peak)
{
	struct html_curve *curve = calloc(1, sizeof(*curve));
	uint64_t high = 0, i;

	for (i = 0; i < 10 * HTML_CURVE_POINTS; i++)
		html_curve_add(curve, (int64_t)i * 3, i == 12345 ? 999999999 : i % 100);
	cr_assert(curve->count <= HTML_CURVE_POINTS && curve->count >= HTML_CURVE_POINTS / 2);
	for (i = 0; i < curve->count; i++) {
		const struct html_curve_point *point = &curve->points[i];

		high = point->high > high ? point->high : high;
		cr_assert(point->low <= point->last && point->last <= point->high);
		cr_assert(!i || point->stretch > curve->points[i - 1].stretch);
	}
	cr_assert(high == 999999999);
	cr_assert(curve->points[curve->count - 1].last == (10 * HTML_CURVE_POINTS - 1) % 100);
	free(curve);
}

/* --- memory --- */

static void expect_numbers(const struct block *block, unsigned column, size_t row, unsigned count,
			   const uint64_t *expected)
{
	for (unsigned i = 0; i < count; i++)
		cr_assert(number_at(block, column + i, row) == expected[i], "row %zu, column %u: %llu, not %llu", row,
			  column + i, (unsigned long long)number_at(block, column + i, row),
			  (unsigned long long)expected[i]);
}

/* Of the stacks of one thread, those that have little of everything are left out; many small blocks are not little. */
Test(html_memory, stacks_with_the_least_share_are_left_out)
{
	static const uint32_t numbers[] = {70, 71, 72};
	static const struct live_held made[] = {{1, 100000}, {1000, 1000}, {2, 3}};
	struct html_memory memory = {0};
	struct html_column columns[HTML_MEMORY_TREE_COLUMNS] = {0};
	struct stack_functions functions = {.count = 3};
	struct live_sum sums[5] = {0};
	struct live live = {.sums = sums, .sum_count = 5};
	struct output output;
	struct block block;
	uint64_t least;
	uint32_t thread = stacks_find(&live.stacks, 0, 0);

	for (uint32_t i = 0; i < 3; i++)
		sums[stacks_find(&live.stacks, thread, i)].made =
		    (struct live_held){made[i].blocks * ESTIMATE_UNIT, made[i].bytes};
	cr_assert(html_memory_add(&memory, 9, &live, &functions) == 0);
	begin_page(&output);
	cr_assert(html_memory_tree(&memory, numbers, 3, columns, &least) == 0);
	cr_assert(html_block_write(&packer, 0, columns, HTML_MEMORY_TREE_COLUMNS) == 0);
	end_page(&output);
	cr_assert(least > HTML_MEMORY_WHOLE / 500 && least < HTML_MEMORY_WHOLE, "%llu", (unsigned long long)least);
	block = read_block(0);
	cr_assert(numbers_in(&block, 0) == 3);
	expect_numbers(&block, 0, 0, 4, (uint64_t[]){0, 9, 1003, 101003});
	expect_numbers(&block, 0, 1, 4, (uint64_t[]){1, 70, 1, 100000});
	expect_numbers(&block, 0, 2, 4, (uint64_t[]){2, 71, 1000, 1000});
	free(block.bytes);
	html_columns_done(columns, HTML_MEMORY_TREE_COLUMNS);
	html_memory_done(&memory);
	stacks_done(&live.stacks);
}

/* --- the page --- */

static char *path;

static void export_fixture(struct fixture *fixture, int expected)
{
	char target[] = "/tmp/evprof-html-XXXXXX";
	int file = mkstemp(target);
	char *words[] = {(char *)"export", (char *)"--format", (char *)"html", path, (char *)"-o", target, NULL};
	long size;

	fixture_end(fixture);
	words[3] = path = fixture_save(fixture);
	optind = 0;
	cr_assert(cmd_export(6, words) == expected);
	close(file);
	file = open(target, O_RDONLY);
	size = lseek(file, 0, SEEK_END);
	free(page);
	page = calloc(1, (size_t)size + 1);
	cr_assert(pread(file, page, (size_t)size, 0) == size);
	close(file);
	unlink(target);
	unlink(path);
	free(path);
	fixture_free(fixture);
}

static json_t *meta(void)
{
	char *at = strstr(page, "id=\"meta\">");
	json_error_t error;
	json_t *root;

	cr_assert(at);
	root = json_loads(at + strlen("id=\"meta\">"), JSON_DISABLE_EOF_CHECK, &error);
	cr_assert(root, "meta is JSON: %s", error.text);
	return root;
}

static unsigned count_of(const char *part)
{
	unsigned count = 0;

	for (const char *at = page; (at = strstr(at, part)); at += strlen(part))
		count++;
	return count;
}

Test(html, no_name_is_in_the_page_as_text)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 10, 1), thread;
	json_t *root;
	unsigned scripts;

	fixture_code(fixture, process, 1, "</script><b>.py", 7, "</script><script>evil()");
	fixture_function(fixture, process, 1, "<!--", "\xed\xa0\x80\xff", "");
	thread = fixture_thread(fixture, process, 11, 1000);
	fixture_define(fixture, process, WIRE_DEFINE_THREAD_NAME, 11, 0, "", "<!-- </script>", "", "");
	fixture_define(fixture, process, WIRE_DEFINE_MARK, 1, 0, "", "</script>", "", "");
	fixture_event(fixture, thread, WIRE_CALL, 1, 10);
	fixture_event(fixture, thread, WIRE_C_CALL, 1, 10);
	fixture_event(fixture, thread, WIRE_MARK, 1, 5);
	fixture_event(fixture, thread, WIRE_C_RETURN, 1, 10);
	fixture_event(fixture, thread, WIRE_RETURN, 1, 10);
	export_fixture(fixture, 0);
	cr_assert(!strstr(page, "evil"), "names stand in the page packed only");
	root = meta();
	scripts = count_of("<script");
	cr_assert(scripts == count_of("</script>") && scripts > 8);
	cr_assert(json_integer_value(json_object_get(root, "calls")) == 2);
	cr_assert(json_integer_value(json_object_get(root, "merged")) == 0);
	cr_assert(json_array_size(json_object_get(root, "threads")) == 1);
	json_decref(root);
}

Test(html, a_trace_without_calls_is_a_page)
{
	struct fixture *fixture = fixture_new();
	json_t *root;

	fixture_process(fixture, 10, 1);
	export_fixture(fixture, 0);
	root = meta();
	cr_assert(json_integer_value(json_object_get(root, "calls")) == 0);
	cr_assert(json_array_size(json_object_get(root, "processes")) == 1);
	json_decref(root);
}

/* So many processes, each with a block of memory; the blocks of the page, each of which takes its time at opening. */
static unsigned blocks_of_processes(uint32_t count)
{
	struct fixture *fixture = fixture_new();
	struct block heaps;
	json_t *root;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t process = fixture_process(fixture, (int)(10 + i), 1);
		uint32_t thread = fixture_thread(fixture, process, 10 + i, 1000 + i * 100);

		fixture_code(fixture, process, 1, "a.py", 1, "f");
		fixture_event(fixture, thread, WIRE_CALL, 1, 1);
		fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_RAW, 0xabc0, 100 + i, 0, 5);
		fixture_event(fixture, thread, WIRE_RETURN, 1, 1);
	}
	export_fixture(fixture, 0);
	root = meta();
	heaps = read_block((unsigned)json_integer_value(json_object_get(root, "heaps")));
	cr_assert(numbers_in(&heaps, 0) == count);
	for (uint32_t i = 0, at = 0; i < count; i++) {
		struct block curve = read_block((unsigned)number_at(&heaps, 2, i));

		cr_expect(number_at(&heaps, 3, i) == 1);
		cr_expect(number_at(&curve, 1, at) + number_at(&curve, 2, at) == 100 + i, "process %u", i);
		at += (uint32_t)number_at(&heaps, 3, i);
		free(curve.bytes);
	}
	free(heaps.bytes);
	json_decref(root);
	return count_of("<script type=\"text/plain\"");
}

Test(html, heaps_of_processes_share_a_block)
{
	cr_expect(blocks_of_processes(4) == blocks_of_processes(200));
}

Test(html, deep_calls_are_counted_as_left_out)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 10, 1), thread, i;
	json_t *root;

	fixture_code(fixture, process, 1, "a.py", 7, "down");
	thread = fixture_thread(fixture, process, 11, 1000);
	for (i = 0; i < HTML_DEPTH_MAX + 10; i++)
		fixture_event(fixture, thread, WIRE_CALL, 1, 1);
	for (i = 0; i < HTML_DEPTH_MAX + 10; i++)
		fixture_event(fixture, thread, WIRE_RETURN, 1, 1);
	export_fixture(fixture, 0);
	root = meta();
	cr_assert(json_integer_value(json_object_get(root, "deep")) == 10);
	cr_assert(json_integer_value(json_object_get(root, "calls")) == HTML_DEPTH_MAX + 10);
	json_decref(root);
}

/* The page can hold nothing that a browser would fetch. */
Test(html, the_page_names_no_host)
{
	struct output output;

	begin_page(&output);
	html_page_begin(&output);
	html_page_end(&output);
	end_page(&output);
	cr_assert(!strstr(page, "http:") && !strstr(page, "https:") && !strstr(page, "src=") &&
		  !strstr(page, "@import"));
	cr_assert(strstr(page, "default-src 'none'"));
	cr_assert(count_of("<script>") == 1 && count_of("</script>") == 1, "the script does not end itself");
	cr_assert(count_of("<style>") == 1 && count_of("</style>") == 1);
}

static unsigned meta_number(const char *name)
{
	json_t *root = meta();
	unsigned number = (unsigned)json_integer_value(json_object_get(root, name));

	json_decref(root);
	return number;
}

static void made(struct fixture *fixture, uint32_t thread, uint64_t address, uint64_t size)
{
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, address, size, 0, 1);
}

/* The row in which a column has that number. */
static size_t row_with(const struct block *block, unsigned column, uint64_t number)
{
	size_t i = 0;

	while (i < numbers_in(block, column) && number_at(block, column, i) != number)
		i++;
	cr_assert(i < numbers_in(block, column), "%llu is there", (unsigned long long)number);
	return i;
}

/*
 * main() and a recursive f(); another thread's main() is the same stack. Each as blocks and bytes that were made, that
 * are alive at the end, and at the peak.
 */
Test(html, memory_of_stacks_and_functions)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 10, 1), thread, other;
	struct block tree, sums, functions;

	fixture_code(fixture, process, 1, "a.py", 1, "main");
	fixture_code(fixture, process, 2, "a.py", 7, "f");
	thread = fixture_thread(fixture, process, 10, 1000);
	fixture_event(fixture, thread, WIRE_CALL, 1, 1);
	made(fixture, thread, 0x100, 10);
	fixture_event(fixture, thread, WIRE_CALL, 2, 1);
	made(fixture, thread, 0x200, 100);
	fixture_event(fixture, thread, WIRE_CALL, 2, 1);
	made(fixture, thread, 0x300, 1000);
	fixture_event(fixture, thread, WIRE_RETURN, 2, 1);
	fixture_event(fixture, thread, WIRE_RETURN, 2, 1);
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 0x300, 0, 0, 1);
	fixture_event(fixture, thread, WIRE_RETURN, 1, 1);
	other = fixture_thread(fixture, process, 11, 5000);
	fixture_event(fixture, other, WIRE_CALL, 1, 1);
	made(fixture, other, 0x400, 5);
	fixture_event(fixture, other, WIRE_RETURN, 1, 1);
	export_fixture(fixture, 0);
	tree = read_block(meta_number("memory"));
	sums = read_block(meta_number("memory") + 1);
	functions = read_block(meta_number("functions"));
	cr_assert(numbers_in(&tree, 0) == 4 && numbers_in(&sums, 0) == 2);
	expect_numbers(&tree, 2, 0, 6, (uint64_t[]){4, 1115, 3, 115, 3, 1110});
	expect_numbers(&tree, 2, 1, 6, (uint64_t[]){4, 1115, 3, 115, 3, 1110});
	expect_numbers(&tree, 2, 2, 6, (uint64_t[]){2, 1100, 1, 100, 2, 1100});
	expect_numbers(&tree, 2, 3, 8, (uint64_t[]){1, 1000, 0, 0, 1, 1000, 1, 0});
	expect_numbers(&sums, 1, row_with(&sums, 0, row_with(&functions, 3, 1)), 16,
		       (uint64_t[]){2, 15, 2, 15, 1, 10, 0, 0, 4, 1115, 3, 115, 3, 1110, 1, 0});
	expect_numbers(&sums, 1, row_with(&sums, 0, row_with(&functions, 3, 7)), 16,
		       (uint64_t[]){2, 1100, 1, 100, 2, 1100, 1, 0, 2, 1100, 1, 100, 2, 1100, 1, 0});
	free(tree.bytes);
	free(sums.bytes);
	free(functions.bytes);
}

static int64_t signed_at(const struct block *block, unsigned column, size_t row)
{
	uint64_t value = number_at(block, column, row);

	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/* The site's bytes at the last moment not after that time. */
static int64_t site_bytes(const struct block *block, size_t site, size_t moments, int64_t ns)
{
	int64_t time = 0, bytes = 0, best = -1, found = -1;

	for (size_t k = 0; k < moments; k++) {
		time += signed_at(block, 0, k);
		bytes += signed_at(block, 3, site * moments + k);
		if (time <= ns && time > best) {
			best = time;
			found = bytes;
		}
	}
	return found;
}

/* Two lines of a function: what each has at moments of the run; the most first. Imports are a kind of their own. */
Test(html, sites_at_moments)
{
	struct fixture *fixture = fixture_new();
	uint32_t process = fixture_process(fixture, 10, 1), thread;
	struct block heaps, sites, numbers;
	size_t moments;

	fixture_code(fixture, process, 1, "a.py", 1, "main");
	fixture_code(fixture, process, 2, "<frozen importlib._bootstrap>", 9, "load");
	thread = fixture_thread(fixture, process, 10, 1000);
	fixture_event(fixture, thread, WIRE_CALL, 1, 1);
	fixture_event(fixture, thread, WIRE_LINE, 2, 1);
	made(fixture, thread, 0x100, 10);
	fixture_event(fixture, thread, WIRE_LINE, 3, 1000000);
	made(fixture, thread, 0x200, 100);
	fixture_event(fixture, thread, WIRE_CALL, 2, 1000000);
	made(fixture, thread, 0x300, 1000);
	fixture_event(fixture, thread, WIRE_RETURN, 2, 1000000);
	fixture_memory(fixture, thread, WIRE_FREE, WIRE_DOMAIN_OBJ, 0x200, 0, 0, 1);
	fixture_event(fixture, thread, WIRE_LINE, 3, 1000000);
	made(fixture, thread, 0x400, 30);
	fixture_event(fixture, thread, WIRE_RETURN, 1, 1);
	export_fixture(fixture, 0);
	heaps = read_block(meta_number("heaps"));
	sites = read_block((unsigned)number_at(&heaps, 6, 0));
	numbers = read_block(meta_number("memory") + 2);
	moments = (size_t)number_at(&heaps, 7, 0);
	cr_assert(number_at(&heaps, 8, 0) == 3 && moments > 3 && moments <= HTML_MOMENTS + 3);
	cr_assert(numbers_in(&sites, 0) == moments && numbers_in(&sites, 3) == 3 * moments);
	expect_numbers(&sites, 2, 0, 1, (uint64_t[]){1}); /* imports */
	expect_numbers(&sites, 2, 1, 1, (uint64_t[]){0});
	cr_assert(number_at(&sites, 1, 1) - 1 < numbers_in(&numbers, 0));
	cr_expect(site_bytes(&sites, 0, moments, 1500000) == 0 && site_bytes(&sites, 0, moments, 2500000) == 1000);
	cr_expect(site_bytes(&sites, 1, moments, 500000) == 0 && site_bytes(&sites, 1, moments, 1500000) == 100);
	cr_expect(site_bytes(&sites, 1, moments, 3500000) == 0, "freed");
	cr_expect(site_bytes(&sites, 1, moments, INT64_MAX) == 30, "made again");
	cr_expect(site_bytes(&sites, 2, moments, INT64_MAX) == 10);
	free(heaps.bytes);
	free(sites.bytes);
	free(numbers.bytes);
}
