/* codes.c - see codes.h. */
#include "stack/codes.h"

#include <stdlib.h>
#include <string.h>

#include "file/line_table.h"
#include "util/grow.h"

#define TEXT_BYTES 4096
#define LINES_MAX_BYTES (1u << 20)
#define CODES_MAX (1u << 20)

static char *read_text(struct process *process, uint64_t object)
{
	static char text[TEXT_BYTES];
	long length = object ? remote_text(process->remote, object, text, sizeof(text) - 1) : 0;

	return length < 0 ? NULL : strndup(text, (size_t)length);
}

static bool read_lines(struct process *process, struct code *code)
{
	uint64_t size;

	if (!remote_word(process->remote, code->is.lines + process->remote->layout.size, &size))
		return false;
	if (size > LINES_MAX_BYTES)
		return true;
	code->lines = malloc(size ? size : 1);
	code->lines_size = size;
	return code->lines && remote_bytes(process->remote, code->is.lines, code->lines, size) == (long)size;
}

static void free_code(struct code *code)
{
	free(code->name);
	free(code->qualified_name);
	free(code->file);
	free(code->lines);
}

static bool read_code(struct process *process, struct code *code)
{
	code->name = read_text(process, code->is.name);
	code->qualified_name = read_text(process, code->is.qualified_name);
	code->file = read_text(process, code->is.file);
	if (code->name && code->qualified_name && code->file && read_lines(process, code))
		return true;
	free_code(code);
	return false;
}

bool codes_find(struct codes *codes, struct process *process, uint64_t address, uint32_t *number)
{
	struct code code = {.address = address};
	uint64_t known = u64_map_value(&codes->by_address, address), *place;

	if (!address || !remote_code(process->remote, address, &code.is))
		return false;
	*number = (uint32_t)known - 1;
	if (known && memcmp(&codes->at[known - 1].is, &code.is, sizeof(code.is)) == 0)
		return true;
	if (codes->count == CODES_MAX || !read_code(process, &code))
		return false;
	place = u64_map_make(&codes->by_address, address);
	if (!place || grow_by_one(&codes->at, &codes->room, codes->count, sizeof(code)) < 0) {
		free_code(&code);
		return false;
	}
	*number = (uint32_t)codes->count;
	codes->at[codes->count++] = code;
	*place = codes->count;
	return true;
}

uint32_t codes_line(const struct codes *codes, const struct layout *layout, uint32_t number, int64_t instruction)
{
	const struct code *code = &codes->at[number];

	return (uint32_t)line_of((enum sampling_lines)layout->fields.lines, code->lines, code->lines_size,
				 code->is.line, instruction);
}

void codes_done(struct codes *codes)
{
	for (size_t i = 0; i < codes->count; i++)
		free_code(&codes->at[i]);
	free(codes->at);
	u64_map_done(&codes->by_address);
	*codes = (struct codes){0};
}
