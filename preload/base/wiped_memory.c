/* wiped_memory.c - see wiped_memory.h. */
#include "base/wiped_memory.h"

#include <errno.h>
#include <sys/mman.h>

void *wiped_memory_new(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int error;

	if (memory == MAP_FAILED)
		return NULL;
	if (!madvise(memory, bytes, MADV_WIPEONFORK))
		return memory;
	error = errno;
	munmap(memory, bytes);
	errno = error;
	return NULL;
}
