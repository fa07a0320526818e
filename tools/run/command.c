/*
 * command.c - see command.h. Called by cmd/run.c.
 */
#include "run/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/output.h"

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), tail = strlen(end);

	return length > tail && strcmp(name + length - tail, end) == 0;
}

/* The kernel reads as much of a "#!" line. */
struct first_line {
	char text[256];
};

/* Whether the first line of the file names an interpreter. */
static bool names_interpreter(const char *path, struct first_line *line)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, line->text, sizeof(line->text) - 1);

	if (fd >= 0)
		close(fd);
	line->text[length > 0 ? length : 0] = 0;
	line->text[strcspn(line->text, "\n")] = 0;
	return strncmp(line->text, "#!", 2) == 0;
}

/* Whether the kernel can run the file. execvp() gives an executable file without "#!" to the shell. */
static bool runs_by_itself(const char *path)
{
	struct first_line line;

	return access(path, X_OK) == 0 && names_interpreter(path, &line);
}

static bool has_main_module(const char *folder)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/__main__.py", folder) < (int)sizeof(path) && access(path, R_OK) == 0;
}

/*
 * Whether the word is what `python WORD` runs and a shell does not: a script or an archive, or a folder with a
 * __main__.py. A script with a path and a "#!" line runs with the interpreter that it names.
 */
static bool is_script(const char *word)
{
	struct stat status;

	if (stat(word, &status) < 0)
		return false;
	if (S_ISDIR(status.st_mode))
		return has_main_module(word);
	if (!ends_with(word, ".py") && !ends_with(word, ".pyc") && !ends_with(word, ".pyz"))
		return false;
	return access(word, R_OK) == 0 && !(strchr(word, '/') && runs_by_itself(word));
}

int run_command_make(struct run_command *command, char *const *arguments)
{
	size_t count = 0, used = 0;

	while (arguments[count])
		count++;
	if (!count && !command->option)
		return -EINVAL;
	command->words = calloc(count + 4, sizeof(*command->words));
	if (!command->words)
		return -ENOMEM;
	if (command->option || is_script(arguments[0])) {
		command->any_python = !command->python;
		command->words[used++] = (char *)(command->python ? command->python : "python3");
	}
	if (command->option) {
		command->words[used++] = (char *)command->option;
		command->words[used++] = (char *)command->value;
	}
	memcpy(command->words + used, arguments, count * sizeof(*arguments));
	return 0;
}

char *run_command_problem(const struct run_command *command, int error)
{
	const char *word = command->words[0];
	struct first_line line;
	struct output shown;
	struct stat status;
	size_t length;

	if (stat(word, &status) == 0 && S_ISDIR(status.st_mode))
		return strdup("it is a folder without __main__.py");
	/* The kernel says of a file that is there that it is not, if its interpreter is not. */
	if (error != -ENOENT || !strchr(word, '/') || !names_interpreter(word, &line) || output_open_memory(&shown) < 0)
		return strdup(strerror(-error));
	output_string(&shown, "its interpreter does not exist: ");
	output_line(&shown, (struct text){line.text, strlen(line.text)});
	return output_close_memory(&shown, &length);
}

void run_command_done(struct run_command *command)
{
	free(command->words);
	command->words = NULL;
}
