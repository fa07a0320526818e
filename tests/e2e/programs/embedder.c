/*
 * embedder.c LIBPYTHON [global|local|fork] - loads a libpython and runs code in it, as uwsgi's plugins do. fork: Python
 * begins in a child, as with Apache's workers.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Goes on in a child; the first process ends as that does. */
static void go_on_in_child(void)
{
	pid_t child = fork();
	int status = 0;

	if (child <= 0)
		return;
	waitpid(child, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 9);
}

int main(int argc, char **argv)
{
	const char *way = argc > 2 ? argv[2] : "global", *error;
	void *library =
	    argc > 1 ? dlopen(argv[1], RTLD_NOW | (strcmp(way, "global") ? RTLD_LOCAL : RTLD_GLOBAL)) : NULL;
	void (*start)(int) = library ? (void (*)(int))dlsym(library, "Py_InitializeEx") : NULL;
	int (*code)(const char *) = library ? (int (*)(const char *))dlsym(library, "PyRun_SimpleString") : NULL;
	int (*finish)(void) = library ? (int (*)(void))dlsym(library, "Py_FinalizeEx") : NULL;

	if (!start || !code || !finish) {
		fprintf(stderr, "embedder: %s\n", dlerror());
		return 2;
	}
	if (!strcmp(way, "fork"))
		go_on_in_child();
	start(0);
	error = dlerror();
	if (error)
		printf("dlerror: %s\n", error);
	if (code("def leaf():\n    pass\nfor i in range(33):\n    leaf()\nprint('embedded')\n"))
		return 3;
	return finish() ? 4 : 0;
}
