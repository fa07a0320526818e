/*
 * attach.c - the way in for `evprof attach` and `evprof detach` (tools/attach/), into a Python that runs already.
 *
 *   the tool has Python's main thread run a script -> _imp.create_dynamic() loads this library and calls
 *   PyInit_evprof_attach() -> pending call -> bootstrap_attach() or bootstrap_detach() -> the answer's file
 *
 * The script's globals have the request: `verb`, `settings`, and `answer`, the path of a file that exists, and
 * `page`, the memory of the script's text. The request is
 * followed once the script has ended, so that it is not in the stack that is recorded. Until 3.13 a library that is
 * loaded already is called without a script: evprof_attach_follow().
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "definitions/definitions.h"
#include "python/python.h"
#include "start/bootstrap.h"

#define PUBLIC __attribute__((visibility("default")))

#define ATTACH_PAGE_BYTES (32 * 1024) /* INJECT_BYTES of tools/attach/inject.h */
#define VERB_BYTES 16
#define SETTINGS_BYTES (16 * 1024)

/* One request at a time: the tool waits for its answer. GIL held. */
static struct request {
	char verb[VERB_BYTES];
	char answer[PATH_MAX];
	char settings[SETTINGS_BYTES];
	uintptr_t page; /* of the script, which has ended; 0: it was a file */
} request;

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

static void write_answer(const char *line)
{
	int fd = open(request.answer, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[512];
	int length = snprintf(text, sizeof(text), "%s\n", line);

	if (fd < 0)
		return;
	if (write(fd, text, (size_t)length) < 0)
		errno = 0; /* the tool reports that no answer came */
	close(fd);
}

static int follow(void *data)
{
	const char *error;
	int saved_errno = errno;

	(void)data;
	if (request.page)
		munmap((void *)request.page, ATTACH_PAGE_BYTES); /* NOLINT(performance-no-int-to-ptr) */
	error = !strcmp(request.verb, "attach") ? bootstrap_attach(request.settings) : bootstrap_detach();
	if (!error && !strcmp(request.verb, "attach"))
		hide_script();
	write_answer(error ? error : "done");
	errno = saved_errno;
	return 0;
}

static bool take_text(struct object *globals, const char *name, char *out, size_t size)
{
	struct object *value = python_item(globals, name);
	/* As the tool has written it: a path need not be UTF-8. */
	struct object *bytes = value ? python.PyUnicode_AsEncodedString(value, "utf-8", "surrogateescape") : NULL;
	ssize_t length;
	char *text;
	bool fits = bytes && python.PyBytes_AsStringAndSize(bytes, &text, &length) == 0 && (size_t)length < size;

	if (fits)
		memcpy(out, text, (size_t)length + 1);
	python.Py_DecRef(bytes);
	python.Py_DecRef(value);
	python.PyErr_Clear();
	return fits;
}

static bool take_request(void)
{
	struct object *globals = python.PyEval_GetGlobals();
	char page[32];

	if (!globals || !take_text(globals, "page", page, sizeof(page)))
		return false;
	request.page = strtoul(page, NULL, 16);
	return take_text(globals, "verb", request.verb, sizeof(request.verb)) &&
	       take_text(globals, "settings", request.settings, sizeof(request.settings)) &&
	       take_text(globals, "answer", request.answer, sizeof(request.answer));
}

static bool take_part(const char **at, const char *end, char *out, size_t size)
{
	size_t length = strnlen(*at, (size_t)(end - *at));
	bool fits = *at + length < end && length < size;

	if (fits)
		memcpy(out, *at, length + 1);
	*at += fits ? length + 1 : 0;
	return fits;
}

/* A pending call. page: the verb, the answer's file and the settings, each with its NUL; ATTACH_PAGE_BYTES. */
PUBLIC int evprof_attach_follow(void *page);

PUBLIC int evprof_attach_follow(void *page)
{
	const char *at = page, *end = at + ATTACH_PAGE_BYTES;

	if (!python.found && !python_find())
		return 0;
	request.page = (uintptr_t)page;
	if (take_part(&at, end, request.verb, sizeof(request.verb)) &&
	    take_part(&at, end, request.answer, sizeof(request.answer)) &&
	    take_part(&at, end, request.settings, sizeof(request.settings)))
		return follow(NULL);
	return 0;
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
	const char *wrong = NULL;

	if (!python.found && !python_find())
		return NULL;
	note_script();
	if (!take_request())
		wrong = "evprof: not called by evprof attach";
	else if (python.Py_AddPendingCall(follow, NULL))
		wrong = "evprof: Python's queue of pending calls is full";
	raise_import_error(wrong ? wrong : "evprof: asked");
	return NULL;
}
