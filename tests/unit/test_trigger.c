/*
 * test_trigger.c - EVPROF_TRIGGER as a list (evprof/trigger.h): what is valid, what it means, and that nothing else is
 * taken. A program of another user sends such a list to a daemon.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/control.h"
#include "evprof/trigger.h"

static const struct {
	const char *text;
	enum trigger_kind kind;
	uint64_t bound;
	const char *pattern; /* NULL: not looked at */
} items[] = {
    {"app.views:*>500ms", TRIGGER_CALL, 500000000, "app.views:*"},
    {"a:b>1us", TRIGGER_CALL, 1000, "a:b"},
    {"*:operator>x>2s", TRIGGER_CALL, UINT64_C(2000000000), "*:operator>x"}, /* the last > counts */
    {"a:b:c>3m", TRIGGER_CALL, UINT64_C(180000000000), "a:b:c"},
    {"loop>1h", TRIGGER_LOOP, UINT64_C(3600000000000), NULL},
    {"loops:x>1s", TRIGGER_CALL, UINT64_C(1000000000), "loops:x"},
    {"rss>1G", TRIGGER_RSS, UINT64_C(1) << 30, NULL},
    {"rss>64K", TRIGGER_RSS, 65536, NULL},
    {"exception", TRIGGER_EXCEPTION, 0, NULL},
    {"a:b>999999999s", TRIGGER_CALL, UINT64_C(999999999000000000), "a:b"},
};

#define ITEMS (sizeof(items) / sizeof(items[0]))

static void expect_item(const struct trigger *trigger, size_t i)
{
	cr_expect(trigger->kind == items[i].kind && trigger->bound == items[i].bound, "%s", items[i].text);
	cr_expect(trigger->length == strlen(items[i].text) && !memcmp(trigger->text, items[i].text, trigger->length));
	if (items[i].pattern)
		cr_expect(trigger->pattern_length == strlen(items[i].pattern) &&
			      !memcmp(trigger->text, items[i].pattern, trigger->pattern_length),
			  "%s", items[i].text);
}

Test(trigger, each_kind)
{
	struct triggers triggers;

	for (size_t i = 0; i < ITEMS; i++) {
		cr_assert_null(setting_triggers(items[i].text, &triggers), "%s", items[i].text);
		cr_expect(triggers.count == 1 && triggers.quiet_ns == TRIGGER_QUIET_NS &&
			  triggers.most == TRIGGER_MOST);
		expect_item(&triggers.at[0], i);
		cr_expect(triggers_have(&triggers, items[i].kind) &&
			  !triggers_have(&triggers, (enum trigger_kind)((items[i].kind + 1) % 4)));
	}
}

Test(trigger, a_list_in_its_order)
{
	char list[CONTROL_TRIGGER_MAX_BYTES] = "quiet=5s,";
	struct triggers triggers;

	for (size_t i = 0; i < ITEMS; i++) {
		strcat(list, items[i].text);
		strcat(list, i == 3 ? ",most=7," : ",");
	}
	cr_assert_null(setting_triggers(list, &triggers));
	cr_assert_eq(triggers.count, ITEMS);
	cr_expect(triggers.quiet_ns == UINT64_C(5000000000) && triggers.most == 7);
	for (size_t i = 0; i < ITEMS; i++)
		expect_item(&triggers.at[i], i);
}

Test(trigger, as_many_as_there_is_room)
{
	char list[CONTROL_TRIGGER_MAX_BYTES] = "";
	struct triggers triggers;

	for (unsigned i = 0; i < TRIGGERS_MAX; i++)
		strcat(list, i ? ",a:b>1s" : "a:b>1s");
	cr_assert_null(setting_triggers(list, &triggers));
	cr_expect_eq(triggers.count, TRIGGERS_MAX);
	strcat(list, ",exception");
	cr_expect(setting_triggers(list, &triggers) != NULL);
}

/* One line says what is allowed, and what was known stays. */
Test(trigger, everything_else_is_refused)
{
	static const char *const wrong[] = {"",
					    ",",
					    "quiet=1s",
					    "most=3",
					    "a:b",
					    "a:b>",
					    "a:b>5",
					    "a:b>ms",
					    "a:b>-1s",
					    "a:b>0s",
					    "a:b>1.5s",
					    "a:b>1sec",
					    "a:b> 1s",
					    ":b>1s",
					    "a:>1s",
					    "a>1s",
					    "loop>",
					    "loop>0ms",
					    "loop>1G",
					    "rss>1s",
					    "rss>0",
					    "rss>1T",
					    "exceptions",
					    "exception>1s",
					    "exception,most=0",
					    "a:b>1s,x",
					    "a:b>1s,,a:b",
					    "quiet=,a:b>1s",
					    "quiet=0s,a:b>1s",
					    "most=,a:b>1s",
					    "most=-1,a:b>1s",
					    "most=100001,a:b>1s",
					    "a:b>1234567890s"};
	struct triggers triggers = {.count = 3, .most = 9};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *allowed = setting_triggers(wrong[i], &triggers);

		cr_expect(allowed && strstr(allowed, "MODULE:FUNCTION>TIME") && !strchr(allowed, '\n'), "%s", wrong[i]);
		cr_expect(triggers.count == 3 && triggers.most == 9, "%s", wrong[i]);
	}
}

Test(trigger, a_list_that_is_too_long)
{
	static char list[2 * CONTROL_TRIGGER_MAX_BYTES];
	struct triggers triggers;

	memset(list, 'a', sizeof(list) - 1);
	memcpy(list + sizeof(list) - 8, ":b>1s", 6);
	cr_expect(setting_triggers(list, &triggers) != NULL);
	cr_expect_null(setting_triggers(list + strlen(list) - (CONTROL_TRIGGER_MAX_BYTES - 1), &triggers));
}

/* What is valid stays within its list, whatever the characters. */
Test(trigger, anything_ends, .timeout = 60)
{
	static const char characters[] = ",,>>::=qmrslopexcn0159KMGmsuh*.";
	struct triggers triggers;
	char list[64];
	unsigned valid = 0;

	srand(18);
	for (int i = 0; i < 300000; i++) {
		size_t length = (size_t)rand() % (sizeof(list) - 1);

		for (size_t k = 0; k < length; k++)
			list[k] = characters[(size_t)rand() % (sizeof(characters) - 1)];
		list[length] = 0;
		if (rand() % 2 && length > 8)
			memcpy(list + rand() % 3, "a:b>1s", 6);
		if (setting_triggers(list, &triggers))
			continue;
		valid++;
		cr_assert(triggers.count > 0 && triggers.count <= TRIGGERS_MAX);
		for (unsigned t = 0; t < triggers.count; t++)
			cr_assert(triggers.at[t].text >= list &&
				  triggers.at[t].text + triggers.at[t].length <= list + length &&
				  triggers.at[t].pattern_length <= triggers.at[t].length);
	}
	cr_expect(valid > 0, "some were valid");
}
