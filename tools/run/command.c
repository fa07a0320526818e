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

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), tail = strlen(end);

	return length > tail && strcmp(name + length - tail, end) == 0;
}

/* Whether the kernel can run the file. execvp() gives an executable file without "#!" to the shell. */
static bool runs_by_itself(const char *path)
{
	char start[2] = "";
	int fd = access(path, X_OK) == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	bool marked = fd >= 0 && read(fd, start, sizeof(start)) == sizeof(start) && memcmp(start, "#!", 2) == 0;

	if (fd >= 0)
		close(fd);
	return marked;
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

void run_command_done(struct run_command *command)
{
	free(command->words);
	command->words = NULL;
}
