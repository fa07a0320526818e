/*
 * test_tools_text.c - escaping of any bytes, numbers, and files that appear only when they are whole.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/util/digits.h"
#include "evprof/shown_text.h"
#include "tools/util/output.h"

static char *shown(void (*put)(struct output *output, struct text text), const char *bytes, size_t length)
{
	struct output output;
	char *result;

	cr_assert(output_open_nowhere(&output) == 0);
	put(&output, (struct text){bytes, length});
	result = strndup(output.buffer, output.used);
	output_abandon(&output);
	return result;
}

static void expect_shown(void (*put)(struct output *output, struct text text), const char *bytes, const char *expected)
{
	char *result = shown(put, bytes, strlen(bytes));

	cr_expect_str_eq(result, expected);
	free(result);
}

Test(text, json)
{
	expect_shown(output_json, "plain", "plain");
	expect_shown(output_json, "a\"b\\c", "a\\\"b\\\\c");
	expect_shown(output_json, "\n\t\x01\x7f", "\\n\\t\\u0001\\u007f");
	expect_shown(output_json, "\xc3\xbc\xf0\x9f\x98\x80", "\xc3\xbc\xf0\x9f\x98\x80");
	expect_shown(output_json, "\xed\xa0\x80", "\xef\xbf\xbd"); /* a lone surrogate */
	expect_shown(output_json,
		     "\xff"
		     "a\xc3",
		     "\xef\xbf\xbd"
		     "a\xef\xbf\xbd");					   /* no start, no end */
	expect_shown(output_json, "\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"); /* too long */
	expect_shown(output_json, "\xf4\x90\x80\x80",
		     "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* too large */
}

Test(text, json_of_any_bytes_is_json)
{
	unsigned seed = 1;

	for (int round = 0; round < 2000; round++) {
		char bytes[24], line[256];
		char *inside;
		json_t *value;

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (char)((seed = seed * 1103515245 + 12345) >> 16);
		inside = shown(output_json, bytes, sizeof(bytes));
		snprintf(line, sizeof(line), "\"%s\"", inside);
		value = json_loads(line, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
		cr_assert(value, "no JSON: %s", line);
		json_decref(value);
		free(inside);
	}
}

Test(text, line)
{
	expect_shown(output_line, "a\\b\tc\nd\re", "a\\\\b\\tc\\nd\\re");
	expect_shown(output_line, "\x1b[31m", "\\u001b[31m");
	expect_shown(output_line, "\xc2\x85\xe2\x80\xa8", "\\u0085\\u2028");
	expect_shown(output_line, "\xed\xb2\x80\xff", "\\udc80\\xff");
	expect_shown(output_line, "\"\xc3\xbc", "\"\xc3\xbc");
	expect_shown(output_line,
		     "a\xe2\x80\xae"
		     "b\xe2\x81\xa6"
		     "c\xd8\x9c",
		     "a\\u202eb\\u2066c\\u061c");
	expect_shown(output_argument, "--limit=10", "--limit=10");
	expect_shown(output_argument, "\xc3\xbc.py", "\xc3\xbc.py");
	expect_shown(output_argument, "a b", "'a b'");
	expect_shown(output_argument, "", "''");
	expect_shown(output_argument, "it's\n$1", "'it'\\''s\\n$1'");
}

/* What a message shows is what a result shows; of the rest a question mark stands for each byte. */
Test(text, messages_show_what_results_show)
{
	for (uint32_t code = 1; code < 0x3000; code++) {
		char utf8[4] = {(char)code}, message[4], *result;

		if (code >= 0x800)
			memcpy(utf8,
			       (char[]){(char)(0xe0 | code >> 12), (char)(0x80 | (code >> 6 & 63)),
					(char)(0x80 | (code & 63)), 0},
			       4);
		else if (code >= 0x80)
			memcpy(utf8, (char[]){(char)(0xc0 | code >> 6), (char)(0x80 | (code & 63)), 0, 0}, 4);
		memcpy(message, utf8, sizeof(message));
		shown_line(message, strlen(message));
		result = shown(output_line, utf8, strlen(utf8));
		if (code != '\\')
			cr_expect((strcmp(message, utf8) == 0) == (strcmp(result, utf8) == 0), "U+%04x", code);
		cr_expect(code == '?' || code == '\\' || !strchr(message, '?') == (strcmp(result, utf8) == 0));
		free(result);
	}
	char broken[] = "a\xff\xc3"
			"b\xed\xb2\x80\xf4\x90\x80\x80\xc0\xaf";

	shown_line(broken, strlen(broken));
	cr_expect_str_eq(broken, "a??b?????????");
}

/* A path is a word for a shell, which a terminal shows as it is. */
Test(text, paths)
{
	static char text[SHOWN_PATH_BYTES];

	cr_expect_str_eq(shown_path("/a b/it's", text), "'/a b/it'\\''s'");
	cr_expect_str_eq(shown_path("/\xc3\xbc", text), "'/\xc3\xbc'");
	cr_expect_str_eq(shown_path("/a\x1b[31m'\n", text), "$'/a\\x1b\\x5b31m\\x27\\x0a'");
	cr_expect_str_eq(shown_path("/\xe2\x80\xae"
				    "b",
				    text),
			 "$'/\\xe2\\x80\\xaeb'");
}

Test(text, order)
{
	cr_expect(text_compare(text_of("a"), text_of("b")) < 0);
	cr_expect(text_compare(text_of("ab"), text_of("a")) > 0);
	cr_expect(text_compare(text_of(""), text_of("")) == 0);
	cr_expect(text_same(text_of("x"), text_of("x")) && !text_same(text_of("x"), text_of("xy")));
}

Test(output, numbers)
{
	struct output output;

	cr_assert(output_open_nowhere(&output) == 0);
	output_u64(&output, UINT64_MAX);
	output_char(&output, ' ');
	output_i64(&output, INT64_MIN);
	output_char(&output, ' ');
	output_hex(&output, 0xdeadbeef);
	output_char(&output, ' ');
	output_micros(&output, 1234567);
	output_char(&output, ' ');
	output_micros(&output, -5);
	output_char(&output, 0);
	cr_expect_str_eq(output.buffer, "18446744073709551615 -9223372036854775808 0xdeadbeef 1234.567 -0.005");
	output_abandon(&output);
}

static char *folder(void)
{
	char *path = strdup("/tmp/evprof-output-XXXXXX");

	cr_assert(mkdtemp(path));
	return path;
}

static int entries_of(const char *path)
{
	DIR *directory = opendir(path);
	int count = 0;

	for (struct dirent *entry; (entry = readdir(directory));)
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count;
}

Test(output, file_appears_when_whole)
{
	char *place = folder(), path[128];
	struct output output;
	char *large = malloc(3 * OUTPUT_BUFFER_BYTES);
	struct stat status;

	snprintf(path, sizeof(path), "%s/result", place);
	memset(large, 'x', 3 * OUTPUT_BUFFER_BYTES);
	cr_assert(output_open(&output, path) == 0);
	output_string(&output, "begin");
	output_put(&output, large, 3 * OUTPUT_BUFFER_BYTES);
	cr_expect(access(path, F_OK) < 0, "the file is there too early");
	cr_expect(output_close(&output) == 0);
	cr_expect(stat(path, &status) == 0 && (size_t)status.st_size == 3 * OUTPUT_BUFFER_BYTES + 5);
	cr_expect(entries_of(place) == 1);
	cr_assert(output_open(&output, path) == 0);
	output_string(&output, "other");
	output_abandon(&output);
	cr_expect(stat(path, &status) == 0 && (size_t)status.st_size == 3 * OUTPUT_BUFFER_BYTES + 5,
		  "giving up leaves the old file");
	cr_expect(entries_of(place) == 1, "giving up leaves nothing else");
	unlink(path);
	rmdir(place);
	free(place);
	free(large);
}

Test(output, errors_are_returned)
{
	struct output output;

	cr_expect(output_open(&output, "/nonexistent/file") == -ENOENT);
	cr_assert(output_open(&output, "/dev/full") == 0);
	output_string(&output, "x");
	cr_expect(output_close(&output) == -ENOSPC);
}

static void expect_digits(uint64_t value)
{
	char digits[DIGITS_MAX + 1] = {0}, expected[DIGITS_MAX + 1];

	snprintf(expected, sizeof(expected), "%llu", (unsigned long long)value);
	cr_assert_str_eq(digits_before(digits + DIGITS_MAX, value), expected);
	*digits_put(digits, value) = 0;
	cr_assert_str_eq(digits, expected);
}

static void expect_near(struct digits_near *near, uint64_t value)
{
	char digits[DIGITS_MAX + 1], expected[DIGITS_MAX + 1], whole[DIGITS_MAX + 1];
	uint32_t rest = digits_near(near, value);

	snprintf(whole, sizeof(whole), "%llu", (unsigned long long)value / 1000000);
	cr_assert_eq(rest, value % 1000000);
	cr_assert(strlen(whole) == near->length && memcmp(near->text, whole, near->length) == 0, "%llu",
		  (unsigned long long)value);
	snprintf(expected, sizeof(expected), "%llu", (unsigned long long)value);
	*digits_near_put(near, digits, value) = 0;
	cr_assert_str_eq(digits, expected);
}

/* Up and down, by less and by more than a million, at each length. */
Test(text, digits_of_numbers_that_are_near)
{
	struct digits_near near = {0};
	uint64_t ten = 1;

	for (int i = 0; i < 20; i++, ten *= 10) {
		for (uint64_t more = 0; more < 3000000; more += 99991) {
			expect_near(&near, ten + more);
			expect_near(&near, ten - 1);
			expect_near(&near, ten + more / 3);
		}
	}
	expect_near(&near, 0);
	expect_near(&near, UINT64_MAX);
	expect_near(&near, 999999);
}

/* Around each power of ten and of two, and the digits of 3 1/3 at each length. */
Test(text, digits)
{
	uint64_t ten = 1, three = 0;

	for (int i = 0; i < 20; i++, ten *= 10) {
		for (uint64_t more = 0; more < 12; more++) {
			expect_digits(ten + more);
			expect_digits(ten - more);
			expect_digits(three + more);
		}
		three = three * 10 + 3;
	}
	for (int i = 0; i < 64; i++) {
		expect_digits(UINT64_C(1) << i);
		expect_digits(UINT64_MAX >> i);
	}
	for (uint64_t value = 0; value < 100000; value++)
		expect_digits(value * 10007);
}

/* ---- pipes in a folder where anybody may write ------------------------------------------------------------------- */

static char shared_folder[] = "/tmp/evprof-shared-XXXXXX";
static char pipe_path[64];

static void make_pipe(void)
{
	cr_assert(mkdtemp(shared_folder) && chmod(shared_folder, 01777) == 0);
	snprintf(pipe_path, sizeof(pipe_path), "%s/pipe", shared_folder);
	cr_assert(mkfifo(pipe_path, 0666) == 0);
}

static void remove_pipe(void)
{
	unlink(pipe_path);
	rmdir(shared_folder);
}

TestSuite(pipes, .init = make_pipe, .fini = remove_pipe, .timeout = 60);

/* Nobody reads it: each would wait for ever. */
Test(pipes, of_a_stranger_are_refused)
{
	struct output output;
	char link[80];

	if (geteuid() != 0)
		cr_skip_test("only root can make what belongs to another user");
	cr_assert(chown(pipe_path, 65534, 65534) == 0);
	snprintf(link, sizeof(link), "%s.link", shared_folder);
	cr_assert(symlink(pipe_path, link) == 0);
	cr_expect_eq(output_open(&output, pipe_path), -EACCES);
	cr_expect_eq(output_open(&output, link), -EACCES, "our own link leads there");
	unlink(link);
}

Test(pipes, hold_no_trace)
{
	struct output output;

	cr_expect_eq(output_open_trace(&output, pipe_path), -ESPIPE);
	cr_expect_eq(output_open_trace(&output, "/dev/null"), 0);
	output_abandon(&output);
}

/* As before: opening waits for the reader, who gets all. */
Test(pipes, of_our_own_are_written)
{
	struct output output;
	char bytes[8] = "";
	pid_t child = fork();
	int status = 0, fd;

	if (child == 0) {
		usleep(50000);
		fd = open(pipe_path, O_RDONLY);
		_exit(read(fd, bytes, 4) == 4 && strcmp(bytes, "text") == 0 ? 0 : 1);
	}
	cr_assert(output_open(&output, pipe_path) == 0);
	output_string(&output, "text");
	cr_expect_eq(output_close(&output), 0);
	cr_expect(waitpid(child, &status, 0) == child && status == 0);
}
