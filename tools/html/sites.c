/*
 * sites.c - sums of live blocks by site at moments of the run. See sites.h.
 */
#include "html/sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/memory.h"
#include "replay/program_end.h"
#include "util/grow.h"

/* --- sites of stacks --- */

/* The function of a stack's site + 1: the innermost Python function, else the outermost C function; 0: none. */
static uint32_t function_of(const struct html_sites *sites, uint32_t number)
{
	const struct stack_node *node = &sites->live->stacks.at[number];
	const struct stack_function *function;
	bool outermost = node->parent && !sites->live->stacks.at[node->parent].parent;

	if (!node->parent)
		return 0;
	function = &sites->functions->at[node->function];
	if (function->library.length || (function->is_c && !outermost))
		return sites->innermost[node->parent];
	return node->function + 1;
}

/* The number of the site; UINT32_MAX: no memory. */
static uint32_t find_site(struct html_sites *sites, uint32_t function, uint32_t kind)
{
	uint64_t *number = u64_map_make(&sites->numbers, (uint64_t)function << 32 | kind);

	if (!number || (!*number && grow_by_one(&sites->at, &sites->allocated, sites->count, sizeof(*sites->at)) < 0))
		return UINT32_MAX;
	if (!*number) {
		sites->at[sites->count++] = (struct html_site){.function = function, .kind = kind};
		*number = sites->count;
	}
	return (uint32_t)*number - 1;
}

/* Finds the sites of the stacks that are new since the last moment. Parents precede their children. */
static int find_sites(struct html_sites *sites)
{
	const struct stacks *stacks = &sites->live->stacks;
	uint32_t room = stacks->count + 1;

	if (grow_zeroed(&sites->of_stack, &sites->of_stack_allocated, room, sizeof(*sites->of_stack)) < 0 ||
	    grow_zeroed(&sites->innermost, &sites->innermost_allocated, room, sizeof(*sites->innermost)) < 0 ||
	    grow_zeroed(&sites->kinds, &sites->kinds_allocated, room, sizeof(*sites->kinds)) < 0)
		return -ENOMEM;
	for (uint32_t i = sites->stack_count ? sites->stack_count : 1; i < stacks->count; i++) {
		sites->innermost[i] = function_of(sites, i);
		sites->kinds[i] = (uint8_t)memory_kind_of_stack(stacks, sites->functions, i, sites->kinds);
		sites->of_stack[i] = find_site(sites, sites->innermost[i], sites->kinds[i]);
		if (sites->of_stack[i] == UINT32_MAX)
			return -ENOMEM;
	}
	sites->stack_count = stacks->count;
	return 0;
}

/* --- moments --- */

static uint64_t now_of(const struct live *live, uint32_t stack)
{
	return live->sums[stack].bytes;
}

static uint64_t peak_of(const struct live *live, uint32_t stack)
{
	return live_weigh(live, stack).peak.bytes;
}

static uint64_t end_of(const struct live *live, uint32_t stack)
{
	return live_weigh(live, stack).end.bytes;
}

static int add_moment(struct html_sites *sites, int64_t ns, uint64_t (*bytes_of)(const struct live *, uint32_t))
{
	uint64_t *bytes;

	if (find_sites(sites) < 0)
		return -ENOMEM;
	bytes = calloc((size_t)sites->count + 1, sizeof(*bytes));
	if (!bytes)
		return -ENOMEM;
	for (uint32_t i = 1; i < sites->stack_count; i++)
		bytes[sites->of_stack[i]] += bytes_of(sites->live, i);
	for (uint32_t i = 0; i < sites->count; i++)
		sites->at[i].most = bytes[i] > sites->at[i].most ? bytes[i] : sites->at[i].most;
	sites->times[sites->moments] = ns;
	sites->bytes[sites->moments] = bytes;
	sites->counts[sites->moments++] = sites->count;
	return 0;
}

static int64_t time_of(const struct html_sites *sites, uint32_t moment)
{
	uint64_t span = (uint64_t)(sites->to_ns - sites->from_ns);

	return sites->from_ns + (int64_t)((unsigned __int128)span * moment / HTML_MOMENTS);
}

static uint64_t ticks_of(const struct html_sites *sites, uint32_t moment)
{
	const struct call_walk *walk = sites->walk;

	return moment > HTML_MOMENTS ? UINT64_MAX
				     : trace_ticks(walk->process, walk->trace->start_ns + time_of(sites, moment));
}

/* Before the first event at a moment or after it: at that moment and those since, all was as it is now. */
static int take_moment(void *owner, struct live *live, uint64_t now_ticks)
{
	struct html_sites *sites = owner;
	int error = 0;

	for (; !error && sites->next <= HTML_MOMENTS && ticks_of(sites, sites->next) <= now_ticks; sites->next++)
		if (live->any)
			error = add_moment(sites, time_of(sites, sites->next), now_of);
	live->moment_ticks = ticks_of(sites, sites->next);
	return error;
}

void html_sites_begin(struct html_sites *sites, struct live *live)
{
	sites->live = live;
	sites->next = 1;
	live->moment = take_moment;
	live->moment_owner = sites;
	live->moment_ticks = ticks_of(sites, 1);
}

int html_sites_end(struct html_sites *sites, int64_t end_ns)
{
	const struct live *live = sites->live;
	int error;

	if (!live->any)
		return 0;
	error = add_moment(sites, time_of(sites, sites->next <= HTML_MOMENTS ? sites->next : HTML_MOMENTS), now_of);
	if (!error)
		error = add_moment(sites, live->peak_ns, peak_of);
	if (!error && end_ns != PROGRAM_END_NONE)
		error = add_moment(sites, end_ns, end_of);
	return error;
}

/* --- columns --- */

static int by_most(const void *left, const void *right, void *owner)
{
	const struct html_site *at = owner;
	const struct html_site *a = &at[*(const uint32_t *)left], *b = &at[*(const uint32_t *)right];

	if (a->most != b->most)
		return a->most > b->most ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void put_series(struct html_column *column, const struct html_sites *sites, const uint32_t *list, uint32_t count)
{
	uint64_t before = 0;

	for (uint32_t k = 0; k < sites->moments; k++) {
		uint64_t bytes = 0;

		for (uint32_t i = 0; i < count; i++)
			bytes += list[i] < sites->counts[k] ? sites->bytes[k][list[i]] : 0;
		html_column_signed(column, (int64_t)(bytes - before));
		before = bytes;
	}
}

/* The sums of the sites that are left out, by kind. Returns how many there are. */
static uint32_t put_others(struct html_column *columns, const struct html_sites *sites, uint32_t *list, uint32_t count)
{
	uint32_t rows = 0;

	for (uint32_t kind = 0; kind < MEMORY_KINDS; kind++) {
		uint32_t of_kind = 0;

		for (uint32_t i = 0; i < count; i++)
			if (sites->at[list[i]].kind == kind) {
				uint32_t site = list[i];

				list[i] = list[of_kind];
				list[of_kind++] = site;
			}
		if (!of_kind)
			continue;
		html_column_put(&columns[HTML_SITE_FUNCTIONS], 0);
		html_column_put(&columns[HTML_SITE_KINDS], MEMORY_KINDS + kind);
		put_series(&columns[HTML_SITE_VALUES], sites, list, of_kind);
		rows++;
	}
	return rows;
}

static void put_moments(struct html_column *column, const struct html_sites *sites)
{
	for (uint32_t k = 0; k < sites->moments; k++)
		html_column_signed(column, sites->times[k] - (k ? sites->times[k - 1] : 0));
}

int64_t html_sites_columns(struct html_sites *sites, uint32_t sites_max, struct html_column *columns,
			   uint32_t *left_out)
{
	uint32_t *list = malloc(((size_t)sites->count + 1) * sizeof(*list));
	uint32_t count = 0, shown;
	int64_t rows;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < sites->count; i++)
		if (sites->at[i].most)
			list[count++] = i;
	qsort_r(list, count, sizeof(*list), by_most, sites->at);
	shown = count < sites_max ? count : sites_max;
	put_moments(&columns[HTML_SITE_MOMENTS], sites);
	for (uint32_t i = 0; i < shown; i++) {
		const struct html_site *site = &sites->at[list[i]];

		html_column_put(&columns[HTML_SITE_FUNCTIONS], site->function);
		html_column_put(&columns[HTML_SITE_KINDS], site->kind);
		put_series(&columns[HTML_SITE_VALUES], sites, &list[i], 1);
	}
	rows = shown + put_others(columns, sites, list + shown, count - shown);
	*left_out = count - shown;
	free(list);
	return rows;
}

void html_sites_done(struct html_sites *sites)
{
	for (uint32_t k = 0; k < sites->moments; k++)
		free(sites->bytes[k]);
	free(sites->at);
	free(sites->of_stack);
	free(sites->innermost);
	free(sites->kinds);
	u64_map_done(&sites->numbers);
	memset(sites, 0, sizeof(*sites));
}
