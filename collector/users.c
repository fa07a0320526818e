/*
 * users.c - see users.h. Called by the session and what it owns.
 */
#include "users.h"

#include <stdlib.h>

#include "clock.h"

struct user *users_take(struct users *users, uid_t uid)
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

void users_give(struct users *users, struct user *user)
{
	struct user **link = &users->first;

	if (--user->references > 0)
		return;
	while (*link != user)
		link = &(*link)->next;
	*link = user->next;
	free(user);
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
