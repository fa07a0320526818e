/*
 * sampler_rights.c - see sampler_rights.h. Called by the sampler.
 *
 * The process starts its sampler with its own user. A server that starts as root gives that up later. Its sampler must
 * not keep root's rights, as it shares writable memory with the process. It needs no rights for the memory, the ring
 * and the status of the process, which are open by then.
 */
#include "sampler/sampler_rights.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evprof/proc.h"
#include "base/rights.h"

#define LOOK_NS UINT64_C(50000000)
#define GROUPS_MAX 256 /* further groups are ignored */
#define TO_FOLLOW (RIGHT_TO(CAP_SETUID) | RIGHT_TO(CAP_SETGID))

/* Real, effective and saved. */
struct identity {
	uid_t uid[3];
	gid_t gid[3];
};

int sampler_rights_begin(struct sampler_rights *rights, pid_t pid)
{
	char path[64];

	if (!proc_is_ours()) /* no sampling either: threads are looked up there */
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	rights->status_fd = open(path, O_RDONLY | O_CLOEXEC);
	return rights->status_fd < 0 ? -errno : rights_drop(TO_FOLLOW);
}

static bool read_ids(const char *status, const char *name, unsigned number[3])
{
	const char *at = strstr(status, name);

	return at && sscanf(at + strlen(name), "%u %u %u", &number[0], &number[1], &number[2]) == 3;
}

static size_t read_groups(const char *status, gid_t groups[GROUPS_MAX])
{
	static const char name[] = "\nGroups:\t";
	const char *at = strstr(status, name);
	size_t count = 0;

	for (at = at ? at + strlen(name) : ""; *at >= '0' && *at <= '9' && count < GROUPS_MAX; count++) {
		char *end;

		groups[count] = (gid_t)strtoul(at, &end, 10);
		if (*end != ' ') /* truncated */
			break;
		at = end + 1;
	}
	return count;
}

static void read_own_identity(struct identity *own)
{
	getresuid(&own->uid[0], &own->uid[1], &own->uid[2]);
	getresgid(&own->gid[0], &own->gid[1], &own->gid[2]);
}

static bool assume_identity(const struct identity *identity, const char *status)
{
	gid_t groups[GROUPS_MAX];
	struct identity own;

	/* Without root, groups cannot be changed: they have been given up then. */
	if ((setgroups(read_groups(status, groups), groups) < 0 && geteuid() == 0) ||
	    setresgid(identity->gid[0], identity->gid[1], identity->gid[2]) < 0 ||
	    setresuid(identity->uid[0], identity->uid[1], identity->uid[2]) < 0 || rights_drop(TO_FOLLOW) < 0)
		return false;
	read_own_identity(&own);
	return !memcmp(&own, identity, sizeof(own));
}

bool sampler_rights_follow(struct sampler_rights *rights, uint64_t now_ns)
{
	struct identity own, identity;
	char status[4096];
	ssize_t length;

	if (now_ns < rights->next_ns)
		return true;
	rights->next_ns = now_ns + LOOK_NS;
	length = pread(rights->status_fd, status, sizeof(status) - 1, 0);
	if (length <= 0) /* it has ended, which the caller notices */
		return true;
	status[length] = '\0';
	if (!read_ids(status, "\nUid:\t", identity.uid) || !read_ids(status, "\nGid:\t", identity.gid))
		return false;
	read_own_identity(&own);
	return !memcmp(&own, &identity, sizeof(own)) || assume_identity(&identity, status);
}
