/*
 * small_stack.c - a signal handler on a small alternate stack, below which nothing is mapped, that ends the process or
 * goes on.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096UL
extern char **environ;

#define SPARE 1280 /* in addition to the kernel's frame: for the handler, and the loader's first call of _exit() */

static const char *what;
static char *const arguments[] = {"sh", "-c", "exit 4", NULL};
static int children;

static void handle(int number)
{
	if (!strcmp(what, "_exit"))
		_exit(3);
	if (!strcmp(what, "exit"))
		exit(5);
	if (!strcmp(what, "abort"))
		abort();
	if (!strcmp(what, "exec"))
		execve("/bin/sh", arguments, environ);
	if (!strcmp(what, "exec fails"))
		children += execve("/nosuch", arguments, environ) < 0;
	if (!strcmp(what, "fork")) {
		pid_t child = fork();

		if (child == 0)
			_exit(6);
		children += waitpid(child, &number, 0) == child && WEXITSTATUS(number) == 6;
	}
}

/* size: of the stack; 0: the smallest that the kernel allows here. Returns how often something came back. */
int small_stack(const char *way, unsigned long size)
{
	unsigned long bytes = size ? size : getauxval(AT_MINSIGSTKSZ) + SPARE, pages = (bytes + PAGE - 1) / PAGE;
	char *memory = mmap(NULL, (pages + 16) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = memory + 16 * PAGE, .ss_size = bytes};
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};

	what = way;
	mprotect(memory + 16 * PAGE, pages * PAGE, PROT_READ | PROT_WRITE);
	/* Where it ends within a page, it is the upper end that counts. */
	if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL))
		return -1;
	raise(SIGUSR1);
	return children;
}
