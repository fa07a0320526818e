/*
 * places.h - where evprof run finds the library and the collector, and how LD_PRELOAD can name the library.
 */
#ifndef EVPROF_TOOLS_RUN_PLACES_H
#define EVPROF_TOOLS_RUN_PLACES_H

struct run_places {
	char *library;
	char *collector;
	char *preload;	 /* the library's path as LD_PRELOAD can hold it */
	char *directory; /* made for that, with a link in it; NULL: none was needed */
};

/*
 * Looks beside evprof's own file (build tree) and in PREFIX/lib/evprof (installed). Returns 0, or -1 after saying why.
 */
int run_places_find(struct run_places *places);
/* keep: the directory stays, since programs that go on may still need it. */
void run_places_done(struct run_places *places, int keep);

#endif
