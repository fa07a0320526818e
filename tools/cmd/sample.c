/*
 * sample.c - see sample.h.
 *
 *   the fields of its Python (stack/layout.h) -> a ring, and a join in place of the process -> the sampler
 *   (evprof-collector --sample PID), which reads the process's memory until this tool ends
 *
 * The process is neither stopped nor written to.
 */
#include "cmd/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "control/request.h"
#include "evprof/control.h"
#include "evprof/proc.h"
#include "evprof/ring.h"
#include "evprof/system_calls.h"
#include "run/session.h"
#include "stack/layout.h"
#include "util/cli.h"
#include "util/clock.h"
#include "util/output.h"

#define LOOK_MS 20
#define JOIN_MS 10000
#define SAMPLER_MS 10000

struct sampled {
	const struct sample_request *request;
	struct process process;
	struct layout layout;
	struct run_session session;
	int ring, pidfd; /* -1: none */
	int sampler;	 /* connection to it; -1: none */
	struct ring_header *header;
};

static int complain(const char *what, int error)
{
	output_message("evprof attach: %s: %s", what, strerror(error));
	return -1;
}

/* --- the fields --- */

/* The list of interpreters has the newest first, and ends with the main one. */
static bool is_main(struct sampled *sampled, uint64_t interpreter)
{
	uint64_t next;

	return process_word(&sampled->process, interpreter + sampled->layout.interpreter_next, &next) && !next;
}

/* The thread state of the main thread in the main interpreter, which lives as long as Python does, and that one. */
static bool find_main_state(struct sampled *sampled)
{
	static uint64_t states[LAYOUT_STATES_MAX];
	struct layout *layout = &sampled->layout;

	for (size_t i = 0; i < layout->interpreter_count; i++) {
		size_t count = 0;

		if (is_main(sampled, layout->interpreters[i]))
			count = layout_states(layout, &sampled->process, layout->interpreters[i], states,
					      LAYOUT_STATES_MAX);
		for (size_t k = count; k-- > 0;) {
			if (layout_tid(layout, &sampled->process, states[k]) != sampled->request->pid)
				continue;
			layout->fields.state = states[k];
			layout->fields.interpreter = layout->interpreters[i];
			return true;
		}
	}
	return false;
}

static int find_fields(struct sampled *sampled)
{
	pid_t pid = sampled->request->pid;
	char why[512] = "";

	if (process_open(&sampled->process, pid, why, sizeof(why)) == 0 &&
	    layout_find(&sampled->layout, &sampled->process, why, sizeof(why)) == 0) {
		if (sampled->process.target.own_pid != pid)
			snprintf(why, sizeof(why),
				 "process %d is in another pid namespace (a container): evprof attach without --sample "
				 "reaches it, and --sample does in there",
				 (int)pid);
		else if (!find_main_state(sampled))
			snprintf(why, sizeof(why), "the main thread of process %d is not known to its Python",
				 (int)pid);
	}
	if (why[0])
		output_message("evprof attach: %s", why);
	return why[0] ? -1 : 0;
}

/* --- the ring --- */

static int make_ring(struct sampled *sampled)
{
	struct ring_layout layout = {
	    .magic = RING_MAGIC,
	    .version = RING_VERSION,
	    .header_bytes = sizeof(struct ring_header),
	    .definitions_offset = RING_PAGE_BYTES,
	    .definitions_bytes = RING_DEFINITIONS_BYTES,
	    .slots_offset = RING_PAGE_BYTES + RING_DEFINITIONS_BYTES,
	    .slot_count = RING_SLOTS,
	    .slot_bytes = sizeof(struct ring_slot),
	    .clock_kind = RING_CLOCK_MONOTONIC,
	    .start_ticks = (uint64_t)(time_ns(CLOCK_MONOTONIC) - time_namespace_offset("monotonic")),
	    .ring_bytes = RING_BYTES_DEFAULT,
	    .data_offset = RING_PAGE_BYTES + RING_DEFINITIONS_BYTES + RING_SLOTS * sizeof(struct ring_slot),
	};

	layout.size_bytes = layout.data_offset + ring_data_bytes(RING_SLOTS, RING_BYTES_DEFAULT);
	sampled->layout.fields.ready_ticks = layout.start_ticks;
	sampled->ring = system_memfd_create("evprof", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (sampled->ring < 0 || ftruncate(sampled->ring, (off_t)layout.size_bytes) < 0 ||
	    fcntl(sampled->ring, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return complain("cannot make a ring", errno);
	sampled->header = mmap(NULL, RING_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, sampled->ring, 0);
	if (sampled->header == MAP_FAILED) {
		sampled->header = NULL;
		return complain("cannot make a ring", errno);
	}
	sampled->header->layout = layout;
	return 0;
}

/* --- the join --- */

/* What is not UTF-8 is left out: it names nothing. */
static json_t *valid_text(const char *text)
{
	json_t *string = json_string(text);

	return string ? string : json_string("");
}

static json_t *read_arguments(pid_t pid, char *program, size_t size)
{
	static char text[CONTROL_ARGV_MAX_BYTES];
	json_t *arguments = json_array();
	ssize_t bytes = proc_read_of(pid, 0, "cmdline", text, sizeof(text));

	proc_program_name(text, bytes, program, size);
	for (ssize_t at = 0; at < bytes; at += (ssize_t)strlen(text + at) + 1)
		json_array_append_new(arguments, valid_text(text + at));
	return arguments;
}

static json_t *read_link(pid_t pid, const char *name)
{
	char path[64], target[PATH_MAX];
	ssize_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	bytes = readlink(path, target, sizeof(target) - 1);
	target[bytes > 0 ? bytes : 0] = 0;
	return valid_text(target);
}

static char *make_message(const struct sampled *sampled)
{
	const struct layout *layout = &sampled->layout;
	const struct target *target = &sampled->process.target;
	char python[32], program[256], host[256] = "";
	json_t *arguments = read_arguments(target->pid, program, sizeof(program)), *message;
	json_t *output = json_string(sampled->request->output);
	char *text;

	snprintf(python, sizeof(python), "3.%d.%d", layout->minor, layout->micro);
	gethostname(host, sizeof(host) - 1);
	message = json_pack(
	    "{s:i, s:s, s:s, s:s, s:i, s:i, s:I, s:b, s:i, s:b, s:[s, s, s], s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o*}",
	    "evprof", CONTROL_VERSION, "type", "join", "session", sampled->session.id, "start", "exec", "pid",
	    (int)target->own_pid, "ppid", 0, "start_time", (json_int_t)proc_start_time(target->pid, NULL, NULL), "root",
	    1, "sample_rate", (int)layout->fields.rate, "outside", 1, "events", "call", "line", "sample", "python",
	    python, "program", program, "argv", arguments, "exe", read_link(target->pid, "exe"), "cwd",
	    read_link(target->pid, "cwd"), "host", valid_text(host), "output", output ? output : json_string("/"),
	    "output_bytes", output ? NULL : run_session_hex(sampled->request->output));
	text = json_dumps(message, JSON_COMPACT);
	json_decref(message);
	return text;
}

static int send_message(const struct sampled *sampled, const char *text, int fd)
{
	const int fds[] = {sampled->ring, sampled->pidfd};
	char control[CMSG_SPACE(sizeof(fds))] = {0};
	struct iovec part = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
	struct msghdr header = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&header);

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(rights), fds, sizeof(fds));
	return sendmsg(fd, &header, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int wait_answer(const struct sampled *sampled)
{
	int64_t end = time_ms(CLOCK_MONOTONIC) + JOIN_MS;
	uint32_t state;

	while ((state = atomic_load(&sampled->header->collector_state)) == RING_COLLECTOR_NONE &&
	       time_ms(CLOCK_MONOTONIC) < end)
		poll(NULL, 0, LOOK_MS);
	if (state == RING_COLLECTOR_ATTACHED)
		return 0;
	output_message("evprof attach: %.*s", RING_TEXT_BYTES - 1,
		       state == RING_COLLECTOR_NONE ? "the collector does not answer" : sampled->header->text);
	return -1;
}

static int join(struct sampled *sampled)
{
	char *text = make_message(sampled);
	int fd = text ? control_connect(sampled->session.socket) : -ENOMEM, r = fd;

	if (fd >= 0) {
		r = send_message(sampled, text, fd);
		close(fd);
	}
	free(text);
	return r < 0 ? complain("cannot join the collector", -r) : wait_answer(sampled);
}

/* --- the sampler --- */

static int start_sampler(struct sampled *sampled)
{
	char pid[16];
	char *argv[] = {(char *)"evprof-collector", (char *)"--sample", pid, NULL};
	const struct sampling *fields = &sampled->layout.fields;
	int ends[2], r = 0;

	snprintf(pid, sizeof(pid), "%d", (int)sampled->request->pid);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return complain("cannot start the sampler", errno);
	sampled->sampler = ends[1];
	if (send(ends[1], fields, sizeof(*fields), MSG_NOSIGNAL) != sizeof(*fields))
		r = -EPIPE;
	if (r == 0)
		r = run_collector_program(sampled->request->program, argv,
					  (const int[]){sampled->ring, sampled->process.remote->fd, ends[0]}, 3);
	close(ends[0]);
	return r < 0 ? complain("cannot start the sampler", -r) : 0;
}

/* Leaves the collector in place of the process, which goes on. False: the sampler has done so. */
static bool leave(const struct sampled *sampled)
{
	uint32_t running = RING_TARGET_RUNNING;

	return atomic_compare_exchange_strong(&sampled->header->target_state, &running, RING_TARGET_REPLACED);
}

/* The collector has all once the sampler has ended. One that was killed has not left the process. */
static void end_sampler(const struct sampled *sampled)
{
	struct pollfd end = {.fd = sampled->sampler};

	shutdown(sampled->sampler, SHUT_WR);
	poll(&end, 1, SAMPLER_MS);
	end.fd = sampled->pidfd;
	end.events = POLLIN;
	if (poll(&end, 1, 0) == 0 && leave(sampled))
		output_message("evprof attach: the sampler has ended early; later samples are missing");
}

/* Until the time is over, the process or the sampler has ended, or the user interrupts. */
static void wait_for_end(const struct sampled *sampled)
{
	struct pollfd ends[] = {{.fd = sampled->pidfd, .events = POLLIN}, {.fd = sampled->sampler}};
	int64_t for_ms = sampled->request->for_ms, end = time_ms(CLOCK_MONOTONIC) + for_ms;

	while (!cli_interrupted && (!for_ms || time_ms(CLOCK_MONOTONIC) < end) && poll(ends, 2, LOOK_MS) <= 0)
		;
}

static int print_summary(struct sampled *sampled)
{
	int seconds;
	json_t *summary = run_session_summary(&sampled->session, &seconds);
	const char *error = json_string_value(json_object_get(summary, "error"));
	const char *trace = json_string_value(json_object_get(summary, "trace"));

	if (!summary || error || !trace)
		output_message("evprof attach: %s", error ? error : "the collector has written no trace");
	else if (!sampled->request->quiet)
		output_message("evprof: %lld events of process %d, %lld lost, in %s; show it with: evprof report %s",
			       (long long)json_integer_value(json_object_get(summary, "events")),
			       (int)sampled->request->pid,
			       (long long)json_integer_value(json_object_get(summary, "lost")), trace, trace);
	seconds = summary && !error && trace ? CLI_FINE : CLI_FAILED;
	json_decref(summary);
	return seconds;
}

static int sample(struct sampled *sampled)
{
	const struct sample_request *request = sampled->request;

	if (find_fields(sampled) < 0)
		return CLI_FAILED;
	sampled->layout.fields.rate = request->rate;
	sampled->layout.fields.ready = SAMPLING_READY;
	sampled->pidfd = (int)syscall(SYS_pidfd_open, request->pid, 0);
	if (sampled->pidfd < 0) {
		complain("cannot watch the process", errno);
		return CLI_FAILED;
	}
	if (run_session_open(&sampled->session, request->socket, request->program, request->output) < 0 ||
	    make_ring(sampled) < 0)
		return CLI_FAILED;
	if (join(sampled) < 0 || start_sampler(sampled) < 0) {
		leave(sampled);
		return CLI_FAILED;
	}
	cli_catch_interrupt();
	if (!request->quiet)
		output_message("evprof: sampling %d %s%s", (int)request->pid, sampled->process.target.program,
			       request->for_ms ? "" : "; Ctrl-C ends it");
	wait_for_end(sampled);
	end_sampler(sampled);
	return print_summary(sampled);
}

static void close_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

int sample_process(const struct sample_request *request)
{
	struct sampled sampled = {.request = request, .session.hold = -1, .ring = -1, .pidfd = -1, .sampler = -1};
	int status = sample(&sampled);

	close_open(sampled.sampler);
	close_open(sampled.ring);
	close_open(sampled.pidfd);
	if (sampled.header)
		munmap(sampled.header, RING_PAGE_BYTES);
	run_session_done(&sampled.session);
	layout_done(&sampled.layout);
	process_close(&sampled.process);
	return status;
}
