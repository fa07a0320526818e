/*
 * file_names.c - see file_names.h.
 */
#include "analysis/file_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stacks.h"

/*
 * Sort order from the end of a path: the beginning of the path first, then a slash, then the other bytes. So paths with
 * the same end are adjacent.
 */
static unsigned byte_rank(struct text file, size_t from_end)
{
	if (from_end >= file.length)
		return 0;
	return file.at[file.length - 1 - from_end] == '/' ? 1 : 2u + (unsigned char)file.at[file.length - 1 - from_end];
}

static size_t same_bytes(struct text a, struct text b)
{
	size_t same = 0;

	while (same < a.length && same < b.length && byte_rank(a, same) == byte_rank(b, same))
		same++;
	return same;
}

static int by_end(const void *left, const void *right)
{
	const struct text *a = left, *b = right;
	size_t same = same_bytes(*a, *b);
	unsigned first = byte_rank(*a, same), second = byte_rank(*b, same);

	return (first > second) - (first < second);
}

static int add_process(struct file_names *names, const struct trace_process *process)
{
	struct text before = {0};

	for (uint32_t i = 0; i < process->codes.count; i++) {
		const struct wire_definition *code = trace_name(&process->codes, i);
		struct text file = code ? trace_string(code, 0) : before;

		if (text_same(file, before))
			continue;
		if (labels_add(&names->files, &(struct label){.file = file}) == UINT32_MAX)
			return -ENOMEM;
		before = file;
	}
	return 0;
}

int file_names_find(struct file_names *names, const struct trace *trace, const struct filter *filter)
{
	int error = 0;

	for (uint32_t i = 0; i < trace->process_count && !error; i++)
		if (trace->processes[i] && filter_process(filter, trace->processes[i]))
			error = add_process(names, trace->processes[i]);
	names->sorted = malloc(((size_t)names->files.count + 1) * sizeof(*names->sorted));
	if (error || !names->sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < names->files.count; i++)
		names->sorted[i] = names->files.at[i].file;
	qsort(names->sorted, names->files.count, sizeof(*names->sorted), by_end);
	return 0;
}

/* Whether the last `length` bytes of both paths are equal and begin with a whole path component. */
static bool ends_alike(struct text file, struct text other, size_t length)
{
	return same_bytes(file, other) >= length && byte_rank(other, length) <= 1;
}

struct text file_names_short(const struct file_names *names, struct text file)
{
	size_t count = names->files.count;
	struct text end = text_base_name(file), *found = NULL;

	if (names->sorted && count)
		found = bsearch(&file, names->sorted, count, sizeof(file), by_end);
	while (found && end.length < file.length &&
	       ((found > names->sorted && ends_alike(file, found[-1], end.length)) ||
		(found + 1 < names->sorted + count && ends_alike(file, found[1], end.length)))) {
		struct text parent = {file.at, file.length - end.length - 1};

		/* In "/file" nothing is left of the parent. */
		end.length = parent.length ? text_base_name(parent).length + 1 + end.length : file.length;
		end.at = file.at + file.length - end.length;
	}
	return end;
}

void file_names_done(struct file_names *names)
{
	labels_done(&names->files);
	free(names->sorted);
	memset(names, 0, sizeof(*names));
}
