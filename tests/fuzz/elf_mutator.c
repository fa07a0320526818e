/*
 * elf_mutator.c - see elf_mutator.h. Half of the changes go to a section, whichever: those of debug information are
 * smaller than code, and all else hangs on them.
 */
#include "elf_mutator.h"

#include <elf.h>
#include <string.h>

#define HEAD 4 /* the two lengths */
#define STEPS_MAX 512

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

static unsigned draw(uint32_t *state, unsigned below)
{
	*state = *state * 1664525 + 1013904223;
	return (unsigned)(((uint64_t)*state * below) >> 32);
}

bool elf_input_split(struct elf_input *parts, const uint8_t *data, size_t size)
{
	struct input rest = {data, size};
	size_t steps = take(&rest, 2), library = take(&rest, 2);

	if (size < HEAD || rest.left < steps || rest.left - steps < library)
		return false;
	parts->steps = (struct input){rest.at, steps};
	parts->library = (struct input){rest.at + steps, library};
	parts->debug = (struct input){rest.at + steps + library, rest.left - steps - library};
	return true;
}

/* Some section's bytes in the file; the whole file where it has none. */
static void pick_section(const uint8_t *file, size_t bytes, uint32_t *state, size_t *from, size_t *count)
{
	Elf64_Ehdr header;
	Elf64_Shdr section;
	uint64_t at;

	*from = 0;
	*count = bytes;
	if (bytes < sizeof(header))
		return;
	memcpy(&header, file, sizeof(header));
	if (!header.e_shnum)
		return;
	at = header.e_shoff + draw(state, header.e_shnum) * (uint64_t)sizeof(section);
	if (header.e_shoff >= bytes || at + sizeof(section) > bytes)
		return;
	memcpy(&section, file + at, sizeof(section));
	if (draw(state, 16) == 0) { /* its header */
		*from = (size_t)at;
		*count = sizeof(section);
	} else if (section.sh_type != SHT_NOBITS && section.sh_size && section.sh_offset < bytes &&
		   section.sh_size <= bytes - section.sh_offset) {
		*from = (size_t)section.sh_offset;
		*count = (size_t)section.sh_size;
	}
}

static uint64_t draw_number(uint32_t *state)
{
	static const uint64_t likely[] = {0,	  1,	  2,	      0x7f,	  0x80,	     0xff,
					  0x7fff, 0xffff, 0x7fffffff, 0xffffffff, UINT64_MAX};

	if (draw(state, 2))
		return likely[draw(state, sizeof(likely) / sizeof(*likely))];
	return (uint64_t)draw(state, UINT32_MAX) << draw(state, 33);
}

static void change(uint8_t *at, size_t left, uint32_t *state)
{
	size_t bytes = (size_t)1 << draw(state, 4);
	uint64_t value = 0;

	bytes = bytes < left ? bytes : 1;
	memcpy(&value, at, bytes);
	switch (draw(state, 4)) {
	case 0:
		value ^= UINT64_C(1) << draw(state, (unsigned)bytes * 8);
		break;
	case 1:
		value += draw(state, 33) - UINT64_C(16);
		break;
	default:
		value = draw_number(state);
	}
	memcpy(at, &value, bytes);
}

static void change_file(uint8_t *file, size_t bytes, uint32_t *state)
{
	size_t from = 0, count = bytes, at;

	if (draw(state, 4))
		pick_section(file, bytes, state, &from, &count);
	at = from + draw(state, (unsigned)count);
	if (draw(state, 8) == 0) { /* somewhere else's bytes */
		size_t source = draw(state, (unsigned)bytes), most = bytes - (at > source ? at : source);

		memmove(file + at, file + source, draw(state, (unsigned)(most < 64 ? most : 64)));
	} else {
		change(file + at, bytes - at, state);
	}
}

/* The steps grow and shrink, and what comes behind them moves. */
static size_t change_steps(uint8_t *data, size_t size, size_t room, size_t steps)
{
	uint8_t changed[STEPS_MAX];
	size_t most = steps + (room - size), count;

	if (steps > sizeof(changed) || !most)
		return size;
	memcpy(changed, data + HEAD, steps);
	count = LLVMFuzzerMutate(changed, steps, most < sizeof(changed) ? most : sizeof(changed));
	memmove(data + HEAD + count, data + HEAD + steps, size - HEAD - steps);
	memcpy(data + HEAD, changed, count);
	data[0] = (uint8_t)count;
	data[1] = (uint8_t)(count >> 8);
	return size - steps + count;
}

size_t elf_mutate(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	uint32_t state = seed | 1;
	struct elf_input parts;

	if (!elf_input_split(&parts, data, size) || draw(&state, 32) == 0)
		return LLVMFuzzerMutate(data, size, room);
	for (unsigned changes = 1 + draw(&state, 6); changes > 0; changes--) {
		const struct input *file = draw(&state, 4) ? &parts.library : &parts.debug;

		if (file->left)
			change_file(data + (file->at - data), file->left, &state);
	}
	return draw(&state, 4) ? size : change_steps(data, size, room, parts.steps.left);
}
