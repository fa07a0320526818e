/*
 * screen.c - see screen.h.
 *
 * The numbers are those of ncurses' ABI 6 (libncursesw.so.6, curses.h of ncurses 6), the same on all machines.
 */
#include "top/screen.h"
#include "util/library.h"

#include <errno.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* curses.h, ABI 6 */
#define CURSES_ERR (-1)
#define CURSES_KEY_DOWN 0402
#define CURSES_KEY_UP 0403
#define CURSES_KEY_LEFT 0404
#define CURSES_KEY_HOME 0406
#define CURSES_KEY_BACKSPACE 0407
#define CURSES_KEY_NPAGE 0522
#define CURSES_KEY_PPAGE 0523
#define CURSES_KEY_ENTER 0527
#define CURSES_KEY_END 0550
#define CURSES_KEY_RESIZE 0632
#define CURSES_REVERSE (1 << 18)
#define CURSES_BOLD (1 << 21)
#define ESCAPE 27

/* Declared as curses.h does, with void for its structures. */
static struct {
	int (*setupterm)(const char *type, int fd, int *error);
	char *(*tigetstr)(const char *capability);
	void *(*newterm)(const char *type, FILE *output, FILE *input);
	int (*endwin)(void);
	void (*delscreen)(void *screen);
	int (*cbreak)(void);
	int (*noecho)(void);
	int (*curs_set)(int visibility);
	int (*set_escdelay)(int ms);
	int (*keypad)(void *window, bool on);
	int (*wattrset)(void *window, int attributes);
	int (*wclrtobot)(void *window);
	int (*wclrtoeol)(void *window);
	int (*wmove)(void *window, int row, int column);
	int (*waddnstr)(void *window, const char *text, int bytes);
	int (*wrefresh)(void *window);
	int (*wgetch)(void *window);
	void (*wtimeout)(void *window, int ms);
	void **stdscr;
} curses;

static void *screen;

static bool load_curses(void)
{
	static const char *const names[] = {"libncursesw.so.6", "libncurses.so.6", NULL};
	const struct library_symbol symbols[] = {
	    {"setupterm", &curses.setupterm},
	    {"tigetstr", &curses.tigetstr},
	    {"newterm", &curses.newterm},
	    {"endwin", &curses.endwin},
	    {"delscreen", &curses.delscreen},
	    {"cbreak", &curses.cbreak},
	    {"noecho", &curses.noecho},
	    {"curs_set", &curses.curs_set},
	    {"keypad", &curses.keypad},
	    {"wattrset", &curses.wattrset},
	    {"set_escdelay", &curses.set_escdelay},
	    {"wclrtobot", &curses.wclrtobot},
	    {"wclrtoeol", &curses.wclrtoeol},
	    {"wmove", &curses.wmove},
	    {"waddnstr", &curses.waddnstr},
	    {"wrefresh", &curses.wrefresh},
	    {"wgetch", &curses.wgetch},
	    {"wtimeout", &curses.wtimeout},
	    {"stdscr", &curses.stdscr},
	    {NULL, NULL},
	};

	return library_load(names, symbols);
}

/* Whether the terminal is known and can put its cursor at a place. ncurses opens one that cannot ("dumb"), too. */
static bool can_move(void)
{
	int error;
	const char *move = curses.setupterm(NULL, STDOUT_FILENO, &error) == CURSES_ERR ? NULL : curses.tigetstr("cup");

	return move && (intptr_t)move != -1;
}

bool screen_open(void)
{
	setlocale(LC_CTYPE, ""); /* for characters of several bytes */
	if (!getenv("TERM") || !load_curses() || !can_move())
		return false;
	screen = curses.newterm(NULL, stdout, stdin);
	if (!screen)
		return false;
	curses.cbreak();
	curses.noecho();
	curses.curs_set(0);
	curses.set_escdelay(50);
	curses.keypad(*curses.stdscr, true);
	return true;
}

void screen_close(void)
{
	curses.endwin();
	curses.delscreen(screen);
	screen = NULL;
}

void screen_size(unsigned *rows, unsigned *columns)
{
	struct winsize size = {0};

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*rows = size.ws_row ? size.ws_row : 24;
	*columns = size.ws_col ? size.ws_col : 80;
}

void screen_put(unsigned row, const char *text, size_t length, enum screen_style style)
{
	static const int attributes[] = {0, CURSES_BOLD, CURSES_REVERSE};
	void *window = *curses.stdscr;
	unsigned rows, columns;

	screen_size(&rows, &columns);
	if (row >= rows || curses.wmove(window, (int)row, 0) == CURSES_ERR)
		return;
	curses.wclrtoeol(window);
	curses.wattrset(window, attributes[style]);
	curses.waddnstr(window, text, (int)(length < 4096 ? length : 4096));
	curses.wattrset(window, 0);
}

void screen_show(unsigned from)
{
	void *window = *curses.stdscr;

	if (curses.wmove(window, (int)from, 0) != CURSES_ERR)
		curses.wclrtobot(window);
	curses.wrefresh(window);
}

int screen_key(int timeout_ms)
{
	static const struct {
		int from, to;
	} keys[] = {{CURSES_KEY_UP, SCREEN_UP},
		    {CURSES_KEY_DOWN, SCREEN_DOWN},
		    {CURSES_KEY_PPAGE, SCREEN_PAGE_UP},
		    {CURSES_KEY_NPAGE, SCREEN_PAGE_DOWN},
		    {CURSES_KEY_HOME, SCREEN_HOME},
		    {CURSES_KEY_END, SCREEN_END},
		    {CURSES_KEY_ENTER, SCREEN_ENTER},
		    {'\n', SCREEN_ENTER},
		    {'\r', SCREEN_ENTER},
		    {CURSES_KEY_BACKSPACE, SCREEN_BACK},
		    {CURSES_KEY_LEFT, SCREEN_BACK},
		    {ESCAPE, SCREEN_BACK},
		    {127, SCREEN_BACK},
		    {8, SCREEN_BACK},
		    {CURSES_KEY_RESIZE, SCREEN_RESIZE}};
	int key;

	curses.wtimeout(*curses.stdscr, timeout_ms);
	errno = 0;
	key = curses.wgetch(*curses.stdscr);
	if (key == CURSES_ERR) {
		char byte;

		/* A terminal that was closed is always ready, and has nothing. */
		return errno == EIO || (errno != EINTR && timeout_ms && !isatty(STDIN_FILENO) &&
					read(STDIN_FILENO, &byte, 1) == 0)
			   ? SCREEN_CLOSED
			   : SCREEN_NONE;
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (keys[i].from == key)
			return keys[i].to;
	return key;
}
