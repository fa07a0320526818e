/*
 * users.c - see users.h. Called by the session and what it owns.
 */
#include "base/users.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "evprof/system_calls.h"

struct user *users_get(struct users *users, uid_t uid)
{
	struct user *user = users->first;

	while (user && user->uid != uid)
		user = user->next;
	if (!user) {
		user = calloc(1, sizeof(*user));
		if (!user)
			return NULL;
		user->uid = uid;
		user->next = users->first;
		users->first = user;
	}
	user->references++;
	return user;
}

void users_put(struct users *users, struct user *user)
{
	struct user **link = &users->first;

	if (--user->references > 0)
		return;
	while (*link != user)
		link = &(*link)->next;
	*link = user->next;
	free(user);
}

static bool is_limited(const struct user *user)
{
	return user->uid != 0 && user->uid != system_geteuid();
}

int user_begin(const struct users *users, struct user *user, enum user_kind kind, char *reason, size_t reason_bytes)
{
	static const char *const names[USER_KINDS] = {"recorded processes", "runs", "traces under way",
						      "programs that follow its traces"};
	static const char change[] = ": have it started with a larger --max-processes-per-user";
	uint32_t most = users->limits.processes;

	if (kind == USER_TOOLS && most)
		most = USER_TOOLS_MAX;
	if (most && is_limited(user) && user->counts[kind] >= most) {
		snprintf(reason, reason_bytes, "user %u has %u %s, the most that this collector allows%s",
			 (unsigned)user->uid, user->counts[kind], names[kind], kind == USER_TOOLS ? "" : change);
		return -EDQUOT;
	}
	user->counts[kind]++;
	return 0;
}

bool user_charge_memory(struct user *user, uint64_t bytes)
{
	if (is_limited(user) && user->memory_bytes + bytes > USER_MEMORY_BYTES)
		return false;
	user->memory_bytes += bytes;
	return true;
}

uint64_t user_trace_room(const struct users *users, const struct user *user)
{
	uint64_t most = users->limits.trace_bytes;

	if (!most || !is_limited(user))
		return UINT64_MAX;
	return user->trace_bytes < most ? most - user->trace_bytes : 0;
}

void user_round(struct user *user, uint64_t now_ns)
{
	if (user->round_ns == now_ns)
		return;
	user->round_ns = now_ns;
	user->words = USER_ROUND_WORDS;
	user->looks = USER_ROUND_LOOKS;
	user->looks_until_ns = 0;
}

bool user_may_look(struct user *user)
{
	uint64_t now_ns = clock_now_ns();

	if (!user->looks_until_ns)
		user->looks_until_ns = now_ns + USER_ROUND_LOOKS_NS;
	if (user->looks == 0 || now_ns >= user->looks_until_ns)
		return false;
	user->looks--;
	return true;
}

void user_spend(struct user *user, uint64_t words)
{
	user->words -= words < user->words ? words : user->words;
}
