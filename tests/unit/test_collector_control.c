/*
 * test_collector_control.c - control requests: what is parsed, who may ask about whom, and how an answer is sent.
 *
 * The collector runs in the test's own process, turn by turn, with fake targets; the client is written from
 * evprof/control.h alone.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/answer.h"
#include "collector/base/clock.h"
#include "collector/server/collector.h"
#include "collector/server/metrics.h"
#include "collector/server/metrics_http.h"
#include "fake_target.h"

#define WAIT_MS 10
#define ONE_USER 64124
#define OTHER_USER 64125
#define CONTROLLERS 64200 /* a group */

static struct collector collector;
static char socket_name[64];
static char folder[64];
static char output[128];
static gid_t controllers = CONTROLLERS;

static void begin_collector(bool allow_other_users)
{
	struct collector_config config = {
	    .private = true, .server = {.allow_other_users = allow_other_users, .control_group = &controllers}};

	signal(SIGPIPE, SIG_IGN);
	strcpy(folder, "/tmp/evprof-test-XXXXXX");
	cr_assert(mkdtemp(folder));
	snprintf(output, sizeof(output), "%s/%%n.evp", folder);
	config.listen_fd = fake_listen(socket_name, sizeof(socket_name));
	cr_assert(config.listen_fd >= 0);
	cr_assert_eq(collector_init(&collector, &config), 0);
}

static void end_collector(void)
{
	char command[128];

	collector_done(&collector);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	cr_assert_eq(system(command), 0);
}

static void set_up(void)
{
	begin_collector(false);
}

TestSuite(collector_control, .init = set_up, .fini = end_collector, .timeout = 60);
TestSuite(collector_answer, .timeout = 60);
TestSuite(collector_rights, .timeout = 60);

static void join(struct fake_target *target, const char *program)
{
	cr_assert_eq(fake_target_new(target, RING_BYTES_MIN, 8), 0);
	cr_assert_eq(fake_target_join(target, socket_name, &(struct fake_join){.program = program, .output = output}),
		     0);
	while (server_poll(collector.server, clock_now_ns()))
		continue;
	cr_assert_eq(fake_collector_state(target), RING_COLLECTOR_ATTACHED, "%s", target->header->text);
}

static void leave(struct fake_target *target)
{
	atomic_store_explicit(&target->header->target_state, RING_TARGET_EXITING, memory_order_release);
	for (int i = 0; i < 2000 && fake_collector_state(target) < RING_COLLECTOR_FINISHED; i++)
		collector_turn(&collector, WAIT_MS);
	cr_assert_eq(fake_collector_state(target), RING_COLLECTOR_FINISHED);
	fake_target_free(target);
}

/* The text of the answer, with what is in the memfd in its place; "": the connection was closed. */
static void receive(int fd, char *bytes, size_t size, int *memfd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {.iov_base = bytes, .iov_len = size - 1};
	struct msghdr header = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	ssize_t count = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
	struct cmsghdr *first = count > 0 ? CMSG_FIRSTHDR(&header) : NULL;

	bytes[count > 0 ? count : 0] = '\0';
	*memfd = -1;
	if (first)
		memcpy(memfd, CMSG_DATA(first), sizeof(int));
}

static json_t *ask(const char *request)
{
	char bytes[65536];
	int fd = fake_connect(socket_name), memfd;
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	json_t *answer;

	cr_assert(fd >= 0);
	cr_assert_eq(fake_send(fd, request, strlen(request), NULL, 0), 0);
	for (int i = 0; i < 100 && poll(&poller, 1, 0) == 0; i++)
		collector_turn(&collector, WAIT_MS);
	receive(fd, bytes, sizeof(bytes), &memfd);
	close(fd);
	cr_assert(bytes[0] && memfd < 0, "%s has a short answer, not %s", request, bytes);
	answer = json_loads(bytes, 0, NULL);
	cr_assert(answer, "%s", bytes);
	cr_assert_str_eq(json_string_value(json_object_get(answer, "type")), "answer");
	return answer;
}

static const char *error_of(const json_t *answer)
{
	const char *error = json_string_value(json_object_get(answer, "error"));

	return error ? error : "";
}

static json_int_t number_of(const json_t *process, const char *member)
{
	json_t *value = json_object_get(process, member);

	cr_assert(json_is_integer(value), "%s is a number", member);
	return json_integer_value(value);
}

static const json_t *only_process(const json_t *answer)
{
	json_t *processes = json_object_get(answer, "processes");

	cr_assert_eq(json_array_size(processes), 1);
	return json_array_get(processes, 0);
}

/* ---- messages ------------------------------------------------------------------------------------------------- */

static int parse(const char *text, struct control_message *message, char *reason, size_t reason_bytes)
{
	reason[0] = '\0';
	return control_parse(text, strlen(text), message, reason, reason_bytes);
}

Test(collector_answer, a_request_is_parsed)
{
	struct control_message message;
	char reason[256];

	cr_assert_eq(parse("{\"evprof\":1,\"type\":\"status\"}", &message, reason, sizeof(reason)), 0, "%s", reason);
	cr_expect(message.type == CONTROL_STATUS && strcmp(message.target, "all") == 0);
	control_message_done(&message);
	cr_assert_eq(parse("{\"evprof\":1,\"type\":\"status\",\"target\":\"12\"}", &message, reason, sizeof(reason)),
		     0);
	cr_expect_str_eq(message.target, "12");
	control_message_done(&message);
	cr_assert_eq(parse("{\"evprof\":1,\"type\":\"switch\",\"action\":\"mark\",\"name\":\"here\"}", &message, reason,
			   sizeof(reason)),
		     0);
	cr_expect(message.type == CONTROL_SWITCH && message.action == CONTROL_MARK);
	cr_expect_str_eq(message.name, "here");
	control_message_done(&message);
	cr_assert_eq(parse("{\"evprof\":1,\"type\":\"switch\",\"action\":\"stop\"}", &message, reason, sizeof(reason)),
		     0);
	cr_expect(message.action == CONTROL_STOP);
	cr_expect_str_eq(message.name, "");
	control_message_done(&message);
	cr_assert_eq(parse("{\"evprof\":1,\"type\":\"switch\",\"action\":\"events\",\"name\":\"call,line\"}", &message,
			   reason, sizeof(reason)),
		     0);
	cr_expect(message.action == CONTROL_EVENTS);
	cr_expect_str_eq(message.name, "call,line");
	control_message_done(&message);
}

Test(collector_answer, what_is_no_request_has_a_reason)
{
	static const struct {
		const char *text, *reason;
		int error;
		enum control_type type;
	} wrong[] = {
	    {"{\"evprof\":1,\"type\":\"status\",\"target\":12}", "\"target\"", -EINVAL, CONTROL_STATUS},
	    {"{\"evprof\":1,\"type\":\"switch\"}", "\"action\"", -EINVAL, CONTROL_SWITCH},
	    {"{\"evprof\":1,\"type\":\"switch\",\"action\":\"kill\"}", "\"action\"", -EINVAL, CONTROL_SWITCH},
	    {"{\"evprof\":1,\"type\":\"switch\",\"action\":\"mark\"}", "\"name\"", -EINVAL, CONTROL_SWITCH},
	    {"{\"evprof\":1,\"type\":\"switch\",\"action\":\"events\",\"name\":\"cal\"}", "\"name\"", -EINVAL,
	     CONTROL_SWITCH},
	    {"{\"evprof\":1,\"type\":\"no such request\"}", "does not know the request", -EINVAL, CONTROL_UNKNOWN},
	    {"{\"evprof\":1,\"type\":12}", "\"type\"", -EINVAL, CONTROL_JOIN},
	    {"{\"evprof\":1}", "\"type\"", -EINVAL, CONTROL_JOIN},
	    {"{\"evprof\":2,\"type\":\"status\"}", "evprof speaks another version", -EPROTONOSUPPORT, CONTROL_STATUS},
	    {"{\"evprof\":2,\"type\":\"of tomorrow\"}", "evprof speaks another version", -EPROTONOSUPPORT,
	     CONTROL_UNKNOWN},
	    {"{\"evprof\":2,\"type\":\"join\"}", "the library speaks another version", -EPROTONOSUPPORT, CONTROL_JOIN},
	    {"{\"evprof\":2,\"type\":\"absent\"}", "the library speaks another version", -EPROTONOSUPPORT,
	     CONTROL_JOIN},
	};
	struct control_message message;
	char reason[256], long_target[512];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		int error = parse(wrong[i].text, &message, reason, sizeof(reason));

		cr_expect(error == wrong[i].error && message.type == wrong[i].type && strstr(reason, wrong[i].reason),
			  "%s: %d, %d, %s", wrong[i].text, error, (int)message.type, reason);
	}
	snprintf(long_target, sizeof(long_target), "{\"evprof\":1,\"type\":\"status\",\"target\":\"%0300d\"}", 0);
	cr_expect_eq(parse(long_target, &message, reason, sizeof(reason)), -EINVAL);
}

Test(collector_answer, a_target_is_all_or_a_pid_or_a_program)
{
	cr_expect(control_target_has("all", 12, "app"));
	cr_expect(control_target_has("12", 12, "app"));
	cr_expect(control_target_has("app", 12, "app"));
	cr_expect(!control_target_has("1", 12, "app"));
	cr_expect(!control_target_has("012", 12, "app"));
	cr_expect(!control_target_has("ap", 12, "app"));
	cr_expect(!control_target_has("", 12, "app"));
}

/* ---- answers -------------------------------------------------------------------------------------------------- */

static json_t *object_of(size_t bytes)
{
	char *text = malloc(bytes + 1);
	json_t *object;

	memset(text, 'x', bytes);
	text[bytes] = '\0';
	object = json_pack("{s:s}", "text", text);
	free(text);
	return object;
}

Test(collector_answer, a_long_one_is_in_a_memfd_that_nobody_changes)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	size_t bytes = (size_t)1 << 20;
	int ends[2], memfd;
	char message[1024], *whole;
	json_t *head, *answer;
	struct stat status;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	answer_send(ends[0], object_of(bytes));
	receive(ends[1], message, sizeof(message), &memfd);
	head = json_loads(message, 0, NULL);
	cr_assert(memfd >= 0 && fstat(memfd, &status) == 0, "%s", message);
	cr_expect_eq(number_of(head, "attached"), status.st_size);
	cr_expect_eq(fcntl(memfd, F_GET_SEALS), seals);
	whole = calloc(1, (size_t)status.st_size + 1);
	cr_assert_eq(pread(memfd, whole, (size_t)status.st_size, 0), status.st_size);
	answer = json_loads(whole, 0, NULL);
	cr_expect_eq(json_string_length(json_object_get(answer, "text")), bytes);
	cr_expect_str_eq(json_string_value(json_object_get(answer, "type")), "answer");
	json_decref(answer);
	json_decref(head);
	free(whole);
	close(memfd);
	close(ends[1]);
}

/* A buffer that is full already, or a client that is gone: the collector goes on, and the descriptor is closed. */
Test(collector_answer, nobody_waits_for_a_client)
{
	char rest[256];
	int ends[2];

	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	while (send(ends[0], "x", 1, MSG_DONTWAIT) == 1)
		continue;
	answer_send(ends[0], object_of(8000));
	while (recv(ends[1], rest, sizeof(rest), 0) > 0)
		continue;
	close(ends[1]);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	close(ends[1]);
	answer_send(ends[0], object_of(8000));
	cr_expect(fcntl(ends[0], F_GETFD) < 0 && errno == EBADF, "it is closed");
}

/* ---- status --------------------------------------------------------------------------------------------------- */

Test(collector_control, status_counts_what_is_recorded)
{
	struct fake_target target;
	const json_t *process;
	json_t *answer;

	join(&target, "prog");
	fake_thread_start(&target, 0, 77, 2000);
	for (unsigned i = 0; i < 100; i++)
		fake_call(&target, 0, i % 2 ? WIRE_RETURN : WIRE_CALL, 1, 1);
	atomic_store(&target.slots[0].lost[WIRE_CALL], 3);
	usleep(250000); /* what is in a ring for longer is written in the next round */
	answer = ask("{\"evprof\":1,\"type\":\"status\"}");
	process = only_process(answer);
	cr_expect_eq(number_of(process, "pid"), getpid());
	cr_expect_eq(number_of(process, "number"), 1);
	cr_expect_str_eq(json_string_value(json_object_get(process, "program")), "prog");
	cr_expect_str_eq(json_string_value(json_object_get(process, "recording")), "events");
	cr_expect_eq(number_of(process, "events"), (json_int_t)target.emitted);
	cr_expect_eq(number_of(process, "lost"), 3);
	cr_expect(number_of(process, "bytes") > 0 && number_of(process, "events_per_s") > 0);
	cr_expect(json_is_null(json_object_get(process, "keep")));
	cr_expect_eq(number_of(json_object_get(answer, "collector"), "pid"), getpid());
	cr_expect(number_of(json_object_get(answer, "collector"), "disk_bytes") > number_of(process, "bytes"));
	json_decref(answer);
	leave(&target);
}

Test(collector_control, status_says_what_is_off)
{
	struct fake_target target;
	json_t *answer;

	join(&target, "prog");
	fake_thread_start(&target, 0, 77, 2000);
	for (unsigned paused = 2; paused-- > 0;) {
		fake_call(&target, 0, WIRE_PAUSE, paused, 1);
		usleep(250000);
		answer = ask("{\"evprof\":1,\"type\":\"status\"}");
		cr_expect_str_eq(json_string_value(json_object_get(only_process(answer), "recording")),
				 paused ? "off" : "events");
		json_decref(answer);
	}
	/* A thread that was silent reports an older stop and start once another thread has stopped anew. */
	fake_thread_start(&target, 1, 78, 2000);
	fake_call(&target, 0, WIRE_PAUSE, 1, 100);
	fake_call(&target, 1, WIRE_PAUSE, 1, 1);
	fake_call(&target, 1, WIRE_PAUSE, 0, 1);
	usleep(250000);
	answer = ask("{\"evprof\":1,\"type\":\"status\"}");
	cr_expect_str_eq(json_string_value(json_object_get(only_process(answer), "recording")), "off");
	json_decref(answer);
	leave(&target);
}

Test(collector_control, a_target_narrows_the_answer)
{
	struct fake_target target;
	char request[128];
	json_t *answer;

	join(&target, "prog");
	answer = ask("{\"evprof\":1,\"type\":\"status\",\"target\":\"prog\"}");
	only_process(answer);
	json_decref(answer);
	snprintf(request, sizeof(request), "{\"evprof\":1,\"type\":\"status\",\"target\":\"%d\"}", (int)getpid());
	answer = ask(request);
	only_process(answer);
	json_decref(answer);
	answer = ask("{\"evprof\":1,\"type\":\"status\",\"target\":\"other\"}");
	cr_expect_eq(json_array_size(json_object_get(answer, "processes")), 0);
	json_decref(answer);
	leave(&target);
}

static void follow(struct fake_target *target)
{
	atomic_store(&target->header->followed, atomic_load(&target->header->request));
	collector_turn(&collector, WAIT_MS);
}

static bool has_followed(const char *order)
{
	json_t *answer = ask(order);
	bool followed = json_is_true(json_object_get(only_process(answer), "followed"));

	json_decref(answer);
	return followed;
}

#define ORDER(action, name) "{\"evprof\":1,\"type\":\"switch\",\"action\":\"" action "\",\"name\":\"" name "\"}"

/* A program in C code for long follows all that it was asked, in that order. */
Test(collector_control, an_order_waits_for_the_one_before)
{
	struct fake_target target;
	json_t *answer;

	join(&target, "prog");
	cr_expect(!has_followed(ORDER("stop", "")) && !has_followed(ORDER("stop", "")));
	cr_expect_eq(atomic_load(&target.header->request), 4 + RING_REQUEST_STOP);
	cr_expect(!has_followed(ORDER("mark", "one")) && !has_followed(ORDER("mark", "two")));
	cr_expect(!has_followed(ORDER("start", "")));
	cr_expect_eq(atomic_load(&target.header->request), 4 + RING_REQUEST_STOP, "the first one stays");
	answer = ask(ORDER("mark", "three"));
	cr_expect(strstr(error_of(answer), "is to follow 4 requests before"), "%s", error_of(answer));
	json_decref(answer);

	follow(&target);
	cr_expect_eq(atomic_load(&target.header->request), 8 + RING_REQUEST_MARK);
	cr_expect_str_eq(target.header->request_name, "one");
	follow(&target);
	cr_expect_eq(atomic_load(&target.header->request), 12 + RING_REQUEST_MARK);
	cr_expect_str_eq(target.header->request_name, "two");
	cr_expect(!has_followed(ORDER("look", "")));
	follow(&target);
	cr_expect_eq(atomic_load(&target.header->request), 16 + RING_REQUEST_START);
	follow(&target);
	cr_expect(has_followed(ORDER("look", "")));
	leave(&target);
}

Test(collector_control, what_cannot_be_done_is_answered)
{
	static const char *const wrong[][2] = {
	    {"{\"evprof\":1,\"type\":\"no such request\"}", "install it and evprof from one release"},
	    {"{\"evprof\":9,\"type\":\"status\"}", "install both from one release"},
	    {"{\"evprof\":1,\"type\":\"status\",\"target\":[]}", "\"target\""},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		json_t *answer = ask(wrong[i][0]);

		cr_expect(strstr(error_of(answer), wrong[i][1]), "%s: %s", wrong[i][0], error_of(answer));
		json_decref(answer);
	}
}

static unsigned descriptors(void)
{
	DIR *listing = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(listing))
		count++;
	closedir(listing);
	return count;
}

/* More at a time than have a place: each has an answer, and no descriptor stays. */
Test(collector_control, a_crowd_is_answered)
{
	static const char request[] = "{\"evprof\":1,\"type\":\"status\"}";
	unsigned before = descriptors(), answers = 0, refusals = 0;
	int fds[100], memfd;
	char bytes[4096];

	for (int i = 0; i < 100; i++) {
		fds[i] = fake_connect(socket_name);
		cr_assert(fds[i] >= 0 && fake_send(fds[i], request, strlen(request), NULL, 0) == 0);
	}
	shutdown(fds[0], SHUT_RDWR);
	while (server_poll(collector.server, clock_now_ns()))
		continue;
	for (int i = 0; i < 3; i++)
		collector_turn(&collector, 0);
	for (int i = 0; i < 100; i++) {
		receive(fds[i], bytes, sizeof(bytes), &memfd);
		answers += strstr(bytes, "\"processes\"") != NULL;
		refusals += strstr(bytes, "too many requests") != NULL;
		close(fds[i]);
	}
	cr_expect(answers >= 63 && answers + refusals >= 99, "%u answers, %u refusals", answers, refusals);
	collector_turn(&collector, 0);
	cr_expect_eq(descriptors(), before);
}

/* ---- rights --------------------------------------------------------------------------------------------------- */

/* Forks a process of another user; group: a supplementary one, or 0. */
static pid_t fork_as(uid_t user, gid_t group)
{
	pid_t child = fork();

	cr_assert(child >= 0);
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (setgroups(group ? 1 : 0, &group) || (user && (setgid(user) || setuid(user))))
		_exit(99);
	return 0;
}

/* A target that joins as another user, and stays until it is killed. */
static pid_t join_as(struct fake_target *target, uid_t user, const char *program)
{
	int joined[2];
	char ok;
	pid_t child;

	cr_assert_eq(fake_target_new(target, RING_BYTES_MIN, 8), 0);
	cr_assert_eq(pipe2(joined, O_CLOEXEC), 0);
	child = fork_as(user, 0);
	if (child == 0) {
		struct fake_join how = {.program = program, .output = output};

		if (fake_target_join(target, socket_name, &how) == 0 && write(joined[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(joined[1]);
	cr_assert_eq(read(joined[0], &ok, 1), 1);
	close(joined[0]);
	while (server_poll(collector.server, clock_now_ns()))
		continue;
	cr_assert_eq(fake_collector_state(target), RING_COLLECTOR_ATTACHED, "%s", target->header->text);
	return child;
}

static void end_target(struct fake_target *target, pid_t child)
{
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	fake_target_free(target);
}

/* How many processes a user with a group is shown; -1: none, but an error. */
static int processes_shown(uid_t user, gid_t group)
{
	pid_t child = fork_as(user, group);
	int status;

	if (child == 0) {
		static const char request[] = "{\"evprof\":1,\"type\":\"status\"}";
		int fd = fake_connect(socket_name), memfd;
		char bytes[65536];
		json_t *answer;

		fake_send(fd, request, strlen(request), NULL, 0);
		receive(fd, bytes, sizeof(bytes), &memfd);
		answer = json_loads(bytes, 0, NULL);
		if (strstr(error_of(answer), "serves user 0 only"))
			_exit(50);
		_exit(json_object_get(answer, "collector") ? (int)json_array_size(json_object_get(answer, "processes"))
							   : 98);
	}
	while (waitpid(child, &status, WNOHANG) == 0)
		collector_turn(&collector, WAIT_MS);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) < 60, "status %x", (unsigned)status);
	return WEXITSTATUS(status) == 50 ? -1 : WEXITSTATUS(status);
}

Test(collector_rights, a_user_is_shown_its_own_processes)
{
	struct fake_target targets[3];
	pid_t pids[3];

	if (geteuid() != 0)
		cr_skip("only root can become another user");
	begin_collector(true);
	pids[0] = join_as(&targets[0], 0, "roots");
	pids[1] = join_as(&targets[1], ONE_USER, "ones");
	pids[2] = join_as(&targets[2], ONE_USER, "more");
	cr_expect_eq(processes_shown(0, 0), 3, "root sees all");
	cr_expect_eq(processes_shown(ONE_USER, 0), 2);
	cr_expect_eq(processes_shown(OTHER_USER, 0), 0);
	cr_expect_eq(processes_shown(OTHER_USER, CONTROLLERS), 3, "the group sees all");
	cr_expect_eq(processes_shown(CONTROLLERS, 0), 3, "and so does whose own group it is");
	cr_expect_eq(processes_shown(OTHER_USER, CONTROLLERS + 1), 0);
	for (int i = 0; i < 3; i++)
		end_target(&targets[i], pids[i]);
	for (int i = 0; i < 10; i++)
		collector_turn(&collector, WAIT_MS);
	end_collector();
}

Test(collector_control, a_private_collector_shows_strangers_nothing)
{
	struct fake_target target;

	if (geteuid() != 0)
		cr_skip("only root can become another user");
	join(&target, "prog");
	cr_expect_eq(processes_shown(ONE_USER, 0), -1);
	cr_expect_eq(processes_shown(0, 0), 1);
	leave(&target);
}

/* ---- metrics -------------------------------------------------------------------------------------------------- */

/* Each line is a comment or a sample, each sample follows the type of its metric, and any name is escaped. */
Test(collector_answer, metrics_are_text_of_prometheus)
{
	json_t *status =
	    json_pack("{s:{s:i, s:f, s:n}, s:[{s:i, s:s, s:s, s:i, s:i, s:i, s:i}]}", "collector", "rss_bytes", 4096,
		      "cpu_s", 1.25, "free_bytes", "processes", "pid", 7, "program", "a\"b\\c\nd", "recording",
		      "sample", "events", 100, "lost", 3, "bytes", 4000, "events_per_s", 50);
	size_t bytes;
	char *text = metrics_text(status, &bytes), *line, *rest = text;
	char type[128] = "", name[128];

	cr_assert(text && strlen(text) == bytes && bytes && text[bytes - 1] == '\n');
	cr_expect(strstr(text, "\nevprof_process_events_total{pid=\"7\",program=\"a\\\"b\\\\c\\nd\"} 100\n"), "%s",
		  text);
	cr_expect(strstr(text, "\nevprof_process_lost_events_total{pid=\"7\",program=\"a\\\"b\\\\c\\nd\"} 3\n"));
	cr_expect(strstr(text, "\",mode=\"sample\"} 1\n"));
	cr_expect(strstr(text, "\nevprof_collector_resident_bytes 4096\n"));
	cr_expect(strstr(text, "\nevprof_collector_cpu_seconds_total 1.250\n"));
	cr_expect(strstr(text, "\nevprof_processes 1\n"));
	cr_expect(!strstr(text, "evprof_collector_free_bytes"), "what is not known is left out");
	while ((line = strsep(&rest, "\n")) && *line) {
		if (line[0] == '#' && sscanf(line, "# TYPE %127s", type) < 1)
			cr_expect(strncmp(line, "# HELP evprof_", 14) == 0, "%s", line);
		if (line[0] != '#')
			cr_expect(sscanf(line, "%127[a-z_]", name) == 1 && strcmp(name, type) == 0, "%s: %s", type,
				  line);
	}
	free(text);
	json_decref(status);
}

/* Two processes that are hidden from the collector may have one pid and program: each has its own series. */
Test(collector_answer, metrics_of_two_with_one_pid)
{
	json_t *status = json_pack("{s:{}, s:[{s:i, s:s, s:i, s:i}, {s:i, s:s, s:i, s:i}]}", "collector", "processes",
				   "pid", 1, "program", "app", "number", 3, "events", 100, "pid", 1, "program", "app",
				   "number", 4, "events", 200);
	size_t bytes;
	char *text = metrics_text(status, &bytes);

	cr_assert(text);
	cr_expect(strstr(text, "\nevprof_process_events_total{pid=\"1\",program=\"app\",number=\"3\"} 100\n"), "%s",
		  text);
	cr_expect(strstr(text, "\nevprof_process_events_total{pid=\"1\",program=\"app\",number=\"4\"} 200\n"), "%s",
		  text);
	free(text);
	json_decref(status);
}

Test(collector_answer, metrics_over_http_are_one_request)
{
	static const struct {
		const char *request;
		int status;
		bool is_head;
	} cases[] = {{"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9464\r\n\r\n", 200, false},
		     {"HEAD /metrics?x=1 HTTP/1.0\r\nAccept: */*\r\nhost:\tlocalhost\r\n\r\n", 200, true},
		     {"GET /metrics HTTP/1.1\r\nHost: [::1]:1\r\n\r\n", 200, false},
		     {"GET /metric HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 404, false},
		     {"GET /metrics/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 404, false},
		     {"POST /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 405, false},
		     {"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403, false},
		     {"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", 403, false},
		     {"GET /metrics HTTP/1.1\r\nHost: localhost.evil.example:1\r\n\r\n", 403, false},
		     {"GET /metrics HTTP/1.1\r\nHost: [evil]\r\n\r\n", 403, false},
		     {"GET /metrics HTTP/1.1\r\nHost:\r\n\r\n", 403, false},
		     {"GET /metrics HTTP/1.1\r\n\r\nHost: 127.0.0.1\r\n\r\n", 403, false},
		     {"GET /metrics\r\n\r\n", 400, false},
		     {"GET  HTTP/1.1\r\n\r\n", 400, false},
		     {"\r\n\r\n", 400, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool is_head;

		cr_expect_eq(metrics_http_status(cases[i].request, &is_head), cases[i].status, "%s", cases[i].request);
		cr_expect_eq(is_head, cases[i].is_head, "%s", cases[i].request);
	}
	cr_expect(metrics_http_is_address("127.0.0.1:1") && metrics_http_is_address("[::1]:65535"));
	cr_expect(!metrics_http_is_address("127.0.0.1:0") && !metrics_http_is_address("127.0.0.1") &&
		  !metrics_http_is_address("127.0.0.2:1") && !metrics_http_is_address("[::]:1") &&
		  !metrics_http_is_address("1:1") && !metrics_http_is_address(":1") &&
		  !metrics_http_is_address("[::1]1") && !metrics_http_is_address("127.0.0.1:1x") &&
		  !metrics_http_is_address(""));
}
