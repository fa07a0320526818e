/*
 * interval.c - see interval.h.
 */
#include "push/interval.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/grow.h"

const char *const push_types[PUSH_WEIGHTS][2] = {
    [PUSH_CALLS] = {"calls", "count"},
    [PUSH_WALL_NS] = {"wall", "nanoseconds"},
    [PUSH_CPU_NS] = {"cpu", "nanoseconds"},
    [PUSH_OFF_CPU_NS] = {"off_cpu", "nanoseconds"},
    [PUSH_ALLOCATIONS] = {"alloc_objects", "count"},
    [PUSH_ALLOCATED_BYTES] = {"alloc_space", "bytes"},
    [PUSH_LIVE_BLOCKS] = {"inuse_objects", "count"},
    [PUSH_LIVE_BYTES] = {"inuse_space", "bytes"},
};

void push_interval_id(const struct push_interval *interval, uint8_t last, uint8_t id[PUSH_ID_BYTES])
{
	memcpy(id, interval->id, PUSH_ID_BYTES);
	id[PUSH_ID_BYTES - 1] = last;
}

/* Takes the value. */
static void add(struct push_resource *resource, const char *key, char *value, int64_t number)
{
	struct push_attribute attribute = {.key = strdup(key), .value = value, .number = number};

	if (!attribute.key ||
	    grow_by_one(&resource->at, &resource->allocated, resource->count, sizeof(*resource->at))) {
		free(attribute.key);
		free(value);
		resource->error = -ENOMEM;
		return;
	}
	resource->at[resource->count++] = attribute;
}

void push_resource_text(struct push_resource *resource, const char *key, const char *value)
{
	char *copy = strdup(value);

	if (copy)
		add(resource, key, copy, 0);
	else
		resource->error = -ENOMEM;
}

void push_resource_number(struct push_resource *resource, const char *key, int64_t number)
{
	add(resource, key, NULL, number);
}

void push_resource_done(struct push_resource *resource)
{
	for (size_t i = 0; i < resource->count; i++) {
		free(resource->at[i].key);
		free(resource->at[i].value);
	}
	free(resource->at);
	*resource = (struct push_resource){0};
}
