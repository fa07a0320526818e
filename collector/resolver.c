/*
 * resolver.c - the collector's end of evprof-symbols. See resolver.h.
 */
#include "resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "evprof/wire.h"
#include "log.h"
#include "symbols.h"

#define QUEUE_MAX (1u << 18) /* entries that a process may have waiting */
#define MODULES_MAX 4096u    /* of a process */
#define SILENCE_NS UINT64_C(10000000000)
#define LOOKS_MAX 2 /* asked and not answered */

struct module {
	struct symbols_message message;
	char *path;
};

/* What is to be said: a module (its number + 1), or an address. */
struct entry {
	uint32_t module;
	struct symbols_address address;
};

struct resolver_client {
	struct resolver_client *next;
	struct resolver *resolver;
	uint32_t number;
	int root; /* the process's root directory; -1: not known */
	void (*found)(void *owner, const void *definitions, size_t bytes);
	void *owner;
	struct entry *queue;
	size_t said, queued, capacity;
	uint32_t looks; /* asked and not answered */
	struct module *modules;
	uint32_t module_count;
	uint64_t *seen; /* addresses that were queued: a hash table, at most half full */
	size_t seen_count, seen_places;
};

struct resolver {
	struct loop_source source; /* fd: the socket; -1: evprof-symbols does not run */
	struct loop *loop;
	pid_t pid;
	struct resolver_client *clients;
	uint32_t next_number;
	uint32_t looks;
	uint64_t since_ns; /* its last sign of life, or the first question after that */
};

/* ---- the program ------------------------------------------------------------------------------------------------- */

/* Beside the collector, in the build folder, or with the library where it is installed. */
static bool find_program(char *path, size_t bytes)
{
	static const char *const places[] = {"/evprof-symbols", "/../lib/evprof/evprof-symbols"};
	char folder[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
	char *slash;

	folder[length > 0 ? length : 0] = '\0';
	slash = strrchr(folder, '/');
	if (!slash)
		return false;
	*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if ((size_t)snprintf(path, bytes, "%s%s", folder, places[i]) < bytes && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static void forget_queue(struct resolver_client *client)
{
	client->said = client->queued = 0;
	client->looks = 0;
}

/* What was asked is not answered any more; those who come later may start it anew. */
static void stop(struct resolver *resolver)
{
	if (resolver->source.fd < 0)
		return;
	loop_remove(resolver->loop, &resolver->source);
	close(resolver->source.fd);
	resolver->source.fd = -1;
	kill(resolver->pid, SIGKILL);
	waitpid(resolver->pid, NULL, 0);
	resolver->looks = 0;
	for (struct resolver_client *client = resolver->clients; client; client = client->next) {
		forget_queue(client);
		client->resolver = NULL;
	}
}

static int spawn_program(struct resolver *resolver, int socket)
{
	static char *const environment[] = {NULL}; /* no variable is to send it to a server */
	char path[PATH_MAX];
	char *argv[] = {"evprof-symbols", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int error;

	if (!find_program(path, sizeof(path)))
		return -ENOENT;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	error = -posix_spawn(&resolver->pid, path, &actions, &attributes, argv, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

static void ready(struct loop_source *source, uint32_t events);

static bool start(struct resolver *resolver)
{
	int pair[2];
	int error = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ? -errno : 0;

	if (!error) {
		error = spawn_program(resolver, pair[1]);
		close(pair[1]);
		if (error)
			close(pair[0]);
	}
	if (error) {
		log_warning("cannot start evprof-symbols, native frames have no names: %s", strerror(-error));
		return false;
	}
	resolver->source = (struct loop_source){.fd = pair[0], .ready = ready};
	error = loop_add(resolver->loop, &resolver->source);
	if (error)
		stop(resolver);
	return !error;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* It has read files of strangers: what it says is looked at like what they say. */
static bool is_sound(const uint8_t *at, size_t bytes)
{
	struct wire_definition record;

	for (; bytes > 0; at += record.size_bytes, bytes -= record.size_bytes) {
		if (bytes < sizeof(record))
			return false;
		memcpy(&record, at, sizeof(record));
		for (unsigned i = 0; i < WIRE_DEFINITION_STRINGS; i++) {
			if (record.length[i] > WIRE_STRING_MAX_BYTES)
				return false;
		}
		if (record.type != WIRE_DEFINE_SYMBOL || record.size_bytes > bytes ||
		    record.size_bytes != wire_definition_bytes(&record))
			return false;
	}
	return true;
}

static struct resolver_client *find_client(const struct resolver *resolver, uint32_t number)
{
	struct resolver_client *client = resolver->clients;

	while (client && client->number != number)
		client = client->next;
	return client;
}

static bool take_answer(struct resolver *resolver, const uint8_t *answer, size_t bytes)
{
	struct symbols_message head;
	struct resolver_client *client;

	if (bytes < sizeof(head))
		return false;
	memcpy(&head, answer, sizeof(head));
	answer += sizeof(head);
	bytes -= sizeof(head);
	if ((head.kind != SYMBOLS_FOUND && head.kind != SYMBOLS_DONE) || !is_sound(answer, bytes))
		return false;
	client = find_client(resolver, head.client);
	if (head.kind == SYMBOLS_DONE) {
		if (!resolver->looks)
			return false;
		resolver->looks--;
		if (client && client->looks)
			client->looks--;
	}
	if (client && bytes > 0)
		client->found(client->owner, answer, bytes);
	return true;
}

static void ready(struct loop_source *source, uint32_t events)
{
	struct resolver *resolver = LOOP_OWNER(source, struct resolver, source);
	static uint8_t answer[SYMBOLS_MESSAGE_MAX_BYTES];
	ssize_t count;

	(void)events;
	while ((count = recv(source->fd, answer, sizeof(answer), MSG_DONTWAIT)) > 0) {
		if (!take_answer(resolver, answer, (size_t)count)) {
			count = 0;
			break;
		}
		resolver->since_ns = clock_now_ns();
	}
	if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
		log_warning("evprof-symbols has ended: native frames of what runs have no further names");
		stop(resolver);
	}
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static bool say(const struct resolver *resolver, struct iovec *parts, size_t count, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};

	if (fd >= 0) {
		memset(&control, 0, sizeof(control));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	return sendmsg(resolver->source.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static bool say_module(const struct resolver_client *client, struct module *module)
{
	struct iovec parts[2] = {{&module->message, sizeof(module->message)}, {module->path, strlen(module->path)}};

	return say(client->resolver, parts, 2, client->root);
}

static bool ask(struct resolver_client *client, uint64_t now_ns)
{
	struct symbols_message message = {.kind = SYMBOLS_LOOK, .client = client->number};
	struct symbols_address addresses[SYMBOLS_ADDRESSES_MAX];
	size_t count = 0;
	struct iovec parts[2] = {{&message, sizeof(message)}, {addresses, 0}};

	while (client->said + count < client->queued && count < SYMBOLS_ADDRESSES_MAX &&
	       !client->queue[client->said + count].module) {
		addresses[count] = client->queue[client->said + count].address;
		count++;
	}
	parts[1].iov_len = count * sizeof(addresses[0]);
	if (!say(client->resolver, parts, 2, -1))
		return false;
	if (!client->resolver->looks)
		client->resolver->since_ns = now_ns;
	client->said += count;
	client->looks++;
	client->resolver->looks++;
	return true;
}

/* False: no more can be said now. */
static bool work_for(struct resolver_client *client, uint64_t now_ns)
{
	struct resolver *resolver = client->resolver;

	while (client->said < client->queued) {
		const struct entry *entry = &client->queue[client->said];

		if (resolver->source.fd < 0 && !start(resolver)) {
			forget_queue(client);
			client->resolver = NULL;
			return true;
		}
		if (entry->module) {
			if (!say_module(client, &client->modules[entry->module - 1]))
				return false;
			client->said++;
		} else if (resolver->looks >= LOOKS_MAX || !ask(client, now_ns)) {
			return false;
		}
	}
	client->said = client->queued = 0;
	return true;
}

void resolver_work(struct resolver *resolver, uint64_t now_ns)
{
	if (resolver->looks && now_ns - resolver->since_ns >= SILENCE_NS) {
		log_warning("evprof-symbols says nothing any more: native frames of what runs have no further names");
		stop(resolver);
	}
	for (struct resolver_client *client = resolver->clients; client; client = client->next) {
		if (client->resolver && !work_for(client, now_ns))
			break;
	}
}

bool resolver_is_busy(const struct resolver_client *client)
{
	return client && client->resolver && (client->looks || client->said < client->queued);
}

/* ---- what is to be asked ----------------------------------------------------------------------------------------- */

static bool is_new(struct resolver_client *client, uint64_t address);

/* A table of so many places with what is in the present one, but for the addresses from start up to end. */
static bool rebuild_seen(struct resolver_client *client, size_t places, uint64_t start, uint64_t end)
{
	uint64_t *before = client->seen, *fresh = places <= 2 * QUEUE_MAX ? calloc(places, sizeof(*fresh)) : NULL;
	size_t old = client->seen_places;

	if (!fresh)
		return false;
	client->seen = fresh;
	client->seen_places = places;
	client->seen_count = 0;
	for (size_t i = 0; i < old; i++) {
		if (before[i] && !(before[i] > start && before[i] <= end))
			is_new(client, before[i]);
	}
	free(before);
	return true;
}

/* False: it is not to be asked, or not again. */
static bool is_new(struct resolver_client *client, uint64_t address)
{
	size_t place;

	if (2 * client->seen_count >= client->seen_places &&
	    !rebuild_seen(client, client->seen_places ? client->seen_places * 2 : 1024, 0, 0))
		return false;
	place = (size_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (client->seen_places - 1);
	while (client->seen[place] && client->seen[place] != address)
		place = (place + 1) & (client->seen_places - 1);
	if (client->seen[place] == address)
		return false;
	client->seen[place] = address;
	client->seen_count++;
	return true;
}

static void queue(struct resolver_client *client, const struct entry *entry)
{
	if (client->queued == client->capacity) {
		size_t capacity = client->capacity ? client->capacity * 2 : 256;
		struct entry *grown = capacity <= QUEUE_MAX ? realloc(client->queue, capacity * sizeof(*grown)) : NULL;

		if (!grown)
			return;
		client->queue = grown;
		client->capacity = capacity;
	}
	client->queue[client->queued++] = *entry;
}

static uint32_t read_digits(const uint8_t *digits, size_t count, uint8_t *bytes)
{
	static const char values[] = "0123456789abcdef";

	if (count % 2 || count / 2 > SYMBOLS_BUILD_ID_MAX_BYTES)
		return 0;
	for (size_t i = 0; i < count; i++) {
		const char *value = digits[i] ? strchr(values, digits[i]) : NULL;

		if (!value)
			return 0;
		bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | (value - values));
	}
	return (uint32_t)count / 2;
}

/* Where another module was, addresses have another meaning. */
static bool takes_place(const struct resolver_client *client, const struct symbols_message *module)
{
	for (uint32_t i = 0; i < client->module_count; i++) {
		const struct symbols_message *other = &client->modules[i].message;

		if (module->start < other->end && other->start < module->end)
			return true;
	}
	return false;
}

static void note_module(struct resolver_client *client, const struct wire_definition *record, const uint8_t *strings)
{
	struct module module = {.message = {.kind = SYMBOLS_MODULE,
					    .client = client->number,
					    .start = record->address,
					    .end = record->address + ((uint64_t)record->number << 12)}};
	struct module *grown;

	if (client->module_count == MODULES_MAX || module.message.end < module.message.start ||
	    record->length[0] >= PATH_MAX)
		return;
	module.message.build_id_bytes =
	    read_digits(strings + record->length[0], record->length[1], module.message.build_id);
	module.path = strndup((const char *)strings, record->length[0]);
	grown = realloc(client->modules, (client->module_count + 1) * sizeof(*grown));
	if (grown)
		client->modules = grown;
	if (!grown || !module.path) {
		free(module.path);
		return;
	}
	if (client->seen && takes_place(client, &module.message))
		rebuild_seen(client, client->seen_places, module.message.start, module.message.end);
	client->modules[client->module_count++] = module;
	queue(client, &(struct entry){.module = client->module_count});
}

void resolver_note(struct resolver_client *client, const uint8_t *definitions, size_t bytes)
{
	struct wire_definition record;

	if (!client->resolver)
		return;
	for (; bytes >= sizeof(record); definitions += record.size_bytes, bytes -= record.size_bytes) {
		memcpy(&record, definitions, sizeof(record));
		if (record.type == WIRE_DEFINE_MODULE)
			note_module(client, &record, definitions + sizeof(record));
		else if (record.type == WIRE_DEFINE_NATIVE_FRAME && record.address && is_new(client, record.address))
			queue(client, &(struct entry){.address = {.address = record.address, .frame = record.id}});
	}
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

struct resolver *resolver_new(struct loop *loop)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));

	if (resolver) {
		resolver->loop = loop;
		resolver->source.fd = -1;
	}
	return resolver;
}

void resolver_free(struct resolver *resolver)
{
	if (resolver)
		stop(resolver);
	free(resolver);
}

struct resolver_client *resolver_add(struct resolver *resolver, pid_t pid, bool same_namespace,
				     void (*found)(void *owner, const void *definitions, size_t bytes), void *owner)
{
	struct resolver_client *client = calloc(1, sizeof(*client));
	char path[64];

	if (!client)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	*client = (struct resolver_client){.next = resolver->clients,
					   .resolver = resolver,
					   .number = resolver->next_number++,
					   .root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC),
					   .found = found,
					   .owner = owner};
	if (client->root < 0 && same_namespace)
		client->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	resolver->clients = client;
	return client;
}

static void unlink_client(struct resolver *resolver, const struct resolver_client *client)
{
	struct resolver_client **link = &resolver->clients;

	while (*link && *link != client)
		link = &(*link)->next;
	if (*link)
		*link = client->next;
}

void resolver_remove(struct resolver *resolver, struct resolver_client *client)
{
	struct symbols_message message = {.kind = SYMBOLS_FORGET};
	struct iovec part = {&message, sizeof(message)};

	if (!client)
		return;
	unlink_client(resolver, client);
	message.client = client->number;
	if (resolver->source.fd >= 0 && client->module_count)
		say(resolver, &part, 1, -1);
	for (uint32_t i = 0; i < client->module_count; i++)
		free(client->modules[i].path);
	if (client->root >= 0)
		close(client->root);
	free(client->modules);
	free(client->queue);
	free(client->seen);
	free(client);
}
