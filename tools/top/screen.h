/*
 * screen.h - a full-screen terminal by ncurses, loaded when it is wanted: evprof needs no ncurses to be installed.
 *
 * The only unit that knows ncurses. One screen at a time, used by one thread. ncurses restores the terminal when a
 * signal ends the program.
 */
#ifndef EVPROF_TOOLS_TOP_SCREEN_H
#define EVPROF_TOOLS_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* Keys that are no characters. */
enum screen_key {
	SCREEN_NONE = -1, /* no key until the time was over */
	SCREEN_UP = 0x110000,
	SCREEN_DOWN,
	SCREEN_PAGE_UP,
	SCREEN_PAGE_DOWN,
	SCREEN_HOME,
	SCREEN_END,
	SCREEN_ENTER,
	SCREEN_BACK, /* backspace, left, escape */
	SCREEN_RESIZE,
	SCREEN_CLOSED, /* the terminal is gone */
};

enum screen_style { SCREEN_PLAIN, SCREEN_BOLD, SCREEN_SELECTED };

/*
 * Takes the terminal at stdin and stdout. False: there is no ncurses, it does not know the terminal, or that cannot
 * move its cursor.
 */
bool screen_open(void);
void screen_close(void);

/* Rows and columns, at least 1. */
void screen_size(unsigned *rows, unsigned *columns);
/* Replaces a row: control characters must not be in it. What is too long is cut. */
void screen_put(unsigned row, const char *text, size_t length, enum screen_style style);
/* Shows what was put, and clears the rows from there on. */
void screen_show(unsigned from);
/* Waits for a key. Returns a character below 256, or an enum screen_key. */
int screen_key(int timeout_ms);

#endif
