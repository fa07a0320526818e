/*
 * places.h - the paths of the library and the collector for evprof run, and a path of the library that LD_PRELOAD can
 * hold.
 */
#ifndef EVPROF_TOOLS_RUN_PLACES_H
#define EVPROF_TOOLS_RUN_PLACES_H

struct run_places {
	char *library;
	char *collector;
	char *preload;	 /* path of the library in a form that LD_PRELOAD can hold */
	char *directory; /* temporary directory with a link to the library; NULL: not needed */
};

/*
 * Searches the folder of evprof's own file (build tree) and PREFIX/lib/evprof (installed). Returns 0, or -1 after an
 * error on stderr.
 */
int run_places_find(struct run_places *places);
/* keep: the directory stays, because processes that still run may need it. */
void run_places_done(struct run_places *places, int keep);

#endif
