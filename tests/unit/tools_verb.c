/*
 * tools_verb.c - a verb of evprof with its output in files. See tools_verb.h.
 */
#include "tools_verb.h"

#include <criterion/criterion.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *contents(FILE *file, size_t *bytes)
{
	off_t size = lseek(fileno(file), 0, SEEK_END);
	char *text = size >= 0 ? calloc(1, (size_t)size + 1) : NULL;

	cr_assert(text);
	cr_assert(pread(fileno(file), text, (size_t)size, 0) == size);
	*bytes = (size_t)size;
	fclose(file);
	return text;
}

/* The stream goes to a new file; *before is where it went. */
static FILE *divert(FILE *stream, int number, int *before)
{
	FILE *file = tmpfile();

	cr_assert(file);
	fflush(stream);
	*before = dup(number);
	dup2(fileno(file), number);
	return file;
}

static void restore(FILE *stream, int number, int before)
{
	fflush(stream);
	dup2(before, number);
	close(before);
}

struct tools_verb tools_verb_run(int (*verb)(int argc, char **argv), const char *words, const char *trace,
				 const char *other)
{
	char *arguments[32] = {(char *)"verb"}, *copy = strdup(words), *state = NULL;
	struct tools_verb ran = {0};
	int count = 1, before_out, before_err;
	FILE *out, *err;
	size_t bytes;

	for (char *word = strtok_r(copy, " ", &state); word && count < 31; word = strtok_r(NULL, " ", &state)) {
		const char *meant = strcmp(word, "TRACE") == 0 ? trace : strcmp(word, "OTHER") == 0 ? other : word;

		arguments[count++] = (char *)meant;
	}
	out = divert(stdout, STDOUT_FILENO, &before_out);
	err = divert(stderr, STDERR_FILENO, &before_err);
	optind = 0;
	ran.status = verb(count, arguments);
	restore(stdout, STDOUT_FILENO, before_out);
	restore(stderr, STDERR_FILENO, before_err);
	ran.out = contents(out, &ran.out_bytes);
	ran.err = contents(err, &bytes);
	free(copy);
	return ran;
}

void tools_verb_done(struct tools_verb *ran)
{
	free(ran->out);
	free(ran->err);
	*ran = (struct tools_verb){0};
}
