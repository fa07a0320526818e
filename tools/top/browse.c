/*
 * browse.c - see browse.h.
 */
#include "top/browse.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "top/screen.h"
#include "util/clock.h"

#define FILTER_BYTES 64
#define ROWS_MAX 10000

const char browse_help[] = "  up, down, page up, page down, home, end   select a row\n"
			   "  Enter    a function: its callers and callees; a process: its functions\n"
			   "  Backspace  back\n"
			   "  f p h    functions, processes, threads\n"
			   "  o t c a b  sort by own time, cumulative time, calls, allocations, bytes\n"
			   "  /        show only rows with a text in their name or file; Enter ends it\n"
			   "  space    stop and go on\n"
			   "  q        leave\n";

struct browser {
	struct watch_host *host;
	struct top_view *view;
	struct top_lines lines;
	char filter[FILTER_BYTES];
	bool types; /* the filter is being typed */
	bool is_paused;
	bool shows_help;
	bool leaves;
	uint64_t selected; /* row (struct top_line); TOP_NO_ROW: none */
	size_t at;	   /* its line */
	size_t first;	   /* the first line that is shown below the titles */
};

/* --- drawing --- */

/* Finds the line of the selected row again, or else keeps its place. */
static void find_selected(struct browser *browser)
{
	const struct top_lines *lines = &browser->lines;

	for (size_t i = lines->titles; i < lines->count; i++) {
		if (browser->selected != TOP_NO_ROW && lines->at[i].row == browser->selected) {
			browser->at = i;
			return;
		}
	}
	if (browser->at >= lines->count)
		browser->at = lines->count ? lines->count - 1 : 0;
	if (browser->at < lines->titles)
		browser->at = lines->titles;
	browser->selected = browser->at < lines->count ? lines->at[browser->at].row : TOP_NO_ROW;
}

static void draw_line(const struct browser *browser, unsigned row, size_t number)
{
	const struct top_line *line = &browser->lines.at[number];
	enum screen_style style = line->bold ? SCREEN_BOLD : SCREEN_PLAIN;

	if (number == browser->at && line->row != TOP_NO_ROW)
		style = SCREEN_SELECTED;
	screen_put(row, browser->lines.text.buffer + line->begin, line->length, style);
}

static void draw_bottom(const struct browser *browser, unsigned row)
{
	char text[200];
	int length;

	if (browser->types)
		length = snprintf(text, sizeof(text), "filter: %s_", browser->filter);
	else
		length = snprintf(text, sizeof(text), "%ssorted by %s%s%s; ? shows the keys",
				  browser->is_paused ? "stopped; " : "", watch_order_name(browser->view->rows.order),
				  browser->filter[0] ? ", filter: " : "", browser->filter);
	screen_put(row, text, (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1, SCREEN_BOLD);
}

static unsigned draw_help(void)
{
	const char *at = browse_help;
	unsigned row = 0;

	for (; *at; at += strcspn(at, "\n") + 1)
		screen_put(row++, at, strcspn(at, "\n"), SCREEN_PLAIN);
	return row;
}

/* The number of lines below the titles. */
static size_t rows_of(const struct browser *browser, unsigned rows)
{
	return rows > browser->lines.titles + 1 ? rows - browser->lines.titles - 1 : 1;
}

static int draw(struct browser *browser)
{
	unsigned rows, columns, row = 0;
	size_t room;
	int error;

	screen_size(&rows, &columns);
	top_lines_done(&browser->lines);
	error = top_lines_make(&browser->lines, browser->view, browser->host, columns, ROWS_MAX);
	if (error)
		return error;
	find_selected(browser);
	if (browser->shows_help) {
		screen_show(draw_help());
		return 0;
	}
	room = rows_of(browser, rows);
	if (browser->at < browser->first + browser->lines.titles)
		browser->first = browser->at > browser->lines.titles ? browser->at - browser->lines.titles : 0;
	if (browser->at >= browser->first + browser->lines.titles + room)
		browser->first = browser->at - browser->lines.titles - room + 1;
	for (size_t i = 0; i < browser->lines.titles && row + 1 < rows; i++)
		draw_line(browser, row++, i);
	for (size_t i = browser->lines.titles + browser->first; i < browser->lines.count && row + 1 < rows; i++)
		draw_line(browser, row++, i);
	screen_show(row);
	draw_bottom(browser, rows - 1);
	screen_show(rows);
	return 0;
}

/* --- keys --- */

static void go_to_line(struct browser *browser, size_t line)
{
	const struct top_lines *lines = &browser->lines;

	if (line >= lines->count)
		line = lines->count ? lines->count - 1 : 0;
	browser->at = line < lines->titles ? lines->titles : line;
	browser->selected = browser->at < lines->count ? lines->at[browser->at].row : TOP_NO_ROW;
}

static void go_to_page(struct browser *browser, enum top_page page)
{
	browser->view->page = page;
	browser->selected = TOP_NO_ROW;
	browser->at = browser->first = 0;
}

/* Counts of other functions come with the next stretch. */
static void look_at(struct browser *browser, uint32_t function)
{
	browser->host->foci[0] = function == UINT32_MAX ? 0 : function + 1;
	go_to_page(browser, TOP_FUNCTIONS);
}

static void enter(struct browser *browser)
{
	if (browser->selected == TOP_NO_ROW)
		return;
	if (browser->view->page == TOP_FUNCTIONS) {
		look_at(browser, (uint32_t)browser->selected);
	} else if (browser->view->page == TOP_PROCESSES) {
		browser->host->only = (int64_t)browser->selected;
		go_to_page(browser, TOP_FUNCTIONS);
	} else if (browser->selected < browser->host->thread_count &&
		   browser->host->threads[browser->selected].top != UINT32_MAX) {
		look_at(browser, browser->host->threads[browser->selected].top);
	}
}

static void go_back(struct browser *browser)
{
	if (browser->view->page == TOP_FUNCTIONS && browser->host->foci[0])
		look_at(browser, UINT32_MAX);
	else if (browser->view->page == TOP_FUNCTIONS && browser->host->only)
		browser->host->only = 0;
	else if (browser->view->page != TOP_FUNCTIONS)
		go_to_page(browser, TOP_FUNCTIONS);
}

static void type_filter(struct browser *browser, int key)
{
	size_t length = strlen(browser->filter);

	if (key == SCREEN_ENTER)
		browser->types = false;
	else if (key == SCREEN_BACK && length)
		browser->filter[length - 1] = '\0';
	else if (key == SCREEN_BACK)
		browser->types = false;
	else if (key < 128 && isprint(key) && length + 1 < sizeof(browser->filter))
		memcpy(browser->filter + length, (char[2]){(char)key}, 2);
}

/* Moves the selection. False: the key is for something else. */
static bool move(struct browser *browser, int key)
{
	unsigned rows, columns;
	size_t page;

	screen_size(&rows, &columns);
	page = rows_of(browser, rows);
	if (key == SCREEN_UP)
		go_to_line(browser, browser->at ? browser->at - 1 : 0);
	else if (key == SCREEN_DOWN)
		go_to_line(browser, browser->at + 1);
	else if (key == SCREEN_PAGE_UP)
		go_to_line(browser, browser->at > page ? browser->at - page : 0);
	else if (key == SCREEN_PAGE_DOWN)
		go_to_line(browser, browser->at + page);
	else if (key == SCREEN_HOME)
		go_to_line(browser, 0);
	else if (key == SCREEN_END)
		go_to_line(browser, browser->lines.count);
	else
		return false;
	return true;
}

/* The place of a key among letters; -1: it is none of them. */
static int place_of(const char *letters, int key)
{
	for (int i = 0; letters[i]; i++)
		if (letters[i] == key)
			return i;
	return -1;
}

static void take_letter(struct browser *browser, int key)
{
	int order = place_of("otcab", key), page = place_of("fph", key);

	if (order >= 0)
		browser->view->rows.order = (enum watch_order)order;
	else if (page >= 0)
		go_to_page(browser, (enum top_page)page);
	else if (key == 'q' || key == SCREEN_CLOSED)
		browser->leaves = true;
	else if (key == ' ')
		browser->is_paused = !browser->is_paused;
	else if (key == '?')
		browser->shows_help = true;
	else if (key == '/')
		browser->types = true;
	else if (key == SCREEN_ENTER)
		enter(browser);
	else if (key == SCREEN_BACK)
		go_back(browser);
}

static void take_key(struct browser *browser, int key)
{
	if (browser->shows_help)
		browser->shows_help = false;
	else if (browser->types && key != SCREEN_CLOSED)
		type_filter(browser, key);
	else if (!move(browser, key))
		take_letter(browser, key);
}

/* --- all --- */

/* Takes keys until the next refresh is due, or the user leaves. */
static int follow_keys(struct browser *browser, int64_t until_ms)
{
	int error = 0;

	while (!error && !browser->leaves) {
		int64_t left = until_ms - time_ms(CLOCK_MONOTONIC);
		int key;

		if (left <= 0 && !browser->is_paused)
			return 0;
		key = screen_key(browser->is_paused ? 1000 : (int)left);
		if (key == SCREEN_NONE)
			continue;
		take_key(browser, key);
		error = draw(browser);
	}
	return error;
}

int browse(struct watch_host *host, struct top_view *view, int interval_ms, int64_t count)
{
	struct browser browser = {.host = host, .view = view, .selected = TOP_NO_ROW};
	int error = 0;

	snprintf(browser.filter, sizeof(browser.filter), "%s", view->rows.filter);
	view->rows.filter = browser.filter;
	for (int64_t i = 0; !error && !browser.leaves && (!count || i < count); i++) {
		error = draw(&browser);
		if (!error)
			error = follow_keys(&browser, time_ms(CLOCK_MONOTONIC) + interval_ms);
		if (!error && !browser.leaves)
			error = watch_host_refresh(host) < 0 ? -1 : 0;
	}
	top_lines_done(&browser.lines);
	view->rows.filter = "";
	return error;
}
