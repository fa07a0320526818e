/* library.c - see library.h. */
#include "util/library.h"

#include <dlfcn.h>
#include <stddef.h>

static bool find_all(void *library, const struct library_symbol *symbols)
{
	for (; symbols->name; symbols++) {
		void **place = symbols->place;

		*place = dlsym(library, symbols->name);
		if (!*place)
			return false;
	}
	return true;
}

bool library_load(const char *const *names, const struct library_symbol *symbols)
{
	for (; *names; names++) {
		void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);

		if (library && find_all(library, symbols))
			return true;
		if (library)
			dlclose(library);
	}
	return false;
}
