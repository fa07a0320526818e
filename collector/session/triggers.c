/*
 * triggers.c - see triggers.h. Called by session.c and session_end.c.
 */
#include "session/triggers.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "evprof/proc.h"
#include "session/copies.h"
#include "session/process.h"
#include "trace/trace_output.h"

#define FINISH_NS UINT64_C(5000000000)
#define NAME_BYTES 80
#define REARM_SHARE 10 /* resident memory must fall by a tenth below the bound before it fires again */

void triggers_begin(struct session_triggers *triggers, const char *policy, const char *wanted)
{
	const char *list = policy && policy[0] ? policy : wanted;
	const char *allowed;

	if (!list || !list[0] || strlen(list) >= sizeof(triggers->list))
		return;
	strcpy(triggers->list, list);
	allowed = setting_triggers(triggers->list, &triggers->known);
	if (allowed)
		log_warning("the triggers of a program are not understood, none is used; they are %s", allowed);
}

void triggers_watch(struct session_triggers *triggers, const struct triggers_place *place, uid_t uid, gid_t gid)
{
	struct watcher_config config = {.list = triggers->list, .trace = place->trace->path, .uid = uid, .gid = gid};

	if (triggers->watcher.lines.started || place->trace->writer.fd < 0 || place->trace->failed ||
	    !(triggers_have(&triggers->known, TRIGGER_CALL) || triggers_have(&triggers->known, TRIGGER_LOOP)) ||
	    !trace_output_begin_tool(place->trace))
		return;
	watcher_start(&triggers->watcher, place->loop, &config);
}

/* The trigger as a part of a file name: "app.views-500ms-3". */
static void name_reason(const struct session_triggers *triggers, unsigned i, char name[NAME_BYTES])
{
	const struct trigger *trigger = &triggers->known.at[i];
	size_t used = 0;

	for (size_t k = 0; k < trigger->length && used < NAME_BYTES - 16; k++) {
		unsigned char c = (unsigned char)trigger->text[k];
		bool plain = isalnum(c) || c == '_' || (c == '.' && used);

		if (plain)
			name[used++] = (char)c;
		else if (used && name[used - 1] != '-')
			name[used++] = '-';
	}
	snprintf(name + used, NAME_BYTES - used, "%s%u", used && name[used - 1] == '-' ? "" : "-",
		 triggers->fired[i] + 1);
}

static bool is_due(const struct session_triggers *triggers, unsigned i, uint64_t now_ns)
{
	return now_ns >= triggers->next_ns[i] && triggers->sum < triggers->known.most;
}

static void note_fired(struct session_triggers *triggers, unsigned i, uint64_t now_ns)
{
	triggers->next_ns[i] = now_ns + triggers->known.quiet_ns;
	triggers->fired[i]++;
	if (++triggers->sum == triggers->known.most)
		log_warning("%u copies were made: no trigger fires any more (most=N allows more)", triggers->sum);
}

/* wish: without its reason. */
static void fire(struct session_triggers *triggers, const struct triggers_place *place, unsigned i,
		 struct copy_wish wish)
{
	char reason[NAME_BYTES];

	if (!is_due(triggers, i, place->now_ns))
		return;
	name_reason(triggers, i, reason);
	wish.reason = reason;
	if (copies_add(place->copies, place->loop, place->trace, &wish))
		note_fired(triggers, i, place->now_ns);
	else
		log_warning("what process %d did before %.*s is not copied: too many copies at a time, or no room",
			    wish.pid, (int)triggers->known.at[i].length, triggers->known.at[i].text);
}

/* --- what fires --- */

static void look_at_exception(struct session_triggers *triggers, const struct triggers_place *place,
			      struct process *process)
{
	/* Acquire: what was recorded before is in the rings. */
	uint32_t word = atomic_load_explicit(&process->header->snapshot, memory_order_acquire);
	struct copy_wish wish = {.pid = (int)process->sender_pid, .process = process};

	if (word == process->snapshot || word % RING_SNAPSHOTS != RING_SNAPSHOT_EXCEPTION)
		return;
	process->snapshot = word;
	for (unsigned i = 0; i < triggers->known.count; i++)
		if (triggers->known.at[i].kind == TRIGGER_EXCEPTION)
			fire(triggers, place, i, wish);
}

/* In bytes; 0: not known. */
static uint64_t resident_bytes(pid_t pid)
{
	unsigned long long size, resident;
	char text[256];

	if (pid <= 0 || proc_read_of(pid, 0, "statm", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%llu %llu", &size, &resident) != 2)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void look_at_memory(struct session_triggers *triggers, const struct triggers_place *place,
			   struct process *process)
{
	struct copy_wish wish = {.pid = (int)process->sender_pid, .process = process};
	uint64_t bytes;

	if (process->complete || process->dead || place->now_ns < process->rss_due_ns)
		return;
	process->rss_due_ns = place->now_ns + TRIGGERS_LOOK_US * UINT64_C(1000) * 9 / 10;
	bytes = resident_bytes(process->pid);
	for (unsigned i = 0; bytes && i < triggers->known.count; i++) {
		const struct trigger *trigger = &triggers->known.at[i];
		uint32_t bit = UINT32_C(1) << i;

		if (trigger->kind != TRIGGER_RSS)
			continue;
		if (bytes > trigger->bound && !(process->rss_above & bit))
			fire(triggers, place, i, wish);
		if (bytes > trigger->bound)
			process->rss_above |= bit;
		else if (bytes < trigger->bound - trigger->bound / REARM_SHARE)
			process->rss_above &= ~bit;
	}
}

/* The trace's last process with that pid. NULL: it has ended, and left the session (session_forget_dead()). */
static struct process *find_process(struct process *processes, int pid)
{
	struct process *found = NULL;

	for (struct process *process = processes; process; process = process->next)
		if (process->sender_pid == pid && (!found || process->number > found->number))
			found = process;
	return found;
}

static void take_found(struct session_triggers *triggers, const struct triggers_place *place)
{
	struct watcher_found found;

	while (watcher_take(&triggers->watcher, &found)) {
		struct copy_wish wish = {
		    .pid = found.pid, .process = find_process(place->processes, found.pid), .since_ns = found.begin_ns};

		if (found.trigger < triggers->known.count && triggers->known.at[found.trigger].kind <= TRIGGER_LOOP)
			fire(triggers, place, found.trigger, wish);
	}
}

void triggers_round(struct session_triggers *triggers, const struct triggers_place *place)
{
	bool exceptions = triggers_have(&triggers->known, TRIGGER_EXCEPTION);
	bool memory = triggers_have(&triggers->known, TRIGGER_RSS);

	for (struct process *process = place->processes; process && (exceptions || memory); process = process->next) {
		if (exceptions)
			look_at_exception(triggers, place, process);
		if (memory)
			look_at_memory(triggers, place, process);
	}
	take_found(triggers, place);
}

/* --- the end --- */

bool triggers_finish(struct session_triggers *triggers, const struct triggers_place *place)
{
	struct watcher *watcher = &triggers->watcher;

	if (!watcher->lines.started)
		return false;
	if (!triggers->until_ns) {
		watcher_finish(watcher);
		triggers->until_ns = place->now_ns + FINISH_NS;
	}
	take_found(triggers, place);
	if (watcher_runs(watcher) && place->now_ns < triggers->until_ns)
		return true;
	triggers_stop(triggers);
	return false;
}

void triggers_stop(struct session_triggers *triggers)
{
	watcher_stop(&triggers->watcher);
	triggers->watcher = (struct watcher){0};
	triggers->until_ns = 0;
}

int triggers_patience_us(const struct session_triggers *triggers)
{
	return triggers_have(&triggers->known, TRIGGER_RSS) ? TRIGGERS_LOOK_US : -1;
}
