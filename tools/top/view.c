/*
 * view.c - see view.h.
 */
#include "top/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report/readable.h"
#include "util/grow.h"
#include "util/terminal.h"

/* --- lines --- */

/* A page while it is made. */
struct page {
	struct top_lines *lines;
	const struct top_view *view;
	const struct watch_host *host;
	const struct terminal *terminal; /* no colours */
	double seconds;			 /* of the stretch */
	bool allocations;		 /* shown, as there are any */
	size_t room;			 /* rows that may still be added */
	size_t start;			 /* of the line that is being made */
	bool failed;
};

static void end_line(struct page *page, bool bold, uint64_t row)
{
	struct top_lines *lines = page->lines;

	if (grow_by_one(&lines->at, &lines->allocated, lines->count, sizeof(*lines->at))) {
		page->failed = true;
		return;
	}
	lines->at[lines->count++] =
	    (struct top_line){.begin = page->start, .length = lines->text.used - page->start, .bold = bold, .row = row};
	output_char(&lines->text, '\n');
	page->start = lines->text.used;
}

/* A rate or count in at most 7 columns: "12", "9999", "123 k", "4.56 M". */
static void put_count(struct page *page, double count)
{
	static const char *const units[] = {"", " k", " M", " G", " T"};
	char text[32];
	unsigned unit = 0;

	while (count >= 9999.5 && unit < 4) {
		count /= 1000;
		unit++;
	}
	snprintf(text, sizeof(text), "%.*f%s", unit && count < 99.95 ? 1 : 0, count, units[unit]);
	output_format(&page->lines->text, "%9s", text);
}

static void put_percent(struct page *page, uint64_t ns)
{
	output_format(&page->lines->text, "%7.1f", page->seconds > 0 ? (double)ns / 1e7 / page->seconds : 0.0);
}

static void put_time(struct page *page, uint64_t ns)
{
	char text[TERMINAL_NUMBER_BYTES];

	output_format(&page->lines->text, "%10s", terminal_time((double)ns, text));
}

static void put_allocations(struct page *page, const struct watch_times *times)
{
	char text[TERMINAL_NUMBER_BYTES];

	if (!page->allocations)
		return;
	put_count(page, page->seconds > 0 ? (double)times->allocations / page->seconds : 0);
	output_format(&page->lines->text, "%10s",
		      terminal_bytes(page->seconds > 0 ? (uint64_t)((double)times->bytes / page->seconds) : 0, text));
}

static void put_summary(struct page *page)
{
	const struct watch_host *host = page->host;
	struct output *text = &page->lines->text;
	char now[16] = "";
	time_t clock = time(NULL);
	struct tm parts;
	uint64_t tasks = 0, threads = 0;

	for (size_t i = 0; i < host->process_count; i++) {
		tasks += host->processes[i].tasks;
		threads += host->processes[i].threads;
	}
	if (localtime_r(&clock, &parts))
		strftime(now, sizeof(now), "%H:%M:%S", &parts);
	output_format(text, "evprof top %s: %zu process%s, %" PRIu64 " thread%s", now, host->process_count,
		      host->process_count == 1 ? "" : "es", threads, threads == 1 ? "" : "s");
	if (tasks)
		output_format(text, ", %" PRIu64 " task%s", tasks, tasks == 1 ? "" : "s");
	output_format(text, ", %.0f events/s, %" PRIu64 " lost",
		      page->seconds > 0 ? (double)host->events / page->seconds : 0.0, host->lost);
	end_line(page, true, TOP_NO_ROW);
	if (host->problem[0]) {
		output_line(text, text_of(host->problem));
		end_line(page, false, TOP_NO_ROW);
	}
}

static void put_function_name(struct page *page, uint32_t number, unsigned used, unsigned columns)
{
	const struct label *label = &page->host->labels.at[number];
	unsigned room = columns > used + 12 ? columns - used : 12;
	struct readable readable;

	if (readable_init(&readable) < 0) {
		page->failed = true;
		return;
	}
	readable_set_label(&readable, label);
	readable_put(&readable, page->terminal, &page->lines->text,
		     readable_name_columns(readable.name_width, readable.place_width, room), room);
	readable_done(&readable);
}

static void put_functions(struct page *page, bool callees, unsigned columns)
{
	size_t count;
	enum watch_side side = !page->host->foci[0] ? WATCH_ALL : callees ? WATCH_CALLEES : WATCH_CALLERS;
	struct watch_row *rows = watch_function_rows(&page->view->rows, &page->host->labels, page->host->functions,
						     page->host->allocated, side, &count);

	page->failed |= !rows;
	for (size_t i = 0; rows && i < count && page->room; i++, page->room--) {
		uint32_t number = (uint32_t)rows[i].number;
		const struct watch_function *function = &page->host->functions[number];
		const struct watch_times *times = watch_times_of(function, side);

		put_percent(page, times->own_ns);
		put_percent(page, times->total_ns);
		put_time(page, function->since.own_ns);
		put_time(page, function->since.total_ns);
		put_count(page, page->seconds > 0 ? (double)times->calls / page->seconds : 0);
		put_allocations(page, times);
		output_string(&page->lines->text, "  ");
		put_function_name(page, number, (unsigned)(page->lines->text.used - page->start), columns);
		end_line(page, false, number);
	}
	free(rows);
}

static void put_function_titles(struct page *page)
{
	output_format(&page->lines->text, "%7s%7s%10s%10s%9s", "%own", "%total", "own", "total", "calls/s");
	if (page->allocations)
		output_format(&page->lines->text, "%9s%10s", "allocs/s", "bytes/s");
	output_string(&page->lines->text, "  function");
	end_line(page, true, TOP_NO_ROW);
}

/* Callers first, then callees; half of the room each. */
static void put_focused(struct page *page, unsigned columns)
{
	size_t room = page->room;
	const struct watch_host *host = page->host;

	output_string(&page->lines->text, "callers of ");
	put_function_name(page, host->foci[0] - 1, 11, columns);
	end_line(page, true, TOP_NO_ROW);
	page->room = room / 2;
	put_functions(page, false, columns);
	output_string(&page->lines->text, "callees");
	end_line(page, true, TOP_NO_ROW);
	page->room = room - room / 2;
	put_functions(page, true, columns);
}

static void put_processes(struct page *page)
{
	size_t count;
	struct watch_row *rows = watch_process_rows(&page->view->rows, page->host, &count);
	struct output *text = &page->lines->text;

	output_format(text, "%8s%10s%7s%8s%7s%9s", "pid", "events/s", "lost", "threads", "tasks", "calls/s");
	if (page->allocations)
		output_format(text, "%9s%10s", "allocs/s", "bytes/s");
	output_string(text, "  program");
	end_line(page, true, TOP_NO_ROW);
	page->lines->titles = page->lines->count;
	page->failed |= !rows;
	for (size_t i = 0; rows && i < count && page->room; i++, page->room--) {
		const struct watch_process_row *row = &page->host->processes[rows[i].number];

		output_format(text, "%8" PRId64 " ", row->pid);
		put_count(page, page->seconds > 0 ? (double)row->events / page->seconds : 0);
		output_format(text, "%7" PRIu64 "%8u%7u", row->lost_since, row->threads, row->tasks);
		put_count(page, page->seconds > 0 ? (double)row->now.calls / page->seconds : 0);
		put_allocations(page, &row->now);
		output_string(text, "  ");
		output_line(text, text_of(row->name));
		if (row->sampled)
			output_string(text, " (sampled)");
		end_line(page, false, (uint64_t)row->pid);
	}
	free(rows);
}

static void put_threads(struct page *page, unsigned columns)
{
	size_t count;
	struct watch_row *rows = watch_thread_rows(&page->view->rows, page->host, &count);
	struct output *text = &page->lines->text;

	output_format(text, "%8s%8s%9s", "pid", "thread", "calls/s");
	if (page->allocations)
		output_format(text, "%9s%10s", "allocs/s", "bytes/s");
	output_format(text, "  %-20s  runs", "name");
	end_line(page, true, TOP_NO_ROW);
	page->lines->titles = page->lines->count;
	page->failed |= !rows;
	for (size_t i = 0; rows && i < count && page->room; i++, page->room--) {
		const struct watch_thread_row *row = &page->host->threads[rows[i].number];
		size_t begin;

		output_format(text, "%8" PRId64 "%8u", row->pid, row->tid);
		put_count(page, page->seconds > 0 ? (double)row->now.calls / page->seconds : 0);
		put_allocations(page, &row->now);
		output_string(text, "  ");
		begin = text->used;
		output_line(text, text_of(row->name));
		while (text->used < begin + 20)
			output_char(text, ' ');
		output_string(text, "  ");
		if (row->top != UINT32_MAX)
			put_function_name(page, row->top, (unsigned)(text->used - page->start), columns);
		end_line(page, false, rows[i].number);
	}
	free(rows);
}

static bool any_allocations(const struct watch_host *host)
{
	for (size_t i = 0; i < host->process_count; i++)
		if (host->processes[i].now.allocations)
			return true;
	return false;
}

int top_lines_make(struct top_lines *lines, const struct top_view *view, const struct watch_host *host,
		   unsigned columns, size_t rows)
{
	static const struct terminal plain = {.columns = 80};
	struct page page = {.lines = lines,
			    .view = view,
			    .host = host,
			    .terminal = &plain,
			    .seconds = (double)host->stretch_ns / 1e9,
			    .allocations = any_allocations(host),
			    .room = rows};

	*lines = (struct top_lines){0};
	if (output_open_memory(&lines->text) < 0)
		return -ENOMEM;
	put_summary(&page);
	if (view->page == TOP_FUNCTIONS) {
		put_function_titles(&page);
		lines->titles = lines->count;
		if (host->foci[0])
			put_focused(&page, columns);
		else
			put_functions(&page, false, columns);
	} else if (view->page == TOP_PROCESSES) {
		put_processes(&page);
	} else {
		put_threads(&page, columns);
	}
	return page.failed || lines->text.error ? -ENOMEM : 0;
}

void top_lines_done(struct top_lines *lines)
{
	if (lines->text.buffer) /* an output of zeros would close stdin */
		output_abandon(&lines->text);
	free(lines->at);
	*lines = (struct top_lines){0};
}
