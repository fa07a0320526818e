/*
 * replay.c - a main() for the fuzz targets in place of libFuzzer's: gives the target each of the files once, in one
 * process. Used by tests/unit/test_corpus.c, so that what was ever found stays mended without clang.
 *
 *   replay_NAME PROGRESS FILE...     PROGRESS is a file that keeps the path of the input at hand
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

/* What the mutators call; nothing calls them here. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room)
{
	(void)data;
	(void)size;
	(void)room;
	abort();
}

/* In memory of exactly its size, so that a sanitizer sees what is read behind it. */
static uint8_t *read_input(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	uint8_t *bytes;

	if (fd < 0 || fstat(fd, &status) < 0)
		return NULL;
	*size = (size_t)status.st_size;
	bytes = malloc(*size ? *size : 1);
	if (bytes && read(fd, bytes, *size) != (ssize_t)*size) {
		free(bytes);
		bytes = NULL;
	}
	close(fd);
	return bytes;
}

int main(int argc, char **argv)
{
	int progress = argc > 1 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

	if (progress < 0 || argc < 3) {
		fprintf(stderr, "usage: %s PROGRESS FILE...\n", argv[0]);
		return 2;
	}
	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 2; i < argc; i++) {
		size_t size, length = strlen(argv[i]);
		uint8_t *bytes = read_input(argv[i], &size);

		if (!bytes || pwrite(progress, argv[i], length, 0) != (ssize_t)length ||
		    ftruncate(progress, (off_t)length) < 0)
			return 2;
		LLVMFuzzerTestOneInput(bytes, size);
		free(bytes);
	}
	return 0;
}
