/*
 * output.h - the output of the verbs: stdout, a file that appears only when it is complete, or nowhere.
 *
 * Buffered, and fast for names and numbers. Errors are kept until the end: callers write on, and check once.
 */
#ifndef EVPROF_TOOLS_UTIL_OUTPUT_H
#define EVPROF_TOOLS_UTIL_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "util/text.h"

#define OUTPUT_BUFFER_BYTES ((size_t)1 << 18)

struct terminal;

struct output {
	int fd;	   /* -1: all bytes are dropped */
	int error; /* the first -errno; 0: none */
	size_t used;
	size_t allocated; /* size of a growing buffer; 0: a full buffer is written or dropped */
	char *path;	  /* of the file to create; NULL for stdout and nowhere */
	char *temporary;  /* its name until it is complete */
	char *buffer;
	/* Takes bytes in place of fd (terminal.h). False: they go to fd. */
	bool (*show)(struct output *output, const char *bytes, size_t length);
	const struct terminal *terminal;
};

/*
 * Opens an output. path "-" or NULL is stdout. A file is written under a temporary name in the same folder; a signal
 * that ends evprof removes it. A link is followed, and a pipe or device written directly, except another user's in a
 * world-writable folder such as /tmp: -EACCES. Returns 0, -ENOMEM, or the -errno of opening.
 */
int output_open(struct output *output, const char *path);

/* The same for a trace, which is not written from its beginning to its end: -ESPIPE for a pipe, without a wait. */
int output_open_trace(struct output *output, const char *path);

/* Prints the line for an error of either. */
void output_complain(const char *verb, const char *path, int error);

/*
 * Opens a file whose name the user did not give, in a folder where others may write. An existing link is replaced,
 * never followed.
 */
int output_open_beside(struct output *output, const char *path);

/* Gives the readers in the access control list of path access to this file, too. */
void output_let_read_like(struct output *output, const char *path);

/* Whether the file of that descriptor is at this path. */
bool output_is_at(int fd, const char *path);

/* Creates an unnamed file in the folder of path; NULL: in TMPDIR or /tmp. Returns its descriptor or -errno. */
int output_scratch(const char *path);

/* Opens an output that drops everything. Returns 0 or -ENOMEM. */
int output_open_nowhere(struct output *output);

/*
 * Opens an output that keeps everything in memory, in buffer and used. Returns 0 or -ENOMEM. Check `error` before
 * reading it: if memory ran out, the contents are incomplete.
 */
int output_open_memory(struct output *output);

/* Closes an output in memory. Returns the contents, which the caller frees; NULL if memory ran out. */
char *output_close_memory(struct output *output, size_t *length);

/*
 * Writes the rest and renames the file to its path. Returns 0, or the first -errno: then no file was created or
 * changed.
 */
int output_close(struct output *output);

/* Drops the result: no file is created or changed. */
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

/* A position for at most `bytes` bytes, not more than OUTPUT_BUFFER_BYTES; output_take() sets how many were written. */
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

/* Writes bytes in base64 (RFC 4648), with padding at their end. */
void output_base64(struct output *output, const void *bytes, size_t length);

/* Writes the contents of a JSON string. Valid for any bytes; invalid UTF-8 becomes U+FFFD. */
void output_json(struct output *output, struct text text);

/*
 * Writes text as one line without control characters: backslash, the characters of shown_text.h, invalid bytes and lone
 * surrogates are written as \\, \n, \t, \r, \xNN, \uNNNN.
 */
void output_line(struct output *output, struct text text);

/*
 * Prints a line on stderr. It may contain text from a trace: a question mark replaces each byte that is not printable.
 */
void output_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes a word of a command line as output_line() does, in single quotes if a shell would treat it specially. */
void output_argument(struct output *output, struct text text);

#endif
