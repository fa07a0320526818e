/*
 * fuzz_serve.c - any request to evprof serve, and any address: refused, or what is taken is within its bounds; without
 * the token nothing is found.
 *
 * The input is lines: method, path, Host, Origin, Sec-Fetch-Site, then the values of the query in the order of
 * value_names. A line "-" is none. T in a path stands for the token.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/address.h"
#include "serve/route.h"

#define LINES 16
#define TOKEN "0123456789abcdef0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const value_names[] = {"pid",   "focus", "rows", "stacks", "history",
					  "after", "last",  "sort", "filter"};

struct lines {
	char *at[LINES];
};

static const char *find_value(const void *context, const char *name)
{
	const struct lines *lines = context;

	for (unsigned i = 0; i < sizeof(value_names) / sizeof(*value_names); i++)
		if (strcmp(name, value_names[i]) == 0)
			return lines->at[5 + i];
	abort();
}

static void check_taken(const struct serve_message *message, const struct serve_request *request)
{
	if (!strstr(message->path, TOKEN) || !serve_host_is_address(message->host))
		abort();
	if (request->pid < 0 || request->rows > SERVE_ROWS_MAX || request->last_s > SERVE_LAST_MAX_S ||
	    request->order >= WATCH_ORDERS || strlen(request->filter) >= sizeof(request->filter) ||
	    request->history_pid < -1 || request->after > INT64_MAX)
		abort();
	if ((request->place == SERVE_SNAPSHOT) != (strcmp(message->method, "POST") == 0))
		abort();
	if ((request->place == SERVE_REPORT || request->place == SERVE_TRACE) && request->number > 999999999)
		abort();
}

/* "/T/live" as the path with the token. */
static void put_token(const char *line, char *path, size_t bytes)
{
	const char *mark = line ? strchr(line, 'T') : NULL;

	if (mark)
		snprintf(path, bytes, "%.*s%s%s", (int)(mark - line), line, TOKEN, mark + 1);
	else
		snprintf(path, bytes, "%s", line ? line : "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *rest = text, path[4096];
	struct lines lines = {{NULL}};
	struct serve_message message = {.value = find_value, .context = &lines};
	struct serve_request request;
	struct serve_address address;
	int status;

	memcpy(text, data, size);
	text[size] = '\0';
	for (unsigned i = 0; i < LINES && rest; i++) {
		char *line = strsep(&rest, "\n");

		lines.at[i] = strcmp(line, "-") == 0 ? NULL : line;
	}
	put_token(lines.at[1], path, sizeof(path));
	message.method = lines.at[0] ? lines.at[0] : "GET";
	message.path = path;
	message.host = lines.at[2];
	message.origin = lines.at[3];
	message.site = lines.at[4];
	status = serve_route(&message, TOKEN, &request);
	if (status == 200)
		check_taken(&message, &request);
	else if (status != 400 && status != 403 && status != 404 && status != 405)
		abort();
	if (lines.at[2] && serve_address_parse(lines.at[2], &address) && !serve_host_is_address(lines.at[2]) &&
	    strlen(lines.at[2]) < SERVE_ADDRESS_BYTES)
		abort();
	free(text);
	return 0;
}
