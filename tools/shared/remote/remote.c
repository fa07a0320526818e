/*
 * remote.c - see remote.h.
 */
#include "remote/remote.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define TEXT_CHARACTERS_MAX 65536
/* From 3.15 on a thread that is in no function has one frame, of no code, in its state: that ends within these. */
#define STATE_BYTES_MOST 65536

void remote_refresh(struct remote *remote)
{
	remote->generation++;
}

void remote_refresh_pages(struct remote *remote, pid_t pid, const uint64_t *addresses, size_t count)
{
	struct iovec here[REMOTE_PAGES] = {0}, there[REMOTE_PAGES] = {0};
	unsigned long pages = 0;
	ssize_t n;

	remote_refresh(remote);
	for (size_t i = 0; i < count && pages < REMOTE_PAGES; i++) {
		uint64_t first = addresses[i] - addresses[i] % REMOTE_PAGE_BYTES;
		size_t at = first / REMOTE_PAGE_BYTES % REMOTE_PAGES;

		if (remote->pages[at].generation == remote->generation)
			continue;
		remote->pages[at].address = first;
		remote->pages[at].generation = remote->generation;
		here[pages] = (struct iovec){remote->pages[at].bytes, REMOTE_PAGE_BYTES};
		there[pages++] =
		    (struct iovec){(void *)(uintptr_t)first, REMOTE_PAGE_BYTES}; // NOLINT: an address there
	}
	n = process_vm_readv(pid, here, pages, there, pages, 0);
	for (unsigned long i = n > 0 ? (unsigned long)n / REMOTE_PAGE_BYTES : 0; i < pages; i++)
		remote->pages[(uintptr_t)there[i].iov_base / REMOTE_PAGE_BYTES % REMOTE_PAGES].generation = 0;
}

int remote_read_now(struct remote *remote, uint64_t address, void *out, size_t size)
{
	ssize_t n = address >> 63 ? -1 : pread(remote->fd, out, size, (off_t)address);

	if (n == (ssize_t)size)
		return 0;
	return n == 0 ? -ESRCH : -EAGAIN;
}

/* The cached page, or NULL. */
static const uint8_t *page_of(struct remote *remote, uint64_t address)
{
	size_t at = address / REMOTE_PAGE_BYTES % REMOTE_PAGES;
	uint64_t first = address - address % REMOTE_PAGE_BYTES;

	if (remote->pages[at].address == first && remote->pages[at].generation == remote->generation)
		return remote->pages[at].bytes;
	remote->pages[at].address = first;
	remote->pages[at].generation = 0;
	if (remote_read_now(remote, first, remote->pages[at].bytes, REMOTE_PAGE_BYTES))
		return NULL;
	remote->pages[at].generation = remote->generation;
	return remote->pages[at].bytes;
}

bool remote_read(struct remote *remote, uint64_t address, void *out, size_t size)
{
	uint8_t *to = out;

	if (address < REMOTE_PAGE_BYTES || address >> 63)
		return false;
	while (size) {
		size_t skip = address % REMOTE_PAGE_BYTES;
		size_t part = size < REMOTE_PAGE_BYTES - skip ? size : REMOTE_PAGE_BYTES - skip;
		const uint8_t *page = page_of(remote, address);

		if (!page)
			return false;
		memcpy(to, page + skip, part);
		to += part;
		address += part;
		size -= part;
	}
	return true;
}

/* ---- stacks ------------------------------------------------------------------------------------------------------ */

bool remote_first_frame(struct remote *remote, uint64_t state, uint64_t *frame)
{
	const struct sampling *layout = &remote->layout;

	if (!remote_word(remote, state + layout->state_frame, frame))
		return false;
	return !layout->frame_holder || remote_word(remote, *frame + layout->frame_holder - 1, frame);
}

bool remote_instruction(struct remote *remote, struct remote_frame *frame)
{
	const struct sampling *layout = &remote->layout;
	uint64_t address = frame->frame + layout->frame_instruction, word;
	int32_t last;

	if (layout->instruction_unit) {
		if (!remote_read(remote, address, &last, sizeof(last)))
			return false;
		frame->instruction = (int64_t)last * layout->instruction_unit;
		return true;
	}
	if (!remote_word(remote, address, &word))
		return false;
	frame->instruction = (int64_t)(word - frame->code - layout->code_instructions);
	return true;
}

/*
 * Whether a frame is an entry frame: the interpreter has these where C code was entered. They have no code object, or
 * an artificial one.
 */
static bool is_entry(struct remote *remote, const struct remote_frame *frame)
{
	const struct sampling *layout = &remote->layout;
	uint64_t type;
	uint8_t owner;

	if (layout->frame_owner && remote_read(remote, frame->frame + layout->frame_owner, &owner, 1) &&
	    owner == layout->frame_owner_c)
		return true;
	return !remote_word(remote, frame->code + layout->object_type, &type) || type != layout->code_type;
}

int remote_stack(struct remote *remote, uint64_t state, struct remote_frame frames[REMOTE_FRAMES])
{
	const struct sampling *layout = &remote->layout;
	int count = 0, steps = 0, turn = 8;
	uint64_t at, passed = 0; /* an earlier frame: generators that are relinked meanwhile may look like a cycle */

	if (!remote_first_frame(remote, state, &at))
		return -1;
	while (at) {
		struct remote_frame *frame = &frames[count];

		frame->frame = at;
		if (++steps == turn) {
			passed = at;
			turn *= 2;
		} else if (at == passed) {
			break;
		}
		if (count + 1 == REMOTE_FRAMES || steps == 2 * REMOTE_FRAMES)
			return -1;
		if (!remote_word(remote, at + layout->frame_code, &frame->code) ||
		    !remote_word(remote, at + layout->frame_back, &at))
			break;
		frame->code &= ~UINT64_C(7); /* tag bits from 3.14 on */
		frame->back = at;
		if (is_entry(remote, frame)) {
			if (steps == 1 && !at && frame->frame - state < STATE_BYTES_MOST)
				return 0;
			continue;
		}
		if (!remote_instruction(remote, frame))
			break;
		count++;
	}
	return count || !steps ? count : -1;
}

bool remote_same_frame(struct remote *remote, const struct remote_frame *frame, bool stands)
{
	const struct sampling *layout = &remote->layout;
	struct remote_frame now = {.frame = frame->frame};

	if (!remote_word(remote, frame->frame + layout->frame_code, &now.code) ||
	    !remote_word(remote, frame->frame + layout->frame_back, &now.back))
		return false;
	now.code &= ~UINT64_C(7);
	return now.code == frame->code && now.back == frame->back &&
	       (!stands || (remote_instruction(remote, &now) && now.instruction == frame->instruction));
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

bool remote_code(struct remote *remote, uint64_t address, struct remote_code *code)
{
	const struct sampling *layout = &remote->layout;
	uint64_t type;

	*code = (struct remote_code){0};
	return remote_word(remote, address + layout->object_type, &type) && type == layout->code_type &&
	       remote_word(remote, address + layout->code_file, &code->file) &&
	       remote_word(remote, address + layout->code_name, &code->name) &&
	       (!layout->code_qualified_name ||
		remote_word(remote, address + layout->code_qualified_name, &code->qualified_name)) &&
	       remote_word(remote, address + layout->code_lines, &code->lines) &&
	       remote_read(remote, address + layout->code_line, &code->line, sizeof(code->line)) &&
	       (!layout->code_flags ||
		remote_read(remote, address + layout->code_flags, &code->flags, sizeof(code->flags)));
}

long remote_bytes(struct remote *remote, uint64_t object, uint8_t *out, size_t size)
{
	uint64_t length;

	if (!remote_word(remote, object + remote->layout.size, &length) || length >> 62)
		return -1;
	if (length > size)
		length = size;
	return remote_read(remote, object + remote->layout.bytes_data, out, length) ? (long)length : -1;
}

/* Encodes a character as UTF-8, a lone surrogate like any other. Returns the length. */
static size_t encode_utf8(uint32_t character, char out[4])
{
	static const unsigned first[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

	for (size_t i = length; --i > 0; character >>= 6)
		out[i] = (char)(0x80 | (character & 0x3f));
	out[0] = (char)(first[length] | (length == 4 ? character & 7 : character));
	return length;
}

long remote_text(struct remote *remote, uint64_t object, char *out, size_t size)
{
	const struct sampling *layout = &remote->layout;
	uint64_t length, data;
	uint32_t state, kind;
	size_t used = 0;

	if (!remote_word(remote, object + layout->size, &length) || length > TEXT_CHARACTERS_MAX ||
	    !remote_read(remote, object + layout->text_state, &state, sizeof(state)))
		return -1;
	state >>= layout->text_kind;
	kind = state & 7;
	if (!(state >> 3 & 1) || (kind != 1 && kind != 2 && kind != 4))
		return -1;
	data = object + (state >> 4 & 1 ? layout->text_ascii_data : layout->text_data);
	for (uint64_t i = 0; i < length; i++) {
		uint32_t character = 0;
		char encoded[4];
		size_t n;

		if (!remote_read(remote, data + i * kind, &character, kind))
			return -1;
		n = encode_utf8(character, encoded);
		if (used + n > size)
			break;
		memcpy(out + used, encoded, n);
		used += n;
	}
	return (long)used;
}
