/* command.c - see command.h. */
#include "ship/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/output.h"

#define WORDS_MAX 256
#define LOOK_US 20000
#define PATIENCE_MS 2000 /* from SIGTERM to SIGKILL */
#define HOST_BYTES 256
#define NAME_TELLS 3 /* exit status: the copy is there, and the name must not be shown */

volatile sig_atomic_t ship_ends;

char *ship_words(const char *word, const char *path, const char *name)
{
	char host[HOST_BYTES] = "";
	const struct {
		const char *placeholder, *value;
	} values[] = {{"{}", path}, {"{name}", name}, {"{host}", host}};
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	gethostname(host, sizeof(host) - 1);
	while (out && *word) {
		size_t i = 0, count = sizeof(values) / sizeof(values[0]);

		while (i < count && strncmp(word, values[i].placeholder, strlen(values[i].placeholder)) != 0)
			i++;
		fputs(i < count ? values[i].value : (char[]){*word, 0}, out);
		word += i < count ? strlen(values[i].placeholder) : 1;
	}
	if (!out || fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* In the child. */
static void become(char *const *command, const char *path, const char *name)
{
	char *words[WORDS_MAX + 2];
	size_t count = 0;
	bool named = false;
	int null = open("/dev/null", O_RDONLY);

	for (; count < WORDS_MAX && command[count]; count++) {
		named |= strstr(command[count], "{}") != NULL;
		words[count] = ship_words(command[count], path, name);
		if (!words[count])
			_exit(127);
	}
	if (!named)
		words[count++] = (char *)(uintptr_t)path;
	words[count] = NULL;
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	execvp(words[0], words);
	output_message("evprof ship: %s cannot be run: %s", words[0], strerror(errno));
	_exit(127);
}

static int wait_status(pid_t child, int timeout_ms)
{
	int64_t until_ms = time_ms(CLOCK_MONOTONIC) + timeout_ms;
	int status = 0, ending = 0;
	pid_t ended;

	setpgid(child, child);
	while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
		if (time_ms(CLOCK_MONOTONIC) > until_ms || (ship_ends && !ending)) {
			kill(-child, ending ? SIGKILL : SIGTERM);
			until_ms = time_ms(CLOCK_MONOTONIC) + PATIENCE_MS;
			ending = 1;
		}
		usleep(LOOK_US);
	}
	return ended == child && WIFEXITED(status) && !ending ? WEXITSTATUS(status) : -1;
}

bool ship_wait(pid_t child, int timeout_ms)
{
	return wait_status(child, timeout_ms) == 0;
}

bool ship_command(char *const *command, const char *path, const char *name, int timeout_ms)
{
	pid_t child = fork();

	if (child == 0) {
		signal(SIGTERM, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		signal(SIGXFSZ, SIG_DFL);
		become(command, path, name);
	}
	return child > 0 && ship_wait(child, timeout_ms);
}

bool ship_redact(const struct redact *redact, const char *path, const char *to, int timeout_ms, bool *name_tells)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct trace *trace = trace_open_with_message(path);
		int error = trace ? redact_write_file(redact, trace, to, false) : -EBADMSG;

		if (trace && error)
			output_message("evprof ship: cannot write %s: %s", to, strerror(-error));
		_exit(error ? 1 : redact_cuts_program(redact, trace, strrchr(path, '/') + 1) ? NAME_TELLS : 0);
	}
	status = child > 0 ? wait_status(child, timeout_ms) : -1;
	*name_tells = status == NAME_TELLS;
	return status == 0 || *name_tells;
}
