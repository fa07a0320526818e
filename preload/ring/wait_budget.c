/* wait_budget.c - stores the budget as a point in time: it then grows by itself. */
#include "ring/wait_budget.h"

int64_t wait_budget_left(const struct wait_budget *budget, int64_t now_us, int64_t bound_us)
{
	int64_t left_us = (now_us - atomic_load(&budget->empty_us)) / WAIT_BUDGET_PART;

	if (left_us > bound_us)
		return bound_us;
	return left_us > 0 ? left_us : 0;
}

/* Drops what exceeded the bound when the wait began. */
static void cut_to_bound(struct wait_budget *budget, int64_t begin_us, int64_t bound_us)
{
	int64_t empty_us = atomic_load(&budget->empty_us), full_us = begin_us - bound_us * WAIT_BUDGET_PART;

	while (empty_us < full_us && !atomic_compare_exchange_weak(&budget->empty_us, &empty_us, full_us))
		;
}

void wait_budget_charge(struct wait_budget *budget, int64_t begin_us, int64_t now_us, int64_t bound_us)
{
	int64_t charged_us = atomic_exchange(&budget->charged_us, now_us);

	cut_to_bound(budget, begin_us, bound_us);
	if (begin_us < charged_us)
		begin_us = charged_us;
	/* One part more, because time spent waiting adds nothing. */
	if (begin_us < now_us)
		atomic_fetch_add(&budget->empty_us, (now_us - begin_us) * (WAIT_BUDGET_PART + 1));
}
