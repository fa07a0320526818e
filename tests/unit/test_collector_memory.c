/*
 * test_collector_memory.c - a collector with each of its allocations failing in turn: it goes on, or says what it could
 * not do; its file is whole, what is missing there is counted or said, and all that it took is given back.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef EVPROF_INSTRUMENTED
Test(collector_memory, needs_malloc_of_its_own)
{
	cr_skip_test("the sanitizer has its own malloc()");
}
#else

#include "collector/base/clock.h"
#include "collector/server/collector.h"
#include "collector/session/drain.h"
#include "collector/symbols/resolver.h"
#include "failing_memory.h"
#include "fake_target.h"
#include "tools/trace/reader.h"

#define SLOTS 8
#define ROUNDS 6

static char folder[] = "/tmp/evprof-memory-XXXXXX";
static char output[128]; /* the trace */

static void set_up(void)
{
	cr_assert(mkdtemp(folder));
	snprintf(output, sizeof(output), "%s/trace.evp", folder);
}

static void tear_down(void)
{
	unlink(output);
	cr_expect(rmdir(folder) == 0, "files are left behind");
}

TestSuite(collector_memory, .init = set_up, .fini = tear_down, .timeout = 300);

static unsigned open_fds(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* A process with two threads, a fork, names of all kinds and native frames. */
static void write_events(struct fake_target *target, unsigned round)
{
	const char *const strings[] = {"/app.py", "main", "main", "__main__"};
	const uint64_t memory[2] = {wire_memory_word(0x7f1122334450, 32), wire_memory_word(0x7f1122334450, 0)};

	if (round == 0) {
		fake_thread_start(target, 0, 77, 2000);
		fake_definition(target, WIRE_DEFINE_CODE, 1, 10, strings);
		fake_definition(target, WIRE_DEFINE_MODULE, 1, 16, strings);
		fake_definition(target, WIRE_DEFINE_NATIVE_FRAME, 1, 0, strings);
		fake_call(target, 0, WIRE_FORK, 4711, 5);
	}
	if (round == 2) {
		fake_thread_start(target, 5, 78, 3000);
		fake_definition(target, WIRE_DEFINE_NATIVE_FRAME, 2, 1, strings);
	}
	if (round == 4)
		fake_thread_end(target, 5);
	for (unsigned slot = 0; slot <= 5 && round < 4; slot += round < 2 ? 6 : 5) {
		fake_call(target, slot, WIRE_CALL, 1, 5);
		fake_event(target, slot, wire_word(wire_memory_head(WIRE_MALLOC, WIRE_DOMAIN_OBJ, 32), 6), &memory[0]);
		fake_event(target, slot, wire_word(wire_memory_head(WIRE_FREE, WIRE_DOMAIN_OBJ, 0), 7), &memory[1]);
		fake_call(target, slot, WIRE_RETURN, 1, 8);
	}
}

/* What came of one life of a collector. */
struct result {
	long asked, lost_blocks;
	bool began;    /* there was a collector */
	bool joined;   /* its session has the process */
	bool finished; /* with a whole file */
	uint32_t state;
	uint64_t emitted, events, lost;
	uint64_t counted; /* events, by what the file says of its threads */
	char said[4096];  /* on stderr */
	char reason[256];
};

static void run_session(struct collector *collector, struct session *session, struct fake_target *target,
			struct result *result)
{
	struct drain_result drained = {0};
	uint64_t now_ns = clock_now_ns();

	for (unsigned round = 0; round < ROUNDS; round++, now_ns += UINT64_C(300000000)) {
		write_events(target, round);
		if (round == ROUNDS - 1)
			atomic_store(&target->header->target_state, RING_TARGET_EXITING);
		session_round(session, now_ns, &drained);
		resolver_work(collector->tools.resolver, now_ns);
		session_check_end(session, now_ns, false);
	}
	session_let_go(session, now_ns);
	session_stop(session, now_ns);
	session_is_stopping(session, 0, 0);
	result->finished = session->finished;
}

static void join_and_run(struct collector *collector, struct fake_target *target, struct result *result)
{
	struct control_message message;
	const char *text = fake_join_text(&(struct fake_join){.output = output, .native = true});
	const struct ucred who = {.pid = getpid(), .uid = getuid(), .gid = getgid()};
	int memfd = dup(target->memfd), pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct session *session;

	if (control_parse(text, strlen(text), &message, result->reason, sizeof(result->reason)) < 0) {
		close(memfd);
		close(pidfd);
		return;
	}
	session = session_new(&collector->tools, &message, geteuid(), result->reason, sizeof(result->reason));
	result->joined =
	    session && session_join(session, &message, memfd, pidfd, &who, result->reason, sizeof(result->reason)) == 0;
	if (!result->joined) {
		close(memfd);
		close(pidfd);
	} else {
		run_session(collector, session, target, result);
	}
	if (session)
		session_free(session);
	control_message_done(&message);
}

static void run(long failing, bool stays, struct result *result)
{
	struct collector_config config = {.private = true};
	struct collector collector;
	struct fake_target target;
	char name[64];
	int before = dup(STDERR_FILENO), said = memfd_create("said", MFD_CLOEXEC);
	long blocks;
	ssize_t count;

	*result = (struct result){0};
	cr_assert_eq(fake_target_new(&target, RING_BYTES_MIN, SLOTS), 0);
	config.listen_fd = fake_listen(name, sizeof(name));
	dup2(said, STDERR_FILENO);
	blocks = atomic_load(&memory_blocks);
	memory_fail(failing, stays);
	result->began = collector_init(&collector, &config) == 0;
	if (result->began) {
		join_and_run(&collector, &target, result);
		collector_done(&collector);
	} else {
		close(config.listen_fd);
	}
	result->asked = atomic_load(&memory_asked);
	memory_fail(0, false);
	result->lost_blocks = atomic_load(&memory_blocks) - blocks;
	dup2(before, STDERR_FILENO);
	count = pread(said, result->said, sizeof(result->said) - 1, 0);
	result->said[count > 0 ? count : 0] = '\0';
	close(before);
	close(said);
	result->state = fake_collector_state(&target);
	result->emitted = target.emitted;
	result->events = atomic_load(&target.header->summary_events);
	result->lost = atomic_load(&target.header->summary_lost);
	fake_target_free(&target);
}

/* The file, which is then removed, is a finished trace. */
static bool file_is_whole(struct result *result)
{
	char error[512], text[512];
	struct trace *trace = NULL;
	bool whole = trace_open(&trace, output, error, sizeof(error)) == 0 &&
		     trace_verdict(trace, text, sizeof(text)) == CLI_FINE;

	for (uint32_t i = 0; trace && i < trace->thread_count; i++)
		result->counted += trace->threads[i] ? trace_sum(trace->threads[i]->events) : 0;
	trace_close(trace);
	unlink(output);
	return whole;
}

static void fail_each(bool stays)
{
	static struct result good, bad;
	unsigned fds;

	run(0, false, &good);
	run(0, false, &good);
	fds = open_fds();
	cr_assert(good.finished && good.state == RING_COLLECTOR_FINISHED && file_is_whole(&good), "%s", good.said);
	cr_assert(good.events == good.emitted && good.counted == good.emitted && good.lost == 0 &&
		  good.lost_blocks == 0);
	for (long n = 1; n <= good.asked; n++) {
		bool said;

		run(n, stays, &bad);
		said = strcasestr(bad.said, "memory") || strcasestr(bad.reason, "memory");
		cr_expect(bad.lost_blocks == 0, "allocation %ld: %ld blocks are lost", n, bad.lost_blocks);
		cr_expect(open_fds() == fds, "allocation %ld: descriptors are lost", n);
		if (!bad.began)
			continue;
		cr_expect(bad.joined || said, "allocation %ld: refused with \"%s\"", n, bad.reason);
		if (!bad.joined)
			continue;
		cr_expect(bad.finished, "allocation %ld: not finished", n);
		cr_expect(bad.state == RING_COLLECTOR_FINISHED ? file_is_whole(&bad) : said,
			  "allocation %ld: state %u, \"%s\"", n, bad.state, bad.said);
		cr_expect((bad.events + bad.lost == bad.emitted && bad.counted == bad.events) || said,
			  "allocation %ld: of %lu events %lu written and %lu lost, \"%s\"", n,
			  (unsigned long)bad.emitted, (unsigned long)bad.events, (unsigned long)bad.lost, bad.said);
		unlink(output);
	}
}

Test(collector_memory, one_allocation_fails)
{
	fail_each(false);
}

Test(collector_memory, all_from_one_on_fail)
{
	fail_each(true);
}

#endif
