/*
 * lives.c - preloaded into a python, whose main() it replaces: begins and ends Python several times in one process, in
 * the main thread and in others.
 *
 * python FILE LIVES: runs the code in the file in each life, with the name `life` set, and in a sub-interpreter of
 * each.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *function(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	if (!found) {
		fprintf(stderr, "lives: no %s\n", name);
		exit(2);
	}
	return found;
}

static void run(const char *code, const char *name, int life)
{
	int (*run_string)(const char *) = function("PyRun_SimpleString");
	char begin[64];

	snprintf(begin, sizeof(begin), "life = '%s %d'\n", name, life);
	if (run_string(begin) || run_string(code))
		exit(3);
}

static char code[65536];

static void *live(void *number)
{
	int life = *(const int *)number;
	void (*start)(int) = function("Py_InitializeEx");
	int (*finish)(void) = function("Py_FinalizeEx");
	void *(*state)(void) = function("PyThreadState_Get");
	void *(*enter)(void *) = function("PyThreadState_Swap");
	void *(*new_interpreter)(void) = function("Py_NewInterpreter");
	void (*end_interpreter)(void *) = function("Py_EndInterpreter");
	void *first, *second;

	start(0);
	first = state();
	run(code, "main", life);
	second = new_interpreter();
	if (!second)
		exit(4);
	run(code, "sub", life);
	end_interpreter(second);
	enter(first);
	if (finish())
		exit(5);
	return NULL;
}

static void live_in_thread(int life)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, live, &life) || pthread_join(thread, NULL))
		exit(6);
}

static int lives_main(int argc, char **argv, char **environment)
{
	FILE *file = argc == 3 ? fopen(argv[1], "r") : NULL;

	(void)environment;
	if (!file)
		return 2;
	code[fread(code, 1, sizeof(code) - 1, file)] = '\0';
	fclose(file);
	for (int life = 0; life < atoi(argv[2]); life++) {
		if (life % 2)
			live_in_thread(life);
		else
			live(&life);
	}
	printf("lived\n");
	return 0;
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
		      void (*rtld_fini)(void), void *stack)
{
	int (*real)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void),
		    void *) = dlsym(RTLD_NEXT, "__libc_start_main");

	/* Other programs may lead to it. */
	return real(dlsym(RTLD_DEFAULT, "Py_InitializeEx") ? lives_main : main, argc, argv, init, fini, rtld_fini,
		    stack);
}
