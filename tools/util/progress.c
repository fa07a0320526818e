/*
 * progress.c - see progress.h. Called once a chunk, so the cost of reading the clock is negligible.
 */
#include "util/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "util/clock.h"

#define SHOW_AFTER_NS INT64_C(1000000000)
#define SHOW_EVERY_NS INT64_C(100000000)
#define BAR_WIDTH 40

static bool is_drawn, is_hidden;

void progress_begin(struct progress *progress, const char *what, uint64_t total)
{
	*progress = (struct progress){.what = what, .total = total, .began_ns = time_ns(CLOCK_MONOTONIC)};
	progress->terminal = isatty(STDERR_FILENO);
}

static void draw_bar(const struct progress *progress)
{
	uint64_t done = progress->done < progress->total ? progress->done : progress->total;
	int filled = progress->total ? (int)((double)done * BAR_WIDTH / (double)progress->total) : 0;
	int percent = progress->total ? (int)((double)done * 100 / (double)progress->total) : 0;

	fprintf(stderr, "\r%s [%.*s%*s] %3d%%", progress->what, filled, "########################################",
		BAR_WIDTH - filled, "", percent);
	fflush(stderr);
	is_drawn = true;
}

static void wipe_bar(void)
{
	if (is_drawn)
		fprintf(stderr, "\r\033[K");
	is_drawn = false;
}

void progress_hide(void)
{
	wipe_bar();
	is_hidden = true;
}

void progress_add(struct progress *progress, uint64_t amount)
{
	int64_t now;

	progress->done += amount;
	if (!progress->terminal || is_hidden)
		return;
	now = time_ns(CLOCK_MONOTONIC);
	if (now - progress->began_ns < SHOW_AFTER_NS || now - progress->shown_ns < SHOW_EVERY_NS)
		return;
	progress->shown_ns = now;
	draw_bar(progress);
}

void progress_end(struct progress *progress)
{
	wipe_bar();
	progress->shown_ns = 0;
}
