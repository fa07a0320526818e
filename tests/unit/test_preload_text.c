/* test_preload_text.c - the JSON that the library writes by hand, checked by jansson. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/base/text.h"
#include "evprof/proc.h"
#include "evprof/shown_text.h"

static json_t *json_of(const char *string, size_t length)
{
	static char buffer[4096];
	struct text text;
	json_t *value;
	json_error_t error;

	text_init(&text, buffer, sizeof(buffer));
	text_add_json(&text, string, length);
	cr_assert_not(text.cut);
	value = json_loads(buffer, JSON_DECODE_ANY, &error);
	cr_assert_not_null(value, "%s in %s", error.text, buffer);
	return value;
}

static void check(const char *in, size_t length, const char *out)
{
	json_t *value = json_of(in, length);

	cr_assert_str_eq(json_string_value(value), out);
	json_decref(value);
}

#define CHECK(in, out) check(in, sizeof(in) - 1, out)

Test(text, json_keeps_text)
{
	CHECK("plain", "plain");
	CHECK("a \"quoted\" back\\slash", "a \"quoted\" back\\slash");
	CHECK("tab\tnewline\nbell\a", "tab\tnewline\nbell\a");
	CHECK("gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x90\x8d", "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x90\x8d");
}

Test(text, json_replaces_what_is_not_utf8)
{
	CHECK("\xff", "\xef\xbf\xbd");
	CHECK("a\xc3", "a\xef\xbf\xbd");
	CHECK("\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd");
	CHECK("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");		       /* a surrogate */
	CHECK("\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* beyond U+10FFFF */
}

Test(text, a_full_buffer_is_reported_and_stays_a_string)
{
	char buffer[8];
	struct text text;

	text_init(&text, buffer, sizeof(buffer));
	text_add(&text, "1234567");
	cr_assert_not(text.cut);
	text_add(&text, "8");
	cr_assert(text.cut);
	cr_assert_str_eq(buffer, "1234567");
}

Test(text, reads_files_and_tells_errors)
{
	char path[] = "/tmp/evprof-test-XXXXXX", buffer[4];
	int fd = mkstemp(path);

	cr_assert_eq(write(fd, "abcdef", 6), 6);
	close(fd);
	cr_assert_eq(proc_read(path, buffer, sizeof(buffer)), 3);
	cr_assert_str_eq(buffer, "abc");
	unlink(path);
	cr_assert_lt(proc_read(path, buffer, sizeof(buffer)), 0);
}

Test(text, nothing_is_left_that_a_terminal_obeys)
{
	char text[] = "a\x1b]0;b\a\nc\x7f\xc2\x9b"
		      "d\xc3\xa9\xc2\xa0.\xc2";

	shown_line(text, strlen(text));
	cr_assert_str_eq(text, "a?]0;b??c???d\xc3\xa9\xc2\xa0.?");
}

static size_t message(char *line, size_t room, const char *format, ...)
{
	va_list arguments;
	size_t length;

	va_start(arguments, format);
	length = shown_message(line, room, "a: ", format, arguments);
	va_end(arguments);
	return length;
}

Test(text, a_message_that_does_not_fit_ends_with_dots)
{
	char line[12];

	cr_assert_eq(message(line, sizeof(line), "%s", "1\x1b"), 6);
	cr_assert_arr_eq(line, "a: 1?\n", 6);
	cr_assert_eq(message(line, sizeof(line), "%s", "12345678"), 12);
	cr_assert_arr_eq(line, "a: 12345678\n", 12);
	cr_assert_eq(message(line, sizeof(line), "%s", "123456789"), 12);
	cr_assert_arr_eq(line, "a: 12345...\n", 12);
}
