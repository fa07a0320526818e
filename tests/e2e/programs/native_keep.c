/* native_keep.c - a function without arguments that allocates: ctypes makes no object to call it (native_lines.py). */
#include <stdlib.h>

void keep(void)
{
	static void *volatile kept;

	kept = malloc(500000);
}
