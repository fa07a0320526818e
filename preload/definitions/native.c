/*
 * native.c - assigns ids to native stacks and writes the definitions of their frames and modules.
 *
 * A stack is the id of its innermost frame; frames form a tree (wire.h). Finding a frame takes loads alone. Defining a
 * new one takes the process's lock, as for all definitions.
 */
#include "definitions/native.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log_line.h"
#include "base/seccomp.h"
#include "base/lock.h"
#include "definitions/define.h"
#include "definitions/modules.h"
#include "definitions/native_walk.h"
#include "ring/process.h"

#define PROBES 64
#define DEPTHS 16
#define CALLER_CUT UINT32_MAX /* in place of a caller's id: there is a caller, which is unknown */

#define NATIVE_BITS 19
#define NATIVE_PLACES ((size_t)1 << NATIVE_BITS)
#define NATIVE_FULL                                                                                                    \
	(NATIVE_PLACES / 4 * 3) /* different frames of a process; stacks with further ones are not recorded */
#define NATIVE_MODULES 1024

/* A defined frame: a return address and the frame of its caller. It does not change until all frames are removed. */
struct native_frame {
	_Atomic uint64_t address; /* 0: free */
	_Atomic uint64_t link;	  /* the caller's id << 32 | its own id */
};

struct native_module {
	uintptr_t start, end;
	uint64_t key; /* of path and build id */
};

/* Definitions written for this process image. */
struct native_table {
	uint32_t count;	      /* of frames in the table */
	uint32_t last_frame;  /* the last ids assigned */
	uint32_t last_module; /* ... */
	uint32_t module_count;
	_Atomic uint32_t full;		/* 1: reported */
	_Atomic uint32_t ids_forgotten; /* process->ids_forgotten, of which the table knows */

	struct native_module modules[NATIVE_MODULES];
	struct native_frame frames[NATIVE_PLACES];
	struct native_walks *walks[RING_SLOTS]; /* of each thread, by its slot; NULL: it had none yet */
};

static struct native_table *table; /* cleared in the child of a fork; NULL unless native stacks are recorded */
static char program_path[PATH_MAX];
static _Atomic unsigned long loads, checked_loads; /* of libraries */
static unsigned long long unloaded;

void native_stacks_begin(void)
{
	const char *missing;
	ssize_t length;

	config.native_stacks &= (config.events & EVENT_MEM) != 0;
	if (!config.native_stacks)
		return;
	table = wiped_memory_new(sizeof(*table));
	missing = table ? unwind_begin() : "memory";
	if (missing) {
		log_line(LOG_ERROR,
			 "%s=1 needs %s, which cannot be loaded: install libunwind (Debian, Ubuntu: libunwind8); the "
			 "recording has no native stacks",
			 ENV_NATIVE, missing);
		config.native_stacks = false;
		return;
	}
	length = readlink("/proc/self/exe", program_path, sizeof(program_path) - 1);
	program_path[length > 0 ? length : 0] = 0;
	unloaded = modules_unloaded();
}

void native_stacks_library_loaded(void)
{
	atomic_fetch_add_explicit(&loads, 1, memory_order_relaxed);
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static uint64_t add_to_key(uint64_t key, const void *bytes, size_t count)
{
	for (const uint8_t *at = bytes; count--; at++)
		key = (key ^ *at) * UINT64_C(0x100000001b3);
	return key;
}

static bool is_defined(const struct module *module, uint64_t key)
{
	for (uint32_t i = 0; i < table->module_count; i++)
		if (table->modules[i].start == module->start && table->modules[i].end == module->end &&
		    table->modules[i].key == key)
			return true;
	return false;
}

/* Makes a module's path absolute: the loader has some as they were requested, relative to the working directory. */
static const char *absolute(const char *path, char *room, size_t size)
{
	size_t length;

	if (!*path)
		return program_path;
	if (*path == '/' || seccomp_active() || !strchr(path, '/') || !getcwd(room, size))
		return path;
	length = strlen(room);
	if (length + strlen(path) + 2 > size)
		return path;
	room[length] = '/';
	strcpy(room + length + 1, path);
	return room;
}

static bool write_module(const struct module *module)
{
	char digits[2 * 64 + 1] = "", room[PATH_MAX];
	size_t id_bytes = module->build_id_bytes < 64 ? module->build_id_bytes : 64;
	const char *strings[WIRE_DEFINITION_STRINGS] = {absolute(module->path, room, sizeof(room)), digits, "", ""};
	struct wire_definition record = {.type = WIRE_DEFINE_MODULE,
					 .id = table->last_module + 1,
					 .number = (uint32_t)((module->end - module->start + 4095) >> 12),
					 .address = module->start};

	for (size_t i = 0; i < id_bytes; i++)
		snprintf(digits + 2 * i, 3, "%02x", module->build_id[i]);
	if (definitions_write(&record, strings) < 0)
		return false;
	table->last_module++;
	return true;
}

/* Defines a module. Lock held. False: it could not be written. */
static bool define_module(const struct module *module)
{
	uint64_t key = add_to_key(UINT64_C(0xcbf29ce484222325), module->path, strlen(module->path));

	key = add_to_key(key, module->build_id, module->build_id_bytes);
	if (is_defined(module, key))
		return true;
	if (!write_module(module))
		return false;
	/* A module beyond the table is defined again with each of its frames. */
	if (table->module_count < NATIVE_MODULES)
		table->modules[table->module_count++] =
		    (struct native_module){.start = module->start, .end = module->end, .key = key};
	return true;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static struct native_frame *frame_place(uint64_t address, uint32_t caller, size_t probe)
{
	uint64_t hash = (address ^ (uint64_t)caller << 40) * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
	return &table->frames[((hash >> (64 - NATIVE_BITS)) + probe) & (NATIVE_PLACES - 1)];
}

/* The id of a frame, or 0. */
static uint32_t find_frame_id(uint64_t address, uint32_t caller)
{
	for (size_t i = 0; i < PROBES; i++) {
		const struct native_frame *frame = frame_place(address, caller, i);
		/* Acquire: pairs with the release in store_frame(). */
		uint64_t found = atomic_load_explicit(&frame->address, memory_order_acquire), link;

		if (!found)
			return 0;
		link = atomic_load_explicit(&frame->link, memory_order_relaxed);
		if (found == address && link >> 32 == caller)
			return (uint32_t)link;
	}
	return 0;
}

/* Stores a frame. Lock held. False: none of its places is free. */
static bool store_frame(uint64_t address, uint32_t caller, uint32_t id)
{
	for (size_t i = 0; i < PROBES; i++) {
		struct native_frame *frame = frame_place(address, caller, i);

		if (atomic_load_explicit(&frame->address, memory_order_relaxed))
			continue;
		atomic_store_explicit(&frame->link, (uint64_t)caller << 32 | id, memory_order_relaxed);
		atomic_store_explicit(&frame->address, address, memory_order_release);
		table->count++;
		return true;
	}
	return false;
}

/* Defines a frame; module NULL: code made at run time, which is in none. Lock held. Returns the id, or 0. */
static uint32_t define_frame(uint64_t address, uint32_t caller, const struct module *module)
{
	const char *const none[WIRE_DEFINITION_STRINGS] = {"", "", "", ""};
	struct wire_definition record = {.type = WIRE_DEFINE_NATIVE_FRAME,
					 .flags = caller == CALLER_CUT ? WIRE_CUT : 0,
					 .id = table->last_frame + 1,
					 .number = caller == CALLER_CUT ? 0 : caller,
					 .address = address};

	if (record.id > WIRE_ARG_MAX || (module && !define_module(module)) || definitions_write(&record, none) < 0)
		return 0;
	table->last_frame = record.id;
	/* If no place is free, this event still has its stack, and the next event defines the frame again. */
	store_frame(address, caller, record.id);
	return record.id;
}

static void warn_full(void)
{
	if (!atomic_exchange(&table->full, 1))
		log_line(LOG_WARNING,
			 "this process has more than %zu native frames; allocations with others have no native stack",
			 NATIVE_FULL);
}

static uint32_t frame_id(uint64_t address, uint32_t caller)
{
	uint32_t id = find_frame_id(address, caller);
	struct module module;
	bool found;

	if (__builtin_expect(id != 0, 1))
		return id;
	if (table->count >= NATIVE_FULL) {
		warn_full();
		return 0;
	}
	/* Before the lock: whoever has the loader's may wait for it. The frame runs, so its module stays loaded. */
	found = module_find((uintptr_t)address - 1, &module);
	process_lock();
	id = find_frame_id(address, caller); /* another thread may have defined it meanwhile */
	if (!id)
		id = define_frame(address, caller, found ? &module : NULL);
	process_unlock();
	return id;
}

static void forget(void)
{
	for (size_t i = 0; i < NATIVE_PLACES && table->count; i++)
		atomic_store_explicit(&table->frames[i].address, 0, memory_order_release);
	table->count = 0;
	table->module_count = 0;
}

/*
 * Libraries were loaded since the last check, or all ids were forgotten. If libraries were unloaded before, an address
 * may now belong to other code. Ids are never reused, so recorded stacks stay correct.
 */
static __attribute__((noinline, cold)) void check_loads(unsigned long now)
{
	unsigned long long seen = modules_unloaded();

	process_lock();
	if (seen != unloaded) {
		unloaded = seen;
		unwind_forget();
		forget();
	}
	if (table->ids_forgotten != process->ids_forgotten)
		forget();
	table->ids_forgotten = process->ids_forgotten;
	atomic_store_explicit(&checked_loads, now, memory_order_relaxed);
	process_unlock();
}

/* The ids of the frames from at[known] on. Returns that of the innermost; 0: none, or it could not be defined. */
static uint32_t identify(struct native_walk *walk, uint32_t known)
{
	uint32_t id = known ? walk->at[known - 1].id : walk->cut ? CALLER_CUT : 0;

	for (uint32_t i = known; i < walk->count; i++) {
		struct native_walk_frame *frame = &walk->at[i];

		if (!frame->hidden)
			id = frame_id(frame->place.address, id);
		if (!frame->hidden && !id) {
			walk->reusable = false;
			return 0;
		}
		frame->id = id;
	}
	return id == CALLER_CUT ? 0 : id;
}

/* The earlier walks of this thread from about this depth. NULL: no memory. */
static struct native_walks *walks_from_here(void)
{
	struct native_walks **walks = &table->walks[thread_self.writer->slot - process->slots];
	uintptr_t depth = (uintptr_t)__builtin_frame_address(0) >> 4;

	if (unlikely(!*walks)) {
		thread_self.nesting++; /* evprof's own mmap() is no event */
		*walks = wiped_memory_new(DEPTHS * sizeof(**walks));
		thread_self.nesting--;
	}
	return *walks ? *walks + depth % DEPTHS : NULL;
}

static uint32_t walk_and_identify(unsigned long now)
{
	struct native_walks *walks = walks_from_here();
	struct native_walk *walk;
	uint32_t ids_forgotten = atomic_load(&process->ids_forgotten), known;

	if (unlikely(!walks))
		return 0;
	if (unlikely(now != atomic_load_explicit(&checked_loads, memory_order_relaxed)) ||
	    unlikely(atomic_load(&table->ids_forgotten) != ids_forgotten))
		check_loads(now);
	if (unlikely(walks->loads != now || walks->ids_forgotten != ids_forgotten)) {
		for (unsigned i = 0; i < NATIVE_WALK_WAYS; i++)
			walks->ways[i].reusable = false;
		walks->loads = now;
		walks->ids_forgotten = ids_forgotten;
	}
	walk = native_walk(walks, &known);
	return identify(walk, known);
}

uint32_t native_stack(void)
{
	int saved_errno = errno;
	uint32_t id = walk_and_identify(atomic_load_explicit(&loads, memory_order_relaxed));

	errno = saved_errno;
	return id;
}
