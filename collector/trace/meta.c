/* meta.c - builds the JSON objects of the trace file and the answer to a hold. Called by the session. */
#include "trace/meta.h"

#include <jansson.h>
#include <string.h>

#include "evprof/json_memory.h"
#include "evprof/settings.h"

static const char *const kind_names[WIRE_KINDS] = WIRE_KIND_NAMES;
static const char *const start_names[] = {"exec", "fork", "rejoin"}; /* enum wire_start */

/* Counters come from shared memory: any value becomes an integer that JSON readers can represent. */
static json_t *integer(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *integer_or_null(int64_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

/* Converts bytes that are not UTF-8, such as a path, to JSON text: U+FFFD replaces each byte that is not ASCII. */
static json_t *replaced_text(const char *text)
{
	char clean[8192];
	size_t length = 0;

	for (; *text && length < sizeof(clean) - 4; text++) {
		if ((unsigned char)*text < 0x80) {
			clean[length++] = *text;
		} else {
			memcpy(clean + length, "\xef\xbf\xbd", 3);
			length += 3;
		}
	}
	return json_stringn(clean, length);
}

static json_t *text_or_null(const char *text)
{
	json_t *value;

	if (!text)
		return json_null();
	value = json_string(text);
	return value ? value : replaced_text(text);
}

/* Adds a member. On failure the whole object is dropped: without the member it would be wrong. */
static void add_member(json_t **object, const char *name, json_t *value)
{
	if (json_object_set_new(*object, name, value) == 0)
		return;
	json_decref(*object);
	*object = NULL;
}

/* A kind that nothing of this evprof writes has no name. */
static const char *name_of(unsigned kind)
{
	static char number[16];

	if (kind_names[kind])
		return kind_names[kind];
	snprintf(number, sizeof(number), "kind %u", kind);
	return number;
}

static json_t *counts_object(const struct meta_counts *counts)
{
	json_t *object = json_object();

	for (unsigned kind = 1; kind < WIRE_KINDS; kind++) {
		if (counts->of[kind] && !wire_is_bookkeeping(kind))
			add_member(&object, name_of(kind), integer(counts->of[kind]));
	}
	if (counts->of[WIRE_NONE])
		add_member(&object, "unknown", integer(counts->of[WIRE_NONE]));
	return object;
}

/* Returns the object as text. Without memory jansson may leave out parts of the text; then the result is NULL. */
static char *dump_object(json_t *object)
{
	char *text;

	json_memory_begin();
	text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	if (!json_memory_ran_out)
		return text;
	free(text);
	return NULL;
}

char *meta_process(const struct control_message *join, uint32_t process, pid_t pid, uint32_t clock_kind,
		   uint32_t clock_shift, uint64_t start_ticks)
{
	json_t *process_object =
	    json_pack("{ss si si si ss ss sO ss ss ss ss si si so sO}", "type", "process", "process", (int)process,
		      "pid", (int)join->pid, "ppid", (int)join->ppid, "start", start_names[join->start], "python",
		      join->python, "argv", join->argv, "exe", join->exe, "cwd", join->cwd, "host", join->host,
		      "program", join->program, "clock_kind", (int)clock_kind, "clock_shift", (int)clock_shift,
		      "start_ticks", integer(start_ticks), "events", join->events);

	if (pid != join->pid)
		add_member(&process_object, "seen_pid", json_integer(pid));
	if (join->sample_rate)
		add_member(&process_object, "sample_rate", integer((uint64_t)join->sample_rate));
	if (join->memory_interval)
		add_member(&process_object, "memory_interval", integer(join->memory_interval));
	if (join->budget)
		add_member(&process_object, "budget", json_real(join->budget / 1000.0));
	if (join->keep.ns)
		add_member(&process_object, "keep_ns", integer(join->keep.ns));
	if (join->keep.bytes)
		add_member(&process_object, "keep_bytes", integer(join->keep.bytes));
	if (join->keep.alive)
		add_member(&process_object, "keep_alive", json_true());
	if (join->native)
		add_member(&process_object, "native", json_true());
	if (join->malloc_unseen)
		add_member(&process_object, "malloc_unseen", json_true());
	if (join->filtered)
		add_member(&process_object, "filtered", json_true());
	if (join->program_only)
		add_member(&process_object, "program_only", json_true());
	return dump_object(process_object);
}

/* By kind: the argument, or the value of an extended event; then the extra words. */
static const char *const fields[WIRE_KINDS] = {
    [WIRE_CALL... WIRE_UNWIND] = "code",
    [WIRE_C_CALL... WIRE_C_EXCEPTION] = "function",
    [WIRE_EXCEPTION] = "type",
    [WIRE_MALLOC... WIRE_CALLOC] = "domain and size; address and size",
    [WIRE_REALLOC] = "domain and size; address and size; old address",
    [WIRE_FREE] = "domain; address",
    [WIRE_TIME] = "; time",
    [WIRE_GAP] = "; events",
    [WIRE_STACK] = "frames",
    [WIRE_FRAME] = "code",
    [WIRE_EXTENDED] = "sub-kind, words, value",
    [WIRE_CPU] = "CPU time; time",
    [WIRE_NATIVE_STACK] = "native frame",
    [WIRE_AT_LINE] = "line",
    [WIRE_AT_INSTRUCTION] = "instruction",
    [WIRE_LINE] = "line",
    [WIRE_SWITCH] = "; greenlet; greenlet before",
    [WIRE_TASK] = "code; task and name",
    [WIRE_OPEN] = "code",
    [WIRE_PROCESS_START] = "start",
    [WIRE_FORK] = "pid",
    [WIRE_EXEC_FAILED] = "errno",
    [WIRE_EXIT] = "status",
    [WIRE_MARK] = "mark",
    [WIRE_PAUSE] = "stopped",
    [WIRE_MMAP] = "1: of a file, 2: moved, 3: shared; address; size",
    [WIRE_MUNMAP] = "; address; size",
    [WIRE_REALLOC_BEGIN] = "; address",
    [WIRE_SPAN_BEGIN] = "; name; number; task",
    [WIRE_SPAN_END] = "number",
    [WIRE_COUNTER] = "; name; double",
    [WIRE_THIN... WIRE_THIN_END] = "why and cost of an event; CPU time; codes",
    [WIRE_STACK_CHANGE] = "frames that stay; code and instruction of each new one",
    [WIRE_ARGUMENT] = "type; key; value",
    [WIRE_FREED] = "size class, domain, mapped; allocations in 1024ths; bytes; temporary ones",
    [WIRE_GREENLET_STACK] = "frames",
};

/* "words" is missing where the event itself has their number. */
static json_t *kind_object(unsigned kind)
{
	json_t *object = json_pack("{si ss}", "kind", (int)kind, "name", kind_names[kind]);

	if (kind < WIRE_EXTENDED_KIND && kind != WIRE_EXTENDED)
		add_member(&object, "words", json_integer(wire_extra_words(wire_head(kind, 0))));
	if (fields[kind])
		add_member(&object, "fields", json_string(fields[kind]));
	return object;
}

char *meta_kinds(void)
{
	json_t *kinds = json_array();

	for (unsigned kind = 1; kind < WIRE_KINDS; kind++)
		if (kind_names[kind])
			json_array_append_new(kinds, kind_object(kind));
	return dump_object(json_pack("{ss so}", "type", "kinds", "kinds", kinds));
}

char *meta_title(uint32_t process, const char *title)
{
	return dump_object(
	    json_pack("{ss sI so}", "type", "title", "process", (json_int_t)process, "title", text_or_null(title)));
}

static json_t *event_names(uint32_t events)
{
	static const char *const names[SETTING_EVENTS] = SETTING_EVENT_NAMES;
	json_t *list = json_array();

	for (unsigned i = 0; i < SETTING_EVENTS; i++)
		if (events & 1u << i)
			json_array_append_new(list, json_string(names[i]));
	return list;
}

char *meta_events(uint32_t process, uint32_t events, uint64_t ticks)
{
	return dump_object(json_pack("{ss sI so so}", "type", "events", "process", (json_int_t)process, "ticks",
				     integer(ticks), "events", event_names(events)));
}

char *meta_resident(uint32_t process, const struct meta_resident *resident)
{
	json_t *samples = json_array();

	for (unsigned i = 0; i < resident->count; i++) {
		const struct meta_resident_sample *sample = &resident->samples[i];

		json_array_append_new(samples, json_pack("[oooo]", integer(sample->ticks), integer(sample->anonymous),
							 integer(sample->file), integer(sample->shared)));
	}
	return dump_object(json_pack("{ss sI so so}", "type", "resident", "process", (json_int_t)process, "peak_bytes",
				     integer(resident->peak_bytes), "samples", samples));
}

char *meta_thread(uint32_t process, uint32_t thread, uint32_t tid, uint64_t start_ticks, bool sampled)
{
	json_t *object = json_pack("{ss sI sI sI so}", "type", "thread", "process", (json_int_t)process, "thread",
				   (json_int_t)thread, "tid", (json_int_t)tid, "start_ticks", integer(start_ticks));

	if (object && sampled)
		json_object_set_new(object, "sampled", json_true());
	return dump_object(object);
}

char *meta_thread_end(uint32_t thread, const struct meta_counts *events, const struct meta_counts *lost)
{
	return dump_object(json_pack("{ss sI so so}", "type", "thread_end", "thread", (json_int_t)thread, "events",
				     counts_object(events), "lost", counts_object(lost)));
}

/* A counter of the process's own. */
#define COUNTER(name) integer(atomic_load_explicit(&header->name, memory_order_relaxed))

static json_t *parts_object(const struct ring_header *header)
{
	static const char *const names[RING_RESIDENTS] = {
	    [RING_RESIDENT_FILES] = "files",   [RING_RESIDENT_STACKS] = "stacks",
	    [RING_RESIDENT_HEAP] = "heap",     [RING_RESIDENT_ANONYMOUS] = "anonymous",
	    [RING_RESIDENT_SHARED] = "shared", [RING_RESIDENT_EVPROF] = "evprof",
	};
	json_t *object = json_pack("{so}", "ticks", COUNTER(resident_ticks));

	for (unsigned i = 0; i < RING_RESIDENTS && object; i++)
		add_member(&object, names[i], COUNTER(resident[i]));
	return object;
}

char *meta_process_end(const struct meta_process_end *end, const struct ring_header *header)
{
	json_t *object =
	    json_pack("{ss sI ss so so so so so so so}", "type", "process_end", "process", (json_int_t)end->process,
		      "how", end->how, "status", integer_or_null(end->status), "signal", integer_or_null(end->signal),
		      "end_ticks", integer(end->end_ticks), "lost_definitions", COUNTER(lost_definitions), "waits",
		      COUNTER(waits), "waited_us", COUNTER(waited_us), "lost", counts_object(&end->lost));

	if (atomic_load_explicit(&header->samples, memory_order_relaxed)) {
		add_member(&object, "samples", COUNTER(samples));
		add_member(&object, "samples_torn", COUNTER(samples_torn));
		add_member(&object, "samples_dropped", COUNTER(samples_dropped));
	}
	if (atomic_load_explicit(&header->peak_rss_bytes, memory_order_relaxed))
		add_member(&object, "peak_rss_bytes", COUNTER(peak_rss_bytes));
	if (atomic_load_explicit(&header->resident_ticks, memory_order_relaxed))
		add_member(&object, "resident", parts_object(header));
	if (end->sampler_lost)
		add_member(&object, "sampler", json_string("killed"));
	return dump_object(object);
}

char *meta_summary(const struct meta_summary *summary)
{
	return dump_object(json_pack("{ss so so so sI sI sI so so}", "type", "summary", "trace",
				     text_or_null(summary->trace), "events", integer(summary->events), "lost",
				     integer(summary->lost), "processes", (json_int_t)summary->processes, "running",
				     (json_int_t)summary->running, "unsampled", (json_int_t)summary->unsampled, "error",
				     text_or_null(summary->error), "absent", text_or_null(summary->absent)));
}

void meta_add(struct meta_counts *sum, const struct meta_counts *counts)
{
	for (unsigned kind = 0; kind < WIRE_KINDS; kind++)
		sum->of[kind] += counts->of[kind];
}

uint64_t meta_lost(const struct meta_counts *counts)
{
	uint64_t sum = counts->of[WIRE_NONE];

	for (unsigned kind = 1; kind < WIRE_KINDS; kind++)
		sum += wire_is_bookkeeping(kind) ? 0 : counts->of[kind];
	return sum;
}
