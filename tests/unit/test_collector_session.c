/*
 * test_collector_session.c - the collector with fake targets: joins, ends, losses, damage, and the file that results.
 *
 * The collector runs in the test's own process, turn by turn; the trace is read back with the tools' reader.
 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/server/collector.h"
#include "collector/session/process.h"
#include "fake_target.h"
#include "tools/trace/reader.h"

#define WAIT_MS 10 /* a test never waits for nothing */

static struct collector collector;
static char socket_name[64];
static char folder[64];
static char output[128]; /* template */

static bool no_holes; /* as with a file system that takes back no part of a file */
static int accept_error;

int fallocate(int fd, int mode, off_t offset, off_t length)
{
	if (!no_holes || !(mode & FALLOC_FL_PUNCH_HOLE))
		return (int)syscall(SYS_fallocate, fd, mode, offset, length);
	errno = EOPNOTSUPP;
	return -1;
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	if (!accept_error)
		return (int)syscall(SYS_accept4, fd, address, length, flags);
	errno = accept_error;
	return -1;
}

static void set_up(void)
{
	struct collector_config config = {.private = true};

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	strcpy(folder, "/tmp/evprof-test-XXXXXX");
	cr_assert(mkdtemp(folder));
	snprintf(output, sizeof(output), "%s/%%n.evp", folder);
	config.listen_fd = fake_listen(socket_name, sizeof(socket_name));
	cr_assert(config.listen_fd >= 0);
	cr_assert_eq(collector_init(&collector, &config), 0);
}

static void tear_down(void)
{
	char command[128];

	collector_done(&collector);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(collector_session, .init = set_up, .fini = tear_down, .timeout = 60);

static void turn(unsigned times)
{
	while (times-- > 0)
		collector_turn(&collector, WAIT_MS);
}

/* Until the target has an answer of at least this state; false when none comes in time. */
static bool turn_until(const struct fake_target *target, uint32_t state)
{
	for (unsigned i = 0; i < 2000 && fake_collector_state(target) < state; i++)
		collector_turn(&collector, WAIT_MS);
	return fake_collector_state(target) >= state;
}

/* A turn would wait, with nothing to do. */
static void accept_all(void)
{
	while (server_poll(collector.server, clock_now_ns()))
		continue;
}

static void join(struct fake_target *target, struct fake_join how)
{
	if (!how.output)
		how.output = output;
	cr_assert_eq(fake_target_join(target, socket_name, &how), 0);
	accept_all();
}

static void begin_as(struct fake_target *target, struct fake_join how)
{
	cr_assert_eq(fake_target_new(target, RING_BYTES_MIN, 8), 0);
	join(target, how);
	cr_assert_eq(fake_collector_state(target), RING_COLLECTOR_ATTACHED, "%s", target->header->text);
	fake_thread_start(target, 0, 77, 2000);
}

static void begin(struct fake_target *target)
{
	begin_as(target, (struct fake_join){.program = "prog"});
}

static void leave(struct fake_target *target)
{
	atomic_store_explicit(&target->header->target_state, RING_TARGET_EXITING, memory_order_release);
}

static struct trace *read_trace(const char *path)
{
	char error[512] = "";
	struct trace *trace = NULL;

	cr_assert_eq(trace_open(&trace, path, error, sizeof(error)), 0, "%s: %s", path, error);
	trace_check(trace, NULL, NULL);
	return trace;
}

static struct trace *read_whole(const char *path)
{
	struct trace *trace = read_trace(path);
	char text[512];

	cr_assert_eq(trace_verdict(trace, text, sizeof(text)), CLI_FINE, "%s", text);
	cr_assert(trace->complete);
	return trace;
}

static struct trace *read_finished(const struct fake_target *target)
{
	cr_assert(turn_until(target, RING_COLLECTOR_FINISHED));
	return read_whole(target->header->text);
}

static struct trace *read_left(struct fake_target *target)
{
	leave(target);
	return read_finished(target);
}

static const char *how_ended(const struct trace *trace, uint32_t process)
{
	cr_assert(process < trace->process_count && trace->processes[process]->end);
	return json_string_value(json_object_get(trace->processes[process]->end, "how"));
}

static uint64_t count_of(struct trace *trace, uint32_t thread, unsigned kind)
{
	cr_assert(thread < trace->thread_count && trace->threads[thread]);
	cr_assert_eq(trace_count_events(trace, trace->threads[thread]), 0);
	return trace->threads[thread]->events[kind];
}

/* What the file says that a thread lost. */
static uint64_t lost_of(const struct trace *trace, uint32_t thread)
{
	uint64_t sum = 0;

	for (unsigned kind = 0; trace->threads[thread]->lost && kind < WIRE_KINDS; kind++)
		sum += trace->threads[thread]->lost[kind];
	return sum;
}

/* What the gaps among a thread's events stand for. */
static uint64_t gaps_of(struct trace *trace, uint32_t thread)
{
	struct trace_stream stream;
	struct trace_events events;
	uint64_t sum = 0;

	trace_stream_open(&stream, trace, trace->threads[thread]);
	while (trace_stream_next(&stream, &events) == 1) {
		const uint64_t *extra = events.extras;

		for (uint32_t i = 0; i < events.count; i++) {
			unsigned kind = wire_head_kind(events.heads[i]);

			sum += kind == WIRE_GAP ? *extra : 0;
			extra += wire_extra_words(events.heads[i]);
		}
	}
	trace_stream_close(&stream);
	return sum;
}

Test(collector_session, one_process_is_complete)
{
	const char *const strings[] = {"/app.py", "main", "main", "__main__"};
	const uint64_t memory[2] = {wire_memory_word(0x7f1122334450, 32), wire_memory_word(0x7f1122334450, 0)};
	struct fake_target target;
	struct trace_stream stream;
	struct trace_events events;
	struct trace *trace;

	begin(&target);
	fake_definition(&target, WIRE_DEFINE_CODE, 1, 10, strings);
	fake_call(&target, 0, WIRE_CALL, 1, 5);
	fake_event(&target, 0, wire_word(wire_memory_head(WIRE_MALLOC, WIRE_DOMAIN_OBJ, 32), 6), &memory[0]);
	fake_event(&target, 0, wire_word(wire_memory_head(WIRE_FREE, WIRE_DOMAIN_OBJ, 0), 7), &memory[1]);
	fake_call(&target, 0, WIRE_RETURN, 1, 8);
	leave(&target);
	cr_assert(turn_until(&target, RING_COLLECTOR_DRAINED));
	cr_assert_eq(fake_collector_state(&target), RING_COLLECTOR_FINISHED);
	cr_assert_eq(atomic_load(&target.header->summary_events), 4);
	cr_assert_eq(atomic_load(&target.header->summary_processes), 1);
	cr_assert(collector_turn(&collector, WAIT_MS), "the process lets go of its memory before");
	for (unsigned i = 0; i < 2000 && collector.sessions; i++)
		turn(1);
	cr_assert_not(collector_turn(&collector, WAIT_MS), "a private collector ends with its session");

	trace = read_whole(target.header->text);
	cr_assert_str_eq(how_ended(trace, 0), "exit");
	cr_assert_eq(trace->threads[0]->tid, 77);
	cr_assert_eq(trace->threads[0]->start_ticks, 2000);
	trace_stream_open(&stream, trace, trace->threads[0]);
	cr_assert_eq(trace_stream_next(&stream, &events), 1);
	cr_assert_eq(events.count, 4);
	cr_assert_eq(events.first_ticks, 2000);
	cr_assert_eq(events.ticks[3], 8);
	cr_assert_eq(events.extra_count, 2);
	cr_assert_eq(events.extras[0], memory[0]);
	cr_assert_eq(events.extras[1], memory[1]);
	trace_stream_close(&stream);
	cr_assert_eq(trace->processes[0]->codes.at[1]->number, 10);
	trace_close(trace);
	fake_target_free(&target);
}

Test(collector_session, many_events_through_a_small_ring)
{
	struct fake_target target;
	struct trace *trace;
	uint64_t memory = wire_memory_word(0x7f0000001000, 0);

	begin(&target);
	for (unsigned i = 0; i < 200000; i++) {
		while (!fake_has_room(&target, 0, 4))
			collector_turn(&collector, WAIT_MS);
		fake_call(&target, 0, WIRE_CALL, i % 100, i % 70000);
		fake_event(&target, 0, wire_word(wire_memory_head(WIRE_MALLOC, 0, 48), 3), &memory);
	}
	trace = read_left(&target);
	cr_assert_eq(trace->end.events, 400000);
	cr_assert_eq(trace->end.lost, 0);
	cr_assert_eq(count_of(trace, 0, WIRE_CALL), 200000);
	cr_assert_eq(count_of(trace, 0, WIRE_MALLOC), 200000);
	trace_close(trace);
	fake_target_free(&target);
}

Test(collector_session, slots_are_used_again_by_other_threads)
{
	struct fake_target target;
	struct trace *trace;

	begin(&target);
	for (unsigned i = 0; i < 500; i++) {
		while (atomic_load(&target.slots[5].state) != RING_SLOT_FREE)
			collector_turn(&collector, WAIT_MS);
		cr_assert_eq(atomic_load(&target.slots[5].head), 0);
		fake_thread_start(&target, 5, 1000 + i, 3000);
		fake_call(&target, 5, WIRE_CALL, 1, 1);
		atomic_store(&target.slots[5].lost[WIRE_CALL], i == 499 ? 3 : 0);
		fake_thread_end(&target, 5);
	}
	leave(&target);
	cr_assert(turn_until(&target, RING_COLLECTOR_FINISHED));
	cr_assert_eq(atomic_load(&target.header->summary_lost), 3);
	trace = read_whole(target.header->text);
	for (unsigned i = 0; i <= 500; i++)
		cr_assert(trace->threads[i] && trace->threads[i]->ended, "thread %u", i);
	cr_assert_eq(trace->end.events, 500);
	cr_assert_eq(trace->end.lost, 3);
	cr_assert_eq(trace->threads[500]->tid, 1499);
	cr_assert_eq(lost_of(trace, 500), 3);
	trace_close(trace);
	fake_target_free(&target);
}

Test(collector_session, memory_of_a_large_ring_goes_back)
{
	struct fake_target target;
	struct stat before;
	struct stat after;

	cr_assert_eq(fake_target_new(&target, UINT64_C(1) << 20, 8), 0);
	join(&target, (struct fake_join){.program = "prog"});
	fake_thread_start(&target, 6, 1, 1);
	while (fake_has_room(&target, 6, 1))
		fake_call(&target, 6, WIRE_CALL, 1, 1);
	fake_thread_end(&target, 6);
	cr_assert_eq(fstat(target.memfd, &before), 0);
	turn(3);
	cr_assert_eq(fstat(target.memfd, &after), 0);
	cr_assert(after.st_blocks * 512 <= before.st_blocks * 512 - (1 << 20));
	leave(&target);
	cr_assert(turn_until(&target, RING_COLLECTOR_FINISHED));
	fake_target_free(&target);
}

static uint64_t taken_bytes(const struct fake_target *target)
{
	struct stat status;

	cr_assert_eq(fstat(target->memfd, &status), 0);
	return (uint64_t)status.st_blocks * 512;
}

Test(collector_session, the_first_thread_finds_the_pages_of_its_ring_there)
{
	const uint64_t ring_bytes = UINT64_C(1) << 20;
	struct fake_target target;
	uint64_t before, after;

	if (madvise(NULL, 0, MADV_POPULATE_READ))
		cr_skip_test("this kernel cannot be asked for pages");
	cr_assert_eq(fake_target_new(&target, ring_bytes, 8), 0);
	join(&target, (struct fake_join){.program = "prog"});
	fake_thread_start(&target, 0, 1, 1);
	fake_thread_start(&target, 1, 2, 1);
	before = taken_bytes(&target);
	turn(1);
	after = taken_bytes(&target);
	cr_assert_geq(after, before + (UINT64_C(128) << 10), "some are taken at once");
	cr_assert_lt(after, before + ring_bytes, "not all of them, and none of another thread");
	for (unsigned i = 0; i < 2 * ring_bytes / sizeof(uint64_t); i++) {
		while (!fake_has_room(&target, 0, 1))
			turn(1);
		fake_call(&target, 0, WIRE_CALL, 1, 1);
	}
	turn(1);
	cr_assert_leq(taken_bytes(&target), before + ring_bytes + (UINT64_C(64) << 10),
		      "what stands around the ring stays");
	leave(&target);
	cr_assert(turn_until(&target, RING_COLLECTOR_FINISHED));
	fake_target_free(&target);
}

Test(collector_session, a_daemon_takes_no_memory_for_others)
{
	struct fake_target target;
	uint64_t before;

	collector.tools.drain.prefaults = false; /* as collector_init() has it where it is not private */
	cr_assert_eq(fake_target_new(&target, UINT64_C(1) << 20, 8), 0);
	join(&target, (struct fake_join){.program = "prog"});
	fake_thread_start(&target, 0, 1, 1);
	before = taken_bytes(&target);
	turn(3);
	cr_assert_leq(taken_bytes(&target), before);
	leave(&target);
	cr_assert(turn_until(&target, RING_COLLECTOR_FINISHED));
	fake_target_free(&target);
}

/* Field 22 of /proc/self/stat. */
static unsigned long long own_start_time(void)
{
	char line[1024] = "";
	unsigned long long value = 0;
	const char *at;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

	if (read(fd, line, sizeof(line) - 1) > 0 && (at = strrchr(line, ')')))
		sscanf(at + 1, " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
		       &value);
	close(fd);
	return value;
}

/* A child that joins, writes one call and stops; the caller kills it. */
static pid_t start_child(struct fake_target *target, struct fake_join how)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		how.output = output;
		how.pid = getpid();
		how.ppid = getppid();
		how.start_time = own_start_time();
		if (fake_target_join(target, socket_name, &how) == 0) {
			fake_thread_start(target, 0, (uint32_t)getpid(), 10);
			fake_call(target, 0, WIRE_CALL, 1, 1);
			raise(SIGSTOP);
		}
		_exit(1);
	}
	cr_assert(child > 0);
	cr_assert_eq(waitpid(child, NULL, WUNTRACED), child);
	return child;
}

Test(collector_session, what_a_killed_process_wrote_is_there)
{
	struct fake_target target;
	struct trace *trace;
	pid_t child;

	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
	child = start_child(&target, (struct fake_join){.program = "prog"});
	cr_assert(turn_until(&target, RING_COLLECTOR_ATTACHED));
	kill(child, SIGKILL);
	trace = read_finished(&target);
	waitpid(child, NULL, 0);
	cr_assert_str_eq(how_ended(trace, 0), "killed");
	cr_assert_eq(json_integer_value(json_object_get(trace->processes[0]->end, "signal")), SIGKILL);
	cr_assert_eq(count_of(trace, 0, WIRE_CALL), 1);
	trace_close(trace);
	fake_target_free(&target);
}

/* The fake process says that it was started as "prog 'a b'"; the system shows what its parent is called. */
Test(collector_session, a_title_from_before_the_join_is_read)
{
	struct fake_target target;
	struct trace *trace;
	char shown[4096] = "";
	ssize_t length;
	pid_t child;
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);

	length = read(fd, shown, sizeof(shown) - 1);
	close(fd);
	for (ssize_t i = 0; i < length - 1; i++)
		if (!shown[i])
			shown[i] = ' ';
	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
	child = start_child(&target, (struct fake_join){.program = "prog"});
	cr_assert(turn_until(&target, RING_COLLECTOR_ATTACHED));
	for (uint64_t end = clock_now_ns() + 100 * UINT64_C(1000000); clock_now_ns() < end;)
		turn(1);
	kill(child, SIGKILL);
	trace = read_finished(&target);
	waitpid(child, NULL, 0);
	cr_assert_str_eq(trace_process_name(trace->processes[0]), shown);
	trace_close(trace);
	fake_target_free(&target);
}

Test(collector_session, who_is_dead_when_it_is_accepted_is_read_all_the_same)
{
	struct fake_target target;
	struct trace *trace;
	pid_t child;

	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
	child = start_child(&target, (struct fake_join){.program = "prog"});
	kill(child, SIGKILL);
	waitpid(child, NULL, 0); /* reaped: the pidfd shows no pid any more */
	trace = read_finished(&target);
	cr_assert_eq(trace->end.events, 1);
	trace_close(trace);
	fake_target_free(&target);
}

Test(collector_session, a_torn_event_is_lost_not_invented)
{
	struct fake_target target;
	struct trace *trace;
	uint64_t *data;

	begin(&target);
	fake_call(&target, 0, WIRE_CALL, 1, 1);
	data = (uint64_t *)(void *)(target.map + target.slots[0].data_offset);
	data[1] = wire_word(wire_memory_head(WIRE_REALLOC, 0, 1), 1);
	ring_publish(&target.slots[0], 3); /* one of its two extra words */
	trace = read_left(&target);
	cr_assert_eq(trace->end.events, 1);
	cr_assert_eq(trace->end.lost, 1);
	cr_assert_eq(trace->threads[0]->lost[WIRE_REALLOC], 1);
	trace_close(trace);
	fake_target_free(&target);
}

Test(collector_session, impossible_positions_stop_that_slot_only)
{
	struct fake_target target;
	struct trace *trace;

	begin(&target);
	fake_thread_start(&target, 1, 78, 2000);
	fake_call(&target, 1, WIRE_CALL, 1, 1);
	ring_publish(&target.slots[0], UINT64_C(1) << 40);
	trace = read_left(&target);
	cr_assert_eq(trace->end.events, 1);
	cr_assert_eq(trace->end.lost, 1);
	trace_close(trace);
	fake_target_free(&target);
}

/* Strangers that say nothing: as many are kept as there is room for, and one with a message is served. */
Test(collector_session, ten_thousand_silent_connections)
{
	static int strangers[10000];
	unsigned count = sizeof(strangers) / sizeof(strangers[0]);
	struct fake_target target;
	struct rlimit limit;
	struct trace *trace;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur < count + SERVER_PEERS_MAX + 100)
		cr_skip_test("this takes %u descriptors, the limit is %llu", count + SERVER_PEERS_MAX + 100,
			     (unsigned long long)limit.rlim_cur);
	for (unsigned i = 0; i < count; i++) {
		strangers[i] = fake_connect(socket_name);
		cr_assert(strangers[i] >= 0);
		if (i % 1000 == 999)
			accept_all();
	}
	begin(&target);
	fake_call(&target, 0, WIRE_CALL, 1, 1);
	trace = read_left(&target);
	cr_assert_eq(trace->end.events, 1);
	cr_assert_eq(recv(strangers[0], &limit, sizeof(limit), MSG_DONTWAIT), 0, "the oldest was closed");
	cr_assert_eq(recv(strangers[count - 1], &limit, sizeof(limit), MSG_DONTWAIT), -1, "the latest was not");
	for (unsigned i = 0; i < count; i++)
		close(strangers[i]);
	trace_close(trace);
	fake_target_free(&target);
}

/* Holes of a file can be as large as it likes: reading their zeros would keep everybody else waiting. */
Test(collector_session, what_was_never_written_is_not_read)
{
	struct fake_target target;
	struct trace *trace;

	cr_assert_eq(fake_target_new(&target, UINT64_C(64) << 20, 8), 0);
	join(&target, (struct fake_join){.program = "prog"});
	for (unsigned slot = 0; slot < 8; slot++) {
		target.slots[slot].data_offset = target.slots[0].data_offset;
		fake_thread_start(&target, slot, 70 + slot, 2000);
		ring_publish(&target.slots[slot], target.slots[slot].data_words);
	}
	turn(1);
	cr_assert_eq(atomic_load(&target.slots[0].tail), 0);
	trace = read_left(&target);
	cr_assert_eq(trace->end.events, 0);
	cr_assert_eq(trace->end.lost, 8, "one mark for each ring, not %llu", (unsigned long long)trace->end.lost);
	trace_close(trace);
	fake_target_free(&target);
}

Test(collector_session, a_ring_outside_the_memory_is_not_read)
{
	struct fake_target target;

	begin(&target);
	target.slots[1].data_offset = target.header->layout.size_bytes - 8;
	fake_thread_start(&target, 1, 78, 2000);
	ring_publish(&target.slots[1], 5);
	leave(&target);
	cr_assert(turn_until(&target, RING_COLLECTOR_FINISHED));
	cr_assert_eq(atomic_load(&target.header->summary_lost), 1);
	cr_assert_eq(atomic_load(&target.slots[1].tail), 0);
	fake_target_free(&target);
}

Test(collector_session, a_damaged_definition_ends_the_names_not_the_events)
{
	const char *const strings[] = {"f", "n", "q", "m"};
	struct wire_definition bad = {.size_bytes = 41, .type = WIRE_DEFINE_CODE, .id = 2};
	struct fake_target target;
	struct trace *trace;

	begin(&target);
	fake_definition(&target, WIRE_DEFINE_CODE, 1, 10, strings);
	fake_definition_bytes(&target, &bad, sizeof(bad));
	fake_definition(&target, WIRE_DEFINE_CODE, 3, 10, strings);
	fake_call(&target, 0, WIRE_CALL, 3, 1);
	trace = read_left(&target);
	cr_assert_eq(trace->end.events, 1);
	cr_assert(trace->processes[0]->codes.count >= 2 && trace->processes[0]->codes.at[1]);
	cr_assert(trace->processes[0]->codes.count <= 3 || !trace->processes[0]->codes.at[3]);
	trace_close(trace);
	fake_target_free(&target);
}

Test(collector_session, exec_ends_the_image_before)
{
	struct fake_target first;
	struct fake_target second;
	struct trace *trace;

	begin(&first);
	fake_call(&first, 0, WIRE_CALL, 1, 1);
	cr_assert_eq(fake_target_new(&second, RING_BYTES_MIN, 8), 0);
	join(&second, (struct fake_join){.start = "exec"});
	fake_thread_start(&second, 0, 77, 10);
	fake_call(&second, 0, WIRE_CALL, 1, 1);
	trace = read_left(&second);
	cr_assert_eq(trace->process_count, 2);
	cr_assert_str_eq(how_ended(trace, 0), "exec");
	cr_assert_str_eq(how_ended(trace, 1), "exit");
	cr_assert_eq(trace->end.events, 2);
	trace_close(trace);
	fake_target_free(&first);
	fake_target_free(&second);
}

Test(collector_session, exec_into_another_program_ends_the_image_too)
{
	struct fake_target target;
	struct trace *trace;
	int ready[2];
	pid_t child;

	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
	cr_assert_eq(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		fake_target_join(&target, socket_name, &(struct fake_join){.output = output, .pid = getpid()});
		fake_thread_start(&target, 0, 1, 10);
		fake_call(&target, 0, WIRE_EXEC, 0, 1);
		execl("/bin/sleep", "sleep", "20", (char *)NULL);
		_exit(1);
	}
	close(ready[1]);
	cr_assert_eq(read(ready[0], &(char){0}, 1), 0, "the pipe ends with the exec");
	/* The test itself maps the memory, the child does not any more; what it runs now may still join. */
	cr_assert(turn_until(&target, RING_COLLECTOR_DRAINED));
	cr_assert_eq(fake_collector_state(&target), RING_COLLECTOR_DRAINED);
	cr_assert_eq(atomic_load(&target.header->summary_running), 0, "this one is not counted");
	kill(child, SIGKILL);
	trace = read_finished(&target);
	waitpid(child, NULL, 0);
	cr_assert_str_eq(how_ended(trace, 0), "exec");
	trace_close(trace);
	fake_target_free(&target);
}

Test(collector_session, a_process_that_others_outlive_is_drained)
{
	struct fake_target parent;
	struct fake_target child;
	pid_t pid;

	begin(&parent);
	cr_assert_eq(fake_target_new(&child, RING_BYTES_MIN, 8), 0);
	pid = start_child(&child, (struct fake_join){.start = "fork"});
	turn(2);
	leave(&parent);
	cr_assert(turn_until(&parent, RING_COLLECTOR_DRAINED));
	cr_assert_eq(fake_collector_state(&parent), RING_COLLECTOR_DRAINED);
	cr_assert_eq(atomic_load(&parent.header->summary_running), 1);
	cr_assert_eq(atomic_load(&parent.header->summary_processes), 2);
	kill(pid, SIGKILL);
	cr_assert(turn_until(&parent, RING_COLLECTOR_FINISHED));
	cr_assert_eq(atomic_load(&parent.header->summary_events), 1);
	waitpid(pid, NULL, 0);
	fake_target_free(&parent);
	fake_target_free(&child);
}

/* Turns until the target has an answer of at least this state. A turn without work lasts for WAIT_MS at least. */
static unsigned count_turns_until(const struct fake_target *target, uint32_t state)
{
	unsigned turns = 0;

	for (; turns < 2000 && fake_collector_state(target) < state; turns++)
		collector_turn(&collector, WAIT_MS);
	return turns;
}

/*
 * For FORK_GRACE_MS, by the clock. On a machine that is busy with other things the test may be away for longer, which
 * is not the collector's fault: then it is skipped.
 */
#define FORK_GRACE_MS 100

Test(collector_session, a_child_that_was_just_forked_is_waited_for)
{
	struct fake_target parent;
	struct fake_target child;
	struct trace *trace;
	uint32_t state;
	uint64_t left_ns;
	siginfo_t end;
	pid_t pid;

	begin(&parent);
	atomic_store(&parent.header->forks, 1);
	left_ns = clock_now_ns();
	leave(&parent);
	turn(5);
	state = fake_collector_state(&parent);
	cr_assert_eq(fake_target_new(&child, RING_BYTES_MIN, 8), 0);
	pid = start_child(&child, (struct fake_join){.start = "fork"});
	if (clock_now_ns() - left_ns >= UINT64_C(1000000) * FORK_GRACE_MS) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		cr_skip_test("the test did not run for %d ms", FORK_GRACE_MS);
	}
	cr_assert_eq(state, RING_COLLECTOR_ATTACHED, "no answer before the child is known");
	cr_assert(turn_until(&parent, RING_COLLECTOR_DRAINED));
	cr_assert_eq(fake_collector_state(&parent), RING_COLLECTOR_DRAINED);
	kill(pid, SIGKILL);
	cr_assert_eq(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT), 0);
	cr_assert_lt(count_turns_until(&child, RING_COLLECTOR_FINISHED), FORK_GRACE_MS / WAIT_MS,
		     "nobody else is expected");
	cr_assert_eq(fake_collector_state(&child), RING_COLLECTOR_FINISHED);
	waitpid(pid, NULL, 0);
	trace = read_whole(child.header->text);
	cr_assert_eq(trace->process_count, 2);
	trace_close(trace);
	fake_target_free(&parent);
	fake_target_free(&child);
}

/* The fork is recorded, and the child does not get the processor: it maps what its parent mapped. */
static pid_t fork_slow_child(struct fake_target *parent)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		raise(SIGSTOP);
		_exit(0);
	}
	cr_assert(child > 0);
	cr_assert_eq(waitpid(child, NULL, WUNTRACED), child);
	atomic_fetch_add(&parent->header->forks, 1);
	fake_call(parent, 0, WIRE_FORK, (uint32_t)child, 1);
	return child;
}

Test(collector_session, a_child_that_is_slow_to_begin_is_waited_for)
{
	struct fake_target parent;
	struct trace *trace;
	pid_t child;

	begin(&parent);
	child = fork_slow_child(&parent);
	leave(&parent);
	cr_assert(turn_until(&parent, RING_COLLECTOR_DRAINED));
	for (unsigned i = 0; i < 100; i++)
		cr_assert(collector_turn(&collector, WAIT_MS));
	cr_assert_eq(fake_collector_state(&parent), RING_COLLECTOR_DRAINED, "the parent is not held up by it");
	cr_assert_eq(atomic_load(&parent.header->summary_running), 1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	trace = read_finished(&parent);
	cr_assert_eq(trace->end.processes, 1);
	trace_close(trace);
	fake_target_free(&parent);
}

/*
 * Nothing wakes the collector when such a child ends: as long as the session is not finished, it has to look by itself.
 */
Test(collector_session, the_end_of_a_child_that_never_joined_is_looked_for)
{
	struct fake_target parent;
	pid_t child;

	begin(&parent);
	child = fork_slow_child(&parent);
	leave(&parent);
	cr_assert(turn_until(&parent, RING_COLLECTOR_DRAINED));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (unsigned i = 0; i < 200 && fake_collector_state(&parent) != RING_COLLECTOR_FINISHED; i++) {
		collector_turn(&collector, WAIT_MS);
		cr_assert(!collector.sessions || session_needs_polling(collector.sessions, clock_now_ns()),
			  "after %u turns it would sleep until somebody wakes it", i);
	}
	cr_assert_eq(fake_collector_state(&parent), RING_COLLECTOR_FINISHED);
	fake_target_free(&parent);
}

Test(collector_session, a_child_that_becomes_another_program_is_not_waited_for)
{
	struct fake_target parent;
	pid_t child;

	begin(&parent);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		execl("/bin/sleep", "sleep", "20", (char *)NULL);
		_exit(1);
	}
	atomic_fetch_add(&parent.header->forks, 1);
	fake_call(&parent, 0, WIRE_FORK, (uint32_t)child, 1);
	leave(&parent);
	cr_assert(turn_until(&parent, RING_COLLECTOR_FINISHED));
	cr_assert_eq(waitpid(child, NULL, WNOHANG), 0, "it runs");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	fake_target_free(&parent);
}

Test(collector_session, a_pid_that_is_used_again_ends_who_had_it)
{
	struct fake_target first;
	struct fake_target second;
	struct trace *trace;

	cr_assert_eq(fake_target_new(&first, RING_BYTES_MIN, 8), 0);
	join(&first, (struct fake_join){.start_time = 1000});
	fake_thread_start(&first, 0, 77, 10);
	fake_call(&first, 0, WIRE_CALL, 1, 1);
	cr_assert_eq(fake_target_new(&second, RING_BYTES_MIN, 8), 0);
	join(&second, (struct fake_join){.start_time = 1001});
	fake_thread_start(&second, 0, 77, 10);
	fake_call(&second, 0, WIRE_CALL, 1, 1);
	trace = read_left(&second);
	cr_assert_eq(trace->process_count, 2);
	cr_assert_str_eq(how_ended(trace, 0), "killed", "no exec: another process");
	cr_assert_str_eq(how_ended(trace, 1), "exit");
	cr_assert_eq(trace->end.events, 2);
	trace_close(trace);
	fake_target_free(&first);
	fake_target_free(&second);
}

Test(collector_session, a_quick_program_after_an_exec_does_not_hide_it)
{
	struct fake_target target;
	struct trace *trace;
	pid_t child;

	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
	child = fork();
	if (child == 0) {
		fake_target_join(
		    &target, socket_name,
		    &(struct fake_join){.output = output, .pid = getpid(), .start_time = own_start_time()});
		fake_thread_start(&target, 0, 1, 10);
		fake_call(&target, 0, WIRE_EXEC, 0, 1);
		execl("/bin/sh", "sh", "-c", "exit 8", (char *)NULL);
		_exit(1);
	}
	cr_assert_eq(waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	trace = read_finished(&target);
	cr_assert_str_eq(how_ended(trace, 0), "exec");
	trace_close(trace);
	fake_target_free(&target);
}

Test(collector_session, calls_of_a_killed_process_end_with_it)
{
	struct fake_target target;
	struct trace *trace;
	pid_t child;

	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
	child = start_child(&target, (struct fake_join){.program = "prog"});
	cr_assert(turn_until(&target, RING_COLLECTOR_ATTACHED));
	turn(20);
	kill(child, SIGKILL);
	trace = read_finished(&target);
	waitpid(child, NULL, 0);
	cr_assert_gt(trace->processes[0]->end_ticks, 1000000000, "CLOCK_MONOTONIC when it died, not its one event");
	cr_assert_eq(trace->threads[0]->places[trace->threads[0]->place_count - 1].last_ticks,
		     trace->processes[0]->end_ticks);
	trace_close(trace);
	fake_target_free(&target);
}

static pid_t join_as_nobody(struct fake_target *target)
{
	struct fake_join how = {.output = output};
	pid_t child = fork();

	if (child == 0) {
		if (setuid(65534) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
		    fake_target_join(target, socket_name, &how) < 0)
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, NULL, WUNTRACED), child);
	return child;
}

Test(collector_session, who_gave_up_its_user_belongs_to_its_session)
{
	struct fake_target root;
	struct fake_target child;
	pid_t pid;

	if (geteuid() != 0)
		cr_skip("only root can become another user");
	begin(&root);
	cr_assert_eq(fake_target_new(&child, RING_BYTES_MIN, 8), 0);
	pid = join_as_nobody(&child);
	accept_all();
	cr_assert_eq(fake_collector_state(&child), RING_COLLECTOR_ATTACHED, "%s", child.header->text);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	leave(&root);
	cr_assert(turn_until(&root, RING_COLLECTOR_FINISHED));
	fake_target_free(&root);
	fake_target_free(&child);
}

/* What ends makes room for others; those who join again take no more of it. */
Test(collector_session, a_user_has_a_limit)
{
	struct fake_target root;
	struct fake_target targets[4];
	pid_t pids[4];

	if (geteuid() != 0)
		cr_skip("only root can become another user");
	collector.tools.users.limits.processes = 2;
	begin(&root);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(fake_target_new(&targets[i], RING_BYTES_MIN, 8), 0);
		pids[i] = join_as_nobody(&targets[i]);
		accept_all();
		cr_assert_eq(fake_collector_state(&targets[i]),
			     i == 2 ? RING_COLLECTOR_REFUSED : RING_COLLECTOR_ATTACHED, "number %u: %s", i,
			     targets[i].header->text);
		if (i != 2)
			continue;
		cr_assert(strstr(targets[i].header->text,
				 "user 65534 has 2 recorded processes, the most that this collector allows"));
		kill(pids[0], SIGKILL);
		cr_assert_eq(waitpid(pids[0], NULL, 0), pids[0]);
		turn(10);
	}
	for (unsigned i = 1; i < 4; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	leave(&root);
	cr_assert(turn_until(&root, RING_COLLECTOR_FINISHED));
	fake_target_free(&root);
	for (unsigned i = 0; i < 4; i++)
		fake_target_free(&targets[i]);
}

/* evprof watch and evprof cut --alive, which follow traces. Root and the collector's own user have no limit. */
Test(collector_session, programs_of_a_user_have_a_limit)
{
	struct users users = {.limits = {.processes = 2}};
	struct trace_output traces[2], own;

	trace_output_init(&own, &users, users_get(&users, geteuid()), NULL, NULL);
	for (unsigned i = 0; i < 2; i++)
		trace_output_init(&traces[i], &users, users_get(&users, 65534), NULL, NULL);
	for (unsigned i = 0; i < USER_TOOLS_MAX; i++)
		cr_assert(trace_output_begin_tool(&traces[i % 2]), "%u", i);
	cr_expect_not(trace_output_begin_tool(&traces[0]));
	for (unsigned i = 0; i < 2 * USER_TOOLS_MAX; i++)
		cr_assert(trace_output_begin_tool(&own));
	trace_output_done(&traces[0]);
	cr_expect(trace_output_begin_tool(&traces[1]), "what ends makes room");
	trace_output_done(&traces[1]);
	cr_expect_eq(traces[1].user->counts[USER_TOOLS], 0);
	for (unsigned i = 0; i < 2; i++)
		users_put(&users, traces[i].user);
	trace_output_done(&own);
	users_put(&users, own.user);
}

static unsigned descriptors(void)
{
	DIR *listing = opendir("/proc/self/fd");
	unsigned count = 0;

	cr_assert(listing);
	while (readdir(listing))
		count++;
	closedir(listing);
	return count;
}

/* One process that joins anew without end has the descriptors of one. */
Test(collector_session, joins_of_one_process_give_descriptors_back)
{
	struct fake_target targets[40];
	unsigned before = 0;

	for (unsigned i = 0; i < 40; i++) {
		cr_assert_eq(fake_target_new(&targets[i], RING_BYTES_MIN, 8), 0);
		join(&targets[i], (struct fake_join){.program = "prog"});
		cr_assert_eq(fake_collector_state(&targets[i]), RING_COLLECTOR_ATTACHED, "%s", targets[i].header->text);
		turn(1);
		before = i == 9 ? descriptors() : before;
	}
	cr_assert_leq(descriptors(), before + 30 + 3, "but for the test's own memfds");
	leave(&targets[39]);
	cr_assert(turn_until(&targets[39], RING_COLLECTOR_FINISHED));
	for (unsigned i = 0; i < 40; i++)
		fake_target_free(&targets[i]);
}

/* The file has room for the ends of what runs, not of what ever ran. */
Test(collector_session, images_that_have_ended_need_no_room)
{
	struct fake_target targets[10];
	struct trace *trace;

	for (unsigned i = 0; i < 10; i++) {
		cr_assert_eq(fake_target_new(&targets[i], RING_BYTES_MIN, 8), 0);
		join(&targets[i], (struct fake_join){.program = "prog", .start = "exec"});
	}
	fake_thread_start(&targets[9], 0, 77, 2000);
	fake_call(&targets[9], 0, WIRE_CALL, 1, 1);
	while (ring_tail(&targets[9].slots[0]) == 0)
		turn(1);
	cr_expect_eq(collector.sessions->trace.writer.closing_bytes, TRACE_CLOSING_BYTES + 2 * 1024,
		     "of one process and one thread");
	trace = read_left(&targets[9]);
	cr_expect_eq(trace->end.processes, 10);
	trace_close(trace);
	for (unsigned i = 0; i < 10; i++)
		fake_target_free(&targets[i]);
}

/* Who has filled its part of the disk loses what comes later; the file is whole. */
Test(collector_session, traces_of_a_user_have_a_limit)
{
	struct fake_target target;
	struct trace *trace;
	char path[256];
	uint32_t noise = 1;

	begin(&target);
	collector.tools.users.limits.trace_bytes = 1 << 20;
	collector.sessions->user->uid = 65534; /* as if it were another's */
	for (unsigned i = 0; i < 500000; i++) {
		while (!fake_has_room(&target, 0, 1))
			collector_turn(&collector, WAIT_MS);
		noise = noise * 1103515245 + 12345;
		fake_call(&target, 0, WIRE_CALL, noise >> 6, noise);
	}
	cr_assert(turn_until(&target, RING_COLLECTOR_FAILED));
	cr_assert(strstr(target.header->text, "user 65534 has 1 MiB of traces under way"), "%s", target.header->text);
	leave(&target);
	while (collector_turn(&collector, WAIT_MS))
		continue;
	snprintf(path, sizeof(path), "%s/prog.evp", folder);
	trace = read_whole(path);
	cr_assert_gt(trace->end.events, 1000);
	cr_assert_eq(trace->end.events + trace->end.lost, 500000);
	trace_close(trace);
	fake_target_free(&target);
}

static void fill_trace(struct fake_target *target)
{
	uint32_t noise = 1;

	collector.tools.users.limits.trace_bytes = 1 << 20;
	collector.sessions->user->uid = 65534; /* as if it were another's */
	while (!collector.sessions->trace.full) {
		while (!fake_has_room(target, 0, 1))
			collector_turn(&collector, WAIT_MS);
		noise = noise * 1103515245 + 12345;
		fake_call(target, 0, WIRE_CALL, noise >> 6, noise);
	}
}

/* The file does not grow by threads and images that begin then, and what they lose is in the end of their process. */
Test(collector_session, a_full_trace_has_no_beginnings)
{
	struct fake_target target, next;
	uint64_t full_bytes;
	struct trace *trace;
	char path[256];

	begin(&target);
	fill_trace(&target);
	full_bytes = collector.sessions->trace.writer.offset;
	for (unsigned i = 0; i < 300; i++) {
		while (atomic_load(&target.slots[5].state) != RING_SLOT_FREE)
			collector_turn(&collector, WAIT_MS);
		fake_thread_start(&target, 5, 1000 + i, 3000);
		fake_call(&target, 5, WIRE_CALL, 1, 1);
		fake_thread_end(&target, 5);
	}
	atomic_store(&target.header->lost_unslotted[WIRE_RETURN], 5);
	while (atomic_load(&target.slots[5].state) != RING_SLOT_FREE)
		collector_turn(&collector, WAIT_MS);
	cr_expect_eq(collector.sessions->trace.writer.offset, full_bytes, "%llu bytes more",
		     (unsigned long long)(collector.sessions->trace.writer.offset - full_bytes));
	cr_assert_eq(fake_target_new(&next, RING_BYTES_MIN, 8), 0);
	join(&next, (struct fake_join){.program = "prog", .start = "exec"});
	fake_thread_start(&next, 0, 77, 2000);
	fake_call(&next, 0, WIRE_CALL, 1, 1);
	leave(&next);
	while (collector_turn(&collector, WAIT_MS))
		continue;
	cr_expect_eq(atomic_load(&next.header->summary_events) + atomic_load(&next.header->summary_lost),
		     target.emitted + 5 + 1);
	snprintf(path, sizeof(path), "%s/prog.evp", folder);
	trace = read_whole(path);
	cr_expect_eq(trace->end.events + trace->end.lost, target.emitted + 5 + 1);
	cr_expect_eq(trace->processes[0]->thread_count, 1);
	cr_expect_eq(trace->processes[0]->lost[WIRE_CALL], 300);
	cr_expect_eq(trace->processes[0]->lost[WIRE_RETURN], 5);
	cr_expect_eq(trace->end.processes, 2);
	trace_close(trace);
	fake_target_free(&target);
	fake_target_free(&next);
}

/* Who joins when no descriptor is left is read when others have ended. */
Test(collector_session, joins_wait_for_descriptors)
{
	struct rlimit limit = {.rlim_cur = 0, .rlim_max = 0};
	struct fake_target root;
	struct fake_target targets[6];
	struct trace *trace;
	pid_t children[6];
	int next;

	begin(&root);
	for (unsigned i = 0; i < 6; i++) {
		cr_assert_eq(fake_target_new(&targets[i], RING_BYTES_MIN, 8), 0);
		children[i] = start_child(&targets[i], (struct fake_join){.program = "child"});
	}
	next = dup(0);
	close(next);
	limit.rlim_cur = limit.rlim_max = (rlim_t)next + 9;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (unsigned i = 0; i < 6; i++) {
		turn(30);
		cr_assert_eq(fake_collector_state(&targets[i]), RING_COLLECTOR_ATTACHED, "child %u: %s", i,
			     targets[i].header->text);
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	trace = read_left(&root);
	cr_assert_eq(trace->end.processes, 7);
	trace_close(trace);
	fake_target_free(&root);
	for (unsigned i = 0; i < 6; i++)
		fake_target_free(&targets[i]);
}

/* ENFILE: the host has no descriptor left, and our own limit is far. Each round of the loop tries again. */
Test(collector_session, a_host_without_descriptors_has_one_line)
{
	struct fake_target root, child;
	char lines[4096] = "";
	const char *line;
	pid_t pid;

	cr_redirect_stderr();
	begin(&root);
	cr_assert_eq(fake_target_new(&child, RING_BYTES_MIN, 8), 0);
	accept_error = ENFILE;
	pid = start_child(&child, (struct fake_join){.program = "child"});
	turn(30);
	accept_error = 0;
	turn(30);
	cr_expect_eq(fake_collector_state(&child), RING_COLLECTOR_ATTACHED);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	leave(&root);
	cr_assert(turn_until(&root, RING_COLLECTOR_FINISHED));
	cr_assert_gt(fread(lines, 1, sizeof(lines) - 1, cr_get_redirected_stderr()), 0);
	line = strstr(lines, "no descriptor left");
	cr_expect(line && !strstr(line + 1, "no descriptor left"), "%s", lines);
	fake_target_free(&root);
	fake_target_free(&child);
}

Test(collector_session, a_child_that_never_joins_is_not_waited_for_long)
{
	struct fake_target parent;
	uint64_t start_ns = clock_now_ns();

	begin(&parent);
	atomic_store(&parent.header->forks, 1);
	leave(&parent);
	cr_assert(turn_until(&parent, RING_COLLECTOR_FINISHED));
	cr_assert(clock_now_ns() - start_ns >= UINT64_C(90000000));
	cr_assert(clock_now_ns() - start_ns < UINT64_C(2000000000));
	fake_target_free(&parent);
}

static int open_hold(void)
{
	char text[512];
	int fd = fake_connect(socket_name);

	cr_assert(fd >= 0);
	snprintf(text, sizeof(text), "{\"evprof\":1,\"type\":\"hold\",\"session\":\"%s\",\"output\":\"%s\"}",
		 FAKE_SESSION, output);
	cr_assert_eq(fake_send(fd, text, strlen(text), NULL, 0), 0);
	return fd;
}

/* The answer to the hold, parsed. */
static json_t *hold_reply(int fd)
{
	char text[4096];
	ssize_t count = -1;
	json_t *reply;

	cr_assert_eq(shutdown(fd, SHUT_WR), 0);
	for (unsigned i = 0; i < 500 && count < 0; i++) {
		collector_turn(&collector, WAIT_MS);
		count = recv(fd, text, sizeof(text), MSG_DONTWAIT);
	}
	cr_assert(count > 0);
	reply = json_loadb(text, (size_t)count, 0, NULL);
	cr_assert(reply);
	close(fd);
	return reply;
}

static json_int_t reply_integer(const json_t *reply, const char *name)
{
	return json_integer_value(json_object_get(reply, name));
}

Test(collector_session, a_hold_keeps_the_session_open)
{
	struct fake_target target;
	int hold = open_hold();
	json_t *reply;

	accept_all();
	begin(&target);
	fake_call(&target, 0, WIRE_CALL, 1, 1);
	leave(&target);
	cr_assert(turn_until(&target, RING_COLLECTOR_DRAINED));
	cr_assert_eq(fake_collector_state(&target), RING_COLLECTOR_DRAINED);
	cr_assert_eq(atomic_load(&target.header->summary_running), 0);
	reply = hold_reply(hold);
	cr_assert_eq(reply_integer(reply, "events"), 1);
	cr_assert_eq(reply_integer(reply, "processes"), 1);
	cr_assert_eq(reply_integer(reply, "running"), 0);
	cr_assert(json_is_null(json_object_get(reply, "error")));
	trace_close(read_whole(json_string_value(json_object_get(reply, "trace"))));
	json_decref(reply);
	cr_assert_eq(fake_collector_state(&target), RING_COLLECTOR_FINISHED);
	fake_target_free(&target);
}

Test(collector_session, a_hold_that_ends_early_learns_who_runs)
{
	struct fake_target target;
	int hold = open_hold();
	json_t *reply;

	accept_all();
	begin(&target);
	reply = hold_reply(hold);
	cr_assert_eq(reply_integer(reply, "running"), 1);
	json_decref(reply);
	leave(&target);
	cr_assert(turn_until(&target, RING_COLLECTOR_FINISHED));
	fake_target_free(&target);
}

Test(collector_session, a_hold_without_a_process_has_no_trace)
{
	int hold = open_hold();
	json_t *reply;

	accept_all();
	reply = hold_reply(hold);
	cr_assert(json_is_null(json_object_get(reply, "trace")));
	cr_assert_eq(reply_integer(reply, "processes"), 0);
	json_decref(reply);
	cr_assert_not(collector_turn(&collector, WAIT_MS));
}

Test(collector_session, a_folder_that_cannot_be_made_fails_the_session_not_the_program)
{
	struct fake_target target;

	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
	join(&target, (struct fake_join){.output = "/proc/no-such-folder/x.evp"});
	cr_assert_eq(fake_collector_state(&target), RING_COLLECTOR_FAILED);
	cr_assert_str_eq(target.header->text, "cannot create /proc/no-such-folder/x.evp: No such file or directory; "
					      "set EVPROF_OUTPUT to a writable path");
	fake_thread_start(&target, 0, 1, 1);
	for (unsigned i = 0; i < 100000; i++) {
		while (!fake_has_room(&target, 0, 1))
			collector_turn(&collector, WAIT_MS);
		fake_call(&target, 0, WIRE_CALL, 1, 1);
	}
	leave(&target);
	while (collector_turn(&collector, WAIT_MS))
		continue;
	cr_assert_eq(atomic_load(&target.header->summary_events), 0);
	cr_assert_eq(atomic_load(&target.header->summary_lost), 100000);
	fake_target_free(&target);
}

Test(collector_session, a_disk_that_is_full_from_the_beginning_leaves_no_file)
{
	const struct rlimit none = {.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
	struct fake_target target;
	char path[256];

	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
	join(&target, (struct fake_join){.program = "prog"});
	cr_assert_eq(fake_collector_state(&target), RING_COLLECTOR_FAILED);
	snprintf(path, sizeof(path), "%s/prog.evp", folder);
	cr_assert_neq(access(path, F_OK), 0);
	fake_target_free(&target);
}

/* Closed again at the end of its session, the number may be another trace's. */
Test(collector_session, a_trace_that_cannot_be_kept_is_closed_once)
{
	struct fake_target target;
	int fds[32];

	collector.private = false;
	collector.tools.output_dir = folder;
	collector.tools.output_template = "%n.evp";
	collector.tools.keep = (struct setting_keep){.ns = 1000000000};
	no_holes = true;
	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
	join(&target, (struct fake_join){.program = "prog"});
	cr_assert_eq(fake_collector_state(&target), RING_COLLECTOR_FAILED);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		fds[i] = dup(STDERR_FILENO);
	leave(&target);
	for (unsigned i = 0; i < 2000 && collector.sessions; i++)
		turn(1);
	cr_assert_not(collector.sessions);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		cr_expect_eq(close(fds[i]), 0, "%d", fds[i]);
	fake_target_free(&target);
}

Test(collector_session, a_full_disk_keeps_what_was_written_and_counts_the_rest)
{
	const struct rlimit small = {.rlim_cur = 200000, .rlim_max = RLIM_INFINITY};
	struct fake_target target;
	struct trace *trace;
	char path[256];
	uint32_t noise = 1;

	begin(&target);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (unsigned i = 0; i < 100000; i++) {
		while (!fake_has_room(&target, 0, 1))
			collector_turn(&collector, WAIT_MS);
		noise = noise * 1103515245 + 12345;
		fake_call(&target, 0, WIRE_CALL, noise >> 6, noise);
	}
	cr_assert(turn_until(&target, RING_COLLECTOR_FAILED));
	cr_assert_eq(fake_collector_state(&target), RING_COLLECTOR_FAILED);
	cr_assert(strstr(target.header->text, "File too large"), "%s", target.header->text);
	leave(&target);
	while (collector_turn(&collector, WAIT_MS))
		continue;
	snprintf(path, sizeof(path), "%s/prog.evp", folder);
	trace = read_whole(path);
	cr_assert_eq(count_of(trace, 0, WIRE_CALL), atomic_load(&target.header->summary_events));
	cr_assert_gt(trace->end.events, 1000);
	cr_assert_gt(lost_of(trace, 0), 1000);
	cr_assert_eq(trace->end.events + trace->end.lost, 100000);
	cr_assert_eq(gaps_of(trace, 0), lost_of(trace, 0), "a gap stands for what is lost");
	cr_assert_eq(atomic_load(&target.header->summary_events) + atomic_load(&target.header->summary_lost), 100000);
	trace_close(trace);
	fake_target_free(&target);
}

Test(collector_session, what_could_not_be_marked_stands_in_a_gap_at_the_end)
{
	const uint64_t seven = 7;
	struct fake_target target;
	struct trace *trace;

	begin(&target);
	fake_thread_start(&target, 1, 78, 2000);
	for (unsigned slot = 0; slot < 2; slot++) {
		fake_call(&target, slot, WIRE_CALL, 1, 1);
		fake_event(&target, slot, wire_word(wire_head(WIRE_GAP, 0), 1), &seven);
		fake_call(&target, slot, WIRE_CALL, 1, 1);
		atomic_store(&target.slots[slot].lost[WIRE_CALL], 7);
	}
	atomic_store(&target.slots[0].lost[WIRE_RETURN], 5);
	trace = read_left(&target);
	cr_assert_eq(lost_of(trace, 0), 12);
	cr_assert_eq(gaps_of(trace, 0), 12);
	cr_assert_eq(lost_of(trace, 1), 7);
	cr_assert_eq(gaps_of(trace, 1), 7);
	trace_close(trace);
	fake_target_free(&target);
}

Test(collector_session, a_file_that_was_removed_is_reported)
{
	struct fake_target target;
	char path[256];

	begin(&target);
	snprintf(path, sizeof(path), "%s/prog.evp", folder);
	cr_assert_eq(unlink(path), 0);
	leave(&target);
	cr_assert(turn_until(&target, RING_COLLECTOR_FAILED));
	cr_assert_eq(fake_collector_state(&target), RING_COLLECTOR_FAILED);
	cr_assert(strstr(target.header->text, "was removed"), "%s", target.header->text);
	fake_target_free(&target);
}

Test(collector_session, stopping_finishes_the_file)
{
	struct fake_target target;
	struct trace *trace;

	begin(&target);
	fake_call(&target, 0, WIRE_CALL, 1, 1);
	collector_stop(&collector);
	cr_assert_eq(fake_collector_state(&target), RING_COLLECTOR_FINISHED);
	trace = read_whole(target.header->text);
	cr_assert_str_eq(how_ended(trace, 0), "detached");
	cr_assert_eq(trace->end.events, 1);
	trace_close(trace);
	fake_target_free(&target);
}

/*
 * What is alive cannot be kept, as evprof is not next to this test. A process that has ended gets that as its answer;
 * one that runs on gets what has it join the next daemon, before any file is waited for.
 */
Test(collector_session, stopping_a_daemon_lets_programs_go_on)
{
	struct fake_target runs, ended;
	struct session *session;

	collector.private = false;
	collector.tools.output_dir = folder;
	collector.tools.output_template = "%n.evp";
	collector.tools.keep = (struct setting_keep){.ns = SETTING_KEEP_ALIVE_NS, .alive = true};
	begin_as(&runs, (struct fake_join){.program = "prog", .events = "\"mem\""});
	begin(&ended);
	leave(&ended);
	session = collector.sessions;
	session_let_go(session, clock_now_ns());
	cr_expect_eq(fake_collector_state(&runs), RING_COLLECTOR_FINISHED);
	cr_expect_eq(fake_collector_state(&ended), RING_COLLECTOR_ATTACHED);
	collector_stop(&collector);
	cr_expect_eq(fake_collector_state(&runs), RING_COLLECTOR_FINISHED, "%s", runs.header->text);
	cr_expect_eq(fake_collector_state(&ended), RING_COLLECTOR_FAILED);
	cr_expect(strstr(ended.header->text, "has its last stretch, not what is alive"), "%s", ended.header->text);
	fake_target_free(&runs);
	fake_target_free(&ended);
}

/* What is alive is kept of memory without calls only: other traces are as without it. */
Test(collector_session, what_is_alive_is_not_kept_where_calls_are_recorded)
{
	static const struct {
		struct setting_keep policy;
		uint64_t ns;
		const char *session;
	} cases[] = {
	    {{.ns = SETTING_KEEP_ALIVE_NS, .alive = true}, 0, "00112233445566778899aabbccddee00"},
	    {{.ns = UINT64_C(30000000000), .alive = true}, UINT64_C(30000000000), "00112233445566778899aabbccddee01"}};
	struct fake_target targets[2];

	collector.private = false;
	collector.tools.output_dir = folder;
	collector.tools.output_template = "%n.evp";
	for (size_t i = 0; i < 2; i++) {
		const struct setting_keep *limits;

		collector.tools.keep = cases[i].policy;
		begin_as(&targets[i], (struct fake_join){.program = "prog", .session = cases[i].session});
		limits = &collector.sessions->trace.kept.limits;
		cr_expect(!limits->alive && limits->ns == cases[i].ns && !limits->bytes, "case %zu", i);
		leave(&targets[i]);
	}
	collector_stop(&collector);
	for (size_t i = 0; i < 2; i++) {
		cr_expect_eq(fake_collector_state(&targets[i]), RING_COLLECTOR_FINISHED);
		fake_target_free(&targets[i]);
	}
}

Test(collector_session, an_exit_past_all_hooks_is_an_exit)
{
	struct fake_target target;
	struct trace *trace;
	pid_t child;

	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
	child = start_child(&target, (struct fake_join){.program = "prog"});
	cr_assert(turn_until(&target, RING_COLLECTOR_ATTACHED));
	kill(child, SIGCONT); /* it goes on to _exit(1) */
	trace = read_finished(&target);
	waitpid(child, NULL, 0);
	cr_assert_str_eq(how_ended(trace, 0), "exit");
	cr_assert_eq(json_integer_value(json_object_get(trace->processes[0]->end, "status")), 1);
	trace_close(trace);
	fake_target_free(&target);
}

/* What a process of user 65534 is answered that knows this session. */
static uint32_t join_as_another(struct fake_target *target, const char *session)
{
	struct fake_join how = {.output = output, .session = session};
	pid_t child;

	if (geteuid() != 0)
		cr_skip("only root can become another user");
	cr_assert_eq(fake_target_new(target, RING_BYTES_MIN, 8), 0);
	child = fork();
	if (child == 0)
		_exit(setuid(65534) < 0 || fake_target_join(target, socket_name, &how) < 0);
	accept_all();
	cr_assert_eq(waitpid(child, NULL, 0), child);
	accept_all();
	return fake_collector_state(target);
}

Test(collector_session, another_user_is_refused_with_the_reason)
{
	struct fake_target target;

	cr_assert_eq(join_as_another(&target, NULL), RING_COLLECTOR_REFUSED);
	cr_assert_str_eq(target.header->text, "the collector serves user 0 only, not user 65534: start it with "
					      "--allow-other-users");
	fake_target_free(&target);
}

/* Of a session that has begun, who knows the secret may join as another user; but there must be one. */
static void expect_known(const char *session, const char *other, uint32_t answer)
{
	struct fake_target first, target;

	cr_assert_eq(fake_target_new(&first, RING_BYTES_MIN, 8), 0);
	join(&first, (struct fake_join){.session = session});
	cr_assert_eq(join_as_another(&target, other), answer, "%s: %s", other, target.header->text);
	fake_target_free(&target);
	fake_target_free(&first);
}

Test(collector_session, another_user_joins_who_knows_the_secret)
{
	expect_known(FAKE_SESSION, FAKE_SESSION, RING_COLLECTOR_ATTACHED);
}

Test(collector_session, another_user_has_to_know_all_of_it)
{
	expect_known(FAKE_SESSION, "00112233445566778899aabbccddeefe", RING_COLLECTOR_REFUSED);
}

Test(collector_session, a_session_without_a_secret_is_its_own_users)
{
	const char *open = "000000000000000012345678deadbeef";

	expect_known(open, open, RING_COLLECTOR_REFUSED);
}

Test(collector_session, the_wrong_session_is_refused)
{
	struct fake_target target;
	struct fake_target other;

	begin(&target);
	cr_assert_eq(fake_target_new(&other, RING_BYTES_MIN, 8), 0);
	join(&other, (struct fake_join){.session = "ffffffffffffffffffffffffffffffff"});
	cr_assert_eq(fake_collector_state(&other), RING_COLLECTOR_REFUSED);
	cr_assert_str_eq(other.header->text, "this collector serves another session");
	leave(&target);
	cr_assert(turn_until(&target, RING_COLLECTOR_FINISHED));
	fake_target_free(&target);
	fake_target_free(&other);
}

/* Each spoils one thing of a good header. */
static void spoil(struct ring_header *header, unsigned what)
{
	switch (what) {
	case 0:
		header->layout.magic++;
		break;
	case 1:
		header->layout.version = RING_VERSION + 1;
		break;
	case 2:
		header->layout.size_bytes += 4096;
		break;
	case 3:
		header->layout.definitions_offset = header->layout.size_bytes;
		break;
	case 4:
		header->layout.definitions_bytes--;
		break;
	case 5:
		header->layout.definitions_offset = UINT64_MAX - 7;
		break;
	case 6:
		header->layout.slots_offset = 0;
		break;
	case 7:
		header->layout.slots_offset = header->layout.definitions_offset;
		break;
	case 8:
		header->layout.slot_count = UINT32_MAX;
		break;
	case 9:
		header->layout.slot_count = 0;
		break;
	case 10:
		header->layout.slot_bytes = 64;
		break;
	case 11:
		header->layout.clock_kind = 99;
		break;
	case 12:
		header->layout.clock_shift = 64;
		break;
	default:
		header->layout.slots_offset += 8;
	}
}

Test(collector_session, every_field_of_the_header_is_checked)
{
	for (unsigned what = 0; what < 14; what++) {
		struct fake_target target;
		uint64_t size;

		cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
		size = target.header->layout.size_bytes;
		spoil(target.header, what);
		join(&target, (struct fake_join){.program = "prog"});
		cr_assert_eq(fake_collector_state(&target), RING_COLLECTOR_REFUSED, "number %u", what);
		cr_assert(target.header->text[0]);
		target.header->layout.size_bytes = size;
		fake_target_free(&target);
	}
	cr_assert_null(collector.sessions ? collector.sessions->processes : NULL);
}

Test(collector_session, memory_that_may_shrink_is_refused)
{
	struct fake_target target;
	struct fake_join how = {.output = output};
	uint64_t size;
	int unsealed = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
	size = target.header->layout.size_bytes;
	cr_assert_eq(ftruncate(unsealed, (off_t)size), 0);
	cr_assert_eq(pwrite(unsealed, target.map, RING_PAGE_BYTES, 0), RING_PAGE_BYTES);
	close(target.memfd);
	target.memfd = unsealed;
	cr_assert_eq(fake_target_join(&target, socket_name, &how), 0);
	accept_all();
	cr_assert_null(collector.sessions ? collector.sessions->processes : NULL);
	fake_target_free(&target);
}

Test(collector_session, a_pidfd_of_another_process_is_refused)
{
	struct fake_target target;
	const char *text;
	int fds[2];
	int fd;

	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
	text = fake_join_text(&(struct fake_join){.output = output});
	fds[0] = target.memfd;
	fds[1] = (int)syscall(SYS_pidfd_open, getppid(), 0);
	fd = fake_connect(socket_name);
	cr_assert_eq(fake_send(fd, text, strlen(text), fds, 2), 0);
	accept_all();
	cr_assert_eq(fake_collector_state(&target), RING_COLLECTOR_REFUSED);
	cr_assert_str_eq(target.header->text, "the pidfd is not that of the sender");
	close(fd);
	close(fds[1]);
	fake_target_free(&target);
}

Test(collector_session, nonsense_on_the_socket_leaves_no_descriptor_behind)
{
	const char *texts[] = {"", "{", "[]", "{\"evprof\":2}", "\xff\xfe", "{\"evprof\":1,\"type\":\"join\"}"};
	struct fake_target target;
	int before = dup(0);
	int after;

	close(before);
	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
	for (unsigned count = 0; count <= 5; count++) {
		for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
			int fds[5] = {target.memfd, 0, target.memfd, 0, 0};
			int fd = fake_connect(socket_name);

			cr_assert_eq(fake_send(fd, texts[i], strlen(texts[i]), fds, count), 0);
			accept_all();
			close(fd);
		}
	}
	fake_target_free(&target);
	after = dup(0);
	close(after);
	cr_assert_eq(after, before);
	cr_assert_not(server_has_peers(collector.server));
}

Test(collector_session, a_peer_that_says_nothing_is_closed)
{
	int fd = fake_connect(socket_name);

	accept_all();
	cr_assert(server_has_peers(collector.server));
	server_poll(collector.server, clock_now_ns() + SERVER_SILENT_NS);
	cr_assert_not(server_has_peers(collector.server));
	cr_assert_eq(recv(fd, &(char){0}, 1, 0), 0);
	close(fd);
}

/* Connects as another user (or as this one) without end, and says nothing. */
static pid_t start_silent(uid_t uid)
{
	pid_t child = fork();

	if (child != 0) {
		cr_assert(child > 0);
		usleep(100000);
		return child;
	}
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || setuid(uid) < 0)
		_exit(1);
	for (unsigned i = 0;; i++) {
		static int fds[100];

		if (i >= 100)
			close(fds[i % 100]);
		fds[i % 100] = fake_connect(socket_name);
		usleep(1000);
	}
}

static void expect_a_quick_end(uid_t uid, unsigned most_ms)
{
	struct fake_target target;
	struct trace *trace;
	uint64_t start_ns;
	pid_t child;

	begin(&target);
	child = start_silent(uid);
	accept_all();
	fake_call(&target, 0, WIRE_CALL, 1, 1);
	leave(&target);
	start_ns = clock_now_ns();
	while (fake_collector_state(&target) < RING_COLLECTOR_DRAINED &&
	       clock_now_ns() - start_ns < UINT64_C(6000000000))
		turn(1);
	cr_assert_leq((clock_now_ns() - start_ns) / 1000000, most_ms);
	cr_assert_eq(fake_collector_state(&target), RING_COLLECTOR_FINISHED);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	trace = read_whole(target.header->text);
	cr_assert_eq(trace->end.events, 1);
	trace_close(trace);
	fake_target_free(&target);
}

Test(collector_session, silent_strangers_delay_nobody)
{
	if (geteuid() != 0)
		cr_skip("only root can become another user");
	expect_a_quick_end(65534, 100);
}

Test(collector_session, our_own_silent_connections_delay_an_end_for_a_bounded_time)
{
	expect_a_quick_end(geteuid(), 1000);
}

/* Silence of strangers, however many they are, does not close the connection of who is about to join. */
Test(collector_session, strangers_take_no_place_of_ours)
{
	struct fake_target target;
	struct fake_join how = {.output = output};
	const char *text;
	int fds[2], connection;
	pid_t child;

	if (geteuid() != 0)
		cr_skip("only root can become another user");
	connection = fake_connect(socket_name);
	cr_assert(connection >= 0);
	accept_all();
	child = fork();
	if (child == 0) {
		if (setuid(65534) < 0)
			_exit(1);
		for (unsigned i = 0; i < SERVER_PEERS_MAX + 100; i++) {
			int fd = fake_connect(socket_name);

			if (fd >= 0 && i % 2)
				dup2(fd, 900);
		}
		_exit(0);
	}
	while (waitpid(child, NULL, WNOHANG) == 0)
		accept_all();
	accept_all();
	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
	text = fake_join_text(&how);
	fds[0] = target.memfd;
	fds[1] = (int)syscall(SYS_pidfd_open, getpid(), 0);
	cr_assert_eq(fake_send(connection, text, strlen(text), fds, 2), 0);
	turn(2);
	cr_assert_eq(fake_collector_state(&target), RING_COLLECTOR_ATTACHED, "%s", target.header->text);
	close(connection);
	close(fds[1]);
	leave(&target);
	cr_assert(turn_until(&target, RING_COLLECTOR_FINISHED));
	fake_target_free(&target);
}

/* Read system calls that this process has made, by the kernel's count. */
static unsigned long reads_made(void)
{
	unsigned long count = 0;
	char line[128];
	FILE *file = fopen("/proc/self/io", "re");

	cr_assert(file);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "syscr: %lu", &count);
	fclose(file);
	return count;
}

/* Each event would have the collector look through the maps of 63 processes: 285,000 reads. */
Test(collector_session, looks_into_proc_are_bounded)
{
	struct fake_target target;
	unsigned long before;
	pid_t children[63];

	begin(&target);
	/* Its place in the list of maps is behind these. */
	for (unsigned i = 0; i < 300; i++)
		cr_assert(mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
			  MAP_FAILED);
	for (unsigned i = 0; i < 63; i++)
		children[i] = fork_slow_child(&target);
	for (unsigned i = 0; i < 300; i++)
		fake_call(&target, 0, WIRE_FORK, WIRE_ARG_MAX - i, 1);
	atomic_store(&target.header->waiting, 1);
	before = reads_made();
	collector_turn(&collector, 0);
	cr_assert_lt(reads_made() - before, 3000);
	leave(&target);
	cr_assert(turn_until(&target, RING_COLLECTOR_DRAINED));
	for (unsigned i = 0; i < 63; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	cr_assert(turn_until(&target, RING_COLLECTOR_FINISHED), "all are looked at in the end");
	fake_target_free(&target);
}

static uint64_t words_read(const struct fake_target *target)
{
	uint64_t sum = 0;

	for (unsigned slot = 0; slot < target->header->layout.slot_count; slot++)
		sum += ring_tail(&target->slots[slot]);
	return sum;
}

static void fill(struct fake_target *target, unsigned slots)
{
	for (unsigned slot = 0; slot < slots; slot++) {
		while (fake_has_room(target, slot, 1))
			fake_call(target, slot, WIRE_CALL, 1, 1);
	}
}

/* It says that it wakes the collector, and writes without doing so. */
Test(collector_session, who_does_not_wake_us_is_read_all_the_same)
{
	uint64_t began_ns, longest_ns = 0;
	struct fake_target silent;

	begin(&silent);
	atomic_store(&silent.header->wakes, 1);
	while (atomic_load(&silent.header->sleep) != RING_SLEEPS_UNTIL_EVENT)
		collector_turn(&collector, -1);
	collector_turn(&collector, -1);
	fake_call(&silent, 0, WIRE_CALL, 1, 1);
	while (ring_tail(&silent.slots[0]) != atomic_load(&silent.slots[0].head)) {
		began_ns = clock_now_ns();
		collector_turn(&collector, -1);
		if (clock_now_ns() - began_ns > longest_ns)
			longest_ns = clock_now_ns() - began_ns;
	}
	cr_assert_lt(longest_ns, UINT64_C(2000) * SESSION_PATIENT_US, "it sleeps for %.1f s", (double)longest_ns / 1e9);
	atomic_store(&silent.header->wakes, 0);
	collector_turn(&collector, -1);
	began_ns = clock_now_ns();
	collector_turn(&collector, -1);
	cr_assert_lt(clock_now_ns() - began_ns, UINT64_C(1000000000), "who cannot wake us is looked at often");
	leave(&silent);
	cr_assert(turn_until(&silent, RING_COLLECTOR_FINISHED));
	fake_target_free(&silent);
}

/* One has rings that are always full, and then ends; the other writes a few words. */
Test(collector_session, who_writes_much_takes_a_share_of_a_round)
{
	const uint64_t ring_bytes = UINT64_C(4) << 20, ring_words = ring_bytes / sizeof(uint64_t);
	struct fake_target greedy, other;
	struct trace *trace;
	pid_t child;

	cr_assert_eq(fake_target_new(&greedy, ring_bytes, 8), 0);
	join(&greedy, (struct fake_join){.program = "prog"});
	for (unsigned slot = 0; slot < 8; slot++)
		fake_thread_start(&greedy, slot, 70 + slot, 2000);
	cr_assert_eq(fake_target_new(&other, RING_BYTES_MIN, 8), 0);
	child = start_child(&other, (struct fake_join){.start = "fork"});
	accept_all();
	for (unsigned i = 1; i <= 32; i++) {
		uint64_t before = words_read(&greedy), read;

		fill(&greedy, 8);
		fake_call(&other, 0, WIRE_CALL, 1, 1);
		atomic_store(&other.header->waiting, 1);
		collector_turn(&collector, 0);
		read = words_read(&greedy) - before;
		cr_assert_eq(ring_tail(&other.slots[0]), atomic_load(&other.slots[0].head), "round %u", i);
		cr_assert(read > 0 && read <= ring_words, "round %u reads %llu words", i, (unsigned long long)read);
	}
	for (unsigned slot = 0; slot < 8; slot++)
		cr_assert_gt(ring_tail(&greedy.slots[slot]), 0, "thread %u has a turn", slot);
	leave(&greedy);
	fake_call(&other, 0, WIRE_CALL, 1, 1);
	collector_turn(&collector, 0);
	cr_assert_eq(ring_tail(&other.slots[0]), atomic_load(&other.slots[0].head), "an end takes no round either");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	trace = read_finished(&greedy);
	cr_assert_eq(trace->end.events, greedy.emitted + other.emitted + 1, "the child itself has written one");
	cr_assert_eq(trace->end.lost, 0);
	trace_close(trace);
	fake_target_free(&greedy);
	fake_target_free(&other);
}

/* Its rings are full when somebody asks for all that is in them. Turns until that is done. */
static void expect_read_by_shares(struct fake_target *target, bool (*is_done)(const struct fake_target *))
{
	const uint64_t share_words = UINT64_C(256) << 10;
	unsigned rounds = 0;

	while (!is_done(target) && rounds < 1000) {
		uint64_t before = words_read(target);

		collector_turn(&collector, 0);
		cr_assert_leq(words_read(target) - before, share_words, "round %u", rounds);
		rounds++;
	}
	cr_assert(rounds > 8 && rounds < 1000, "%u rounds", rounds);
	for (unsigned slot = 0; slot < 8; slot++)
		cr_assert_eq(ring_tail(&target->slots[slot]), atomic_load(&target->slots[slot].head), "all is read");
}

static int asking;
static char said[4096];

static bool is_answered(const struct fake_target *target)
{
	(void)target;
	return recv(asking, said, sizeof(said) - 1, MSG_DONTWAIT) > 0;
}

static bool has_copy(const struct fake_target *target)
{
	(void)target;
	return collector.sessions->copies.asked > 0 && collector.sessions->copies.count == 0;
}

Test(collector_session, a_snapshot_and_a_copy_wait_for_shares)
{
	static const char request[] = "{\"evprof\":1,\"type\":\"snapshot\",\"hold_ms\":1}";
	struct fake_target target;

	cr_assert_eq(fake_target_new(&target, UINT64_C(4) << 20, 8), 0);
	join(&target, (struct fake_join){.program = "prog"});
	for (unsigned slot = 0; slot < 8; slot++)
		fake_thread_start(&target, slot, 70 + slot, 2000);
	fill(&target, 8);
	asking = fake_connect(socket_name);
	cr_assert(asking >= 0 && fake_send(asking, request, strlen(request), NULL, 0) == 0);
	accept_all();
	expect_read_by_shares(&target, is_answered);
	cr_assert(strstr(said, "until_ns"), "%s", said);
	fill(&target, 8);
	atomic_store(&target.header->snapshot, RING_SNAPSHOTS + RING_SNAPSHOT_SIGNAL);
	expect_read_by_shares(&target, has_copy);
	close(asking);
	trace_close(read_left(&target));
	fake_target_free(&target);
}

/* evprof cut does not start: it is not in the folder of this test. Something else may have the name of the copy. */
static void expect_no_copy(bool is_there)
{
	struct fake_target target;
	char lines[4096] = "", path[256];

	cr_redirect_stderr();
	begin(&target);
	snprintf(path, sizeof(path), "%s/prog-%d-signal-1.evp", folder, (int)collector.sessions->processes->sender_pid);
	if (is_there)
		close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	atomic_store(&target.header->snapshot, RING_SNAPSHOTS + RING_SNAPSHOT_SIGNAL);
	for (unsigned i = 0; i < 2000 && !has_copy(&target); i++)
		collector_turn(&collector, WAIT_MS);
	trace_close(read_left(&target));
	cr_assert_gt(fread(lines, 1, sizeof(lines) - 1, cr_get_redirected_stderr()), 0);
	cr_expect(strstr(lines, "did last is not copied") && strstr(lines, path), "%s", lines);
	fake_target_free(&target);
	unlink(path);
}

Test(collector_session, a_copy_that_is_missing_has_a_line)
{
	expect_no_copy(false);
}

Test(collector_session, a_copy_that_failed_has_a_line)
{
	expect_no_copy(true);
}

/* It is read while the program waits for something. */
Test(collector_session, the_clock_of_a_process_that_does_nothing_is_known_soon)
{
	struct fake_target target;
	struct trace *trace = NULL;
	char path[256];

	snprintf(path, sizeof(path), "%s/prog.evp", folder);
	begin(&target);
	for (int i = 0; i < 100 && (!trace || trace->clock_count < 2); i++) {
		trace_close(trace);
		turn(1);
		trace = read_trace(path);
	}
	cr_expect(trace->clock_count >= 2, "%zu", trace->clock_count);
	trace_close(trace);
	fake_target_free(&target);
}

static void expect_link_stays(const char *to)
{
	struct fake_target target;
	struct stat status;
	char path[256];

	snprintf(path, sizeof(path), "%s/prog.evp", folder);
	cr_assert_eq(symlink(to, path), 0);
	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, 8), 0);
	join(&target, (struct fake_join){.program = "prog"});
	cr_expect_eq(fake_collector_state(&target), RING_COLLECTOR_FAILED, "%s", to);
	cr_expect(strstr(target.header->text, "not a regular file"), "%s", target.header->text);
	cr_expect(lstat(path, &status) == 0 && S_ISLNK(status.st_mode), "%s", to);
	unlink(path);
	fake_target_free(&target);
}

Test(collector_session, a_link_to_a_device_stays)
{
	expect_link_stays("/dev/null");
}

/* What /dev/stdout is, where the collector has a file there. */
Test(collector_session, a_link_to_a_descriptor_stays)
{
	FILE *file = tmpfile();
	char name[64];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fileno(file));
	expect_link_stays(name);
	fclose(file);
}

Test(collector_session, the_file_of_a_run_before_is_replaced_a_link_not_followed)
{
	struct fake_target target;
	struct stat status;
	char path[256];
	char victim[256];

	snprintf(path, sizeof(path), "%s/prog.evp", folder);
	snprintf(victim, sizeof(victim), "%s/victim", folder);
	close(open(victim, O_CREAT | O_WRONLY, 0600));
	cr_assert_eq(symlink(victim, path), 0);
	begin(&target);
	leave(&target);
	cr_assert(turn_until(&target, RING_COLLECTOR_FINISHED));
	cr_assert_eq(lstat(path, &status), 0);
	cr_assert(S_ISREG(status.st_mode));
	cr_assert_eq(status.st_mode & 07777, 0600);
	cr_assert_eq(stat(victim, &status), 0);
	cr_assert_eq(status.st_size, 0);
	trace_close(read_whole(path));
	fake_target_free(&target);
}
