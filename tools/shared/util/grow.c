/*
 * grow.c - see grow.h.
 */
#include "util/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int grow_zeroed(void *array, uint32_t *count, uint32_t wanted, size_t size)
{
	char *before, *grown;

	if (wanted <= *count)
		return 0;
	memcpy(&before, array, sizeof(before)); /* the type of the pointer does not matter */
	grown = realloc(before, wanted * size);
	if (!grown)
		return -ENOMEM;
	memset(grown + *count * size, 0, (wanted - *count) * size);
	memcpy(array, &grown, sizeof(grown));
	*count = wanted;
	/* cppcheck-suppress memleak ; the caller's pointer has it */
	return 0;
}

int grow_for(void *array, uint32_t *count, uint32_t index, size_t size)
{
	if (index < *count)
		return 0;
	return index > INT32_MAX - 32 ? -ENOMEM : grow_zeroed(array, count, 2 * index + 64, size);
}

int grow_by_one(void *array, size_t *allocated, size_t count, size_t size)
{
	size_t wanted = *allocated ? *allocated * 2 : 256;
	void *before, *grown;

	if (count < *allocated)
		return 0;
	memcpy(&before, array, sizeof(before));
	grown = wanted > SIZE_MAX / 2 / size ? NULL : realloc(before, wanted * size);
	if (!grown)
		return -ENOMEM;
	memcpy(array, &grown, sizeof(grown));
	*allocated = wanted;
	return 0;
}
