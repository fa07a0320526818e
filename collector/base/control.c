/* control.c - parses and checks messages of the control socket. Called by the server with untrusted bytes. */
#include "base/control.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "evprof/json_memory.h"

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

static int digit_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	return -1;
}

/* Converts hexadecimal digits to bytes. False: invalid, or a NUL among them. */
static bool read_digits(const char *digits, size_t count, char *bytes)
{
	if (count % 2)
		return false;
	for (size_t i = 0; i < count; i += 2) {
		int high = digit_value(digits[i]), low = digit_value(digits[i + 1]);

		if (high < 0 || low < 0 || !(high | low))
			return false;
		bytes[i / 2] = (char)(high << 4 | low);
	}
	return true;
}

/* The output path, absolute and shorter than PATH_MAX; NULL: invalid. output_bytes replaces output in the object. */
static const char *get_output(json_t *object)
{
	const json_t *digits = json_object_get(object, "output_bytes");
	const char *output = get_string(object, "output", PATH_MAX);
	char bytes[PATH_MAX];
	size_t count;

	if (digits) {
		count = json_string_length(digits);
		if (!json_is_string(digits) || count / 2 >= PATH_MAX ||
		    !read_digits(json_string_value(digits), count, bytes) ||
		    json_object_set_new_nocheck(object, "output", json_stringn_nocheck(bytes, count / 2)) < 0)
			return NULL;
		output = json_string_value(json_object_get(object, "output"));
	}
	return output && output[0] == '/' ? output : NULL;
}

static bool get_session(const json_t *object, uint8_t session[CONTROL_SESSION_DIGITS / 2])
{
	const char *text = get_string(object, "session", CONTROL_SESSION_DIGITS + 1);

	if (!text || strlen(text) != CONTROL_SESSION_DIGITS)
		return false;
	for (int i = 0; i < CONTROL_SESSION_DIGITS / 2; i++) {
		int high = digit_value(text[2 * i]);
		int low = digit_value(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		session[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static bool get_start(const json_t *object, enum wire_start *start)
{
	static const char *const names[] = {"exec", "fork", "rejoin"}; /* enum wire_start */
	const char *text = get_string(object, "start", 16);

	for (unsigned i = 0; text && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*start = (enum wire_start)i;
			return true;
		}
	}
	return false;
}

/* These functions return NULL, or the name of the member that is missing or invalid. */
static const char *parse_texts(const json_t *object, struct control_message *message)
{
	if (!(message->python = get_string(object, "python", 64)))
		return "python";
	if (!(message->program = get_string(object, "program", NAME_MAX)))
		return "program";
	if (!(message->exe = get_string(object, "exe", PATH_MAX)))
		return "exe";
	if (!(message->cwd = get_string(object, "cwd", PATH_MAX)))
		return "cwd";
	if (!(message->host = get_string(object, "host", NAME_MAX)))
		return "host";
	if (!(message->argv = get_strings(object, "argv")))
		return "argv";
	if (!(message->events = get_strings(object, "events")))
		return "events";
	message->formats = "";
	if (json_object_get(object, "formats") &&
	    !(message->formats = get_string(object, "formats", CONTROL_FORMATS_MAX_BYTES)))
		return "formats";
	return NULL;
}

static const char *parse_join(const json_t *object, struct control_message *message)
{
	const json_t *root = json_object_get(object, "root");
	json_int_t value;

	if (!get_start(object, &message->start))
		return "start";
	if (!get_integer(object, "pid", 1, INT_MAX, &value))
		return "pid";
	message->pid = (pid_t)value;
	if (!get_integer(object, "ppid", 0, INT_MAX, &value))
		return "ppid";
	message->ppid = (pid_t)value;
	if (!get_integer(object, "start_time", 0, INT64_MAX, &value))
		return "start_time";
	message->start_time = (uint64_t)value;
	if (!json_is_boolean(root))
		return "root";
	message->root = json_is_true(root);
	value = 0;
	if (json_object_get(object, "sample_rate") && !get_integer(object, "sample_rate", 1, INT_MAX, &value))
		return "sample_rate";
	message->sample_rate = (int)value;
	message->native = json_is_true(json_object_get(object, "native"));
	message->filtered = json_is_true(json_object_get(object, "filtered"));
	return parse_texts(object, message);
}

static const char *parse_common(json_t *object, struct control_message *message)
{
	json_int_t wait_ms = 0;
	const char *type = get_string(object, "type", 16);

	if (type && strcmp(type, "join") == 0)
		message->type = CONTROL_JOIN;
	else if (type && strcmp(type, "hold") == 0)
		message->type = CONTROL_HOLD;
	else if (type && strcmp(type, "absent") == 0)
		message->type = CONTROL_ABSENT;
	else
		return "type";
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
	if (!get_integer(parsed.object, "evprof", 0, INT_MAX, &version) || version != CONTROL_VERSION) {
		snprintf(reason, reason_bytes,
			 "the library speaks another version of the protocol than this evprof-collector (%d): "
			 "install both from one release",
			 CONTROL_VERSION);
		goto fail;
	}
	member = parse_common(parsed.object, &parsed);
	if (!member && parsed.type == CONTROL_JOIN)
		member = parse_join(parsed.object, &parsed);
	if (member) {
		snprintf(reason, reason_bytes, "member \"%s\" of the message is missing or wrong", member);
		goto fail;
	}
	*message = parsed;
	return 0;
fail:
	json_decref(parsed.object);
	return -EINVAL;
}

void control_message_done(struct control_message *message)
{
	json_decref(message->object);
	message->object = NULL;
}
