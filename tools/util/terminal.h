/*
 * terminal.h - stdout as a terminal: its size, colours, the width of text, numbers with units, and a pager.
 *
 * Used by verbs whose output is for people (evprof report, tree). What goes to a pipe or a file does not depend on it.
 */
#ifndef EVPROF_TOOLS_UTIL_TERMINAL_H
#define EVPROF_TOOLS_UTIL_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "util/output.h"
#include "util/text.h"

struct terminal {
	bool is;     /* false: stdout is something else; then there are no colours and no pager */
	bool colour; /* NO_COLOR is not set, and TERM is not "dumb" */
	unsigned columns;
	unsigned rows; /* 0: not known */
};

/* The terminal at that descriptor. Its size is its own; where it has none, that of COLUMNS and LINES, or 80 columns. */
struct terminal terminal_find(int fd);

enum terminal_style { TERMINAL_PLAIN, TERMINAL_BOLD, TERMINAL_DIM, TERMINAL_HOT };

/* Switches the style of what follows. Nothing is written without colours. */
void terminal_style(const struct terminal *terminal, struct output *output, enum terminal_style style);

/* The number of columns that the text takes, which output_line() has written: wide characters take two. */
unsigned terminal_width(struct text line);
/* The longest end of the text that fits this number of columns. */
struct text terminal_tail(struct text line, unsigned columns);
/* Writes the text; its end behind "..." if it takes more columns than that. Returns how many were written. */
unsigned terminal_put_tail(struct output *output, struct text line, unsigned columns);
void terminal_put_spaces(struct output *output, unsigned count);

/* Three digits and a unit: "0 ns", "1.50 us", "12.3 ms", "123 s". At most 8 columns below 100,000 s. */
#define TERMINAL_NUMBER_BYTES 32
const char *terminal_time(double ns, char out[TERMINAL_NUMBER_BYTES]);
/* "12 B", "1.50 KiB", "123 GiB": at most 8 columns. */
const char *terminal_bytes(uint64_t bytes, char out[TERMINAL_NUMBER_BYTES]);

/*
 * Opens stdout. What a terminal cannot show at once goes through a pager: EVPROF_PAGER, or else PAGER, or else less
 * -FRX. It starts when the output is closed or longer than its buffer. If it cannot be run, the output is printed.
 * `terminal` must exist until the output is closed. Returns 0 or -errno.
 */
int terminal_open(const struct terminal *terminal, struct output *output);
/* Closes it, and waits for the pager. Returns 0, or the first -errno; a pager that the user has left is no error. */
int terminal_close(struct output *output);
/* Drops what is not shown yet. */
void terminal_abandon(struct output *output);

#endif
