/* native_keep.c - a function without arguments that allocates: ctypes makes no object to call it (native_lines.py). */
#include <stdlib.h>

void *kept; /* the last one: no compiler leaves the allocation out */

void keep(void)
{
	kept = malloc(500000);
}
