/*
 * test_corpus.c - every input that fuzzing has kept (tests/fuzz/corpus) is given to its target once more, without
 * libFuzzer (tests/fuzz/replay.c).
 */
#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The last bytes of a file. */
static void read_end(int fd, char *end, size_t bytes)
{
	off_t size = lseek(fd, 0, SEEK_END), from = size < (off_t)bytes ? 0 : size - (off_t)bytes + 1;
	ssize_t count = pread(fd, end, bytes - 1, from);

	end[count > 0 ? count : 0] = '\0';
	close(fd);
}

static void replay(const char *target, const char *corpus)
{
	char program[4096], pattern[256], progress[] = "/tmp/evprof-corpus-XXXXXX", at[512], said[2048];
	int progress_fd = mkstemp(progress), said_fd = fileno(tmpfile()), status;
	glob_t inputs = {0};
	char **arguments;
	pid_t child;

	cr_assert(getenv("BUILD"));
	snprintf(pattern, sizeof(pattern), "tests/fuzz/corpus/%s/*", corpus);
	cr_assert(glob(pattern, 0, NULL, &inputs) == 0, "no inputs in %s", pattern);
	snprintf(program, sizeof(program), "%s/tests/fuzz/replay_%s", getenv("BUILD"), target);
	arguments = calloc(inputs.gl_pathc + 3, sizeof(*arguments));
	cr_assert(arguments);
	arguments[0] = program;
	arguments[1] = progress;
	memcpy(arguments + 2, inputs.gl_pathv, inputs.gl_pathc * sizeof(*arguments));
	child = fork();
	if (child == 0) {
		dup2(said_fd, STDERR_FILENO);
		execv(program, arguments);
		_exit(127);
	}
	cr_assert(waitpid(child, &status, 0) == child);
	unlink(progress);
	free(arguments);
	globfree(&inputs);
	read_end(progress_fd, at, sizeof(at));
	read_end(said_fd, said, sizeof(said));
	cr_expect(status == 0, "%s ended with status %#x at %s: %s", target, (unsigned)status, at, said);
}

/* The inputs of trace are inputs of it, too. */
Test(corpus, api)
{
	replay("api", "trace");
	replay("api", "api");
}

Test(corpus, control)
{
	replay("control", "control");
}

Test(corpus, ring)
{
	replay("ring", "ring");
}

Test(corpus, server)
{
	replay("server", "server");
}

Test(corpus, symbols)
{
	replay("symbols", "symbols");
}

Test(corpus, trace)
{
	replay("trace", "trace");
}

Test(corpus, serve)
{
	replay("serve", "serve");
}
