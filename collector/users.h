/*
 * users.h - what each user has of a collector: its share of a round, and how much it may have at a time.
 *
 * Users are known by the credentials of their connections. A round gives each of them as much, however many processes
 * it has and however much they write.
 */
#ifndef COLLECTOR_USERS_H
#define COLLECTOR_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A round: words read from rings (or as many as other work is worth), and looks into /proc, whose files are as long as
 * a process likes. What is left is for later rounds.
 */
#define USER_ROUND_WORDS (UINT64_C(512) << 10)
#define USER_ROUND_LOOKS 64u
#define USER_ROUND_LOOKS_NS UINT64_C(2000000)

/* Of what the collector keeps for native frames of a user's processes until they have names. */
#define USER_MEMORY_BYTES (UINT64_C(256) << 20)

#define USER_NOBODY 65534 /* also of those who have no number here (/proc/sys/kernel/overflowuid) */

/* What a user has a number of. */
enum user_kind { USER_PROCESSES, USER_HOLDS, USER_SESSIONS, USER_KINDS };

struct user {
	struct user *next;
	uid_t uid;
	unsigned references;
	uint32_t counts[USER_KINDS];
	uint64_t trace_bytes; /* of traces under way */
	uint64_t memory_bytes;
	uint64_t round_ns; /* when the round began whose rest this is */
	uint64_t words;
	unsigned looks;
	uint64_t looks_until_ns; /* 0: none was made in this round */
};

/*
 * Of each user but root and our own. 0: no limit, as in a private collector. Each kind has the limit of processes, so
 * that its descriptors have one.
 */
struct user_limits {
	uint32_t processes;
	uint64_t trace_bytes;
};

struct users {
	struct user *first;
	struct user_limits limits;
};

/* Finds the user, or begins to know it. NULL: no memory. Each one that is taken is given back. */
struct user *users_take(struct users *users, uid_t uid);
void users_give(struct users *users, struct user *user);

/* One more of a kind. 0, or -EDQUOT with one line in `reason`. */
int user_begin(const struct users *users, struct user *user, enum user_kind kind, char *reason, size_t reason_bytes);
void user_end(struct user *user, enum user_kind kind);

/* Whether the user may have so many bytes more, which it has then until it gives them back. */
bool user_take_memory(struct user *user, uint64_t bytes);
void user_give_memory(struct user *user, uint64_t bytes);

/* Bytes that its traces under way may still grow by; UINT64_MAX: no limit. */
uint64_t user_trace_room(const struct users *users, const struct user *user);

/* The round that begins at that time renews what it gives. */
void user_round(struct user *user, uint64_t now_ns);

/* Whether this round may look into /proc once more. */
bool user_may_look(struct user *user);

/* Takes so many words, or what is left, of the round's. */
void user_spend(struct user *user, uint64_t words);

#endif
