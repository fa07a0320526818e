/*
 * definitions.c - gives ids to code objects and C functions, and writes their definitions.
 *
 * Runs inside hooks with the GIL held. That does not exclude other threads: there may be several GILs (one per
 * interpreter, from 3.13 on) or none (free-threaded builds). The process's lock therefore guards the shared state:
 * assigning an id and writing its definition. Code here never runs code of the program: it reads only attributes that
 * are plain C slots, never one that a class of the program can override, and creates no object that the garbage
 * collector tracks. thread_self.nesting keeps the little memory that it allocates out of the trace.
 */
#include "definitions/definitions.h"

#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/filter.h"
#include "definitions/define.h"
#include "definitions/names.h"
#include "definitions/thread_names.h"
#include "python/python.h"
#include "python/sampled_layout.h"
#include "python/superinstructions.h"
#include "ring/clock.h"
#include "ring/process.h"

bool definitions_lines;
bool definitions_subscripts;
_Atomic uint32_t definitions_codes_died;
_Atomic uint32_t definitions_codes;
_Atomic uint64_t definitions_code_bytes;
_Atomic uint64_t definitions_ns;
void (*definitions_meet)(const struct python_method *method, const char *owner);
enum thinned (*definitions_left_out)(uint32_t id);

#define CODE_COROUTINE_FLAGS (0x80 | 0x100 | 0x200) /* CO_ITERABLE_COROUTINE, too */

/* A string attribute of a code object. offset: of its field, or 0: look the attribute up by name. */
static struct string code_string(struct object *code, size_t offset, const char *name)
{
	struct object *value = offset ? python_field(code, offset) : python_attribute(code, name);
	struct string string = string_of(value);

	if (value && !offset)
		python.Py_DecRef(value);
	return string;
}

static int code_number(struct object *code, size_t offset, const char *name)
{
	return offset ? python_int(code, offset) : (int)python_take_long(python_attribute(code, name));
}

static int count_arguments(struct object *code)
{
	return code_number(code, python.code_arguments, "co_argcount");
}

/*
 * The value of an address that another thread has given an id since the caller's lookup. 0: none, or the value is of
 * the other kind (code object or C function). The start and the end of a call must have the same id.
 */
static uint64_t id_set_meanwhile(const void *address, uint64_t flags)
{
	uint64_t value = ids_find(&process->ids, address), c_function = (uint64_t)CODE_SLOW_C_FUNCTION << 32;

	return (value & c_function) == (flags & c_function) ? value : 0;
}

/* The table of lines of a code object, if readers get it. */
static struct string lines_of(const struct object *code)
{
	struct string lines = string_c("");
	ssize_t length;
	char *bytes;

	if (!definitions_lines)
		return lines;
	if (python.PyBytes_AsStringAndSize(python_field(code, sampling.code_lines), &bytes, &length) < 0) {
		python.PyErr_Clear();
		return lines;
	}
	lines.bytes = bytes;
	lines.length = (size_t)length;
	return lines;
}

/* Writes the table of lines of a code object. The process's lock is held. */
static void define_lines(struct string lines, uint32_t id)
{
	struct wire_definition record = {.type = WIRE_DEFINE_LINES, .id = id, .number = python.lines};
	struct string strings[WIRE_DEFINITION_STRINGS] = {{0}};

	for (int i = 0; i < WIRE_DEFINITION_STRINGS; i++) {
		strings[i].bytes = lines.bytes;
		strings[i].length = lines.length < WIRE_STRING_MAX_BYTES ? lines.length : WIRE_STRING_MAX_BYTES;
		lines.bytes += strings[i].length;
		lines.length -= strings[i].length;
	}
	record.flags = lines.length ? WIRE_CUT : 0;
	define_locked(&record, strings);
}

#define ALL_THINNED ((uint64_t)CODE_SLOW_THINNED << 32 | CODE_THINNED)

#define SPLIT ((uint64_t)CODE_SLOW_SPLIT << 32)

/* The steps of a generator or coroutine are its events: its C functions are not left out alone. */
bool definitions_may_thin(uint64_t value, enum thinned thinned)
{
	value &= ~SPLIT;
	return value <= CODE_PLAIN_MAX || (value >> 32 == CODE_SLOW_GENERATOR && thinned != THINNED_C_CALLS);
}

/* With what is left out of it now. */
static uint64_t thin_value(uint64_t value)
{
	static const uint64_t flags[] = {[THINNED_C_CALLS] = CODE_THINS_C_CALLS, [THINNED] = ALL_THINNED};
	uint64_t whole = value & ~(ALL_THINNED | CODE_THINS_C_CALLS);
	enum thinned thinned;

	if (!definitions_may_thin(whole, THINNED))
		return value;
	thinned = definitions_left_out(DEFINITION_ID((uint32_t)whole));
	if (!definitions_may_thin(whole, thinned))
		thinned = THINNED_NOT;
	filter_hides |= thinned == THINNED;
	return whole | flags[thinned];
}

/*
 * Gives an id, with these flags, to the object at an address. The id is written and stored under one lock: a process
 * that joins another collector in between (rejoin.c) keeps no stale id. Returns the stored value, or 0 if the
 * definition could not be written.
 */
static uint64_t define_function_id(struct wire_definition *record, struct string strings[WIRE_DEFINITION_STRINGS],
				   const void *method, uint64_t flags)
{
	uint64_t value;
	uint32_t id;

	process_lock();
	value = id_set_meanwhile(method, flags);
	id = value ? 0 : define_next(record, strings, &process->next_function);
	if (id) {
		value = flags | id;
		ids_insert(&process->ids, method, value);
	}
	process_unlock();
	return value;
}

/* The next id. The process's lock is held. */
static uint32_t next_code_id(struct wire_definition *record, struct string strings[WIRE_DEFINITION_STRINGS],
			     struct string lines)
{
	uint32_t id = define_next(record, strings, &process->next_code);

	if (id && lines.length)
		define_lines(lines, id);
	return id;
}

/* Likewise, to code. */
static uint64_t define_code_id(struct wire_definition *record, struct string strings[WIRE_DEFINITION_STRINGS],
			       const struct object *code, uint64_t flags)
{
	struct string lines = lines_of(code);
	uint64_t key = names_code_key(record, strings, &lines), value;
	uint32_t id;

	process_lock();
	value = id_set_meanwhile(code, flags);
	id = value ? 0 : names_code(key);
	if (!value && !id && (id = next_code_id(record, strings, lines)))
		names_store_code(key, id);
	if (id) {
		value = definitions_left_out ? thin_value(flags | id) : flags | id;
		ids_insert(&process->ids, code, value);
		atomic_fetch_add_explicit(&definitions_codes, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&definitions_code_bytes, record->address, memory_order_relaxed);
	}
	process_unlock();
	return value;
}

/* Stores an address as not recorded. It gets no id. */
static uint64_t mark_hidden(const void *address, uint64_t flags)
{
	ids_insert(&process->ids, address, flags | DEFINITION_HIDDEN);
	return flags | DEFINITION_HIDDEN;
}

static bool ends_with(const struct string *string, const char *end)
{
	size_t n = strlen(end);

	return string->length >= n && !memcmp(string->bytes + string->length - n, end, n);
}

static bool string_is(const struct string *string, const char *text)
{
	return string->length == strlen(text) && !memcmp(string->bytes, text, string->length);
}

/*
 * The functions of threading.py after which a thread may have a new name, see thread_names_learn(). In frozen programs
 * the file has no folder.
 */
static bool names_threads(struct object *code, const struct string strings[WIRE_DEFINITION_STRINGS])
{
	if (!ends_with(&strings[0], "/threading.py") && !string_is(&strings[0], "threading.py"))
		return false;
	return (string_is(&strings[1], "_bootstrap_inner") && count_arguments(code) == 1) ||
	       (string_is(&strings[1], "name") && count_arguments(code) == 2);
}

/* What Thread._bootstrap_inner() calls with the exception that run() raised, from 3.8 on. */
static bool is_excepthook(const struct string strings[WIRE_DEFINITION_STRINGS])
{
	return string_is(&strings[1], "invoke_excepthook") &&
	       (ends_with(&strings[0], "/threading.py") || string_is(&strings[0], "threading.py"));
}

/* A thread that ends by SystemExit ends as it should. The end of the call comes here, too. */
static void note_uncaught(void)
{
	static __thread const struct object *noted __attribute__((tls_model("initial-exec")));
	struct object *type = NULL, *value = NULL, *traceback = NULL;

	if (!python.PyErr_GetExcInfo || !python.system_exit)
		return;
	python.PyErr_GetExcInfo(&type, &value, &traceback);
	if (type && type != *python.system_exit && value != noted)
		process_note_uncaught();
	noted = value;
	python.Py_DecRef(type);
	python.Py_DecRef(value);
	python.Py_DecRef(traceback);
}

/* Matches the names of filter.h. strings[0] of a C function, which has no file, is its class. */
static bool matches_filter(const struct string strings[WIRE_DEFINITION_STRINGS], bool c_function)
{
	static char texts[4][2 * 1024]; /* the lock is held; longer names are cut */
	const char *names[4] = {texts[0], texts[1], texts[2], texts[3]};
	const struct string *qualified = strings[2].length ? &strings[2] : &strings[1];
	const struct string *module = &strings[3];
	int class = c_function ? (int)strings[0].length : 0;

	snprintf(texts[0], sizeof(texts[0]), "%.*s", c_function ? 1 : (int)strings[0].length,
		 c_function ? "~" : strings[0].bytes);
	snprintf(texts[1], sizeof(texts[1]), "%.*s", (int)strings[1].length, strings[1].bytes);
	snprintf(texts[2], sizeof(texts[2]), "%.*s%s%.*s", class, class ? strings[0].bytes : "", class ? "." : "",
		 (int)qualified->length, qualified->bytes);
	snprintf(texts[3], sizeof(texts[3]), "%.*s%s%.1023s", (int)module->length, module->length ? module->bytes : "",
		 module->length ? "." : "", texts[2]);
	return filter_function(names, c_function);
}

/*
 * The functions of evprof.span() and its like, and those of the package that find and load them, belong to their
 * callers, which would not call them without evprof.
 */
static bool is_own(const struct string *module)
{
	if (!string_is(module, "evprof.recording") && !string_is(module, "evprof") &&
	    !string_is(module, "evprof._paths"))
		return false;
	filter_hides = true;
	return true;
}

static bool is_recorded(const struct string strings[WIRE_DEFINITION_STRINGS], bool c_function)
{
	bool recorded;

	if (!filter_any)
		return true;
	process_lock();
	recorded = matches_filter(strings, c_function);
	process_unlock();
	return recorded;
}

static uint64_t generator_flags(int flags)
{
	uint64_t value = CODE_IS_GENERATOR, slow = 0;

	if (flags & CODE_COROUTINE_FLAGS && python_knows_frames())
		value |= CODE_IS_COROUTINE;
	if (!python.monitoring || value & CODE_IS_COROUTINE)
		slow = CODE_SLOW_GENERATOR;
	return slow << 32 | value;
}

/* strings: of the definition. */
static uint64_t define_code_as(struct object *code, struct string strings[WIRE_DEFINITION_STRINGS], bool entered)
{
	int flags = code_number(code, python.code_flags, "co_flags");
	int line = code_number(code, python.code_line, "co_firstlineno");
	bool generator = flags & WIRE_GENERATOR_CO_FLAGS;
	struct wire_definition record = {.type = WIRE_DEFINE_CODE,
					 .flags = (generator ? WIRE_GENERATOR : 0) | (entered ? WIRE_ENTERED : 0),
					 .number = line < 0 ? 0 : (uint32_t)line,
					 .address = python_code_size(code)};
	uint64_t value = names_threads(code, strings) ? (uint64_t)CODE_SLOW_SPECIAL << 32 : 0;

	if (is_excepthook(strings))
		value |= (uint64_t)CODE_SLOW_UNCAUGHT << 32;
	if (code == thread_self.program)
		value |= (uint64_t)CODE_SLOW_PROGRAM << 32;
	if (definitions_subscripts && python_has_subscripts(code))
		value |= (uint64_t)CODE_SLOW_SUBSCRIPTS << 32;
	if (!is_own(&strings[3]) && is_recorded(strings, false))
		value = define_code_id(&record, strings, code, value | (generator ? generator_flags(flags) : 0));
	else
		value = mark_hidden(code, value | (uint64_t)CODE_SLOW_HIDDEN << 32);
	return value;
}

/* globals: of the frame that runs the code; borrowed, may be NULL. */
static uint64_t define_code(struct object *code, struct object *globals, bool entered)
{
	struct string strings[WIRE_DEFINITION_STRINGS] = {
	    code_string(code, python.code_file, "co_filename"),
	    code_string(code, python.code_name, "co_name"),
	    python_has(PYTHON_OWN_FRAMES) ? code_string(code, python.code_qualified_name, "co_qualname") : string_c(""),
	    string_of_new(globals ? python_item(globals, "__name__") : NULL),
	};
	uint64_t value = define_code_as(code, strings, entered);

	strings_release(strings);
	return value;
}

uint32_t definitions_code_by_loads(struct object *code)
{
	const size_t fields[] = {python.code_file, python.code_name, python.code_qualified_name};
	struct string strings[WIRE_DEFINITION_STRINGS] = {string_c(""), string_c(""), string_c(""), string_c("")};

	if (filter_any)
		return 0;
	for (int i = 0; i < 3; i++)
		if (fields[i] &&
		    !sampled_layout_ascii(python_field(code, fields[i]), &strings[i].bytes, &strings[i].length))
			return 0;
	return (uint32_t)define_code_as(code, strings, false);
}

#define DEFINITION_MOST_NS 100000 /* more is a disturbance */

static uint64_t now_ns(void)
{
	return config.budget ? clock_ns(CLOCK_MONOTONIC) : 0;
}

static void charge_since(uint64_t begin_ns)
{
	uint64_t ns = now_ns() - begin_ns;

	ns = ns < DEFINITION_MOST_NS ? ns : DEFINITION_MOST_NS;
	atomic_fetch_add_explicit(&definitions_ns, ns, memory_order_relaxed);
}

/* running: the code's frame is the current one. Of frames below only the code is read. */
static uint32_t code_slow(struct object *code, struct object *globals, bool running)
{
	uint64_t value = ids_find(&process->ids, code);
	bool known = value && !(value >> 32 & CODE_SLOW_C_FUNCTION);
	struct definitions_guard guard;
	uint64_t begin_ns;

	/* Until 3.11 every resume of a generator comes here: return before the exception is saved. */
	if (known && !(running && value >> 32 & (CODE_SLOW_SPECIAL | CODE_SLOW_UNCAUGHT)))
		return (uint32_t)value;
	begin_ns = now_ns();
	definitions_enter(&guard);
	if (!known)
		value = define_code(code, globals, running && thread_self.unreported);
	if (running && value >> 32 & CODE_SLOW_SPECIAL)
		thread_names_learn(count_arguments(code) == 1);
	if (running && value >> 32 & CODE_SLOW_UNCAUGHT)
		note_uncaught();
	python.PyErr_Clear();
	definitions_leave(&guard);
	charge_since(begin_ns);
	return (uint32_t)value;
}

uint64_t definitions_reload(struct writer *writer, const struct object *code)
{
	writer->ids = ids_look(&process->ids);
	return ids_find(&process->ids, code);
}

uint32_t definitions_code_of_frame(struct object *code, struct object *globals)
{
	return code_slow(code, globals, false);
}

uint32_t definitions_code(struct object *code)
{
	return code_slow(code, python.PyEval_GetGlobals(), true);
}

static bool may_hide(void)
{
	return filter_hides && thread_self.writer->slot;
}

bool definitions_hides_code(struct object *code)
{
	return may_hide() && definitions_code(code) & (DEFINITION_HIDDEN | CODE_THINNED);
}

bool definitions_despecialize_subscripts(struct object *code, bool all)
{
	bool done;

	thread_self.nesting++;
	done = python_despecialize_subscripts(code, all);
	thread_self.nesting--;
	return done;
}

/* Takes a mark off code that may have died, or lost it, since the caller's lookup. */
static void unmark(const struct object *code, uint64_t mark)
{
	uint64_t value;

	process_lock();
	value = ids_find(&process->ids, code);
	if (value & mark)
		ids_insert(&process->ids, code, value & ~mark);
	process_unlock();
}

static uint64_t value_of(const struct object *code)
{
	return process->base ? ids_find(&process->ids, code) : 0;
}

bool definitions_unmark_subscripts(struct object *code)
{
	const uint64_t mark = (uint64_t)CODE_SLOW_SUBSCRIPTS << 32;
	bool done;

	if (!(value_of(code) & mark))
		return false;
	done = definitions_despecialize_subscripts(code, true);
	if (done)
		unmark(code, mark);
	return done;
}

static uint64_t split_value(uint64_t value)
{
	return value >> 32 & CODE_SLOW_C_FUNCTION ? value : value | SPLIT;
}

void definitions_mark_split(void)
{
	process_lock();
	if (process->base)
		ids_each(&process->ids, split_value);
	process_unlock();
}

void definitions_join(struct object *code)
{
	uint64_t value = value_of(code), begin_ns;

	if (value && !(value & SPLIT))
		return;
	begin_ns = now_ns();
	superinstructions_join(code);
	if (value)
		unmark(code, SPLIT);
	charge_since(begin_ns);
}

void definitions_thin(void)
{
	process_lock();
	ids_each(&process->ids, thin_value);
	process_unlock();
}

enum thinned definitions_thinned(const struct writer *writer, const struct object *code)
{
	uint64_t value;

	if (!writer_has_room(writer) || !ids_find_fast(&writer->ids, code, &value))
		value = value_of(code);
	return value & CODE_THINNED ? THINNED : value & CODE_THINS_C_CALLS ? THINNED_C_CALLS : THINNED_NOT;
}

void definitions_hide_code(const struct object *code)
{
	filter_hides = true;
	mark_hidden(code, (uint64_t)CODE_SLOW_HIDDEN << 32);
}

bool definitions_is_generator(struct object *code)
{
	if (python.code_flags)
		return python_int(code, python.code_flags) & WIRE_GENERATOR_CO_FLAGS;
	return thread_self.writer->slot && ids_find(&process->ids, code) & CODE_IS_GENERATOR;
}

void definitions_forget_code(const struct object *code)
{
	ids_remove(&process->ids, code);
	atomic_fetch_add_explicit(&definitions_codes_died, 1, memory_order_relaxed);
}

static const char *type_name(const void *type)
{
	return python_object_field(type, PYTHON_TYPE_NAME);
}

/* The method_descriptor of a bound C method in its class, found by the same PyMethodDef; or NULL. A new reference. */
static struct object *descriptor_of(const struct python_method *method, const void *self)
{
	struct object *name = self ? python.PyUnicode_InternFromString(method->name) : NULL, *found;

	if (!name)
		return NULL;
	found = python_type_lookup(python_type(self), name);
	python.Py_DecRef(name);
	if (!found || python_type(found) == python.method_descriptor_type)
		return found;
	python.Py_DecRef(found);
	return NULL;
}

static struct string module_of(struct object *callable)
{
	struct object *module = python_object_field(callable, PYTHON_C_FUNCTION_MODULE);

	return string_of(module);
}

static bool is_throw(const struct python_method *method, const char *class)
{
	return (!strcmp(method->name, "throw") || !strcmp(method->name, "close")) &&
	       (strstr(class, "generator") || strstr(class, "coroutine"));
}

static uint64_t define_function(const struct python_method *method, struct object *callable)
{
	struct object *descriptor;
	struct string strings[WIRE_DEFINITION_STRINGS] = {string_c(""), string_c(method->name), string_c(""),
							  string_c("")};
	struct wire_definition record = {.type = WIRE_DEFINE_C_FUNCTION, .address = (uintptr_t)method->function};
	uint64_t value = (uint64_t)CODE_SLOW_C_FUNCTION << 32;

	if (python_type(callable) == python.method_descriptor_type) {
		descriptor = callable;
		python.Py_IncRef(descriptor);
	} else {
		descriptor = descriptor_of(method, python_object_field(callable, PYTHON_C_FUNCTION_SELF));
		strings[3] = module_of(callable);
	}
	if (descriptor) {
		strings[0] = string_c(type_name(python_object_field(descriptor, PYTHON_DESCRIPTOR_CLASS)));
		record.flags |= WIRE_METHOD;
	}
	if (definitions_meet)
		definitions_meet(method, descriptor ? strings[0].bytes : strings[3].bytes);
	if (descriptor && is_throw(method, strings[0].bytes))
		value |= FUNCTION_THROWS;
	value = is_recorded(strings, true) ? define_function_id(&record, strings, method, value)
					   : mark_hidden(method, value);
	strings_release(strings);
	python.Py_DecRef(descriptor);
	return value;
}

uint32_t definitions_function(const struct python_method *method, struct object *callable)
{
	uint64_t value = ids_find(&process->ids, method);
	struct definitions_guard guard;
	uint64_t begin_ns;

	if (value)
		return (uint32_t)value;
	begin_ns = now_ns();
	definitions_enter(&guard);
	value = define_function(method, callable);
	definitions_leave(&guard);
	charge_since(begin_ns);
	return (uint32_t)value;
}

bool definitions_hides_function(const struct python_method *method, struct object *callable)
{
	return may_hide() && definitions_function(method, callable) & DEFINITION_HIDDEN;
}
