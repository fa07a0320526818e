/*
 * loads.c - a program that loads libraries by what only their caller has: $ORIGIN, RUNPATH, RPATH; and says what
 * dlopen(), errno and dlerror() give. Built as the program, as the libraries that call (CALLER), and as what these load
 * (LOADED).
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(LOADED)

int LOADED = 1;

#elif defined(CALLER)

void *call_dlopen(const char *name, int flags)
{
	void *handle = dlopen(name, flags);

	return handle; /* not jumped to: this library is the caller */
}

#else

typedef void *opener(const char *name, int flags);

static void try(opener *open, const char *name, int flags)
{
	void *handle;
	const char *error;

	errno = 77;
	handle = open(name, flags);
	printf("%s: %s, errno %d, ", name ? name : "(null)", handle ? "there" : "not there", errno);
	error = dlerror();
	printf("%s\n", error ? error : "no error");
}

/* A message that nobody has asked for yet outlives what evprof does in between. */
static void keep_a_message(void)
{
	pthread_key_t key;
	pid_t child;

	dlopen("./in/nosuch.so", RTLD_NOW);
	if (pthread_key_create(&key, NULL) || pthread_setspecific(key, &key))
		return;
	child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	printf("kept: %s\n", dlerror());
}

int main(void)
{
	static const char *const callers[] = {"./in/runpath.so", "./in/rpath.so"};
	const char *error = dlerror();

	printf("first: %s\n", error ? error : "no error");
	for (int i = 0; i < 2; i++) {
		void *library = dlopen(callers[i], RTLD_NOW);
		opener *open = library ? (opener *)dlsym(library, "call_dlopen") : NULL;

		error = dlerror();
		printf("%s: %s\n", callers[i], error ? error : "no error");
		if (!open)
			return 1;
		try(open, "loaded.so", RTLD_NOW | RTLD_NOLOAD);
		try(open, i ? "loaded2.so" : "loaded.so", RTLD_NOW);
		try(open, "$ORIGIN/origin.so", RTLD_NOW);
		try(open, "./in/needs.so", RTLD_NOW);
		try(open, "nosuch.so", RTLD_NOW);
		try(open, NULL, RTLD_NOW);
		try(dlopen, "loaded.so", RTLD_NOW | RTLD_NOLOAD);
		try(dlopen, "libm.so.6", RTLD_NOW | RTLD_GLOBAL);
	}
	printf("local: %s\n", dlsym(RTLD_DEFAULT, "loaded") ? "global" : "not global");
	error = dlerror();
	keep_a_message();
	return 0;
}

#endif
