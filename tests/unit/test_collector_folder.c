/*
 * test_collector_folder.c - a daemon's folder: what is removed, in which order, and what never is.
 *
 * A trace here is its name, its magic and its age: nothing else decides.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "collector/server/options.h"
#include "collector/trace/folder.h"
#include "collector/trace/folder_list.h"
#include "evprof/trace.h"

#define S UINT64_C(1000000000)
#define BYTES 1000

static char path[64];
static int folder_fd;

static void set_up(void)
{
	strcpy(path, "/tmp/evprof-test-XXXXXX");
	cr_assert(mkdtemp(path));
	folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert(folder_fd >= 0);
}

static void tear_down(void)
{
	char command[128];

	close(folder_fd);
	snprintf(command, sizeof(command), "rm -rf '%s'", path);
	cr_assert_eq(system(command), 0);
}

TestSuite(collector_folder, .init = set_up, .fini = tear_down, .timeout = 60);

/* A file of BYTES that begins with these, and was written that many seconds ago. Gives its descriptor. */
static int make_file(const char *name, const char *begin, size_t count, long age_s)
{
	char bytes[BYTES] = {0};
	struct timespec times[2];
	int fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	cr_assert(fd >= 0, "%s: %s", name, strerror(errno));
	memcpy(bytes, begin, count);
	cr_assert_eq(write(fd, bytes, sizeof(bytes)), BYTES);
	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= age_s;
	times[1] = times[0];
	cr_assert_eq(futimens(fd, times), 0);
	return fd;
}

static void make_trace(const char *name, long age_s)
{
	close(make_file(name, TRACE_MAGIC, 8, age_s));
}

static void make_other(const char *name, long age_s)
{
	close(make_file(name, "not a trace", 11, age_s));
}

static bool exists(const char *name)
{
	struct stat status;

	return fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static struct folder folder_with(struct folder_limits limits)
{
	struct folder folder = {.path = path, .limits = limits};

	folder_tend(&folder, S);
	return folder;
}

Test(collector_folder, the_oldest_go_when_all_take_too_much)
{
	struct folder folder;

	make_trace("old.evp", 300);
	make_trace("older.evp", 400);
	make_trace("new.evp", 100);
	make_trace("newer.evp", 50);
	folder = folder_with((struct folder_limits){.keep_bytes = 2 * BYTES});
	cr_expect(!exists("older.evp") && !exists("old.evp") && exists("new.evp") && exists("newer.evp"));
	cr_expect_eq(folder_bytes(&folder, S), 2 * BYTES);
	make_trace("another.evp", 10);
	folder_tend(&folder, 2 * S);
	cr_expect(exists("new.evp"), "the next pass is later");
	folder_tend(&folder, 20 * S);
	cr_expect(!exists("new.evp") && exists("newer.evp") && exists("another.evp"));
}

Test(collector_folder, an_age_is_a_limit)
{
	make_trace("a.evp", 99);
	make_trace("b.evp", 101);
	make_trace("future.evp", -1000);
	folder_with((struct folder_limits){.keep_s = 100});
	cr_expect(exists("a.evp") && !exists("b.evp") && exists("future.evp"));
}

Test(collector_folder, without_a_limit_all_stays)
{
	struct folder folder;

	make_trace("a.evp", 1000000);
	folder = folder_with((struct folder_limits){0});
	cr_expect(exists("a.evp"));
	cr_expect_eq(folder_patience_us(&folder, S), -1);
	cr_expect_eq(folder_room(&folder, S), UINT64_MAX);
	cr_expect_eq(folder_bytes(&folder, S), BYTES);
}

Test(collector_folder, exports_go_with_their_trace)
{
	struct folder folder;

	make_trace("a.evp", 200);
	make_other("a.html", 10);
	make_other("a.sampled.speedscope.json", 10);
	make_other("a.txt", 1000);
	make_other("b.html", 1000);
	make_trace("c.evp", 10);
	make_other("c.pb.gz", 10);
	folder = folder_with((struct folder_limits){.keep_bytes = 2 * BYTES});
	cr_expect(!exists("a.evp") && !exists("a.html") && !exists("a.sampled.speedscope.json"));
	cr_expect(exists("a.txt") && exists("b.html") && exists("c.evp") && exists("c.pb.gz"));
	cr_expect_eq(folder_bytes(&folder, S), 2 * BYTES, "files of no trace do not count");
}

Test(collector_folder, a_trace_that_is_written_stays)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = make_file("busy.evp", TRACE_MAGIC, 8, 500);

	cr_assert_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
	make_trace("done.evp", 400);
	folder_with((struct folder_limits){.keep_bytes = 1, .keep_s = 1});
	cr_expect(exists("busy.evp") && !exists("done.evp"));
	cr_expect_eq(folder_remove(folder_fd, "busy.evp"), -EBUSY);
	close(fd);
	cr_expect_eq(folder_remove(folder_fd, "busy.evp"), 0);
}

/* By the name alone they would be the oldest traces. */
Test(collector_folder, what_is_not_a_trace_stays)
{
	char outside[] = "/tmp/evprof-test-XXXXXX", inner[96];

	cr_assert(mkdtemp(outside));
	snprintf(inner, sizeof(inner), "%s/inner.evp", outside);
	make_other("text.evp", 1000);
	make_trace("right.trace", 1000);
	make_trace(".evp", 1000);
	make_trace("target.bin", 1000);
	cr_assert_eq(symlinkat("target.bin", folder_fd, "link.evp"), 0);
	cr_assert_eq(symlinkat(outside, folder_fd, "elsewhere"), 0);
	cr_assert_eq(mkdirat(folder_fd, "folder.evp", 0700), 0);
	cr_assert_eq(mkfifoat(folder_fd, "pipe.evp", 0600), 0);
	make_trace("its.evp", 1000);
	cr_assert_eq(renameat(folder_fd, "its.evp", AT_FDCWD, inner), 0);
	make_trace("the.evp", 2000);
	make_other("x.html", 2000);
	cr_assert_eq(renameat(folder_fd, "x.html", AT_FDCWD, inner) + symlinkat(inner, folder_fd, "the.html"), 0);
	folder_with((struct folder_limits){.keep_bytes = 1, .keep_s = 1});
	cr_expect(!exists("the.evp"), "this one is a trace");
	cr_expect(exists("text.evp") && exists("right.trace") && exists(".evp") && exists("target.bin"));
	cr_expect(exists("link.evp") && exists("elsewhere") && exists("folder.evp") && exists("pipe.evp"));
	cr_expect(exists("the.html") && access(inner, F_OK) == 0, "a link is not an export");
	cr_expect_eq(folder_remove(folder_fd, "elsewhere/inner.evp"), -ENOTDIR, "no link is followed");
	cr_expect_eq(folder_remove(folder_fd, "link.evp"), -EINVAL);
	cr_expect(unlink(inner) == 0 && rmdir(outside) == 0);
}

Test(collector_folder, another_users_file_stays)
{
	int fd;

	if (geteuid() != 0)
		cr_skip("only root can give files away");
	fd = make_file("theirs.evp", TRACE_MAGIC, 8, 1000);
	cr_assert_eq(fchown(fd, 64124, 64124), 0);
	close(fd);
	folder_with((struct folder_limits){.keep_s = 1});
	cr_expect(exists("theirs.evp"));
	cr_expect_eq(folder_remove(folder_fd, "theirs.evp"), -EINVAL);
}

Test(collector_folder, traces_in_folders_below)
{
	cr_assert_eq(mkdirat(folder_fd, "a", 0700) + mkdirat(folder_fd, "a/b", 0700), 0);
	make_trace("a/b/old.evp", 1000);
	make_other("a/b/old.html", 1000);
	make_trace("a/new.evp", 1);
	folder_with((struct folder_limits){.keep_s = 100});
	cr_expect(!exists("a/b/old.evp") && !exists("a/b/old.html") && exists("a/b") && exists("a/new.evp"));
}

Test(collector_folder, many_are_removed_in_many_passes)
{
	struct folder folder;
	unsigned left = 0;
	char name[32];

	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "%d.evp", i);
		make_trace(name, 1000);
	}
	folder = folder_with((struct folder_limits){.keep_s = 1});
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "%d.evp", i);
		left += exists(name);
	}
	cr_expect_eq(left, 40 - 16);
	cr_expect_eq(folder_patience_us(&folder, S), 100000, "the next one comes soon");
	folder_tend(&folder, 2 * S);
	folder_tend(&folder, 3 * S);
	cr_expect_eq(folder_bytes(&folder, 9 * S), 0);
}

Test(collector_folder, the_disk_is_kept_free)
{
	struct folder folder = {.path = path};
	struct statvfs disk;
	uint64_t room;

	make_trace("a.evp", 1000);
	cr_assert_eq(statvfs(path, &disk), 0);
	folder.limits.free_bytes = 1 << 20;
	room = folder_room(&folder, 100 * S);
	cr_expect(room > 0 && room < UINT64_MAX && exists("a.evp"));
	folder.limits.free_bytes = (uint64_t)disk.f_blocks * disk.f_frsize * 2;
	cr_expect_eq(folder_room(&folder, 200 * S), 0);
	cr_expect(!exists("a.evp"), "it goes before writing stops");
}

static enum options_result parse(struct options *options, const char *option, const char *value)
{
	char *argv[] = {"evprof-collector", "--socket", "@x", "--output-dir", "/", (char *)option, (char *)value, NULL};

	optind = 1;
	return options_parse(7, argv, options);
}

Test(collector_folder, options)
{
	static const char *const wrong[][2] = {{"--keep", "0"},	     {"--keep", "x"},	   {"--keep-for", "7"},
					       {"--keep-for", "7w"}, {"--keep-for", "0s"}, {"--keep-for", "d"},
					       {"--min-free", "-1"}, {"--keep-for", "7dd"}};
	struct options options;

	cr_assert_eq(parse(&options, "--keep", "20G"), OPTIONS_RUN);
	cr_expect_eq(options.folder_limits.keep_bytes, UINT64_C(20) << 30);
	cr_assert_eq(parse(&options, "--keep-for", "7d"), OPTIONS_RUN);
	cr_expect_eq(options.folder_limits.keep_s, 7 * 86400);
	cr_assert_eq(parse(&options, "--keep-for", "90m"), OPTIONS_RUN);
	cr_expect_eq(options.folder_limits.keep_s, 5400);
	cr_assert_eq(parse(&options, "--min-free", "2G"), OPTIONS_RUN);
	cr_expect_eq(options.folder_limits.free_bytes, UINT64_C(2) << 30);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		cr_expect_eq(parse(&options, wrong[i][0], wrong[i][1]), OPTIONS_WRONG, "%s %s", wrong[i][0],
			     wrong[i][1]);
}
