/*
 * fake_target.c - a producer of events for tests of the collector.
 */
#include "fake_target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "evprof/control.h"

static uint64_t page_up(uint64_t bytes)
{
	return (bytes + RING_PAGE_BYTES - 1) & ~(uint64_t)(RING_PAGE_BYTES - 1);
}

static void lay_out(struct fake_target *target, uint64_t ring_bytes, uint32_t slot_count, uint64_t size)
{
	struct ring_header *header = target->header;
	uint64_t data;

	header->layout.magic = RING_MAGIC;
	header->layout.version = RING_VERSION;
	header->layout.header_bytes = sizeof(*header);
	header->layout.size_bytes = size;
	header->layout.definitions_offset = RING_PAGE_BYTES;
	header->layout.definitions_bytes = RING_DEFINITIONS_BYTES;
	header->layout.slots_offset = RING_PAGE_BYTES + RING_DEFINITIONS_BYTES;
	header->layout.slot_count = slot_count;
	header->layout.slot_bytes = sizeof(struct ring_slot);
	header->layout.clock_kind = RING_CLOCK_MONOTONIC;
	header->layout.start_ticks = 1000;
	target->slots = (struct ring_slot *)(void *)(target->map + header->layout.slots_offset);
	data = page_up(header->layout.slots_offset + slot_count * sizeof(struct ring_slot));
	for (uint32_t i = 0; i < slot_count; i++) {
		target->slots[i].data_offset = data;
		target->slots[i].data_words = ring_bytes / sizeof(uint64_t);
		data += ring_bytes;
	}
}

int fake_target_new(struct fake_target *target, uint64_t ring_bytes, uint32_t slot_count)
{
	uint64_t slots_end = RING_PAGE_BYTES + RING_DEFINITIONS_BYTES + slot_count * sizeof(struct ring_slot);
	uint64_t size = page_up(slots_end) + ring_bytes * slot_count;
	void *map;

	*target = (struct fake_target){.memfd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
	if (target->memfd < 0 || ftruncate(target->memfd, (off_t)size) < 0 ||
	    fcntl(target->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, target->memfd, 0);
	if (map == MAP_FAILED)
		return -errno;
	target->map = map;
	target->header = map;
	lay_out(target, ring_bytes, slot_count, size);
	return 0;
}

void fake_target_free(struct fake_target *target)
{
	munmap(target->map, target->header->layout.size_bytes);
	close(target->memfd);
}

static socklen_t make_address(const char *name, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path, name, strlen(name));
	if (name[0] == '@')
		address->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
}

int fake_listen(char *name, size_t name_bytes)
{
	static unsigned counter;
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(name, name_bytes, "@evprof-test-%d-%u", (int)getpid(), counter++);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, make_address(name, &address)) < 0 ||
	    listen(fd, CONTROL_BACKLOG) < 0)
		return -errno;
	return fd;
}

int fake_connect(const char *name)
{
	struct sockaddr_un address;
	socklen_t length = make_address(name, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, length) < 0)
		return -errno;
	return fd;
}

int fake_send(int socket, const char *text, size_t bytes, const int *fds, unsigned count)
{
	union {
		char bytes[CMSG_SPACE(16 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {.iov_base = (void *)(uintptr_t)text, .iov_len = bytes};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	if (count > 0) {
		struct cmsghdr *first;

		header.msg_control = control.bytes;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
		first = CMSG_FIRSTHDR(&header);
		first->cmsg_level = SOL_SOCKET;
		first->cmsg_type = SCM_RIGHTS;
		first->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(first), fds, count * sizeof(int));
	}
	return sendmsg(socket, &header, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

const char *fake_join_text(const struct fake_join *join)
{
	static char text[8192];

	snprintf(text, sizeof(text),
		 "{\"evprof\":1,\"type\":\"join\",\"session\":\"%s\",\"start\":\"%s\",\"pid\":%d,\"ppid\":%d,"
		 "\"start_time\":%llu,\"python\":\"3.11.2\",\"program\":\"%s\",\"argv\":[\"prog\",\"a b\"],"
		 "\"exe\":\"/usr/bin/python3\",\"cwd\":\"/\",\"host\":\"box\",\"output\":\"%s\",\"root\":true,"
		 "\"events\":[%s]%s}",
		 join->session ? join->session : FAKE_SESSION, join->start ? join->start : "exec",
		 (int)(join->pid ? join->pid : getpid()), (int)(join->ppid ? join->ppid : getppid()), join->start_time,
		 join->program ? join->program : "prog", join->output ? join->output : "/nowhere/%n.evp",
		 join->events ? join->events : "\"call\",\"mem\"", join->native ? ",\"native\":true" : "");
	return text;
}

int fake_target_join(struct fake_target *target, const char *name, const struct fake_join *join)
{
	const char *text = fake_join_text(join);
	int fds[2] = {target->memfd, (int)syscall(SYS_pidfd_open, getpid(), 0)};
	int socket = fake_connect(name);
	int error;

	if (fds[1] < 0 || socket < 0)
		return -EBADF;
	error = fake_send(socket, text, strlen(text), fds, 2);
	close(socket);
	close(fds[1]);
	return error;
}

void fake_thread_start(struct fake_target *target, unsigned slot, uint32_t tid, uint64_t start_ticks)
{
	struct ring_slot *at = &target->slots[slot];
	uint32_t used = atomic_load(&target->header->slots_used);

	atomic_store(&at->state, RING_SLOT_CLAIMED);
	at->tid = tid;
	at->start_ticks = start_ticks;
	atomic_store_explicit(&at->state, RING_SLOT_LIVE, memory_order_release);
	if (used < slot + 1)
		atomic_store(&target->header->slots_used, slot + 1);
}

void fake_thread_end(struct fake_target *target, unsigned slot)
{
	atomic_store_explicit(&target->slots[slot].state, RING_SLOT_ENDED, memory_order_release);
}

bool fake_has_room(const struct fake_target *target, unsigned slot, unsigned words)
{
	const struct ring_slot *at = &target->slots[slot];

	return atomic_load(&at->head) + words - ring_tail(at) <= at->data_words;
}

void fake_event(struct fake_target *target, unsigned slot, uint64_t word, const uint64_t *extra)
{
	struct ring_slot *at = &target->slots[slot];
	uint64_t *data = (uint64_t *)(void *)(target->map + at->data_offset);
	uint64_t head = atomic_load(&at->head);
	unsigned kind = wire_head_kind((uint32_t)word);

	data[head++ & (at->data_words - 1)] = word;
	for (unsigned i = 0; i < wire_extra_words((uint32_t)word); i++)
		data[head++ & (at->data_words - 1)] = extra ? extra[i] : 0;
	ring_publish(at, head);
	target->emitted += !wire_is_bookkeeping(kind);
}

void fake_call(struct fake_target *target, unsigned slot, unsigned kind, uint32_t id, uint32_t ticks)
{
	uint32_t head = kind < WIRE_EXTENDED_KIND ? wire_head(kind, id) : wire_extended(kind, 0, id);

	fake_event(target, slot, wire_word(head, ticks), NULL);
}

void fake_definition_bytes(struct fake_target *target, const void *bytes, size_t count)
{
	struct ring_header *header = target->header;
	uint8_t *ring = target->map + header->layout.definitions_offset;
	uint64_t head = atomic_load(&header->definitions_head);

	for (size_t i = 0; i < count; i++)
		ring[(head + i) & (header->layout.definitions_bytes - 1)] = ((const uint8_t *)bytes)[i];
	atomic_store_explicit(&header->definitions_head, head + count, memory_order_release);
}

void fake_definition(struct fake_target *target, unsigned type, uint32_t id, uint32_t number,
		     const char *const strings[WIRE_DEFINITION_STRINGS])
{
	_Alignas(8) uint8_t bytes[4096] = {0};
	struct wire_definition record = {.type = (uint16_t)type, .id = id, .number = number};
	size_t at = sizeof(record);

	for (unsigned i = 0; i < WIRE_DEFINITION_STRINGS; i++) {
		record.length[i] = (uint32_t)strlen(strings[i]);
		memcpy(bytes + at, strings[i], record.length[i]);
		at += record.length[i];
	}
	record.size_bytes = (uint32_t)((at + 7) & ~(size_t)7);
	memcpy(bytes, &record, sizeof(record));
	fake_definition_bytes(target, bytes, record.size_bytes);
}

uint32_t fake_collector_state(const struct fake_target *target)
{
	return atomic_load_explicit(&target->header->collector_state, memory_order_acquire);
}
