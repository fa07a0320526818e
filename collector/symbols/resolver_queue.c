/*
 * resolver_queue.c - what is to be symbolized for one process. See resolver_queue.h.
 */
#include "symbols/resolver_queue.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/control.h"

#define QUEUE_MAX (1u << 18) /* entries */
#define MODULES_MAX 4096u

static bool is_new(struct resolver_queue *queue, uint64_t address);

/* False: the user's memory limit is reached. */
static bool charge_memory(struct resolver_queue *queue, uint64_t bytes)
{
	if (!user_charge_memory(queue->user, bytes))
		return false;
	queue->bytes += bytes;
	return true;
}

/* Rebuilds the hash table with `places` places, without the addresses above start and up to end. */
static bool rebuild_seen(struct resolver_queue *queue, size_t places, uint64_t start, uint64_t end)
{
	size_t old = queue->seen_places;
	bool may = places <= 2 * QUEUE_MAX && charge_memory(queue, (places - old) * sizeof(uint64_t));
	uint64_t *before = queue->seen, *fresh = may ? calloc(places, sizeof(*fresh)) : NULL;

	if (!fresh)
		return false;
	queue->seen = fresh;
	queue->seen_places = places;
	queue->seen_count = 0;
	for (size_t i = 0; i < old; i++) {
		if (before[i] && !(before[i] > start && before[i] <= end))
			is_new(queue, before[i]);
	}
	free(before);
	return true;
}

/* Adds an address to the hash table. False: it is known, or there is no room. */
static bool is_new(struct resolver_queue *queue, uint64_t address)
{
	size_t place;

	if (2 * queue->seen_count >= queue->seen_places &&
	    !rebuild_seen(queue, queue->seen_places ? queue->seen_places * 2 : 1024, 0, 0))
		return false;
	place = (size_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (queue->seen_places - 1);
	while (queue->seen[place] && queue->seen[place] != address)
		place = (place + 1) & (queue->seen_places - 1);
	if (queue->seen[place] == address)
		return false;
	queue->seen[place] = address;
	queue->seen_count++;
	return true;
}

static void queue_entry(struct resolver_queue *queue, const struct resolver_entry *entry)
{
	if (queue->queued == queue->capacity) {
		size_t capacity = queue->capacity ? queue->capacity * 2 : 256;
		bool may =
		    capacity <= QUEUE_MAX && charge_memory(queue, (capacity - queue->capacity) * sizeof(*queue->at));
		struct resolver_entry *grown = may ? realloc(queue->at, capacity * sizeof(*grown)) : NULL;

		if (!grown)
			return;
		queue->at = grown;
		queue->capacity = capacity;
	}
	queue->at[queue->queued++] = *entry;
}

/* Whether a module overlaps an earlier one: the addresses there have a new meaning. */
static bool overlaps_module(const struct resolver_queue *queue, const struct symbols_message *module)
{
	for (uint32_t i = 0; i < queue->module_count; i++) {
		const struct symbols_message *other = &queue->modules[i].message;

		if (module->start < other->end && other->start < module->end)
			return true;
	}
	return false;
}

static void note_module(struct resolver_queue *queue, uint32_t number, const struct wire_definition *record,
			const uint8_t *strings)
{
	struct resolver_module module = {.message = {.kind = SYMBOLS_MODULE,
						     .client = number,
						     .start = record->address,
						     .end = record->address + ((uint64_t)record->number << 12)}};
	struct resolver_module *grown;

	if (queue->module_count == MODULES_MAX || module.message.end < module.message.start ||
	    record->length[0] >= PATH_MAX || !charge_memory(queue, sizeof(module) + record->length[0] + 1))
		return;
	if (record->length[1] / 2 <= SYMBOLS_BUILD_ID_MAX_BYTES &&
	    control_read_digits((const char *)strings + record->length[0], record->length[1], module.message.build_id))
		module.message.build_id_bytes = record->length[1] / 2;
	module.path = strndup((const char *)strings, record->length[0]);
	grown = realloc(queue->modules, (queue->module_count + 1) * sizeof(*grown));
	if (grown)
		queue->modules = grown;
	if (!grown || !module.path) {
		free(module.path);
		return;
	}
	if (queue->seen && overlaps_module(queue, &module.message))
		rebuild_seen(queue, queue->seen_places, module.message.start, module.message.end);
	queue->modules[queue->module_count++] = module;
	queue_entry(queue, &(struct resolver_entry){.module = queue->module_count});
}

void resolver_queue_note(struct resolver_queue *queue, uint32_t number, const uint8_t *definitions, size_t bytes)
{
	struct wire_definition record;

	for (; bytes >= sizeof(record); definitions += record.size_bytes, bytes -= record.size_bytes) {
		memcpy(&record, definitions, sizeof(record));
		if (record.type == WIRE_DEFINE_MODULE)
			note_module(queue, number, &record, definitions + sizeof(record));
		else if (record.type == WIRE_DEFINE_NATIVE_FRAME && record.address && is_new(queue, record.address))
			queue_entry(queue, &(struct resolver_entry){
					       .address = {.address = record.address, .frame = record.id}});
	}
}

void resolver_queue_done(struct resolver_queue *queue)
{
	for (uint32_t i = 0; i < queue->module_count; i++)
		free(queue->modules[i].path);
	queue->user->memory_bytes -= queue->bytes;
	free(queue->modules);
	free(queue->at);
	free(queue->seen);
}
