/*
 * test_install.c - make install puts everything in place, what is installed works from there, and make uninstall takes
 * all of it away.
 *
 * Runs make on the finished build (BUILD, its folder), so nothing is compiled here.
 */
#include <criterion/criterion.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static unsigned files_left;

static int count_file(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)status, (void)where;
	if (type == FTW_F || type == FTW_SL || type == FTW_SLN) {
		fprintf(stderr, "left: %s\n", path);
		files_left++;
	}
	return 0;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)status, (void)type, (void)where;
	return remove(path);
}

static void make_folder(void)
{
	const char *base = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/evprof-install-XXXXXX", base && strlen(base) < 32 ? base : "/tmp");
	cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
	nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Runs a shell command with $BUILD and $D (below the test's folder) set. Returns its exit status. */
static int shell(const char *below, const char *command)
{
	char destination[128];
	int status;

	snprintf(destination, sizeof(destination), "%s/%s", folder, below);
	setenv("D", destination, 1);
	setenv("BUILD", "build", 0);
	/* The make that runs the tests is not to be asked for its job server. */
	unsetenv("MAKEFLAGS");
	unsetenv("MFLAGS");
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static mode_t mode_of(const char *below, const char *path)
{
	char whole[PATH_MAX];
	struct stat status;

	snprintf(whole, sizeof(whole), "%s/%s/%s", folder, below, path);
	return stat(whole, &status) ? 0 : status.st_mode & 0777;
}

#define MAKE "make -s B=\"$BUILD\" PREFIX=/opt/ev DESTDIR=\"$D\" "

Test(install, puts_and_takes_away, .init = make_folder, .fini = remove_folder, .timeout = 120)
{
	static const struct {
		const char *path;
		mode_t mode;
	} expected[] = {
	    {"opt/ev/bin/evprof", 0755},
	    {"opt/ev/bin/evprof-collector", 0755},
	    {"opt/ev/lib/evprof/libevprof.so", 0755},
	    {"opt/ev/include/evprof/evprof.h", 0644},
	    {"opt/ev/share/man/man1/evprof.1", 0644},
	    {"opt/ev/share/man/man1/evprof-collector.1", 0644},
	    {"opt/ev/share/man/man7/evprof.7", 0644},
	    {"opt/ev/share/bash-completion/completions/evprof", 0644},
	    {"opt/ev/share/zsh/site-functions/_evprof", 0644},
	    {"opt/ev/share/fish/vendor_completions.d/evprof.fish", 0644},
	    {"opt/ev/lib/systemd/system/evprof-collector.service", 0644},
	    {"opt/ev/lib/systemd/system/evprof-collector.socket", 0644},
	    {"opt/ev/lib/sysusers.d/evprof.conf", 0644},
	};
	const char *below = "with space";

	cr_assert_eq(shell(below, MAKE "install"), 0, "make install");
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
		cr_expect_eq(mode_of(below, expected[i].path), expected[i].mode, "%s has mode %o", expected[i].path,
			     mode_of(below, expected[i].path));
	cr_expect_eq(shell(below, "grep -q '^ExecStart=\"/opt/ev/bin/evprof-collector\" ' "
				  "\"$D/opt/ev/lib/systemd/system/evprof-collector.service\""),
		     0, "the service starts the installed collector");
	cr_expect_neq(shell(below, "grep -rq '@[A-Z]*@' \"$D/opt/ev/lib/systemd\""), 0, "nothing is left to fill in");
	cr_assert_eq(shell(below, MAKE "uninstall"), 0, "make uninstall");
	snprintf(strchr(folder, 0), sizeof(folder) - strlen(folder), "/");
	nftw(folder, count_file, 16, FTW_PHYS);
	cr_expect_eq(files_left, 0, "%u files are left after make uninstall", files_left);
}

Test(install, works_from_there, .init = make_folder, .fini = remove_folder, .timeout = 120)
{
	if (shell("x", "command -v /usr/bin/python3 >/dev/null"))
		cr_skip("there is no /usr/bin/python3");
	cr_assert_eq(shell("x", MAKE "install"), 0, "make install");
	cr_expect_eq(shell("x", "cd \"$D\" && opt/ev/bin/evprof run -o run.evp -- /usr/bin/python3 -c pass 2>run.err"),
		     0, "the installed evprof runs a program");
	cr_expect_eq(shell("x", "cd \"$D\" && opt/ev/bin/evprof report run.evp | grep -q ncalls"), 0,
		     "and reports its trace");
	cr_expect_eq(shell("x", "cd \"$D\" && LD_PRELOAD=\"$D/opt/ev/lib/evprof/libevprof.so\" EVPROF_OUTPUT=own.evp "
				"/usr/bin/python3 -c pass 2>own.err && test -s own.evp"),
		     0, "the installed library finds its collector");
}

/* The package can be imported by the Python that is named, and by no other. */
Test(install, the_package_can_be_imported, .init = make_folder, .fini = remove_folder, .timeout = 120)
{
	if (shell("x", "/usr/bin/python3 -m venv --without-pip \"$D/venv\" >/dev/null 2>&1"))
		cr_skip("there is no /usr/bin/python3 with venv");
	cr_assert_eq(shell("x", "make -s B=\"$BUILD\" PREFIX=\"$D/ev\" install"), 0, "make install");
	cr_assert_eq(shell("x", "umask 077; make -s B=\"$BUILD\" PREFIX=\"$D/ev\" PYTHON=\"$D/venv/bin/python\" "
				"install-python"),
		     0, "make install-python");
	cr_expect_eq(shell("x", "test \"$(stat -c %a \"$D\"/venv/lib/python3*/site-packages/evprof.pth)\" = 644"), 0,
		     "for every user");
	cr_expect_eq(shell("x", "cd / && \"$D/venv/bin/python\" -c 'import evprof, sys; sys.exit(not "
				"evprof.__file__.startswith(sys.argv[1]))' \"$D/ev/\""),
		     0, "the venv's Python imports what was installed");
	cr_expect_eq(shell("x",
			   "cd / && \"$D/venv/bin/python\" -c 'import evprof; evprof.load(evprof.__file__)' 2>&1 | "
			   "grep -q 'not an evprof trace'"),
		     0, "and finds the installed library");
	cr_assert_eq(shell("x", "make -s PYTHON=\"$D/venv/bin/python\" uninstall-python"), 0, "make uninstall-python");
	cr_expect_neq(shell("x", "cd / && \"$D/venv/bin/python\" -c 'import evprof' 2>/dev/null"), 0, "it is gone");
	cr_expect_neq(shell("x", "make -s PYTHON=/nonexistent DESTDIR=\"$D\" install-python 2>/dev/null"), 0,
		      "no Python, no file");
	cr_expect_neq(shell("x", "test -e \"$D/evprof.pth\""), 0, "nor one in a wrong place");
}

/* Installs with that PREFIX and reads the command of the installed service, up to the options. */
static void service_command(const char *prefix, char *command, size_t size)
{
	char path[PATH_MAX];
	FILE *unit;

	setenv("P", prefix, 1);
	cr_assert_eq(shell("odd", "make -s B=\"$BUILD\" DESTDIR=\"$D\" \"PREFIX=$P\" install"), 0, "PREFIX=%s", prefix);
	snprintf(path, sizeof(path), "%s/odd%s/lib/systemd/system/evprof-collector.service", folder, prefix);
	unit = fopen(path, "r");
	cr_assert_not_null(unit, "%s", path);
	while (fgets(command, (int)size, unit) && strncmp(command, "ExecStart=", 10))
		continue;
	fclose(unit);
	command[strcspn(command, "-")] = 0;
}

/* systemd takes a path with spaces between quotes, and a per cent sign for the beginning of a specifier. */
Test(install, odd_paths_reach_the_unit, .init = make_folder, .fini = remove_folder, .timeout = 120)
{
	static const struct {
		const char *prefix, *command;
	} cases[] = {
	    {"/with space", "ExecStart=\"/with space/bin/evprof"},
	    {"/100%", "ExecStart=\"/100%%/bin/evprof"},
	    {"/a&b|c:d", "ExecStart=\"/a&b|c:d/bin/evprof"},
	};
	char command[PATH_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		service_command(cases[i].prefix, command, sizeof(command));
		cr_expect_str_eq(command, cases[i].command);
	}
}

/* A service with such a path could not start. */
Test(install, refuses_what_no_unit_can_name, .init = make_folder, .fini = remove_folder, .timeout = 120)
{
	static const char *const prefixes[] = {"relative/path", "~/x", "/it's", "/a\"b", "/back\\slash"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		setenv("P", prefixes[i], 1);
		cr_expect_neq(shell("x", "make -s B=\"$BUILD\" DESTDIR=\"$D\" \"PREFIX=$P\" install 2>\"$D.err\""), 0,
			      "%s", prefixes[i]);
		cr_expect_eq(shell("x", "grep -q 'PREFIX ' \"$D.err\" && test ! -e \"$D\""), 0, "%s is named",
			     prefixes[i]);
	}
}

/* Exposure goes from 0 to 10, and is given in tenths of its limit. */
Test(install, the_service_is_sandboxed, .init = make_folder, .fini = remove_folder, .timeout = 120)
{
	if (shell("x", "systemd-analyze --help 2>/dev/null | grep -q -- --offline"))
		cr_skip("needs systemd-analyze, of version 250 or later");
	cr_assert_eq(shell("x", MAKE "install"), 0, "make install");
	cr_expect_eq(shell("x", "systemd-analyze security --offline=true --threshold=20 --no-pager "
				"\"$D/opt/ev/lib/systemd/system/evprof-collector.service\" >\"$D.exposure\""),
		     0, "the exposure is 2.0 at most");
	cr_expect_eq(shell("x", "grep -qx 'User=evprof' \"$D/opt/ev/lib/systemd/system/evprof-collector.service\""), 0,
		     "it has a user of its own");
	cr_expect_eq(
	    shell("x", "command -v systemd-sysusers >\"$D.found\" && test $(id -u) = 0 || exit 0; mkdir \"$D/etc\" && "
		       "systemd-sysusers --root=\"$D\" \"$D/opt/ev/lib/sysusers.d/evprof.conf\" && "
		       "grep -q ^evprof: \"$D/etc/passwd\""),
	    0, "which is made");
	cr_expect_eq(shell("x", "! grep -E '^DynamicUser=|^StateDirectoryMode=0?7[^1]' "
				"\"$D/opt/ev/lib/systemd/system/evprof-collector.service\""),
		     0, "and a folder that its users may enter");
}
