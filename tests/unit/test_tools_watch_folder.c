/*
 * test_tools_watch_folder.c - which files of a folder are new (push/watch_folder.h).
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "push/watch_folder.h"

static char root[] = "/tmp/evprof-folder-XXXXXX", one[sizeof(root) + 8], kept[sizeof(root) + 8];
static unsigned found;
static bool takes;

static bool take(void *owner, const char *path)
{
	cr_expect_str_eq(path, one);
	cr_expect_eq(owner, &found);
	found++;
	return takes;
}

static void make_file(void)
{
	int fd = open(one, O_WRONLY | O_CREAT | O_EXCL, 0600);

	cr_assert(fd >= 0);
	close(fd);
}

static void expect_found(struct watch_folder *folder, unsigned times, const char *what)
{
	found = 0;
	watch_folder_look(folder, take, &found);
	cr_expect_eq(found, times, "%s", what);
}

/* Another file with the same name. As a rule the file system gives it the same inode. */
static void replace(void)
{
	usleep(20000); /* the clock of a file system is coarse */
	unlink(one);
	make_file();
}

Test(watch_folder, what_comes_again_is_new)
{
	struct watch_folder folder = {.path = mkdtemp(root)};

	cr_assert(folder.path);
	snprintf(one, sizeof(one), "%s/a.evp", root);
	snprintf(kept, sizeof(kept), "%s/a.no", root);
	make_file();
	expect_found(&folder, 1, "a new one");
	expect_found(&folder, 1, "it was not taken");
	takes = true;
	expect_found(&folder, 1, "nor now");
	expect_found(&folder, 0, "but then");
	cr_assert(rename(one, kept) == 0);
	expect_found(&folder, 0, "it has gone");
	cr_assert(rename(kept, one) == 0);
	expect_found(&folder, 1, "its name comes again");
	replace();
	expect_found(&folder, 1, "another file with its name");
	unlink(one);
	rmdir(root);
	watch_folder_done(&folder);
}
