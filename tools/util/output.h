/*
 * output.h - where the verbs write results: stdout, a file that appears only when it is whole, or nowhere.
 *
 * Buffered, and quick at what traces are made of (names, numbers). Errors are kept: write on, and ask at the end.
 */
#ifndef EVPROF_TOOLS_UTIL_OUTPUT_H
#define EVPROF_TOOLS_UTIL_OUTPUT_H

#include <stdint.h>
#include <string.h>

#include "util/text.h"

#define OUTPUT_BUFFER_BYTES ((size_t)1 << 18)

struct output {
	int fd;	   /* -1: everything is thrown away */
	int error; /* the first -errno, 0 for none */
	size_t used;
	size_t allocated; /* of a buffer that grows; 0: what is in a full one is written out, or thrown away */
	char *path;	  /* of the file to make; NULL for stdout and for nowhere */
	char *temporary;  /* its name until it is whole */
	char *buffer;
};

/*
 * path: "-" or NULL for stdout. A file is written under a temporary name beside it; a signal that ends evprof takes it
 * away. A link is followed, but for one that another user has put into a folder like /tmp: -EACCES. Returns 0, -ENOMEM,
 * or the -errno of opening.
 */
int output_open(struct output *output, const char *path);

/* A file that nobody has named, where others may write: what stands there is replaced, never followed. */
int output_open_beside(struct output *output, const char *path);

/* Who may read a file by its access control list may read this one. */
void output_let_read_like(struct output *output, const char *path);

/* A new file without a name, in the folder of path; NULL: in TMPDIR or /tmp. Returns its descriptor or -errno. */
int output_scratch(const char *path);

/* Takes everything and keeps nothing. Returns 0 or -ENOMEM. */
int output_open_nowhere(struct output *output);

/*
 * Keeps everything, in buffer and used. Returns 0 or -ENOMEM. Whoever reads it looks at error first: where memory ran
 * out on the way, what is there is not whole.
 */
int output_open_memory(struct output *output);

/* Writes the rest and gives the file its name. Returns 0 or the first -errno; then no file was made or changed. */
int output_close(struct output *output);

/* Gives the result up: no file is made or changed. */
void output_abandon(struct output *output);

void output_flush(struct output *output);
void output_put_large(struct output *output, const void *bytes, size_t length);

static inline void output_put(struct output *output, const void *bytes, size_t length)
{
	if (__builtin_expect(output->used + length > OUTPUT_BUFFER_BYTES, 0)) {
		output_put_large(output, bytes, length);
		return;
	}
	memcpy(output->buffer + output->used, bytes, length);
	output->used += length;
}

/* Where that many bytes, at most OUTPUT_BUFFER_BYTES, can be written at once; output_take() says how many were. */
static inline char *output_room(struct output *output, size_t bytes)
{
	if (__builtin_expect(output->used + bytes > OUTPUT_BUFFER_BYTES, 0))
		output_flush(output);
	return output->buffer + output->used;
}

static inline void output_take(struct output *output, size_t bytes)
{
	output->used += bytes;
}

static inline void output_char(struct output *output, char c)
{
	output_put(output, &c, 1);
}

static inline void output_string(struct output *output, const char *string)
{
	output_put(output, string, strlen(string));
}

void output_u64(struct output *output, uint64_t value);
void output_i64(struct output *output, int64_t value);
void output_hex(struct output *output, uint64_t value); /* with 0x */
void output_micros(struct output *output, int64_t ns);	/* 1234567 ns as 1234.567 */
void output_format(struct output *output, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The inside of a JSON string: valid for any bytes; what is no text becomes U+FFFD. */
void output_json(struct output *output, struct text text);

/*
 * One line of text stays one line and shows no control character: backslash, what shown_text.h names, broken bytes and
 * lone surrogates are written as \\, \n, \t, \r, \xNN, \uNNNN.
 */
void output_line(struct output *output, struct text text);

/* A line on stderr with text of others in it: a question mark stands for each byte that is not to be shown. */
void output_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A word of a command line as output_line(), in single quotes where a shell would take it for something else. */
void output_argument(struct output *output, struct text text);

#endif
