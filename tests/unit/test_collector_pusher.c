/*
 * test_collector_pusher.c - when a daemon starts evprof push again (server/pusher.h). No evprof is in the folder of a
 * test, so each start is an end at once.
 */
#include <criterion/criterion.h>

#include "base/loop.h"
#include "server/pusher.h"

#define MINUTE_NS UINT64_C(60000000000)

static struct loop loop;

Test(pusher, is_started_again_once_a_minute, .timeout = 60)
{
	struct pusher pusher = {.url = "http://127.0.0.1:9", .folder = "/nowhere"};
	uint64_t first_ns;

	cr_assert(loop_init(&loop) == 0);
	pusher_start(&pusher, &loop);
	for (int i = 0; i < 100 && pusher.run.running; i++)
		loop_wait(&loop, 100000);
	cr_assert_not(pusher.run.running);
	first_ns = pusher.started_ns;
	cr_expect_eq(pusher_tend(&pusher, first_ns + 1), 60000, "the loop is to wait no longer than that");
	cr_expect_eq(pusher_tend(&pusher, first_ns + MINUTE_NS / 2), 30001);
	cr_expect_eq(pusher.started_ns, first_ns);
	pusher_tend(&pusher, first_ns + MINUTE_NS);
	cr_expect_gt(pusher.started_ns, first_ns, "it is started again");
	pusher_finish(&pusher, pusher_leave(&pusher));
	loop_done(&loop);
}

Test(pusher, that_nobody_wants_is_not_started)
{
	struct pusher pusher = {.folder = "/nowhere"};

	cr_assert(loop_init(&loop) == 0);
	pusher_start(&pusher, &loop);
	cr_expect_eq(pusher_tend(&pusher, 2 * MINUTE_NS), -1);
	cr_expect_eq(pusher.started_ns, 0);
	pusher_finish(&pusher, pusher_leave(&pusher));
	loop_done(&loop);
}
