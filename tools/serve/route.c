/*
 * route.c - see route.h.
 */
#include "serve/route.h"

#include <stdlib.h>
#include <string.h>

#include "serve/address.h"

#define FINE 200
#define WRONG 400
#define FORBIDDEN 403
#define NOT_FOUND 404
#define BAD_METHOD 405

/* --- who asks --- */

/* The time does not depend on where they differ. text is at least as long as the token. */
static bool is_token(const char *text, const char *token)
{
	unsigned char differs = 0;

	for (size_t i = 0; i < SERVE_TOKEN_DIGITS; i++)
		differs |= (unsigned char)(text[i] ^ token[i]);
	return !differs;
}

/* The rest of a path behind "/TOKEN/". NULL: the token is not there. */
static const char *behind_token(const char *path, const char *token)
{
	size_t length = path ? strnlen(path, SERVE_TOKEN_DIGITS + 2) : 0;

	if (length < SERVE_TOKEN_DIGITS + 2 || path[0] != '/' || path[SERVE_TOKEN_DIGITS + 1] != '/' ||
	    !is_token(path + 1, token))
		return NULL;
	return path + SERVE_TOKEN_DIGITS + 2;
}

/* A browser names the site of the page that asks. */
static bool is_same_site(const struct serve_message *message)
{
	static const char scheme[] = "http://";

	if (message->site && strcmp(message->site, "same-origin") != 0 && strcmp(message->site, "none") != 0)
		return false;
	return !message->origin || (strncmp(message->origin, scheme, strlen(scheme)) == 0 &&
				    strcmp(message->origin + strlen(scheme), message->host) == 0);
}

/* --- values --- */

static const char *value_of(const struct serve_message *message, const char *name)
{
	const char *value = message->value ? message->value(message->context, name) : NULL;

	return value && value[0] ? value : NULL;
}

/* Without the value *number stays. False: it is no number, or too large. */
static bool take_number(const struct serve_message *message, const char *name, uint64_t most, uint64_t *number)
{
	const char *value = value_of(message, name);
	size_t digits = value ? strspn(value, "0123456789") : 0;
	unsigned long long taken;

	if (!value)
		return true;
	if (digits > 19 || value[digits])
		return false;
	taken = strtoull(value, NULL, 10);
	if (taken > most)
		return false;
	*number = taken;
	return true;
}

static bool take_words(const struct serve_message *message, struct serve_request *request)
{
	const char *order = value_of(message, "sort"), *filter = value_of(message, "filter");

	if (order)
		request->order = watch_order_of(order);
	if (filter && strlen(filter) >= sizeof(request->filter))
		return false;
	if (filter)
		strcpy(request->filter, filter);
	return request->order != WATCH_ORDERS;
}

static bool take_values(const struct serve_message *message, struct serve_request *request)
{
	uint64_t pid = 0, focus = 0, rows = 100, stacks = 0, history = UINT64_MAX, after = 0, last = 0;
	bool fine =
	    take_number(message, "pid", INT32_MAX, &pid) && take_number(message, "focus", UINT32_MAX - 1, &focus) &&
	    take_number(message, "rows", SERVE_ROWS_MAX, &rows) && take_number(message, "stacks", 1, &stacks) &&
	    take_number(message, "history", INT32_MAX, &history) && take_number(message, "after", INT64_MAX, &after) &&
	    take_number(message, "last", SERVE_LAST_MAX_S, &last) && take_words(message, request);

	request->pid = (int64_t)pid;
	request->focus = value_of(message, "focus") ? (uint32_t)focus + 1 : 0;
	request->rows = (uint32_t)rows;
	request->has_stacks = stacks != 0;
	request->history_pid = history == UINT64_MAX ? -1 : (int64_t)history;
	request->after = after;
	request->last_s = (uint32_t)last;
	return fine;
}

/* --- places --- */

/* "12.html": whether it is a number with that ending. */
static bool is_numbered(const char *name, const char *ending, uint32_t *number)
{
	size_t digits = strspn(name, "0123456789");

	if (!digits || digits > 9 || strcmp(name + digits, ending) != 0)
		return false;
	*number = (uint32_t)strtoul(name, NULL, 10);
	return true;
}

static bool find_place(const char *name, struct serve_request *request)
{
	static const struct {
		const char *name;
		enum serve_place place;
	} places[] = {{"", SERVE_PAGE},
		      {"serve.js", SERVE_SCRIPT},
		      {"serve.css", SERVE_STYLE},
		      {"live", SERVE_LIVE},
		      {"snapshot", SERVE_SNAPSHOT}};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (strcmp(name, places[i].name) == 0) {
			request->place = places[i].place;
			return true;
		}
	}
	request->place = strstr(name, ".evp") ? SERVE_TRACE : SERVE_REPORT;
	return strncmp(name, "report/", 7) == 0 &&
	       is_numbered(name + 7, request->place == SERVE_TRACE ? ".evp" : ".html", &request->number);
}

int serve_route(const struct serve_message *message, const char token[SERVE_TOKEN_DIGITS + 1],
		struct serve_request *request)
{
	const char *name;
	bool changes;

	*request = (struct serve_request){.order = WATCH_BY_OWN, .history_pid = -1};
	if (!message->host || !serve_host_is_address(message->host))
		return FORBIDDEN;
	name = behind_token(message->path, token);
	if (!name || !find_place(name, request))
		return NOT_FOUND;
	changes = request->place == SERVE_SNAPSHOT;
	if (strcmp(message->method, "POST") != 0
		? changes || (strcmp(message->method, "GET") != 0 && strcmp(message->method, "HEAD") != 0)
		: !changes)
		return BAD_METHOD;
	if (changes && !is_same_site(message))
		return FORBIDDEN;
	return take_values(message, request) ? FINE : WRONG;
}
