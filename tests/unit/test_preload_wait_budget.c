/*
 * test_preload_wait_budget.c - what may be waited in all, by a clock that the test moves.
 */
#include <criterion/criterion.h>

#include "preload/ring/wait.h"

#define BOUND INT64_C(1000)

static struct wait_budget budget = WAIT_BUDGET_FULL;

static int64_t left(int64_t now)
{
	return wait_budget_left(&budget, now, BOUND);
}

static void charge(int64_t begin, int64_t now)
{
	wait_budget_charge(&budget, begin, now, BOUND);
}

Test(wait_budget, is_full_at_first_however_young_the_clock)
{
	cr_assert_eq(left(0), BOUND);
	cr_assert_eq(left(INT64_MAX / 4), BOUND);
	charge(5, 105);
	cr_assert_eq(left(105), BOUND - 100);
}

Test(wait_budget, a_wait_takes_its_time_and_no_more_than_the_bound)
{
	charge(50000, 50400);
	cr_assert_eq(left(50400), BOUND - 400);
	charge(50400, 51000);
	cr_assert_eq(left(51000), 0);
	charge(51000, 51100);
	cr_assert_eq(left(51100), 0, "debt is nothing left");
}

Test(wait_budget, a_tenth_of_the_time_between_waits_is_added)
{
	charge(50000, 51000);
	cr_assert_eq(left(51500), 50);
	charge(51500, 51550);
	cr_assert_eq(left(51550), 0);
	cr_assert_eq(left(61550), BOUND);
	cr_assert_eq(left(99999999), BOUND, "and no more than the bound");
}

/* However waits come, they are the bound and a tenth of the rest. */
Test(wait_budget, the_sum_of_waits_is_bounded)
{
	int64_t now = 50000, waited = 0, ran = 0;

	for (int i = 0; i < 10000; i++) {
		int64_t run = i * 7919 % 97, wait = left(now + run);

		now += run;
		ran += run;
		if (i % 3)
			wait = wait / 2;
		charge(now, now + wait);
		now += wait;
		waited += wait;
	}
	cr_assert_leq(waited, BOUND + ran / WAIT_BUDGET_PART);
	cr_assert_geq(waited, ran / WAIT_BUDGET_PART - 100, "nor are they much less");
}

/* Each step of each thread is charged, in turn: the process was held up once. */
Test(wait_budget, threads_that_wait_at_once_pay_once)
{
	for (int64_t step = 50000; step < 50500; step += 100)
		for (int64_t thread = 0; thread < 16; thread++)
			charge(step + thread, step + 100 + thread);
	cr_assert_eq(left(50515), BOUND - 515);
	for (int64_t thread = 0; thread < 4; thread++)
		charge(60000 + thread * 100, 60100 + thread * 100);
	cr_assert_eq(left(60400), BOUND - 400, "one after the other they pay each");
}

/* docker pause, SIGSTOP or Ctrl-Z: the time in which the whole program was stopped is no wait. */
Test(wait_budget, a_stop_during_a_wait_takes_the_bound)
{
	charge(50000, 50100);
	charge(50100, 50100 + 30 * BOUND);
	cr_assert_eq(left(50100 + 30 * BOUND), 0);
	cr_assert_eq(left(50100 + 31 * BOUND), BOUND / WAIT_BUDGET_PART, "there is no debt");
}
