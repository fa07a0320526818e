/*
 * resolver.c - the collector's end of evprof-symbols. See resolver.h.
 *
 *   client (a process) -> helper (an evprof-symbols, for all processes of a tenant) -> one request at a time
 *
 * A request that ends its helper, or that is not answered in time, is not repeated; requests of the tenant's other
 * clients go to another helper. Nothing here opens or reads a tenant's file: that may block forever.
 */
#include "symbols/resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evprof/proc.h"
#include "evprof/system_calls.h"
#include "base/clock.h"
#include "base/log.h"
#include "symbols/resolver_queue.h"

#define REQUEST_NS UINT64_C(10000000000)
#define DEATH_NS UINT64_C(1000000000) /* a helper that takes longer to die hangs in a file system */

#define FAILURES_MAX 3	    /* unanswered requests of a process, until it gets no more symbols */
#define HELPERS_MAX 64u	    /* running helpers; an idle one makes room for another tenant */
#define HELPERS_EACH_MAX 8u /* of one user, who can make any number of mount namespaces */
#define ANSWERS_MAX 64	    /* read at a time */

/* Processes with the same user and the same files. One helper serves all of them. */
struct tenant {
	uid_t uid;
	gid_t gid;
	ino_t mounts; /* inode of the mount namespace; 0: not known */
	uint64_t root_device, root;
};

/* evprof-symbols for a tenant. */
struct helper {
	struct loop_source source; /* fd: the socket; -1: it was killed, and is not reaped yet */
	struct helper *next;
	struct resolver *resolver;
	struct tenant tenant;
	pid_t pid;
	unsigned clients;
	uint64_t since_ns;		/* of its last request; of its end, once it was killed */
	bool busy;			/* it has a request ... */
	struct resolver_client *asking; /* ... of this client; NULL: the client is gone */
};

struct resolver_client {
	struct resolver_client *next;
	struct resolver *resolver;
	struct helper *helper; /* NULL: none assigned */
	struct tenant tenant;
	struct resolver_queue queue;
	uint32_t number;
	unsigned failures;
	int root; /* root directory of the process; -1: not known */
	void (*found)(void *owner, const void *definitions, size_t bytes);
	void *owner;
	size_t asked;		   /* addresses from queue.answered on in the pending request */
	uint32_t asked_module;	   /* or the number + 1 of the module in the pending request */
	uint32_t modules_answered; /* by the helper */
	uint32_t modules_due;	   /* before the next address */
};

struct resolver {
	struct loop *loop;
	struct helper *helpers;
	struct resolver_client *clients;
	uint32_t next_number;
};

/* ---- the program ------------------------------------------------------------------------------------------------- */

/* Finds evprof-symbols: next to the collector in the build folder, or in lib/evprof where it is installed. */
static bool find_program(char *path, size_t bytes)
{
	static const char *const places[] = {"/evprof-symbols", "/../lib/evprof/evprof-symbols"};
	char folder[PATH_MAX];
	char *slash = proc_own_path(folder) < 0 ? NULL : strrchr(folder, '/');

	if (!slash)
		return false;
	*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if ((size_t)snprintf(path, bytes, "%s%s", folder, places[i]) < bytes && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* Ends symbolizing for this process. */
static void disable_client(struct resolver_client *client)
{
	client->queue.answered = client->queue.queued = client->asked = 0;
	client->resolver = NULL;
}

/* Frees helpers that are dead. A helper that hangs in a file system may die late; nothing waits for it. */
static void reap_helpers(struct resolver *resolver)
{
	struct helper **link = &resolver->helpers;

	while (*link) {
		struct helper *helper = *link;

		if (helper->source.fd >= 0 || waitpid(helper->pid, NULL, WNOHANG) == 0) {
			link = &helper->next;
			continue;
		}
		*link = helper->next;
		free(helper);
	}
}

/* Kills a helper. Pending requests of its clients go to another one. */
static void stop_helper(struct helper *helper)
{
	loop_remove(helper->resolver->loop, &helper->source);
	close(helper->source.fd);
	helper->source.fd = -1;
	helper->since_ns = clock_now_ns();
	helper->clients = 0;
	kill(helper->pid, SIGKILL);
	for (struct resolver_client *client = helper->resolver->clients; client; client = client->next) {
		if (client->helper != helper)
			continue;
		client->helper = NULL;
		client->asked = client->modules_answered = client->asked_module = 0;
	}
}

/* The helper failed at its request, which is not repeated. */
static void helper_failed(struct helper *helper, const char *how)
{
	struct resolver_client *client = helper->asking;

	log_warning("evprof-symbols of user %u %s: native frames of what runs lack names", (unsigned)helper->tenant.uid,
		    how);
	if (client && client->asked_module)
		client->queue.modules[client->asked_module - 1].failed = true;
	else if (client)
		client->queue.answered += client->asked;
	stop_helper(helper);
	if (client && ++client->failures == FAILURES_MAX)
		disable_client(client);
}

/* A daemon that is not root passes the capabilities for changing the user, to evprof-symbols only. */
static void pass_capabilities(unsigned long how)
{
	prctl(PR_CAP_AMBIENT, how, CAP_SETUID, 0, 0);
	prctl(PR_CAP_AMBIENT, how, CAP_SETGID, 0, 0);
}

static int spawn_program(struct helper *helper, int socket)
{
	static char *const environment[] = {NULL}; /* empty: no variable may direct it to a debuginfo server */
	char path[PATH_MAX];
	char uid[16], gid[16];
	char *argv[] = {"evprof-symbols", uid, gid, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int error;

	if (!find_program(path, sizeof(path)))
		return -ENOENT;
	snprintf(uid, sizeof(uid), "%u", (unsigned)helper->tenant.uid);
	snprintf(gid, sizeof(gid), "%u", (unsigned)helper->tenant.gid);
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	pass_capabilities(PR_CAP_AMBIENT_RAISE);
	error = -posix_spawn(&helper->pid, path, &actions, &attributes, argv, environment);
	pass_capabilities(PR_CAP_AMBIENT_LOWER);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

static void answer_ready(struct loop_source *source);

static int start_helper(struct helper *helper)
{
	int pair[2];
	int error = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ? -errno : 0;

	if (error)
		return error;
	helper->source = (struct loop_source){.fd = pair[0], .ready = answer_ready};
	error = loop_add(helper->resolver->loop, &helper->source);
	if (!error) {
		error = spawn_program(helper, pair[1]);
		if (error)
			loop_remove(helper->resolver->loop, &helper->source);
	}
	close(pair[1]);
	if (error)
		close(pair[0]);
	return error;
}

static bool same_tenant(const struct tenant *one, const struct tenant *other)
{
	return one->uid == other->uid && one->gid == other->gid && one->mounts == other->mounts &&
	       one->root_device == other->root_device && one->root == other->root;
}

static struct helper *find_helper(const struct resolver *resolver, const struct tenant *tenant)
{
	for (struct helper *helper = resolver->helpers; helper; helper = helper->next) {
		if (helper->source.fd >= 0 && same_tenant(&helper->tenant, tenant))
			return helper;
	}
	return NULL;
}

/* Whether the client has a request to send. Its modules are due at the next address only. */
static bool has_question(struct resolver_client *client)
{
	while (client->queue.answered < client->queue.queued && client->queue.at[client->queue.answered].module)
		client->modules_due = client->queue.at[client->queue.answered++].module;
	if (client->queue.answered == client->queue.queued)
		client->queue.answered = client->queue.queued = 0;
	return client->queue.answered < client->queue.queued;
}

static bool is_idle(const struct helper *helper)
{
	if (helper->source.fd < 0 || helper->busy)
		return false;
	for (struct resolver_client *client = helper->resolver->clients; client; client = client->next) {
		if (client->helper == helper && has_question(client))
			return false;
	}
	return true;
}

/* Stops the helper that is idle for the longest time: one of the user's, or any. None while another one is dying. */
static void stop_idle_helper(const struct resolver *resolver, struct user *user, bool any, uint64_t now_ns)
{
	struct helper *idle = NULL;

	for (struct helper *helper = resolver->helpers; helper; helper = helper->next) {
		if (!any && helper->tenant.uid != user->uid)
			continue;
		if (helper->source.fd < 0 && now_ns < helper->since_ns + DEATH_NS)
			return;
		if (is_idle(helper) && (!idle || helper->since_ns < idle->since_ns))
			idle = helper;
	}
	if (idle) {
		stop_helper(idle);
		return;
	}
	if (!user->symbols_wait)
		log_warning("native frames of user %u wait for names: all evprof-symbols are busy",
			    (unsigned)user->uid);
	user->symbols_wait = true;
}

/* Whether another helper may be started for the user. False: an idle one makes room, if there is one. */
static bool has_room(const struct resolver *resolver, struct user *user, uint64_t now_ns)
{
	unsigned count = 0, same_user = 0;

	for (const struct helper *helper = resolver->helpers; helper; helper = helper->next) {
		count++;
		same_user += helper->tenant.uid == user->uid;
	}
	if (count < HELPERS_MAX && same_user < HELPERS_EACH_MAX)
		return true;
	stop_idle_helper(resolver, user, same_user < HELPERS_EACH_MAX, now_ns);
	return false;
}

/* Assigns a helper to the client. False: none is available now. */
static bool get_helper(struct resolver_client *client, uint64_t now_ns)
{
	struct resolver *resolver = client->resolver;
	struct helper *helper = find_helper(resolver, &client->tenant);
	int error = -ENOMEM;

	if (!helper && !has_room(resolver, client->queue.user, now_ns))
		return false;
	if (!helper) {
		helper = calloc(1, sizeof(*helper));
		if (helper) {
			*helper =
			    (struct helper){.next = resolver->helpers, .resolver = resolver, .tenant = client->tenant};
			error = start_helper(helper);
		}
		if (error) {
			log_warning("cannot start evprof-symbols, native frames have no names: %s", strerror(-error));
			free(helper);
			disable_client(client);
			return false;
		}
		resolver->helpers = helper;
	}
	helper->clients++;
	client->helper = helper;
	return true;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* The helper reads untrusted files, so its answers are not trusted either. */
static bool valid_definitions(const uint8_t *at, size_t bytes)
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

/* False: not an answer to the pending request. */
static bool handle_answer(struct helper *helper, const uint8_t *answer, size_t bytes)
{
	struct resolver_client *client = helper->asking;
	struct symbols_message head;

	if (bytes < sizeof(head) || !helper->busy)
		return false;
	memcpy(&head, answer, sizeof(head));
	answer += sizeof(head);
	bytes -= sizeof(head);
	if ((head.kind != SYMBOLS_FOUND && head.kind != SYMBOLS_DONE) || !valid_definitions(answer, bytes) ||
	    (client && head.client != client->number))
		return false;
	if (client && bytes > 0)
		client->found(client->owner, answer, bytes);
	if (head.kind == SYMBOLS_FOUND)
		return true;
	helper->busy = false;
	if (client) {
		client->queue.answered += client->asked;
		client->modules_answered += client->asked_module > 0;
		client->asked = client->asked_module = 0;
	}
	return true;
}

static void work_for(struct resolver_client *client, uint64_t now_ns);

static void answer_ready(struct loop_source *source)
{
	struct helper *helper = LOOP_OWNER(source, struct helper, source);
	static uint8_t answer[SYMBOLS_MESSAGE_MAX_BYTES];
	ssize_t count = 1;

	for (int i = 0; i < ANSWERS_MAX; i++) {
		count = recv(source->fd, answer, sizeof(answer), MSG_DONTWAIT);
		if (count <= 0)
			break;
		if (!handle_answer(helper, answer, (size_t)count)) {
			helper_failed(helper, "answered what was not asked");
			return;
		}
		for (struct resolver_client *client = helper->resolver->clients; client && !helper->busy;
		     client = client->next)
			if (client->helper == helper)
				work_for(client, clock_now_ns());
	}
	if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
		helper_failed(helper, "has ended");
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static bool send_message(const struct helper *helper, struct iovec *parts, size_t count, int fd)
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
	return sendmsg(helper->source.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

/* Without the root directory, the module's file is not looked up. */
static bool ask_module(struct resolver_client *client)
{
	struct resolver_module *module = &client->queue.modules[client->modules_answered];
	struct iovec parts[2] = {{&module->message, sizeof(module->message)}, {module->path, strlen(module->path)}};

	if (!send_message(client->helper, parts, 2, module->failed ? -1 : client->root))
		return false;
	client->asked_module = client->modules_answered + 1;
	return true;
}

static bool ask_addresses(struct resolver_client *client)
{
	struct symbols_message message = {.kind = SYMBOLS_LOOK, .client = client->number};
	struct symbols_address addresses[SYMBOLS_ADDRESSES_MAX];
	size_t count = 0;
	struct iovec parts[2] = {{&message, sizeof(message)}, {addresses, 0}};

	while (client->queue.answered + count < client->queue.queued && count < SYMBOLS_ADDRESSES_MAX &&
	       !client->queue.at[client->queue.answered + count].module) {
		addresses[count] = client->queue.at[client->queue.answered + count].address;
		count++;
	}
	parts[1].iov_len = count * sizeof(addresses[0]);
	if (!send_message(client->helper, parts, 2, -1))
		return false;
	client->asked = count;
	return true;
}

static void work_for(struct resolver_client *client, uint64_t now_ns)
{
	struct helper *helper;

	if (!client->resolver || client->asked || client->asked_module || !has_question(client) ||
	    (!client->helper && !get_helper(client, now_ns)))
		return;
	helper = client->helper;
	if (helper->busy ||
	    !(client->modules_answered < client->modules_due ? ask_module(client) : ask_addresses(client)))
		return;
	helper->busy = true;
	helper->asking = client;
	helper->since_ns = now_ns;
}

void resolver_work(struct resolver *resolver, uint64_t now_ns)
{
	reap_helpers(resolver);
	for (struct helper *helper = resolver->helpers; helper; helper = helper->next)
		if (helper->source.fd >= 0 && helper->busy && now_ns > helper->since_ns &&
		    now_ns - helper->since_ns >= REQUEST_NS)
			helper_failed(helper, "takes too long");
	for (struct resolver_client *client = resolver->clients; client; client = client->next)
		work_for(client, now_ns);
}

bool resolver_is_busy(const struct resolver_client *client)
{
	return client && client->resolver &&
	       (client->asked || client->asked_module || client->queue.answered < client->queue.queued);
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

struct resolver *resolver_new(struct loop *loop)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));

	if (resolver)
		resolver->loop = loop;
	return resolver;
}

void resolver_free(struct resolver *resolver)
{
	if (!resolver)
		return;
	for (struct helper *next, *helper = resolver->helpers; helper; helper = next) {
		next = helper->next;
		if (helper->source.fd >= 0)
			stop_helper(helper);
		free(helper);
	}
	free(resolver);
}

/* Fills in mount namespace and root, without a request to the file system, which may never answer. */
static void identify_tenant(struct tenant *tenant, pid_t pid, int root)
{
	char path[64];
	struct stat status;
	struct statx found;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	if (proc_is_ours() && stat(path, &status) == 0)
		tenant->mounts = status.st_ino;
	if (root >= 0 && system_statx(root, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &found) == 0) {
		tenant->root_device = (uint64_t)found.stx_dev_major << 32 | found.stx_dev_minor;
		tenant->root = found.stx_ino;
	}
}

/* Opens the root directory of the process; -1: not known. */
static int open_root(pid_t pid, int pidfd, bool same_namespace)
{
	struct pollfd end = {.fd = pidfd, .events = POLLIN};
	char path[64];
	int root;

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	root = proc_is_ours() ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (root >= 0 && poll(&end, 1, 0) != 0) { /* it has ended: the path may be another process's */
		close(root);
		root = -1;
	}
	return root < 0 && same_namespace ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : root;
}

struct resolver_client *resolver_add(struct resolver *resolver, const struct ucred *who, struct user *user, int pidfd,
				     bool same_namespace,
				     void (*found)(void *owner, const void *definitions, size_t bytes), void *owner)
{
	struct resolver_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	*client = (struct resolver_client){.next = resolver->clients,
					   .resolver = resolver,
					   .queue = {.user = user},
					   .tenant = {.uid = who->uid, .gid = who->gid},
					   .number = resolver->next_number++,
					   .root = open_root(who->pid, pidfd, same_namespace),
					   .found = found,
					   .owner = owner};
	identify_tenant(&client->tenant, who->pid, client->root);
	resolver->clients = client;
	return client;
}

void resolver_note(struct resolver_client *client, const uint8_t *definitions, size_t bytes)
{
	if (client->resolver)
		resolver_queue_note(&client->queue, client->number, definitions, bytes);
}

static void unlink_client(struct resolver *resolver, const struct resolver_client *client)
{
	struct resolver_client **link = &resolver->clients;

	while (*link && *link != client)
		link = &(*link)->next;
	if (*link)
		*link = client->next;
}

/* Removes a client from its helper. The last client kills the helper, which then has no use. */
static void leave_helper(struct resolver_client *client)
{
	struct symbols_message message = {.kind = SYMBOLS_FORGET, .client = client->number};
	struct iovec part = {&message, sizeof(message)};
	struct helper *helper = client->helper;

	if (helper->asking == client)
		helper->asking = NULL;
	if (--helper->clients == 0)
		stop_helper(helper);
	else
		send_message(helper, &part, 1, -1);
}

void resolver_remove(struct resolver *resolver, struct resolver_client *client)
{
	if (!client)
		return;
	if (client->helper)
		leave_helper(client);
	unlink_client(resolver, client);
	resolver_queue_done(&client->queue);
	if (client->root >= 0)
		close(client->root);
	free(client);
}
