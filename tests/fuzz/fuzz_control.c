/*
 * fuzz_control.c - any bytes as the message of a stranger: parsed or refused, and what is made of it is valid JSON.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/control.h"
#include "collector/trace/meta.h"
#include "evprof/trigger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As the collector does for a session. What is valid is within bounds. */
static void check_trigger(const struct control_message *message)
{
	struct triggers triggers;

	if (strlen(message->trigger) >= CONTROL_TRIGGER_MAX_BYTES)
		abort();
	if (setting_triggers(message->trigger, &triggers))
		return;
	if (triggers.count > TRIGGERS_MAX)
		abort();
	for (unsigned i = 0; i < triggers.count; i++)
		if (triggers.at[i].pattern_length > strlen(triggers.at[i].text))
			abort();
}

static void check_meta(const struct control_message *message)
{
	char *text = meta_process(message, 1, 1, 1, 3, UINT64_MAX);
	json_t *object = text ? json_loads(text, 0, NULL) : NULL;

	if (!object)
		abort();
	json_decref(object);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct control_message message;
	char reason[256] = "";

	if (control_parse((const char *)data, size, &message, reason, sizeof(reason)) < 0) {
		if (!reason[0] || strchr(reason, '\n'))
			abort();
		return 0;
	}
	if (control_is_request(message.type)) {
		if (message.type == CONTROL_UNKNOWN || strlen(message.target) >= CONTROL_TARGET_MAX_BYTES)
			abort();
		control_target_has(message.target, 1, "prog");
	} else if (message.type != CONTROL_ABSENT && message.output[0] != '/') {
		abort();
	}
	if (message.type == CONTROL_JOIN)
		check_meta(&message);
	if (message.type == CONTROL_JOIN)
		check_trigger(&message);
	control_message_done(&message);
	return 0;
}
