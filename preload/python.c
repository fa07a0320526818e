/*
 * python.c - finds the interpreter and knows the layouts of its versions.
 *
 * The layouts are those of the headers of each release (Include/cpython/code.h, frameobject.h, methodobject.h,
 * descrobject.h, Include/internal/pycore_frame.h), 64-bit, with the GIL, without Py_TRACE_REFS. python_verify() compares
 * them with what the functions of the interpreter say before a hook relies on them.
 */
#include "python.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "log.h"
#include "text.h"

struct python python;

/* 0: the version has no such field, or hooks do not read it there. */
struct layout {
	int version;
	size_t code_extra, code_bytes;
	size_t frame_code, frame_last;
	unsigned last_unit;
	size_t frame_inner, inner_code, inner_previous, locals;
	size_t state_profile, state_tracing, state_cframe;
};

/* clang-format off */
static const struct layout layouts[] = {
	/*       code         frame           inner frame                thread state
	 *       extra bytes  code last unit  at  code previous locals  profile tracing cframe */
	{ 0x0306,     0,  40,    32, 120,  1,    0,   0,       0,     376,      48,     44,      0 },
	{ 0x0307,   136,  40,    32, 104,  1,    0,   0,       0,     360,      56,     48,      0 },
	{ 0x0308,   144,  48,    32, 104,  1,    0,   0,       0,     360,      56,     48,      0 },
	{ 0x0309,   144,  48,    32, 104,  1,    0,   0,       0,     360,      56,     48,      0 },
	{ 0x030a,   144,  48,    32,  96,  2,    0,   0,       0,     352,      56,      0,     48 },
	{ 0x030b,   176,   0,     0,   0,  0,   24,  32,      56,      72,      64,      0,     56 },
	{ 0x030c,   184,   0,     0,   0,  0,    0,   0,       0,       0,      64,      0,      0 },
	{ 0x030d,   192,   0,     0,   0,  0,    0,   0,       0,       0,      80,      0,      0 },
	{ 0x030e,   200,   0,     0,   0,  0,    0,   0,       0,       0,      80,      0,      0 },
	{ 0x030f,   200,   0,     0,   0,  0,    0,   0,       0,       0,     104,      0,      0 },
};
/* clang-format on */

static void *find_symbol(void *handle, const char *name)
{
	return dlsym(handle ? handle : RTLD_DEFAULT, name);
}

static void *find_either(void *handle, const char *newer, const char *older)
{
	void *symbol = find_symbol(handle, newer);

	return symbol ? symbol : find_symbol(handle, older);
}

/* The first symbol that is missing, or NULL. */
static const char *resolve(void *handle)
{
#define PYTHON_RESOLVE(result, name, arguments)                                                                        \
	*(void **)&python.name = find_symbol(handle, #name);                                                           \
	if (!python.name)                                                                                              \
		return #name;
#define PYTHON_TRY(result, name, arguments) *(void **)&python.name = find_symbol(handle, #name);
	PYTHON_SYMBOLS(PYTHON_RESOLVE)
	PYTHON_OPTIONAL_SYMBOLS(PYTHON_TRY)
#undef PYTHON_RESOLVE
#undef PYTHON_TRY
	*(void **)&python.current_thread_state =
	    find_either(handle, "PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet");
	*(void **)&python.current_interpreter =
	    find_either(handle, "PyInterpreterState_Get", "_PyInterpreterState_Get");
	*(void **)&python.request_code_extra =
	    find_either(handle, "PyUnstable_Eval_RequestCodeExtraIndex", "_PyEval_RequestCodeExtraIndex");
	*(void **)&python.get_code_extra = find_either(handle, "PyUnstable_Code_GetExtra", "_PyCode_GetExtra");
	*(void **)&python.set_code_extra = find_either(handle, "PyUnstable_Code_SetExtra", "_PyCode_SetExtra");
	if (!python.current_thread_state)
		return "_PyThreadState_UncheckedGet";
	if (!python.request_code_extra || !python.get_code_extra || !python.set_code_extra)
		return "_PyEval_RequestCodeExtraIndex";
	python.code_type = find_symbol(handle, "PyCode_Type");
	python.c_function_type = find_symbol(handle, "PyCFunction_Type");
	python.c_method_type = find_symbol(handle, "PyCMethod_Type");
	python.method_descriptor_type = find_symbol(handle, "PyMethodDescr_Type");
	python.type_type = find_symbol(handle, "PyType_Type");
	python.int_type = find_symbol(handle, "PyLong_Type");
	python.generator_type = find_symbol(handle, "PyGen_Type");
	python.coroutine_type = find_symbol(handle, "PyCoro_Type");
	python.none = find_symbol(handle, "_Py_NoneStruct");
	return python.code_type && python.c_function_type && python.method_descriptor_type && python.none
		   ? NULL
		   : "PyCode_Type";
}

static void choose_layout(void)
{
	const struct layout *layout = NULL;

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].version == python.version)
			layout = &layouts[i];
	if (layout) {
		python.code_extra = layout->code_extra;
		python.code_bytes = layout->code_bytes;
		python.frame_code = layout->frame_code;
		python.frame_last = layout->frame_last;
		python.frame_inner = layout->frame_inner;
		python.inner_code = layout->inner_code;
		python.inner_previous = layout->inner_previous;
		python.locals = layout->locals;
		python.state_profile = layout->state_profile;
		python.state_tracing = layout->state_tracing;
		python.state_cframe = layout->state_cframe;
		python.last_unit = layout->last_unit;
	}
	python.type_name = 24;
	python.c_function_method = 16;
	python.c_function_self = 24;
	python.c_function_module = 32;
	python.descriptor_class = 16;
	python.descriptor_method = 40;
}

bool python_is_here(void *handle)
{
	return find_symbol(handle, "Py_Initialize") != NULL;
}

bool python_find(void *handle)
{
	const char *missing, *text;
	int major = 0, minor = 0;

	python.found = true;
	missing = resolve(handle);
	if (python.Py_GetVersion)
		sscanf(python.Py_GetVersion(), "%d.%d", &major, &minor);
	if (missing || major != 3 || minor < 6) {
		log_line(LOG_INFO, "Python %d.%d is not recorded (%s); evprof records CPython 3.6 and later", major,
			 minor, missing ? missing : "too old");
		return false;
	}
	text = python.Py_GetVersion();
	python.version = major << 8 | minor;
	python.free_threaded = strstr(text, "free-threading") != NULL;
	python.monitoring = python.version >= 0x030c;
	if (python.free_threaded) {
		log_line(LOG_WARNING, "free-threaded Python %d.%d is not recorded yet; use the build with the GIL",
			 major, minor);
		return false;
	}
	choose_layout();
	return true;
}

/* Reads memory that may not be there. False: it is not. */
static bool peek(const void *address, void *out, size_t size)
{
	struct iovec to = {.iov_base = out, .iov_len = size}, from = {.iov_base = (void *)address, .iov_len = size};

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size;
}

static bool extra_is_at(struct object *code, size_t offset, uint64_t magic)
{
	const char *extra;
	uint64_t value;

	return peek((const char *)code + offset, &extra, sizeof(extra)) &&
	       peek(extra + 8 * (1 + python.code_extra_index), &value, sizeof(value)) && value == magic;
}

/* Where co_extra is: as the table says, or found, or left to the function. */
static void verify_code_extra(struct object *code)
{
	const uint64_t magic = UINT64_C(0x5a5a0000a5a5);

	if (python.set_code_extra(code, python.code_extra_index, (void *)magic) < 0) {
		python.PyErr_Clear();
		python.code_extra = 0;
		return;
	}
	if (!python.code_extra || !extra_is_at(code, python.code_extra, magic)) {
		size_t found = 0;

		if (python.version >= 0x0307) /* 3.6 has one more pointer in between */
			for (size_t offset = 64; offset < 320 && !found; offset += 8)
				if (extra_is_at(code, offset, magic))
					found = offset;
		if (found != python.code_extra)
			log_line(LOG_INFO, "co_extra of Python %s is at %zu", python_version(), found);
		python.code_extra = found;
	}
	python.set_code_extra(code, python.code_extra_index, NULL);
}

/* sys.exc_info is a C function in every version. */
static bool c_functions_are_as_expected(void)
{
	struct object *function = python.PySys_GetObject("exc_info");
	struct python_method *method;
	char name[9] = "";

	if (!function || python_type(function) != python.c_function_type)
		return false;
	method = python_field(function, python.c_function_method);
	return peek(method, &method, sizeof(method)) && peek(method, name, sizeof(name)) &&
	       !memcmp(name, "exc_info", 9);
}

int python_verify(void)
{
	struct object *code;

	python.code_extra_index = python.request_code_extra(NULL);
	if (python.code_extra_index < 0) {
		log_line(LOG_ERROR, "other tools took all of Python's code-extra slots; calls are not recorded");
		return -EBUSY;
	}
	code = python.PyCode_NewEmpty("evprof", "evprof", 1);
	if (!code)
		return -ENOMEM;
	if (python_type(code) != python.code_type) {
		log_line(LOG_ERROR, "Python %s lays out its objects in a way unknown to evprof; nothing is recorded",
			 python_version());
		return -ENOTSUP;
	}
	verify_code_extra(code);
	python.Py_DecRef(code);
	if (!c_functions_are_as_expected()) {
		log_line(LOG_ERROR, "Python %s lays out C functions in a way unknown to evprof; nothing is recorded",
			 python_version());
		return -ENOTSUP;
	}
	return 0;
}

/* Alive at once; with more, the threads of an older one may be left out. */
#define INTERPRETERS 4096

/* pystate.h: without it, an interpreter of 3.12 and later has its own memory and its own GIL. */
#define FEATURE_MAIN_MEMORY (1ul << 5)

/*
 * The interpreters of 3.12 share the code objects of frozen modules, and what Python keeps at them, without a common lock
 * where they have GILs of their own: there a hook that Python puts into such code is a race with the others.
 */
static bool is_safe(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (python.version != 0x030c || !python._PyInterpreterState_HasFeature ||
	    python._PyInterpreterState_HasFeature(python.current_interpreter(), FEATURE_MAIN_MEMORY))
		return true;
	if (!atomic_flag_test_and_set(&said))
		log_line(LOG_WARNING, "interpreters with a GIL of their own are not recorded on Python 3.12; from 3.13 "
				      "on they are");
	return false;
}

/* Slots are counted in each interpreter. The one that code objects have ids in must be nobody else's. */
static bool has_slot(void)
{
	ssize_t slot;

	do
		slot = python.request_code_extra(NULL);
	while (slot >= 0 && slot < python.code_extra_index);
	if (slot == python.code_extra_index)
		return true;
	log_line(LOG_WARNING, "another tool has evprof's slot at the code objects of a sub-interpreter; its calls are "
			      "not recorded");
	return false;
}

bool python_enter_interpreter(void)
{
	/* By id, which is never used again: 1 + id, and whether it is ready in the lowest bit. */
	static _Atomic uint64_t interpreters[INTERPRETERS];
	void *interpreter = python.current_interpreter ? python.current_interpreter() : NULL;
	uint64_t id, known;
	bool ready;

	/* python_verify() has asked for the slot of the main one. */
	if (!interpreter || !python.PyInterpreterState_Main || interpreter == python.PyInterpreterState_Main())
		return true;
	if (!python.PyInterpreterState_GetID)
		return false;
	id = (uint64_t)python.PyInterpreterState_GetID(interpreter);
	known = atomic_load(&interpreters[id % INTERPRETERS]);
	if (known >> 1 == id + 1)
		return known & 1;
	ready = is_safe() && has_slot();
	python.parallel |= ready && python.version > 0x030c;
	atomic_store(&interpreters[id % INTERPRETERS], (id + 1) << 1 | ready);
	return ready;
}

int python_call_at_start(python_audit_hook audit, int (*start)(void *))
{
	if (python.PySys_AddAuditHook)
		return python.PySys_AddAuditHook(audit, NULL);
	/* 3.7 clears its runtime, pending calls included, when it is first initialized. */
	if (python.version == 0x0307 && python._PyRuntime_Initialize)
		python._PyRuntime_Initialize();
	return python.Py_AddPendingCall(start, NULL);
}

const char *python_version(void)
{
	static char version[32];

	if (!version[0] && python.found && python.Py_GetVersion)
		sscanf(python.Py_GetVersion(), "%31s", version);
	return version;
}

/* The argument that names what runs: a script, a module after -m, or NULL. */
static const char *find_program(const char *arguments, long size)
{
	for (const char *p = arguments + strlen(arguments) + 1; p < arguments + size; p += strlen(p) + 1) {
		if (p[0] != '-')
			return p;
		if (!strcmp(p, "-m"))
			return p + 3 < arguments + size ? p + 3 : NULL;
		if (!strncmp(p, "-m", 2) && p[2])
			return p + 2;
		if (p[1] == 'c' || !p[1])
			return NULL;
		if (!strcmp(p, "-W") || !strcmp(p, "-X"))
			p += 3; /* its value is the next argument */
	}
	return NULL;
}

void program_name(char *out, size_t size, char *scratch, size_t scratch_size)
{
	long n = text_read_file("/proc/self/cmdline", scratch, scratch_size);
	const char *program = n > 0 ? scratch : "python", *slash;
	size_t used = 0, length;

	slash = strrchr(program, '/');
	program = slash ? slash + 1 : program;
	if (n > 0 && !strncmp(program, "python", 6)) {
		const char *script = find_program(scratch, n);

		if (script) {
			slash = strrchr(script, '/');
			program = slash ? slash + 1 : script;
		}
	}
	length = strlen(program);
	if (length > 3 && !strcmp(program + length - 3, ".py"))
		length -= 3;
	for (size_t i = 0; i < length && used < size - 1 && used < 64; i++) {
		char c = program[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
			     c == '-' || (c == '.' && i > 0);

		out[used++] = plain ? c : '_';
	}
	if (!used)
		out[used++] = '_';
	out[used] = 0;
}
