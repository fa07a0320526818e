/*
 * test_tools_firefox_spool.c - columns that wait on the disk: text as it was, and the times and weights that are made
 * of lengths, against the C library's formatting.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/export/firefox_spool.h"

#define FIRST_NS INT64_C(123456789)

static struct spool spool;
static struct output output;
static char path[] = "/tmp/test-spool-XXXXXX";

static void set_up(void)
{
	int file = mkstemp(path);

	cr_assert(file >= 0);
	close(file);
	cr_assert(output_open(&output, path) == 0 && spool_open(&spool, &output) == 0);
}

static void tear_down(void)
{
	spool_close(&spool);
	unlink(path);
}

TestSuite(firefox_spool, .init = set_up, .fini = tear_down);

/* What is in the output; to be freed. */
static char *finish(void)
{
	FILE *stream;
	char *text;
	long size;

	cr_assert(output_close(&output) == 0);
	stream = fopen(path, "r");
	cr_assert(stream && fseek(stream, 0, SEEK_END) == 0);
	size = ftell(stream);
	rewind(stream);
	text = calloc(1, (size_t)size + 1);
	cr_assert(fread(text, 1, (size_t)size, stream) == (size_t)size);
	fclose(stream);
	return text;
}

/* Lengths of every order, the shortest most often. */
static struct sample sample_of(uint64_t i)
{
	uint64_t random = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return (struct sample){i % 5 ? (random >> 40) % 1000 : random >> (24 + i % 40), i % 3};
}

static const char *expect_element(const char *at, bool first, uint64_t ns)
{
	char expected[64];
	int length = snprintf(expected, sizeof(expected), "%s%llu.%06llu", first ? "" : ",",
			      (unsigned long long)(ns / 1000000), (unsigned long long)(ns % 1000000));

	while (expected[length - 1] == '0')
		expected[--length] = 0;
	if (expected[length - 1] == '.')
		expected[--length] = 0;
	cr_assert(strncmp(at, expected, (size_t)length) == 0, "%.30s is not %s", at, expected);
	return at + length;
}

static void expect_columns(uint64_t count)
{
	uint64_t ns = FIRST_NS, i;
	const char *at;
	char *text;

	for (i = 0; i < count; i++) {
		struct sample sample = sample_of(i);

		spool_length(&spool, &sample);
	}
	cr_assert(spool_times(&spool, FIRST_NS, &output) == 0);
	output_char(&output, ';');
	cr_assert(spool_weights(&spool, &output) == 0 && spool_empty(&spool) == 0);
	output_char(&output, ';');
	cr_assert(spool_times(&spool, FIRST_NS, &output) == 0, "it is empty");
	text = finish();
	at = text;
	for (i = 0; i < count; i++) {
		at = expect_element(at, !i, ns);
		ns += sample_of(i).length_ns;
	}
	cr_assert(*at++ == ';', "the times end behind the last");
	for (i = 0; i < count; i++)
		at = expect_element(at, !i, sample_of(i).stack ? sample_of(i).length_ns : 0);
	cr_assert(strcmp(at, ";") == 0, "the weights end behind the last");
	free(text);
}

Test(firefox_spool, nothing)
{
	expect_columns(0);
}

Test(firefox_spool, one)
{
	expect_columns(1);
}

Test(firefox_spool, some)
{
	expect_columns(20000);
}

Test(firefox_spool, more_than_any_buffer_holds)
{
	expect_columns(700001);
}

Test(firefox_spool, text_comes_back)
{
	char *text;

	output_string(spool_begin(&spool), "\"a\"");
	output_ms(spool_begin(&spool), 1500000);
	output_ms(spool_begin(&spool), 7);
	cr_assert(spool_copy(&spool, &output) == 0);
	output_char(&output, ';');
	cr_assert(spool_copy(&spool, &output) == 0, "it is empty");
	output_ms(spool_begin(&spool), 0);
	cr_assert(spool_copy(&spool, &output) == 0);
	text = finish();
	cr_assert_str_eq(text, "\"a\",1.5,0.000007;0");
	free(text);
}
