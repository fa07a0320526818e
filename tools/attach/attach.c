/* attach.c - see attach.h. */
#include "attach/attach.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attach/folder.h"
#include "attach/inject.h"
#include "attach/remote_exec.h"
#include "util/cli.h"
#include "util/clock.h"
#include "util/why.h"

#define LOOK_MS 5
#define FOLLOW_MS 60000 /* from the begin of what is asked to its end: the process joins a collector */

/*
 * The source that the main thread runs, with its own globals. It raises nothing, whatever happens: until 3.13 that
 * would be an error of a pending call, which ends the program. The library follows the request after the script has
 * ended, and writes the answer. Only where it cannot be loaded, the script does.
 */
static const char source[] = "import _imp\n"
			     "class spec:\n"
			     "    name, origin = 'evprof_attach', library\n"
			     "try:\n"
			     "    _imp.create_dynamic(spec)\n"
			     "except BaseException as error:\n"
			     "    if str(error) != 'evprof: asked':\n"
			     "        try:\n"
			     "            with open(answer, 'wb', 0) as file:\n"
			     "                file.write(str(error).encode('utf-8', 'replace')[:400] + b'\\n')\n"
			     "        except BaseException:\n"
			     "            pass\n";

/* --- the script --- */

struct script {
	char text[INJECT_BYTES];
	size_t used;
	const struct attach_request *request;
	const struct folder *folder;
	char file[96]; /* its path, as the process has it, and those of the answer and the library */
	char answer[96];
	char library[4096];
};

static void add(struct script *script, const char *text)
{
	size_t length = strlen(text);

	if (script->used + length < sizeof(script->text)) {
		memcpy(script->text + script->used, text, length + 1);
		script->used += length;
	}
}

/* A Python expression of type str. Paths that are no UTF-8 keep their bytes, as os.fsdecode() does. */
static void add_text(struct script *script, const char *text)
{
	char escaped[8];

	add(script, "b'");
	for (; *text; text++) {
		bool plain = (unsigned char)*text >= ' ' && (unsigned char)*text < 127 && !strchr("'\\", *text);

		snprintf(escaped, sizeof(escaped), plain ? "%c" : "\\x%02x", (unsigned char)*text);
		add(script, escaped);
	}
	add(script, "'.decode('utf-8','surrogateescape')");
}

static void add_entry(struct script *script, const char *name, const char *value)
{
	add(script, name);
	add_text(script, value);
}

/* The text of inject_text: the source of the script, with its NUL. address: 0: a file gets it. */
static const char *write_script(void *request, uint64_t address, size_t *bytes)
{
	struct script *script = request;
	char number[40];

	script->used = 0;
	add(script, "try:\n    exec(");
	add_text(script, source);
	add_entry(script, ",{'__name__':'evprof.recording','verb':", script->request->verb);
	add_entry(script, ",'library':", script->library);
	add_entry(script, ",'answer':", script->answer);
	add_entry(script, ",'settings':", script->request->settings);
	snprintf(number, sizeof(number), "%llx", (unsigned long long)address);
	add_entry(script, ",'page':", number);
	add(script, "})\nexcept:\n    pass\n"); /* a Python that ends may have no name BaseException */
	*bytes = script->used + 1;
	return script->text;
}

static void add_part(struct script *script, const char *text)
{
	add(script, text);
	script->used++; /* its NUL */
}

/* The same for a library that is loaded: evprof_attach_follow() in preload/start/attach.c. */
static const char *write_parts(void *request, uint64_t address, size_t *bytes)
{
	struct script *script = request;

	(void)address;
	script->used = 0;
	add_part(script, script->request->verb);
	add_part(script, script->answer);
	add_part(script, script->request->settings);
	*bytes = script->used;
	return script->text;
}

/* --- the answer --- */

/* Whether the answer is there, a whole line, without its end. *begun: the process follows. */
static bool read_answer(int answer, char *line, size_t bytes, bool *begun)
{
	ssize_t n = pread(answer, line, bytes - 1, 0);

	line[n > 0 ? n : 0] = 0;
	*begun = line[0] != 0;
	if (!strchr(line, '\n'))
		return false;
	line[strcspn(line, "\n")] = 0;
	for (char *at = line; *at; at++)
		if ((unsigned char)*at < ' ')
			*at = '?';
	return true;
}

bool attach_has_ended(int process)
{
	struct pollfd ended = {.fd = process, .events = POLLIN};

	return poll(&ended, 1, 0) > 0;
}

/* A library that is loaded is called, where this processor can; its file may be gone. */
static bool takes_file(const struct target *target)
{
	return remote_exec_is_for(target) && !(target->follow && inject_is_possible);
}

/*
 * answer: its file. An attach that is given up is one whose file was removed before the process wrote to it: the
 * process writes first, and then looks whether the file is there.
 */
static int wait_line(const struct target *target, const struct attach_request *request, const struct folder *folder,
		     int answer, char *why, size_t bytes)
{
	int64_t start = time_ms(CLOCK_MONOTONIC), waited;
	bool attaches = !strcmp(request->verb, "attach"), dropped = false, begun;
	char line[512];

	for (;;) {
		waited = time_ms(CLOCK_MONOTONIC) - start;
		if (read_answer(answer, line, sizeof(line), &begun))
			return strcmp(line, "done") ? complain(why, bytes, "process %d: %s", (int)target->pid, line)
						    : 0;
		if (attach_has_ended(request->process))
			return complain(why, bytes, "process %d has ended", (int)target->pid);
		if (begun && waited >= request->wait_ms + FOLLOW_MS)
			return complain(why, bytes, "process %d has begun the %s, and does not end it",
					(int)target->pid, request->verb);
		if (!begun && (waited >= request->wait_ms || cli_interrupted)) {
			if (dropped || !attaches)
				return complain(
				    why, bytes, "the main thread of process %d has run no Python code for %d s; %s",
				    (int)target->pid, (int)(waited / 1000),
				    takes_file(target) || attaches ? "try again" : "the detach is done when it does");
			folder_drop(folder, FOLDER_ANSWER);
			dropped = true;
			continue;
		}
		nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
	}
}

static int wait_answer(const struct target *target, const struct attach_request *request, const struct folder *folder,
		       char *why, size_t bytes)
{
	int answer = folder_open(folder, FOLDER_ANSWER), r;

	if (answer < 0)
		return complain(why, bytes, "cannot read the answer of process %d: %s", (int)target->pid,
				strerror(-answer));
	r = wait_line(target, request, folder, answer, why, bytes);
	close(answer);
	return r;
}

/* --- the request --- */

static int send_call(const struct target *target, struct script *script, char *why, size_t bytes)
{
	bool loaded = target->follow != 0;
	const struct inject_text text = {loaded ? write_parts : write_script, script};

	return inject_call(target, loaded ? target->follow : target->run_string, &text, script->request->wait_ms, why,
			   bytes);
}

static int send_file(const struct target *target, struct script *script, char *why, size_t bytes)
{
	size_t length;
	const char *text = write_script(script, 0, &length);
	int r = folder_write(script->folder, FOLDER_SCRIPT, text, length - 1);

	if (r < 0)
		return complain(why, bytes, "cannot write to %s: %s", script->folder->path, strerror(-r));
	snprintf(script->file, sizeof(script->file), "%s/" FOLDER_SCRIPT, script->folder->path);
	return remote_exec(target, script->file, script->request->wait_ms, why, bytes);
}

/* Whether the process sees the same file at the path. */
static bool sees(const struct target *target, const char *path)
{
	struct stat ours, its;
	char there[64 + 4096];

	snprintf(there, sizeof(there), "/proc/%d/root%s", (int)target->pid, path);
	return !stat(path, &ours) && !stat(there, &its) && ours.st_dev == its.st_dev && ours.st_ino == its.st_ino;
}

/* In a container the library is copied for as long as it is being loaded. */
static int prepare_files(const struct target *target, struct script *script)
{
	const struct attach_request *request = script->request;
	int r = folder_write(script->folder, FOLDER_ANSWER, "", 0);

	snprintf(script->answer, sizeof(script->answer), "%s/" FOLDER_ANSWER, script->folder->path);
	snprintf(script->library, sizeof(script->library), "%s", request->library);
	if (r < 0 || target->has_library || sees(target, request->library))
		return r;
	snprintf(script->library, sizeof(script->library), "%s/" FOLDER_LIBRARY, script->folder->path);
	return folder_copy(script->folder, FOLDER_LIBRARY, request->library);
}

int attach_ask(const struct target *target, const struct attach_request *request, char *why, size_t bytes)
{
	struct folder folder;
	struct script *script = calloc(1, sizeof(*script));
	int r = script ? folder_make(&folder, target) : -ENOMEM;

	if (r >= 0) {
		script->request = request;
		script->folder = &folder;
		r = prepare_files(target, script);
		if (r < 0)
			folder_remove(&folder);
	}
	if (r < 0) {
		free(script);
		return complain(why, bytes, "cannot write to the /tmp of process %d: %s", (int)target->pid,
				strerror(-r));
	}
	r = (takes_file(target) ? send_file : send_call)(target, script, why, bytes);
	if (r == 0) {
		r = wait_answer(target, request, &folder, why, bytes);
		if (r < 0 && takes_file(target))
			remote_exec_withdraw(target, script->file); /* its file is removed */
	}
	folder_remove(&folder);
	free(script);
	return r;
}
