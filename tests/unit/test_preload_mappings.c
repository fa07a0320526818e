/*
 * test_preload_mappings.c - the resident size of a process by mapping: made lines, and this process.
 */
#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/life/mappings.h"

/* Each mapping has its size in kB below its line. A stack is above its guard, an arena of glibc at 64 MiB. */
Test(preload_mappings, mappings_by_what_they_are)
{
	static const char *const lines[] = {
	    "Rss: 9 kB", /* of no mapping */
	    "55b4b2fa6000-55b4b2fa8000 r--p 00000000 fe:00 247278                     /usr/bin/a b",
	    "Rss:   1 kB",
	    "55b4b3000000-55b4b3100000 rw-p 00000000 00:00 0                          [heap]",
	    "Rss:   2 kB",
	    "7f0000000000-7f0000100000 rw-p 00000000 00:00 0 ",
	    "Rss:    4 kB",
	    "7f0000100000-7f0004000000 ---p 00000000 00:00 0 ",
	    "Rss:    0 kB",
	    "7f0004000000-7f0004100000 rw-p 00000000 00:00 0 ",
	    "Rss:    8 kB",
	    "7f1000001000-7f1000002000 ---p 00000000 00:00 0 ",
	    "Rss:    0 kB",
	    "7f1000002000-7f1000802000 rw-p 00000000 00:00 0 ",
	    "Rss:    16 kB",
	    "Pss:  5 kB",
	    "AnonHugePages: 3 kB",
	    "7f1000802000-7f1000902000 rw-p 00000000 00:00 0 ",
	    "Rss:    32 kB",
	    "7f2000000000-7f2000001000 rw-s 00000000 00:01 77                         /memfd:evprof (deleted)",
	    "Rss:  64 kB",
	    "7f2100000000-7f2100001000 rw-s 00000000 00:01 78          /dev/shm/x",
	    "Rss:  128 kB",
	    "7ffe00000000-7ffe00100000 rw-p 00000000 00:00 0                          [stack]",
	    "Rss:  256 kB",
	    "",
	    "nonsense"};
	struct mappings mappings = {.bytes = {0}};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		mappings_take_line(&mappings, lines[i]);
	cr_expect_eq(mappings.bytes[RING_RESIDENT_FILES], 1 << 10);
	cr_expect_eq(mappings.bytes[RING_RESIDENT_HEAP], (2 + 4 + 8) << 10);
	cr_expect_eq(mappings.bytes[RING_RESIDENT_STACKS], (16 + 256) << 10);
	cr_expect_eq(mappings.bytes[RING_RESIDENT_ANONYMOUS], 32 << 10);
	cr_expect_eq(mappings.bytes[RING_RESIDENT_EVPROF], 64 << 10);
	cr_expect_eq(mappings.bytes[RING_RESIDENT_SHARED], 128 << 10);
}

/* What is mapped and touched here shows in its part, exactly. */
Test(preload_mappings, of_this_process)
{
	struct mappings before = {.bytes = {0}}, after = {.bytes = {0}};
	char *shared, *own;

	cr_assert(mappings_read(&before) && before.bytes[RING_RESIDENT_FILES] && before.bytes[RING_RESIDENT_STACKS]);
	own = mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	shared = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(own != MAP_FAILED && shared != MAP_FAILED);
	madvise(own, 32 << 20, MADV_NOHUGEPAGE);
	memset(own, 1, 16 << 20);
	memset(shared, 1, 4 << 20);
	cr_assert(mappings_read(&after));
	cr_expect_eq(after.bytes[RING_RESIDENT_ANONYMOUS] - before.bytes[RING_RESIDENT_ANONYMOUS], 16 << 20);
	cr_expect_eq(after.bytes[RING_RESIDENT_SHARED] - before.bytes[RING_RESIDENT_SHARED], 4 << 20);
}

/* Eight processes that spin take nearly all of one CPU: the reading lasts ten times as long as on an idle one. */
Test(preload_mappings, on_a_busy_machine)
{
	enum { MAPPINGS = 5000, SPINNING = 8 };
	struct mappings mappings = {.bytes = {0}};
	pid_t spinning[SPINNING];
	cpu_set_t cpus;
	bool complete;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	cr_assert_eq(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
	for (int i = 0; i < MAPPINGS; i++) /* of two kinds in turn: the kernel joins two of one kind */
		cr_assert_neq(
		    mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		    MAP_FAILED);
	for (int i = 0; i < SPINNING; i++) {
		spinning[i] = fork();
		cr_assert_geq(spinning[i], 0);
		if (!spinning[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			alarm(20);
			for (;;)
				;
		}
	}
	complete = mappings_read(&mappings);
	for (int i = 0; i < SPINNING; i++) {
		kill(spinning[i], SIGKILL);
		waitpid(spinning[i], NULL, 0);
	}
	cr_expect(complete, "a busy machine does not end the reading");
}
