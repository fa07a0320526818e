/*
 * grow.c - see grow.h.
 */
#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int grow_zeroed(void *array, uint32_t *count, uint32_t wanted, size_t size)
{
	char *grown;

	if (wanted <= *count)
		return 0;
	memcpy(&grown, array, sizeof(grown)); /* whatever type it points to */
	grown = realloc(grown, wanted * size);
	if (!grown)
		return -ENOMEM;
	memset(grown + *count * size, 0, (wanted - *count) * size);
	memcpy(array, &grown, sizeof(grown));
	*count = wanted;
	return 0;
}
