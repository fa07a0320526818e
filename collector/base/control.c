/* control.c - parses and checks messages of the control socket. Called by the server with untrusted bytes. */
#include "base/control.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "evprof/json_memory.h"
#include "evprof/settings.h"

static const char *get_string(const json_t *object, const char *name, size_t max_bytes)
{
	const json_t *value = json_object_get(object, name);

	if (!json_is_string(value) || json_string_length(value) >= max_bytes)
		return NULL;
	return json_string_value(value);
}

static bool get_integer(const json_t *object, const char *name, json_int_t low, json_int_t high, json_int_t *result)
{
	const json_t *value = json_object_get(object, name);

	if (!json_is_integer(value) || json_integer_value(value) < low || json_integer_value(value) > high)
		return false;
	*result = json_integer_value(value);
	return true;
}

static json_t *get_strings(const json_t *object, const char *name)
{
	json_t *array = json_object_get(object, name);
	json_t *item;
	size_t i;

	if (!json_is_array(array))
		return NULL;
	json_array_foreach(array, i, item)
	{
		if (!json_is_string(item))
			return NULL;
	}
	return array;
}

bool control_read_digits(const char *digits, size_t count, uint8_t *bytes)
{
	static const char values[] = "0123456789abcdef";

	if (count % 2)
		return false;
	for (size_t i = 0; i < count; i++) {
		const char *value = digits[i] ? strchr(values, digits[i]) : NULL;

		if (!value)
			return false;
		bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | (value - values));
	}
	return true;
}

/* The output path, absolute and shorter than PATH_MAX; NULL: invalid. output_bytes replaces output in the object. */
static const char *get_output(json_t *object)
{
	const json_t *digits = json_object_get(object, "output_bytes");
	const char *output = get_string(object, "output", PATH_MAX);
	uint8_t bytes[PATH_MAX] = {0};
	size_t count = json_string_length(digits);

	if (digits) {
		if (!json_is_string(digits) || count / 2 >= PATH_MAX ||
		    !control_read_digits(json_string_value(digits), count, bytes) || memchr(bytes, 0, count / 2) ||
		    json_object_set_new_nocheck(object, "output", json_stringn_nocheck((char *)bytes, count / 2)) < 0)
			return NULL;
		output = json_string_value(json_object_get(object, "output"));
	}
	return output && output[0] == '/' ? output : NULL;
}

static bool get_session(const json_t *object, uint8_t session[CONTROL_SESSION_DIGITS / 2])
{
	const char *text = get_string(object, "session", CONTROL_SESSION_DIGITS + 1);

	return text && strlen(text) == CONTROL_SESSION_DIGITS &&
	       control_read_digits(text, CONTROL_SESSION_DIGITS, session);
}

/* The index of a string member among the names; -1: another value. */
static int get_name(const json_t *object, const char *name, const char *const *names, int count)
{
	const char *text = get_string(object, name, 16);
	int i = 0;

	while (text && i < count && strcmp(text, names[i]) != 0)
		i++;
	return text && i < count ? i : -1;
}

/* These functions return NULL, or the name of the member that is missing or invalid. */
static const char *parse_texts(const json_t *object, struct control_message *message)
{
	const struct {
		const char *name;
		const char **text;
		size_t max_bytes;
	} texts[] = {
	    {"python", &message->python, 64},	{"program", &message->program, NAME_MAX},
	    {"exe", &message->exe, PATH_MAX},	{"cwd", &message->cwd, PATH_MAX},
	    {"host", &message->host, NAME_MAX},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!(*texts[i].text = get_string(object, texts[i].name, texts[i].max_bytes)))
			return texts[i].name;
	if (!(message->argv = get_strings(object, "argv")))
		return "argv";
	if (!(message->events = get_strings(object, "events")))
		return "events";
	message->formats = "";
	if (json_object_get(object, "formats") &&
	    !(message->formats = get_string(object, "formats", CONTROL_FORMATS_MAX_BYTES)))
		return "formats";
	message->trigger = "";
	if (json_object_get(object, "trigger") &&
	    !(message->trigger = get_string(object, "trigger", CONTROL_TRIGGER_MAX_BYTES)))
		return "trigger";
	return NULL;
}

static const char *parse_join(const json_t *object, struct control_message *message)
{
	static const char *const starts[] = {"exec", "fork", "rejoin"}; /* enum wire_start */
	const json_t *root = json_object_get(object, "root");
	json_int_t pid, ppid, start_time, sample_rate = 0, memory_interval = 0, keep_ns = 0, keep_bytes = 0, budget = 0;
	int start = get_name(object, "start", starts, 3);

	if (start < 0)
		return "start";
	if (!get_integer(object, "pid", 1, INT_MAX, &pid))
		return "pid";
	if (!get_integer(object, "ppid", 0, INT_MAX, &ppid))
		return "ppid";
	if (!get_integer(object, "start_time", 0, INT64_MAX, &start_time))
		return "start_time";
	if (!json_is_boolean(root))
		return "root";
	if (json_object_get(object, "sample_rate") && !get_integer(object, "sample_rate", 1, INT_MAX, &sample_rate))
		return "sample_rate";
	if (json_object_get(object, "memory_interval") &&
	    !get_integer(object, "memory_interval", 1, CONTROL_MEMORY_INTERVAL_MAX, &memory_interval))
		return "memory_interval";
	if (json_object_get(object, "budget") &&
	    !get_integer(object, "budget", SETTING_BUDGET_MIN, SETTING_BUDGET_MAX, &budget))
		return "budget";
	if (json_object_get(object, "keep_ns") && !get_integer(object, "keep_ns", 1, INT64_MAX, &keep_ns))
		return "keep_ns";
	if (json_object_get(object, "keep_bytes") && !get_integer(object, "keep_bytes", 1, INT64_MAX, &keep_bytes))
		return "keep_bytes";
	message->keep = (struct setting_keep){(uint64_t)keep_ns, (uint64_t)keep_bytes,
					      json_is_true(json_object_get(object, "keep_alive"))};
	message->start = (enum wire_start)start;
	message->pid = (pid_t)pid;
	message->ppid = (pid_t)ppid;
	message->start_time = (uint64_t)start_time;
	message->root = json_is_true(root);
	message->sample_rate = (int)sample_rate;
	message->outside = sample_rate && json_is_true(json_object_get(object, "outside"));
	message->memory_interval = (uint64_t)memory_interval;
	message->budget = (uint32_t)budget;
	message->native = json_is_true(json_object_get(object, "native"));
	message->malloc_unseen = json_is_true(json_object_get(object, "malloc_unseen"));
	message->filtered = json_is_true(json_object_get(object, "filtered"));
	message->program_only = json_is_true(json_object_get(object, "program_only"));
	return parse_texts(object, message);
}

/* CONTROL_UNKNOWN: of another release, and a request. False, and *type is unchanged: there is none. */
static bool get_type(const json_t *object, enum control_type *type)
{
	static const char *const types[] = {"join",   "hold",	"absent",
					    "status", "switch", "snapshot"}; /* enum control_type */
	int known = get_name(object, "type", types, CONTROL_UNKNOWN);

	if (!json_is_string(json_object_get(object, "type")))
		return false;
	*type = known < 0 ? CONTROL_UNKNOWN : (enum control_type)known;
	return true;
}

static const char *parse_switch(const json_t *object, struct control_message *message)
{
	static const char *const actions[] = {"stop", "start", "mark", "events", "look"}; /* enum control_action */
	int action = get_name(object, "action", actions, sizeof(actions) / sizeof(actions[0]));
	unsigned events;

	if (action < 0)
		return "action";
	message->action = (enum control_action)action;
	message->name = "";
	if (action == CONTROL_MARK || action == CONTROL_EVENTS)
		message->name = get_string(object, "name", RING_REQUEST_NAME_BYTES);
	if (action == CONTROL_EVENTS && message->name && setting_events(message->name, &events))
		return "name";
	return message->name ? NULL : "name";
}

static const char *parse_snapshot(const json_t *object, struct control_message *message)
{
	json_int_t hold_ms, hold = 0, start_time = 0;

	if (!get_integer(object, "hold_ms", 0, CONTROL_HOLD_MAX_MS, &hold_ms))
		return "hold_ms";
	if (json_object_get(object, "hold") && !get_integer(object, "hold", 0, INT64_MAX, &hold))
		return "hold";
	if (json_object_get(object, "start_time") && !get_integer(object, "start_time", 0, INT64_MAX, &start_time))
		return "start_time";
	message->start_time = (uint64_t)start_time;
	message->hold_ms = (uint32_t)hold_ms;
	message->hold = (uint64_t)hold;
	return NULL;
}

static const char *parse_request(const json_t *object, struct control_message *message)
{
	message->target = "all";
	if (json_object_get(object, "target"))
		message->target = get_string(object, "target", CONTROL_TARGET_MAX_BYTES);
	if (!message->target)
		return "target";
	if (message->type == CONTROL_SWITCH)
		return parse_switch(object, message);
	if (message->type == CONTROL_SNAPSHOT)
		return parse_snapshot(object, message);
	return message->type == CONTROL_UNKNOWN ? "type" : NULL;
}

static const char *parse_common(json_t *object, struct control_message *message)
{
	json_int_t wait_ms = 0;

	if (!get_type(object, &message->type))
		return "type";
	if (control_is_request(message->type))
		return parse_request(object, message);
	if (!get_session(object, message->session))
		return "session";
	message->reason = get_string(object, "reason", CONTROL_REASON_MAX_BYTES);
	if (message->type == CONTROL_ABSENT)
		return message->reason ? NULL : "reason";
	message->output = get_output(object);
	if (!message->output)
		return "output";
	if (json_object_get(object, "wait_ms") && !get_integer(object, "wait_ms", 0, INT_MAX, &wait_ms))
		return "wait_ms";
	message->wait_ms = (int)wait_ms;
	return NULL;
}

/* Who sent a message of another version: type and session have one form in all versions. */
static void parse_stranger(const json_t *object, struct control_message *message)
{
	*message = (struct control_message){.type = CONTROL_JOIN};
	if (get_type(object, &message->type) && message->type == CONTROL_ABSENT)
		message->type = CONTROL_JOIN;
	if (!get_session(object, message->session))
		memset(message->session, 0, sizeof(message->session));
}

int control_parse(const char *bytes, size_t count, struct control_message *message, char *reason, size_t reason_bytes)
{
	struct control_message parsed = {.type = CONTROL_JOIN};
	json_error_t error;
	json_int_t version;
	const char *member;

	json_memory_begin();
	parsed.object = json_loadb(bytes, count, JSON_REJECT_DUPLICATES, &error);
	if (json_memory_ran_out) {
		snprintf(reason, reason_bytes, "the collector has no memory left");
		goto fail;
	}
	if (!json_is_object(parsed.object)) {
		snprintf(reason, reason_bytes, "the message is not a JSON object");
		goto fail;
	}
	if (!get_integer(parsed.object, "evprof", 0, INT_MAX, &version)) {
		snprintf(reason, reason_bytes, "member \"evprof\" of the message is missing or wrong");
		goto fail;
	}
	if (version != CONTROL_VERSION) {
		parse_stranger(parsed.object, message);
		snprintf(reason, reason_bytes,
			 "%s speaks another version of the protocol than this evprof-collector (%d): "
			 "install both from one release",
			 message->type == CONTROL_JOIN ? "the library" : "evprof", CONTROL_VERSION);
		json_decref(parsed.object);
		return -EPROTONOSUPPORT;
	}
	member = parse_common(parsed.object, &parsed);
	if (!member && parsed.type == CONTROL_JOIN)
		member = parse_join(parsed.object, &parsed);
	if (member && parsed.type == CONTROL_UNKNOWN) {
		snprintf(reason, reason_bytes, "this evprof-collector does not know the request: %s",
			 "install it and evprof from one release");
		goto fail;
	}
	if (member) {
		snprintf(reason, reason_bytes, "member \"%s\" of the message is missing or wrong", member);
		goto fail;
	}
	*message = parsed;
	return 0;
fail:
	json_decref(parsed.object);
	*message = (struct control_message){.type = control_is_request(parsed.type) ? parsed.type : CONTROL_JOIN};
	return -EINVAL;
}

void control_message_done(struct control_message *message)
{
	json_decref(message->object);
	message->object = NULL;
}

bool control_target_has(const char *target, pid_t pid, const char *program)
{
	char digits[16];

	snprintf(digits, sizeof(digits), "%d", (int)pid);
	return strcmp(target, "all") == 0 || strcmp(target, digits) == 0 || strcmp(target, program) == 0;
}
