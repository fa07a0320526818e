/*
 * seccomp_state.c - see seccomp_state.h. Called before each system call that a program seldom makes itself.
 *
 * libseccomp installs its filter by syscall(), which cannot be interposed. Before that it calls prctl() for
 * PR_SET_NO_NEW_PRIVS, without which only root may install one. /proc shows whether a filter followed: of the ways to
 * find out, opening and reading a file is the one that nearly all filters allow.
 */
#include "base/seccomp_state.h"

#include <string.h>

#include "base/seccomp_probe.h"
#include "base/text.h"

static bool looks, is; /* kept by forks, as the filter is; it never goes away */

void seccomp_note(void)
{
	looks = true;
}

static bool has_filter(void)
{
	char status[4096];
	const char *mode;

	if (text_read_file("/proc/self/status", status, sizeof(status)) <= 0)
		return true;
	mode = strstr(status, "\nSeccomp:\t");
	return !mode || mode[sizeof("\nSeccomp:\t") - 1] != '0';
}

void seccomp_inherited(void)
{
	static bool probed; /* a forked child has the filters of its parent, and the result */

	if (!probed && !is && has_filter())
		looks = is = !seccomp_probe();
	probed = true;
}

bool seccomp_active(void)
{
	if (looks && !is)
		is = has_filter();
	return is;
}
