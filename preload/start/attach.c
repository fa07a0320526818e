/*
 * attach.c - the way in for `evprof attach` and `evprof detach` (tools/attach/), into a Python that runs already.
 *
 *   the tool has Python's main thread run a script -> _imp.create_dynamic() loads this library and calls
 *   PyInit_evprof_attach() -> pending call -> bootstrap_attach() or bootstrap_detach() -> the answer's file
 *
 * The script's globals have the request: `verb`, `settings`, and `answer`, the path of a file that exists, and
 * `page`, the memory of the script's text. The request is
 * followed once the script has ended, so that it is not in the stack that is recorded. Until 3.13 a library that is
 * loaded already is called without a script: evprof_attach_follow(). Both ways the request is memory of its own, the
 * data of the pending call: several may be asked before the first one is followed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "definitions/definitions.h"
#include "python/python.h"
#include "start/bootstrap.h"

#define PUBLIC __attribute__((visibility("default")))

#define ATTACH_PAGE_BYTES (32 * 1024) /* INJECT_BYTES of tools/attach/inject.h */

/* The code of the script and of the one that runs it, where they may still be running; compared, never used. */
static const struct object *script_codes[2];

static void note_script(void)
{
	struct object *frame = python.PyEval_GetFrame(), *back, *code;

	script_codes[0] = script_codes[1] = NULL;
	if (!frame || !python.PyFrame_GetCode || !python.PyFrame_GetBack)
		return;
	code = python.PyFrame_GetCode(frame);
	script_codes[0] = code;
	python.Py_DecRef(code);
	back = python.PyFrame_GetBack(frame);
	if (!back)
		return;
	code = python.PyFrame_GetCode(back);
	script_codes[1] = code;
	python.Py_DecRef(code);
	python.Py_DecRef(back);
}

/* From 3.14 on a pending call may run before the script has ended. Only code that runs still is what it was. */
static void hide_script(void)
{
	struct object *frame = python.PyEval_GetFrame();

	if (!frame || !python.PyFrame_GetCode || !python.PyFrame_GetBack)
		return;
	python.Py_IncRef(frame);
	for (int i = 0; frame && i < 2; i++) {
		struct object *code = python.PyFrame_GetCode(frame), *back = python.PyFrame_GetBack(frame);

		if (code == script_codes[0] || code == script_codes[1])
			definitions_hide_code(code);
		python.Py_DecRef(code);
		python.Py_DecRef(frame);
		frame = back;
	}
	python.Py_DecRef(frame);
}

static void write_answer(int fd, const char *line, const char *end)
{
	char text[512];
	int length = snprintf(text, sizeof(text), "%s%s", line, end);

	if (pwrite(fd, text, (size_t)length, 0) < 0)
		errno = 0; /* the tool reports that no answer came */
}

/* A tool that no longer waits has removed the answer's file: nobody would end a recording that began now. */
static void follow(const char *verb, const char *answer, const char *settings)
{
	int fd = open(answer, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	bool attaches = !strcmp(verb, "attach");
	struct stat status;
	const char *error;

	if (attaches && fd < 0)
		return;
	write_answer(fd, " ", ""); /* it has begun: the tool waits for the line, unless it has given up before */
	if (attaches && (fstat(fd, &status) < 0 || !status.st_nlink)) {
		close(fd);
		return;
	}
	error = attaches ? bootstrap_attach(settings) : bootstrap_detach();
	if (!error && attaches)
		hide_script();
	write_answer(fd, error ? error : "done", "\n");
	if (fd >= 0)
		close(fd);
}

/* NULL: it does not end within the page. */
static const char *take_part(const char **at, const char *end)
{
	const char *part = *at;
	size_t length = strnlen(part, (size_t)(end - part));

	if (part + length >= end)
		return NULL;
	*at = part + length + 1;
	return part;
}

static void release(void *page)
{
	if (page)
		munmap(page, ATTACH_PAGE_BYTES);
}

/*
 * A pending call. page: the verb, the answer's file, the settings, and the address of the script's text ("": there is
 * none), each with its NUL; ATTACH_PAGE_BYTES, which are released.
 */
PUBLIC int evprof_attach_follow(void *page);

PUBLIC int evprof_attach_follow(void *page)
{
	const char *at = page, *end = at + ATTACH_PAGE_BYTES;
	const char *verb = take_part(&at, end), *answer = verb ? take_part(&at, end) : NULL;
	const char *settings = answer ? take_part(&at, end) : NULL, *script = settings ? take_part(&at, end) : NULL;
	int saved_errno = errno;

	if (script) {
		release((void *)strtoul(script, NULL, 16)); /* NOLINT(performance-no-int-to-ptr): it has ended */
		if (python.found || python_find())
			follow(verb, answer, settings);
	}
	release(page);
	errno = saved_errno;
	return 0;
}

/* Adds the text of a global, with its NUL. */
static bool add_part(char **at, const char *end, struct object *globals, const char *name)
{
	struct object *value = python_item(globals, name);
	/* As the tool has written it: a path need not be UTF-8. */
	struct object *bytes = value ? python.PyUnicode_AsEncodedString(value, "utf-8", "surrogateescape") : NULL;
	ssize_t length;
	char *text;
	bool fits = bytes && python.PyBytes_AsStringAndSize(bytes, &text, &length) == 0 && length < end - *at;

	if (fits) {
		memcpy(*at, text, (size_t)length + 1);
		*at += length + 1;
	}
	python.Py_DecRef(bytes);
	python.Py_DecRef(value);
	python.PyErr_Clear();
	return fits;
}

/* Queues evprof_attach_follow() with a page of its own. NULL, or what is wrong. */
static const char *queue_request(void)
{
	struct object *globals = python.PyEval_GetGlobals();
	char *page = mmap(NULL, ATTACH_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = page, *end = page + ATTACH_PAGE_BYTES;
	const char *wrong = NULL;

	if (page == MAP_FAILED)
		return "evprof: out of memory";
	if (!globals || !add_part(&at, end, globals, "verb") || !add_part(&at, end, globals, "answer") ||
	    !add_part(&at, end, globals, "settings") || !add_part(&at, end, globals, "page"))
		wrong = "evprof: not called by evprof attach";
	else if (python.Py_AddPendingCall(evprof_attach_follow, page))
		wrong = "evprof: Python's queue of pending calls is full";
	if (wrong)
		release(page);
	return wrong;
}

/* Raises ImportError, as there is no module; the script's text says that all is well. */
static void raise_import_error(const char *text)
{
	struct object *builtins = python.PyEval_GetBuiltins ? python.PyEval_GetBuiltins() : NULL;
	struct object *type = builtins ? python_item(builtins, "ImportError") : NULL;

	if (type)
		python.PyErr_Restore(type, python.PyUnicode_FromString(text), NULL);
}

PUBLIC struct object *PyInit_evprof_attach(void);

PUBLIC struct object *PyInit_evprof_attach(void)
{
	const char *wrong;

	if (!python.found && !python_find())
		return NULL;
	note_script();
	wrong = queue_request();
	raise_import_error(wrong ? wrong : "evprof: asked");
	return NULL;
}
