/* embedder.c - loads the libpython that its argument names and runs code in it, as uwsgi's plugins do. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	void (*start)(int) = library ? (void (*)(int))dlsym(library, "Py_InitializeEx") : NULL;
	int (*code)(const char *) = library ? (int (*)(const char *))dlsym(library, "PyRun_SimpleString") : NULL;
	int (*finish)(void) = library ? (int (*)(void))dlsym(library, "Py_FinalizeEx") : NULL;

	if (!start || !code || !finish) {
		fprintf(stderr, "embedder: %s\n", dlerror());
		return 2;
	}
	start(0);
	if (code("def leaf():\n    pass\nfor i in range(33):\n    leaf()\nprint('embedded')\n"))
		return 3;
	return finish() ? 4 : 0;
}
