/*
 * test_collector_watcher.c - the lines of evprof watch, as the collector takes them (session/watcher.h). The program
 * reads what a user's process has recorded, so a line may be anything.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/loop.h"
#include "session/watcher.h"

static struct loop loop;
static struct watcher watcher;

/* No evprof is in the folder of a test: nothing runs, and the lines are those of the test. */
static void set_up(void)
{
	const struct watcher_config config = {.list = "a:b>1s", .trace = "/nowhere.evp"};

	cr_assert(loop_init(&loop) == 0);
	watcher = (struct watcher){0};
	watcher_start(&watcher, &loop, &config);
	for (int i = 0; i < 100 && watcher_runs(&watcher); i++)
		loop_wait(&loop, 100000);
	cr_assert_not(watcher_runs(&watcher), "the end of its output is seen");
}

static void tear_down(void)
{
	watcher_stop(&watcher);
	loop_done(&loop);
}

TestSuite(watcher, .init = set_up, .fini = tear_down, .timeout = 60);

static void take(const char *line)
{
	watcher.lines.take(&watcher.lines, line);
}

Test(watcher, calls_in_their_order)
{
	struct watcher_found found;

	cr_assert_not(watcher_take(&watcher, &found));
	take("3\t4711\t4712\t1234567890123\t500000000\tview");
	take("0\t-1\t0\t0\t0\t");
	cr_assert(watcher_take(&watcher, &found));
	cr_expect(found.trigger == 3 && found.pid == 4711 && found.begin_ns == UINT64_C(1234567890123));
	cr_assert(watcher_take(&watcher, &found));
	cr_expect(found.trigger == 0 && found.pid == -1 && found.begin_ns == 0);
	cr_expect_not(watcher_take(&watcher, &found));
}

Test(watcher, other_lines_are_none)
{
	static const char *const wrong[] = {"",	    "\t\t\t\t", "evprof: a message", "1",
					    "1\t2", "1\t2\t3",	"1\t2\t3\tx\t",	     "x\t2\t3\t4\t5\tname"};
	struct watcher_found found;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		take(wrong[i]);
	cr_expect_not(watcher_take(&watcher, &found));
	take("1\t2\t3\t4\t5\tname");
	cr_expect(watcher_take(&watcher, &found) && found.trigger == 1 && found.pid == 2 && found.begin_ns == 4);
}

/* Those that come while there is no room are dropped, and the rest keeps its order. */
Test(watcher, bounded)
{
	struct watcher_found found;
	char line[80];

	for (unsigned i = 0; i < 3 * WATCHER_FOUND_MAX; i++) {
		snprintf(line, sizeof(line), "%u\t%u\t1\t%u\t5\tname", i, i + 1, i + 2);
		take(line);
	}
	for (unsigned i = 0; i < WATCHER_FOUND_MAX; i++)
		cr_expect(watcher_take(&watcher, &found) && found.trigger == i && found.pid == (int)i + 1);
	cr_expect_not(watcher_take(&watcher, &found));
	take("7\t8\t9\t10\t11\tname");
	cr_expect(watcher_take(&watcher, &found) && found.trigger == 7);
}
