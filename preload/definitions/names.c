/*
 * names.c - see names.h.
 */
#include "definitions/names.h"

#include "base/lock.h"
#include "definitions/define.h"
#include "evprof/definition_key.h"
#include "python/python.h"
#include "ring/process.h"

#define NAMES_PROBES 16		 /* places in which a key may be */
#define TYPE_IS_CLASS (1ul << 9) /* Py_TPFLAGS_HEAPTYPE: made by a class statement or by C at run time */

/* A hash of an address and a name (FNV-1a). Never 0. */
static uint64_t key_of(const void *address, const char *name)
{
	uint64_t key = (uintptr_t)address ^ UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		key = (key ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return key | 1;
}

static size_t name_place(uint64_t key, size_t probe)
{
	return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - NAMES_BITS)) + probe) & ((1u << NAMES_BITS) - 1);
}

/* The id of a key, or 0. Takes no lock: without a GIL, threads raise exceptions at the same time. */
static uint32_t find_name(struct names *names, uint64_t key)
{
	for (size_t i = 0; i < NAMES_PROBES; i++) {
		struct name *name = &names->at[name_place(key, i)];
		/* Acquire: pairs with the release in store_name(). */
		uint64_t stored = atomic_load_explicit(&name->key, memory_order_acquire);
		uint32_t id;

		if (!stored) /* it would stand here, unless another key is being replaced */
			break;
		if (stored != key)
			continue;
		id = atomic_load_explicit(&name->id, memory_order_acquire);
		/* If the key of the place has changed since, the id may belong to the other key. */
		if (atomic_load_explicit(&name->key, memory_order_relaxed) == key)
			return id;
	}
	return 0;
}

/* Stores the id of a key. If none of its places is free, it replaces the first one. */
static void store_name(struct names *names, uint64_t key, uint32_t id)
{
	size_t place, probe = 0;

	lock_take(&names->lock);
	while (probe < NAMES_PROBES && names->at[name_place(key, probe)].key)
		probe++;
	place = name_place(key, probe < NAMES_PROBES ? probe : 0);
	atomic_store_explicit(&names->at[place].key, 0, memory_order_relaxed);
	/* Release: a reader that sees the id sees that the old key is gone. */
	atomic_store_explicit(&names->at[place].id, id, memory_order_release);
	atomic_store_explicit(&names->at[place].key, key, memory_order_release);
	lock_give(&names->lock);
}

uint64_t names_code_key(const struct wire_definition *record, const struct string strings[WIRE_DEFINITION_STRINGS],
			const struct string *lines)
{
	uint64_t key = definition_key_begin(record);

	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++)
		key = definition_key_add(key, strings[i].bytes, strings[i].length);
	return definition_key_end(definition_key_add(key, lines->bytes, lines->length));
}

uint32_t names_code(uint64_t key)
{
	return find_name(&process->codes, key);
}

void names_store_code(uint64_t key, uint32_t id)
{
	store_name(&process->codes, key, id);
}

/* As define_function_id(), for definitions that are found by a hash of their name. */
static uint32_t define_name(struct wire_definition *record, struct string strings[WIRE_DEFINITION_STRINGS],
			    uint32_t *last, uint64_t key)
{
	uint32_t id;

	process_lock();
	id = define_next(record, strings, last);
	if (id)
		store_name(&process->names, key, id);
	process_unlock();
	return id;
}

/* Reads an attribute through the type of types, because a metaclass of the program may override it. */
static struct string type_attribute(struct object *type, const char *name)
{
	struct object *key = python.PyUnicode_InternFromString(name), *value = NULL, *found = NULL;

	if (key && python.type_type)
		found = python_type_lookup(python.type_type, key);
	if (found) {
		value = python.PyObject_CallMethod(found, "__get__", "O", type);
		python.Py_DecRef(found);
	}
	python.Py_DecRef(key);
	return string_of_new(value);
}

uint32_t definitions_type(const void *type)
{
	/* The name is part of the key of a class, which may die, so that another gets its address. */
	bool dies = (uintptr_t)python_object_field(type, PYTHON_TYPE_FLAGS) & TYPE_IS_CLASS;
	uint64_t key = key_of(type, dies ? python_object_field(type, PYTHON_TYPE_NAME) : "");
	uint32_t id = find_name(&process->names, key);
	struct definitions_guard guard;

	if (id)
		return id;
	definitions_enter(&guard);
	{
		struct object *object = (struct object *)type;
		struct string strings[WIRE_DEFINITION_STRINGS] = {string_c(""), type_attribute(object, "__name__"),
								  type_attribute(object, "__qualname__"),
								  type_attribute(object, "__module__")};
		struct wire_definition record = {.type = WIRE_DEFINE_TYPE};

		id = define_name(&record, strings, &process->next_type, key);
		strings_release(strings);
	}
	definitions_leave(&guard);
	return id;
}

/* The budget of names bounds the definitions that readers keep. Threads may exceed it by one name each. */
uint32_t definitions_mark(const char *name)
{
	uint64_t key = key_of(NULL, name);
	uint32_t id = find_name(&process->names, key);

	if (!id && __atomic_load_n(&process->next_mark, __ATOMIC_RELAXED) >= WIRE_NAMES_MAX - 1) {
		name = WIRE_NAMES_OTHER;
		key = key_of(NULL, name);
		id = find_name(&process->names, key);
	}
	if (!id) {
		struct wire_definition record = {.type = WIRE_DEFINE_MARK};
		struct string strings[WIRE_DEFINITION_STRINGS] = {string_c(""), string_c(name), string_c(""),
								  string_c("")};

		id = define_name(&record, strings, &process->next_mark, key);
	}
	return id;
}
