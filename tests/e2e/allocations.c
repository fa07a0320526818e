/* allocations.c - see allocations.h. */
#include "allocations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void needs_own_malloc(void)
{
	if (built_with_asan())
		cr_skip_test("the sanitizer's malloc() is the process's");
}

static size_t count_size(const struct event *events, size_t count, unsigned long long size, const char *domain)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		found += events[i].size == size && (!domain || !strcmp(events[i].domain, domain));
	return found;
}

/* The dump of an outcome's trace; that of the outcome before is kept, as tests ask for many sizes. */
static const struct event *events_of(const struct outcome *outcome, size_t *count)
{
	static const struct outcome *dumped;
	static const struct event *events;
	static size_t events_count;

	if (dumped != outcome)
		events = trace_dump(outcome->trace, &events_count);
	dumped = outcome;
	*count = events_count;
	return events;
}

size_t events_of_size(const struct outcome *outcome, unsigned long long size, const char *domain)
{
	size_t count;
	const struct event *events = events_of(outcome, &count);

	return count_size(events, count, size, domain);
}

unsigned expect_made(const struct outcome *outcome)
{
	size_t count;
	const struct event *events = events_of(outcome, &count);
	unsigned lines = 0;

	for (const char *at = outcome->out; at; at = strchr(at, '\n')) {
		unsigned long long size;
		size_t times, found;

		at += *at == '\n';
		if (sscanf(at, "made %llu %zu", &size, &times) != 2)
			continue;
		found = count_size(events, count, size, "malloc");
		expect(outcome, found == times, "%zu blocks of %llu bytes, the trace has %zu", times, size, found);
		lines++;
	}
	return lines;
}

json_t *memory_process(const struct outcome *outcome, const char *by)
{
	struct outcome *result = tool("memory", "--json", "--by", by, outcome->trace);
	json_t *root = json_loads(result->out, 0, NULL), *processes = json_object_get(root, "processes"), *process;

	expect(result, result->status == 0 && json_array_size(processes) == 1, "it is JSON of one process");
	process = json_incref(json_array_get(processes, 0));
	json_decref(root);
	return process;
}

long long memory_site(const json_t *process, const char *function, const char *column)
{
	const json_t *site;
	size_t i;

	json_array_foreach(json_object_get(process, "sites"), i, site)
	{
		const char *name = json_string_value(json_object_get(site, "function"));

		if (name && strcmp(name, function) == 0)
			return json_integer_value(json_object_get(site, column));
	}
	return 0;
}
