/*
 * browser.c - the DevTools protocol over a pipe; see browser.h.
 */
#include "browser.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

#define ANSWER_TIMEOUT_MS 120000
#define LOAD_TRIES 6000 /* of 10 ms */

struct browser {
	pid_t pid;
	int to, from;
	char *buffer;
	size_t used, allocated;
	json_int_t id;
	json_t *session; /* the page's; NULL: talking to the browser itself */
	json_t *answer;	 /* the last */
	unsigned complaints;
	char complaint[1024]; /* the first */
};

/* --- messages --- */

static void send_message(struct browser *browser, const char *method, json_t *parameters)
{
	json_t *message = json_pack("{s:I, s:s, s:o}", "id", ++browser->id, "method", method, "params", parameters);
	char *line;
	size_t length, done;

	if (browser->session)
		json_object_set(message, "sessionId", browser->session);
	line = json_dumps(message, JSON_COMPACT);
	length = strlen(line) + 1; /* with its zero */
	for (done = 0; done < length;) {
		ssize_t written = write(browser->to, line + done, length - done);

		cr_assert(written > 0, "the browser takes no message: %s", strerror(errno));
		done += (size_t)written;
	}
	free(line);
	json_decref(message);
}

static void read_more(struct browser *browser)
{
	struct pollfd ready = {.fd = browser->from, .events = POLLIN};
	ssize_t length;

	if (browser->allocated - browser->used < 65536)
		browser->buffer = realloc(browser->buffer, browser->allocated = browser->allocated * 2 + 131072);
	cr_assert(poll(&ready, 1, ANSWER_TIMEOUT_MS) == 1, "the browser has not answered for %d s",
		  ANSWER_TIMEOUT_MS / 1000);
	length = read(browser->from, browser->buffer + browser->used, browser->allocated - browser->used);
	cr_assert(length > 0, "the browser has gone");
	browser->used += (size_t)length;
}

static json_t *receive_message(struct browser *browser)
{
	json_error_t error;
	json_t *message;
	size_t length;
	char *end;

	while (!(end = browser->used ? memchr(browser->buffer, 0, browser->used) : NULL))
		read_more(browser);
	message = json_loads(browser->buffer, JSON_ALLOW_NUL, &error);
	cr_assert(message, "the browser writes JSON: %s", error.text);
	length = (size_t)(end - browser->buffer) + 1;
	memmove(browser->buffer, end + 1, browser->used - length);
	browser->used -= length;
	return message;
}

/* What a good page never causes. */
static void note_complaint(struct browser *browser, const json_t *message)
{
	const char *method = json_string_value(json_object_get(message, "method"));
	char *text;

	if (!method || (strcmp(method, "Runtime.exceptionThrown") != 0 && strcmp(method, "Log.entryAdded") != 0 &&
			strcmp(method, "Runtime.consoleAPICalled") != 0))
		return;
	text = json_dumps(message, JSON_COMPACT);
	if (browser->complaints++ == 0)
		snprintf(browser->complaint, sizeof(browser->complaint), "%s", text);
	free(text);
}

/* Returns the result, borrowed. */
static const json_t *command(struct browser *browser, const char *method, json_t *parameters)
{
	json_t *message;

	send_message(browser, method, parameters);
	for (;;) {
		message = receive_message(browser);
		if (json_integer_value(json_object_get(message, "id")) == browser->id)
			break;
		note_complaint(browser, message);
		json_decref(message);
	}
	json_decref(browser->answer);
	browser->answer = message;
	if (json_object_get(message, "error")) {
		char *text = json_dumps(message, JSON_COMPACT);

		cr_assert(0, "%s: %.900s", method, text);
	}
	return json_object_get(message, "result");
}

/* --- the process --- */

static const char *find_program(void)
{
	/* The first has no windows, and starts in a quarter of the others' time. */
	static const char *const names[] = {"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"};
	const char *path = getenv("PATH");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *folders = strdup(path ? path : ""), *state = NULL;

		for (char *folder = strtok_r(folders, ":", &state); folder; folder = strtok_r(NULL, ":", &state)) {
			char *program = text("%s/%s", folder, names[i]);

			if (access(program, X_OK) == 0)
				return program;
		}
	}
	cr_skip_test("chromium is not installed");
	return NULL;
}

/* In the child: the browser reads from 3 and writes to 4. */
static void exec_browser(const char *program, const char *profile, int from, int to)
{
	int in = fcntl(from, F_DUPFD, 10), out = fcntl(to, F_DUPFD, 10), null = open("/dev/null", O_RDWR);

	setpgid(0, 0);
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	dup2(in, 3);
	dup2(out, 4);
	execl(program, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
	      "--disable-background-networking", "--disable-component-update", "--disable-sync", profile,
	      "--remote-debugging-pipe", "--window-size=1280,800", "about:blank", (char *)NULL);
	_exit(127);
}

struct browser *browser_open(const char *directory)
{
	struct browser *browser = calloc(1, sizeof(*browser));
	const char *program = find_program(), *profile = text("--user-data-dir=%s/browser", directory);
	char target[128], session[128];
	int to[2], from[2];

	cr_assert(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
	signal(SIGPIPE, SIG_IGN);
	browser->pid = fork();
	cr_assert(browser->pid >= 0);
	if (browser->pid == 0)
		exec_browser(program, profile, to[0], from[1]);
	close(to[0]);
	close(from[1]);
	browser->to = to[1];
	browser->from = from[0];
	snprintf(target, sizeof(target), "%s",
		 json_string_value(json_object_get(
		     command(browser, "Target.createTarget", json_pack("{s:s}", "url", "about:blank")), "targetId")));
	snprintf(session, sizeof(session), "%s",
		 json_string_value(json_object_get(command(browser, "Target.attachToTarget",
							   json_pack("{s:s, s:b}", "targetId", target, "flatten", 1)),
						   "sessionId")));
	browser->session = json_string(session);
	command(browser, "Runtime.enable", json_object());
	command(browser, "Log.enable", json_object());
	command(browser, "Page.enable", json_object());
	return browser;
}

void browser_close(struct browser *browser)
{
	int tries;

	close(browser->to);
	close(browser->from);
	/* The end of its pipe ends the browser. */
	for (tries = 0; tries < 500 && waitpid(browser->pid, NULL, WNOHANG) == 0; tries++)
		usleep(10000);
	kill(-browser->pid, SIGKILL);
	json_decref(browser->session);
	json_decref(browser->answer);
	free(browser->buffer);
	free(browser);
}

/* --- questions --- */

static const json_t *ask(struct browser *browser, const char *expression)
{
	const json_t *result =
	    command(browser, "Runtime.evaluate",
		    json_pack("{s:s, s:b, s:b}", "expression", expression, "awaitPromise", 1, "returnByValue", 1));
	const json_t *thrown = json_object_get(result, "exceptionDetails");

	if (thrown) {
		char *what = json_dumps(thrown, JSON_COMPACT);

		cr_assert(0, "%.200s throws %.900s", expression, what);
	}
	return json_object_get(json_object_get(result, "result"), "value");
}

const json_t *browser_ask(struct browser *browser, const char *format, ...)
{
	va_list arguments;
	char *expression;
	const json_t *value;

	va_start(arguments, format);
	cr_assert(vasprintf(&expression, format, arguments) >= 0);
	va_end(arguments);
	value = ask(browser, expression);
	free(expression);
	return value;
}

double browser_number(struct browser *browser, const char *format, ...)
{
	va_list arguments;
	char *expression;
	const json_t *value;

	va_start(arguments, format);
	cr_assert(vasprintf(&expression, format, arguments) >= 0);
	va_end(arguments);
	value = ask(browser, expression);
	cr_assert(json_is_number(value), "%s is a number", expression);
	free(expression);
	return json_number_value(value);
}

void browser_command(struct browser *browser, const char *method, const char *format, ...)
{
	va_list arguments;
	char *parameters;
	json_t *parsed;

	va_start(arguments, format);
	cr_assert(vasprintf(&parameters, format, arguments) >= 0);
	va_end(arguments);
	parsed = json_loads(parameters, 0, NULL);
	cr_assert(parsed, "%s is JSON", parameters);
	free(parameters);
	command(browser, method, parsed);
}

void browser_go(struct browser *browser, const char *url)
{
	int tries;

	command(browser, "Page.navigate", json_pack("{s:s}", "url", url));
	for (tries = 0; tries < LOAD_TRIES; tries++) {
		if (json_is_true(ask(browser, "typeof evprof === 'object' && 'ready' in evprof")))
			return;
		usleep(10000);
	}
	cr_assert(0, "the page's script does not run: %s", browser->complaint);
}

void browser_load(struct browser *browser, const char *path)
{
	browser_go(browser, text("file://%s", path));
}

void browser_expect_quiet(const struct browser *browser)
{
	cr_assert(browser->complaints == 0, "the page complains %u times, first: %s", browser->complaints,
		  browser->complaint);
}
