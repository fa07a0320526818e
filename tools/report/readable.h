/*
 * readable.h - names of functions for people: the qualified name, and a shortened place.
 *
 *   JSONDecoder.raw_decode   json/decoder.py:343
 *   main                     app.py:12
 *   list.append
 *   _call_with_frames_removed   importlib._bootstrap:233
 *
 * Used by what is made for a terminal; other outputs have cProfile's names (trace/labels.h).
 */
#ifndef EVPROF_TOOLS_REPORT_READABLE_H
#define EVPROF_TOOLS_REPORT_READABLE_H

#include "trace/labels.h"
#include "util/output.h"
#include "util/terminal.h"
#include "util/text.h"

/*
 * The end of a path that says enough: behind site-packages, dist-packages or the folder of the standard library, or
 * behind the working directory. Of a frozen module its name. Else the whole path. Points into the file.
 */
struct text readable_path(struct text file);

/* A name and a place, in one output in memory. All zeros: none. */
struct readable {
	struct output bytes;
	size_t name_bytes; /* the name comes first, then the place */
	unsigned name_width;
	unsigned place_width; /* 0: a C function has none */
};

int readable_init(struct readable *readable);
void readable_done(struct readable *readable);
/* Replaces the function. file "~": a C function. line 0: none. */
void readable_set(struct readable *readable, struct text name, struct text file, uint32_t line);
void readable_set_label(struct readable *readable, const struct label *label);

/*
 * Writes the name, and the place behind it, in so many columns. name_columns: the place begins two columns behind them;
 * a longer name is cut. What is cut has "..." in front, and a path is cut at a slash.
 */
void readable_put(struct readable *readable, const struct terminal *terminal, struct output *output,
		  unsigned name_columns, unsigned columns);

/* The columns for names, where the widest name and place have these widths and both have so many columns. */
unsigned readable_name_columns(unsigned name_width, unsigned place_width, unsigned columns);

#endif
