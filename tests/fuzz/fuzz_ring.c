/*
 * fuzz_ring.c - a target that writes anything anywhere: header, slots, definitions and events of its memory are the
 * fuzzer's, before the join and while the collector reads.
 *
 * The collector must neither fault nor hang nor lose its own file: the session must be finished, and the file whole.
 * The input is a list of steps: an opcode byte, then its operands.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/ring/events.h"
#include "collector/base/log.h"
#include "collector/session/process.h"
#include "collector/symbols/resolver.h"
#include "collector/session/session.h"
#include "tests/fuzz/input.h"
#include "tests/unit/fake_target.c"

#define SLOTS 8u
#define WHOLE_DEFINITION 240u /* in place of a number of bytes */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct loop loop;
static struct session_tools tools;
static char path[64];

static void remove_file(void)
{
	unlink(path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	snprintf(path, sizeof(path), "/dev/shm/evprof-fuzz-%d.evp", (int)getpid());
	atexit(remove_file);
	log_level = LOG_ERROR;
	if (loop_init(&loop) < 0)
		abort();
	tools = (struct session_tools){
	    .loop = &loop,
	    .drain = {.events = malloc(sizeof(struct events_buffer)), .definitions = malloc(DRAIN_DEFINITIONS_BYTES)},
	    .packer = trace_packer_new(),
	    .resolver = resolver_new(&loop)};
	return 0;
}

/* Copies input into a ring at its head, and moves the head. */
static void put_words(struct fake_target *target, struct input *input)
{
	struct ring_slot *slot = &target->slots[take(input, 1) % SLOTS];
	uint64_t slots_end = RING_PAGE_BYTES + RING_DEFINITIONS_BYTES + SLOTS * sizeof(struct ring_slot);
	uint64_t data =
	    (slots_end + RING_PAGE_BYTES - 1) & ~(uint64_t)(RING_PAGE_BYTES - 1); /* slot 0 of fake_target.c */
	uint64_t ring = data + (uint64_t)(slot - target->slots) * RING_BYTES_MIN;
	uint64_t head = atomic_load(&slot->head);
	unsigned count = (unsigned)take(input, 1);

	for (unsigned i = 0; i < count && input->left > 0; i++, head++) {
		uint64_t word = take(input, 8);

		memcpy(target->map + ring + (head * 8 & (RING_BYTES_MIN - 1)), &word, sizeof(word));
	}
	atomic_store(&slot->head, head);
}

/* A whole one: whatever it says, the collector takes it. */
static void put_definition(struct fake_target *target, struct input *input)
{
	struct wire_definition record = {.type = (uint16_t)(take(input, 1) % (WIRE_DEFINE_SYMBOL + 1)),
					 .flags = (uint16_t)take(input, 1),
					 .id = (uint32_t)take(input, 1),
					 .number = (uint32_t)take(input, 2),
					 .address = take(input, 3) << 4};
	_Alignas(8) uint8_t bytes[sizeof(record) + WIRE_DEFINITION_STRINGS * 64 + 8] = {0};
	size_t at = sizeof(record);

	for (unsigned i = 0; i < WIRE_DEFINITION_STRINGS; i++) {
		record.length[i] = (uint32_t)take(input, 1) % 65;
		for (uint32_t k = 0; k < record.length[i]; k++)
			bytes[at++] = (uint8_t)take(input, 1);
	}
	record.size_bytes = wire_definition_bytes(&record);
	memcpy(bytes, &record, sizeof(record));
	target->header->layout.definitions_offset = RING_PAGE_BYTES; /* it may have been overwritten */
	target->header->layout.definitions_bytes = RING_DEFINITIONS_BYTES;
	fake_definition_bytes(target, bytes, record.size_bytes);
}

static void put_definitions(struct fake_target *target, struct input *input)
{
	uint64_t head = atomic_load(&target->header->definitions_head);
	size_t count = take(input, 1);

	if (count >= WHOLE_DEFINITION) {
		put_definition(target, input);
		return;
	}
	for (; count > 0 && input->left > 0; count--, head++)
		target->map[RING_PAGE_BYTES + (head & (RING_DEFINITIONS_BYTES - 1))] = (uint8_t)take(input, 1);
	atomic_store(&target->header->definitions_head, head);
}

/* One thing that a target may do to its memory. */
static void step(struct fake_target *target, struct input *input)
{
	size_t offset;
	uint64_t value;

	switch (take(input, 1) % 6) {
	case 0: /* 8 bytes of the header */
		offset = take(input, 2) % (sizeof(struct ring_header) - 8);
		value = take(input, 8);
		memcpy(target->map + offset, &value, sizeof(value));
		break;
	case 1: /* 8 bytes of a slot */
		offset = take(input, 2) % (SLOTS * sizeof(struct ring_slot) - 8);
		value = take(input, 8);
		memcpy((uint8_t *)target->slots + offset, &value, sizeof(value));
		break;
	case 2:
		put_words(target, input);
		break;
	case 3:
		put_definitions(target, input);
		break;
	case 4:
		fake_thread_start(target, (unsigned)take(input, 1) % SLOTS, 1, 1);
		break;
	default:
		fake_thread_end(target, (unsigned)take(input, 1) % SLOTS);
	}
}

/* The file ends with a struct trace_end, whatever happened. */
static void check_file(void)
{
	struct trace_end end;
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &status) < 0 || status.st_size < (off_t)sizeof(end) ||
	    pread(fd, &end, sizeof(end), status.st_size - (off_t)sizeof(end)) != sizeof(end) ||
	    end.magic != TRACE_END_MAGIC)
		abort();
	close(fd);
}

static void run_session(struct fake_target *target, struct input *input, struct session *session)
{
	struct drain_result result = {0};
	uint64_t now_ns = clock_now_ns();

	for (unsigned round = 0; round < 8; round++) {
		session_round(session, now_ns, &result);
		resolver_work(tools.resolver, now_ns);
		for (unsigned i = 0; i < 4 && input->left > 0; i++)
			step(target, input);
		now_ns += UINT64_C(300000000); /* nothing stays in a ring for being little */
	}
	session_let_go(session, now_ns);
	session_stop(session, now_ns);
	session_is_stopping(session, 0, 0);
	if (!session->finished)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {.at = data, .left = size};
	struct control_message message;
	struct session *session;
	struct fake_target target;
	const char *text;
	char reason[256];
	uint64_t bytes;
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	const struct ucred who = {.pid = getpid(), .uid = getuid(), .gid = getgid()};
	int memfd;

	if (fake_target_new(&target, RING_BYTES_MIN, SLOTS) < 0)
		abort();
	bytes = target.header->layout.size_bytes;
	for (unsigned before = (unsigned)take(&input, 1) % 8; before > 0; before--)
		step(&target, &input);
	/* Half of the inputs may have definitions of native stacks. There is no evprof-symbols to symbolize them. */
	text = fake_join_text(&(struct fake_join){.output = path, .native = size & 1});
	if (control_parse(text, strlen(text), &message, reason, sizeof(reason)) < 0)
		abort();
	session = session_new(&tools, &message, geteuid(), (char[256]){0}, 256);
	memfd = dup(target.memfd);
	if (!session || memfd < 0)
		abort();
	if (session_join(session, &message, memfd, pidfd, &who, reason, sizeof(reason)) == 0) {
		run_session(&target, &input, session);
		check_file();
	} else {
		close(memfd);
		close(pidfd);
	}
	session_free(session);
	control_message_done(&message);
	target.header->layout.size_bytes = bytes;
	fake_target_free(&target);
	return 0;
}
