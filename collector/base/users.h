/*
 * users.h - the budgets and limits of each user of a collector (tenant): its share of a round, and its maximum of
 * processes, holds, sessions, tools, memory and trace bytes.
 *
 * A user is identified by the credentials of its connections. Each round has the same budget for every user, regardless
 * of the number of its processes and their rate of writing.
 */
#ifndef COLLECTOR_USERS_H
#define COLLECTOR_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The budget of a user in a round: words read from rings (other work costs an equivalent number), and lookups in /proc,
 * whose files are as long as a process makes them. What is left waits for later rounds.
 */
#define USER_ROUND_WORDS (UINT64_C(512) << 10)
#define USER_ROUND_LOOKS 64u
#define USER_ROUND_LOOKS_NS UINT64_C(2000000)

/* Limit of the memory for symbolizing native frames of a user's processes. */
#define USER_MEMORY_BYTES (UINT64_C(256) << 20)

/* Programs that follow a user's traces (evprof watch, evprof cut --alive): a task each (TasksMax= of the service). */
#define USER_TOOLS_MAX 64u

#define USER_NOBODY 65534 /* also stands for users without a number here (/proc/sys/kernel/overflowuid) */

/* The kinds of objects that are counted for each user. */
enum user_kind { USER_PROCESSES, USER_HOLDS, USER_SESSIONS, USER_TOOLS, USER_KINDS };

struct user {
	struct user *next;
	uid_t uid;
	unsigned references;
	uint32_t counts[USER_KINDS];
	uint64_t trace_bytes; /* of traces being written */
	uint64_t memory_bytes;
	bool tools_said;   /* the log says that USER_TOOLS_MAX was reached */
	bool symbols_wait; /* the log says that names of its native frames wait */
	uint64_t round_ns; /* start of the round to which the budget belongs */
	uint64_t words;
	unsigned looks;
	uint64_t looks_until_ns; /* 0: no lookup yet in this round */
};

/*
 * Limits of each user except root and our own. 0: no limit, as in a private collector. The limit of processes applies
 * to each kind, so that the number of descriptors is limited; USER_TOOLS has its own.
 */
struct user_limits {
	uint32_t processes;
	uint64_t trace_bytes;
};

struct users {
	struct user *first;
	struct user_limits limits;
};

/* Finds or creates a user, and takes a reference, which users_put() returns. NULL: no memory. */
struct user *users_get(struct users *users, uid_t uid);
void users_put(struct users *users, struct user *user);

/* Counts one more of a kind, until the caller decreases the count. 0, or -EDQUOT with one line in `reason`. */
int user_begin(const struct users *users, struct user *user, enum user_kind kind, char *reason, size_t reason_bytes);

/* Charges memory to the user, until the caller subtracts it. False: the limit is reached. */
bool user_charge_memory(struct user *user, uint64_t bytes);

/* Bytes by which the user's traces may still grow; UINT64_MAX: no limit. */
uint64_t user_trace_room(const struct users *users, const struct user *user);

/* Renews the budget in the round that begins at now_ns. */
void user_round(struct user *user, uint64_t now_ns);

/* Takes one lookup in /proc from the budget. False: used up. */
bool user_may_look(struct user *user);

/* Takes words from the budget, at most what is left. */
void user_spend(struct user *user, uint64_t words);

#endif
