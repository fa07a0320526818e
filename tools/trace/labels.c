/*
 * labels.c - cProfile's names for functions, merged by text. See labels.h.
 */
#include "trace/labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/grow.h"

char *label_c_function(const struct wire_definition *definition)
{
	struct text class = trace_string(definition, 0);
	struct text name = trace_string(definition, 1);
	struct text module = trace_string(definition, 3);
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return NULL;
	if (class.length) {
		fputs("<method '", stream);
		fwrite(name.at, 1, name.length, stream);
		fputs("' of '", stream);
		fwrite(class.at, 1, class.length, stream);
		fputs("' objects>", stream);
	} else {
		fputs("<built-in method ", stream);
		fwrite(module.at, 1, module.length, stream);
		fputs(module.length ? "." : "", stream);
		fwrite(name.at, 1, name.length, stream);
		fputc('>', stream);
	}
	if (fclose(stream) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* The last part of a type's name: "collections.deque" is deque, as in __qualname__. */
static struct text last_part(struct text name)
{
	size_t i;

	for (i = name.length; i > 0; i--)
		if (name.at[i - 1] == '.')
			break;
	return (struct text){name.at + i, name.length - i};
}

struct text label_qualname(const struct wire_definition *definition, char room[LABEL_QUALNAME_BYTES])
{
	struct text class = last_part(trace_string(definition, 0));
	struct text name = trace_string(definition, 1);
	size_t length = class.length;

	if (length + name.length + 1 > LABEL_QUALNAME_BYTES)
		return name;
	memcpy(room, class.at, length);
	if (length)
		room[length++] = '.';
	memcpy(room + length, name.at, name.length);
	return (struct text){room, length + name.length};
}

char *label_display(const struct wire_definition *definition, bool c_function, uint32_t id)
{
	struct text owner = {0}, name;
	char unknown[64], *bytes;
	size_t i, length;

	if (!definition) {
		snprintf(unknown, sizeof(unknown), "<unknown %s %u>", c_function ? "C function" : "function", id);
		return strdup(unknown);
	}
	name = trace_string(definition, !c_function && trace_string(definition, 2).length ? 2 : 1);
	if (c_function)
		owner = trace_string(definition, trace_string(definition, 0).length ? 0 : 3);
	bytes = malloc(owner.length + name.length + 2);
	if (!bytes)
		return NULL;
	if (owner.length)
		memcpy(bytes, owner.at, owner.length);
	length = owner.length;
	if (length)
		bytes[length++] = '.';
	memcpy(bytes + length, name.at, name.length);
	length += name.length;
	bytes[length] = 0;
	for (i = 0; i < length; i++)
		if (!bytes[i])
			bytes[i] = ' ';
	return bytes;
}

struct label label_module(const struct wire_definition *definition, bool c_function, char room[LABEL_MODULE_BYTES])
{
	struct text name;

	if (!definition)
		return (struct label){.file = text_of(c_function ? "~" : "?"),
				      .name = text_of(c_function ? "<?>" : "")};
	if (!c_function)
		return (struct label){.file = trace_string(definition, 0), .name = text_of("")};
	name = trace_string(definition, trace_string(definition, 0).length ? 0 : 3);
	if (!name.length)
		name = text_of("?");
	room[0] = '<';
	memcpy(room + 1, name.at, name.length);
	room[name.length + 1] = '>';
	return (struct label){.file = text_of("~"), .name = {room, name.length + 2}};
}

static bool label_same(const struct label *a, const struct label *b)
{
	return a->line == b->line && text_same(a->file, b->file) && text_same(a->name, b->name);
}

/* Copies the texts into one allocation, which begins with the file. */
static int copy_label(struct label *copy, const struct label *label)
{
	struct text file = label->file;
	struct text name = label->name;
	struct text display = label->display;

	copy->bytes = malloc(file.length + name.length + display.length + 1);
	if (!copy->bytes)
		return -ENOMEM;
	if (file.length) /* an empty file may have no bytes to point to */
		memcpy(copy->bytes, file.at, file.length);
	if (name.length)
		memcpy(copy->bytes + file.length, name.at, name.length);
	if (display.length)
		memcpy(copy->bytes + file.length + name.length, display.at, display.length);
	copy->file = (struct text){copy->bytes, file.length};
	copy->name = (struct text){copy->bytes + file.length, name.length};
	copy->display = (struct text){copy->bytes + file.length + name.length, display.length};
	copy->line = label->line;
	return 0;
}

uint32_t labels_add(struct labels *labels, const struct label *label)
{
	uint64_t hash = text_hash(text_hash(TEXT_HASH_BEGIN ^ label->line, label->file), label->name);
	uint64_t key = hash >> 1 | 1, *number; /* of labels with one hash, each has the key after another's */

	while ((number = u64_map_make(&labels->numbers, key)) && *number &&
	       !label_same(&labels->at[*number - 1], label))
		key++;
	if (!number)
		return UINT32_MAX;
	if (*number)
		return (uint32_t)*number - 1;
	if (grow_by_one(&labels->at, &labels->allocated, labels->count, sizeof(*labels->at)) ||
	    copy_label(&labels->at[labels->count], label) < 0)
		return UINT32_MAX;
	*number = ++labels->count;
	return labels->count - 1;
}

uint32_t labels_find(struct labels *labels, const struct trace_process *process, uint32_t id, bool c_function)
{
	const struct wire_definition *definition = trace_name(c_function ? &process->functions : &process->codes, id);
	struct label label = {.file = text_of(c_function ? "~" : "?")};
	char *display = definition ? label_display(definition, c_function, id) : NULL, *text = NULL;
	uint32_t number = UINT32_MAX;

	label.display = text_of(display);
	if (definition && !c_function) {
		label.file = trace_string(definition, 0);
		label.line = definition->number;
	} else if (definition) {
		text = label_c_function(definition);
	} else if (asprintf(&text, id ? "<unknown %s %u>" : "<unknown %s>", c_function ? "C function" : "function",
			    id) < 0) {
		text = NULL;
	}
	label.name = definition && !c_function ? trace_string(definition, 1) : text_of(text);
	if ((display || !definition) && label.name.at)
		number = labels_add(labels, &label);
	free(display);
	free(text);
	return number;
}

void labels_done(struct labels *labels)
{
	uint32_t i;

	for (i = 0; i < labels->count; i++)
		free(labels->at[i].bytes);
	free(labels->at);
	u64_map_done(&labels->numbers);
	memset(labels, 0, sizeof(*labels));
}

static bool is_c_function(const struct label *label)
{
	return label->line == 0 && text_same(label->file, text_of("~"));
}

void label_print(const struct label *label, struct output *output)
{
	struct text name = label->name;

	if (!is_c_function(label)) {
		output_line(output, label->file);
		output_format(output, ":%u(", label->line);
		output_line(output, name);
		output_char(output, ')');
		return;
	}
	if (name.length >= 2 && name.at[0] == '<' && name.at[name.length - 1] == '>') {
		output_char(output, '{');
		output_line(output, (struct text){name.at + 1, name.length - 2});
		output_char(output, '}');
		return;
	}
	output_line(output, name);
}

int label_compare(const struct label *a, const struct label *b)
{
	int order = is_c_function(b) - is_c_function(a);

	/* '{' sorts after all letters, so C functions come last. */
	if (order)
		return -order;
	order = text_compare(a->file, b->file);
	if (!order && a->line != b->line)
		order = a->line < b->line ? -1 : 1;
	return order ? order : text_compare(a->name, b->name);
}
