/*
 * define.c - see define.h.
 */
#include "definitions/define.h"

#include <errno.h>
#include <string.h>

#include "python/python.h"
#include "ring/process.h"
#include "ring/wait.h"

void definitions_enter(struct definitions_guard *guard)
{
	guard->saved_errno = errno;
	thread_self.nesting++;
	python.PyErr_Fetch(&guard->type, &guard->value, &guard->traceback);
}

void definitions_leave(struct definitions_guard *guard)
{
	python.PyErr_Restore(guard->type, guard->value, guard->traceback);
	thread_self.nesting--;
	errno = guard->saved_errno;
}

struct string string_of(struct object *text)
{
	struct string string = {.bytes = ""};
	ssize_t length;
	char *bytes;

	if (!text)
		goto none;
	string.holder = python.PyUnicode_AsUTF8String(text);
	if (!string.holder) { /* lone surrogates, which the faster function rejects */
		python.PyErr_Clear();
		string.holder = python.PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
	}
	if (!string.holder || python.PyBytes_AsStringAndSize(string.holder, &bytes, &length) < 0)
		goto none;
	string.bytes = bytes;
	string.length = (size_t)length;
	return string;
none:
	python.PyErr_Clear();
	return string;
}

struct string string_of_new(struct object *text)
{
	struct string string = string_of(text);

	python.Py_DecRef(text);
	return string;
}

struct string string_c(const char *text)
{
	return (struct string){.bytes = text, .length = strlen(text)};
}

void strings_release(struct string strings[WIRE_DEFINITION_STRINGS])
{
	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++)
		python.Py_DecRef(strings[i].holder);
}

/* Includes the right to write: the sampler of a sampled process writes definitions, too. */
static int has_room(const void *size)
{
	if (!process->defines && !ring_definitions_take(process->header, RING_DEFINES_PROCESS))
		return 0;
	process->defines = ring_definitions_room(&process->layout, process->header) >= *(const uint64_t *)size;
	if (!process->defines)
		ring_definitions_give(process->header);
	return process->defines;
}

static bool wait_for_room(uint64_t size)
{
	if (has_room(&size) || wait_for(has_room, &size))
		return true;
	atomic_fetch_add(&process->header->lost_definitions, 1);
	return false;
}

static void cut_string(struct string *string, size_t most, uint16_t *flags)
{
	if (string->length <= most)
		return;
	string->length = most;
	while (string->length && ((unsigned char)string->bytes[string->length] & 0xc0) == 0x80)
		string->length--;
	*flags |= WIRE_CUT;
}

int define_locked(struct wire_definition *record, struct string strings[WIRE_DEFINITION_STRINGS])
{
	size_t most = record->type == WIRE_DEFINE_MARK ? WIRE_NAME_MAX_BYTES : WIRE_STRING_MAX_BYTES;
	const char *bytes[WIRE_DEFINITION_STRINGS];

	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++) {
		cut_string(&strings[i], most, &record->flags);
		record->length[i] = (uint32_t)strings[i].length;
		bytes[i] = strings[i].bytes;
	}
	record->size_bytes = wire_definition_bytes(record);
	if (!wait_for_room(record->size_bytes))
		return -EAGAIN;
	ring_define(&process->layout, process->base, record, bytes);
	process->defines = false;
	ring_definitions_give(process->header);
	return 0;
}

uint32_t define_next(struct wire_definition *record, struct string strings[WIRE_DEFINITION_STRINGS], uint32_t *last)
{
	if (*last >= WIRE_ARG_MAX)
		return 0;
	record->id = *last + 1;
	if (define_locked(record, strings))
		return 0;
	__atomic_store_n(last, record->id, __ATOMIC_RELAXED); /* definitions_mark() reads it without the lock */
	return record->id;
}

int definitions_write(struct wire_definition *record, const char *const strings[WIRE_DEFINITION_STRINGS])
{
	struct string own[WIRE_DEFINITION_STRINGS];

	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++)
		own[i] = string_c(strings[i]);
	return define_locked(record, own);
}

void define_named(enum wire_definition_type type, uint32_t id, struct string name)
{
	struct string strings[WIRE_DEFINITION_STRINGS] = {string_c(""), name, string_c(""), string_c("")};
	struct wire_definition record = {.type = (uint16_t)type, .id = id};

	process_lock();
	define_locked(&record, strings);
	process_unlock();
}
