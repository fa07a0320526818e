/*
 * settings.c - see settings.h.
 */
#include "push/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "push/percent.h"

#define DEFAULT_ENDPOINT "http://localhost:4318"
#define DEFAULT_TIMEOUT_MS 10000
#define MOST_TIMEOUT_MS 600000

static const struct {
	const char *name, *path, *type;
} forms[PUSH_FORMS] = {
    [PUSH_OTLP] = {"otlp", "v1development/profiles", "application/x-protobuf"},
    [PUSH_PYROSCOPE] = {"pyroscope", "push.v1.PusherService/Push", "application/json"},
    [PUSH_PARCA] = {"parca", "profiles/writeraw", "application/json"},
};

const char *push_form_name(enum push_form form)
{
	return forms[form].name;
}

const char *push_form_type(enum push_form form)
{
	return forms[form].type;
}

/* The URL behind "pyroscope+" or "parca+", which gives the form. */
static const char *take_form(const char *endpoint, enum push_form *form)
{
	*form = PUSH_OTLP;
	for (unsigned i = PUSH_OTLP + 1; i < PUSH_FORMS; i++) {
		size_t length = strlen(forms[i].name);

		if (strncmp(endpoint, forms[i].name, length) == 0 && endpoint[length] == '+') {
			*form = (enum push_form)i;
			return endpoint + length + 1;
		}
	}
	return endpoint;
}

/* A variable of the signal, or the general one; NULL: neither is set, or they are empty. */
static const char *variable(const char *name)
{
	static const char *const before[] = {"OTEL_EXPORTER_OTLP_PROFILES_", "OTEL_EXPORTER_OTLP_"};
	char whole[128];

	for (unsigned i = 0; i < 2; i++) {
		const char *value;

		snprintf(whole, sizeof(whole), "%s%s", before[i], name);
		value = getenv(whole);
		if (value && *value)
			return value;
	}
	return NULL;
}

static bool wrong(char *why, size_t bytes, const char *format, const char *value)
{
	snprintf(why, bytes, format, value);
	return false;
}

static bool is_url(const char *text)
{
	size_t scheme = strncasecmp(text, "http://", 7) == 0 ? 7 : strncasecmp(text, "https://", 8) == 0 ? 8 : 0;

	return scheme && text[scheme] && text[scheme] != '/' && !strpbrk(text, " \t\r\n");
}

static bool read_url(struct push_settings *settings, const char *endpoint, char *why, size_t bytes)
{
	const char *whole = endpoint ? NULL : getenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT");
	const char *base = endpoint ? endpoint : getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), *slash;
	const char *used = whole && *whole ? whole : base && *base ? base : DEFAULT_ENDPOINT;

	if (endpoint)
		used = take_form(used, &settings->form);
	if (!is_url(used))
		return wrong(why, bytes,
			     "the endpoint is a URL such as " DEFAULT_ENDPOINT
			     ", or pyroscope+http://localhost:4040, or "
			     "parca+http://localhost:7070, not %.300s",
			     used);
	slash = used[strlen(used) - 1] == '/' ? "" : "/";
	if (used == whole ? !(settings->url = strdup(used))
			  : asprintf(&settings->url, "%s%s%s", used, slash, forms[settings->form].path) < 0) {
		settings->url = NULL;
		return wrong(why, bytes, "%s", "out of memory");
	}
	return true;
}

static bool read_headers(struct push_settings *settings, char *why, size_t bytes)
{
	const char *given = variable("HEADERS");
	char *copy = strdup(given ? given : ""), *list = copy, *key, *value;
	bool fine = copy != NULL;

	while (fine && settings->header_count < PUSH_HEADERS_MAX && percent_next(&list, &key, &value)) {
		if (strpbrk(key, ": \r\n") || strpbrk(value, "\r\n"))
			fine = wrong(why, bytes, "OTEL_EXPORTER_OTLP_HEADERS has a header that is none: %.100s", key);
		else if (asprintf(&settings->headers[settings->header_count], "%s: %s", key, value) >= 0)
			settings->header_count++;
		else
			fine = wrong(why, bytes, "%s", "out of memory");
	}
	free(copy);
	return fine;
}

static bool read_timeout(struct push_settings *settings, char *why, size_t bytes)
{
	const char *given = variable("TIMEOUT");
	char *end;

	settings->timeout_ms = given ? strtol(given, &end, 10) : DEFAULT_TIMEOUT_MS;
	if (given && (*end || settings->timeout_ms < 1 || settings->timeout_ms > MOST_TIMEOUT_MS))
		return wrong(why, bytes, "OTEL_EXPORTER_OTLP_TIMEOUT is 1 to 600000 ms, not %.100s", given);
	return true;
}

static bool read_words(struct push_settings *settings, char *why, size_t bytes)
{
	const char *compression = variable("COMPRESSION"), *protocol = variable("PROTOCOL");

	settings->gzip = compression && strcmp(compression, "gzip") == 0 && settings->form == PUSH_OTLP;
	if (compression && strcmp(compression, "gzip") != 0 && strcmp(compression, "none") != 0)
		return wrong(why, bytes, "OTEL_EXPORTER_OTLP_COMPRESSION is gzip or none, not %.100s", compression);
	if (protocol && strcmp(protocol, "http/protobuf") != 0)
		return wrong(why, bytes,
			     "OTEL_EXPORTER_OTLP_PROTOCOL is %.100s; set OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL to "
			     "http/protobuf, which evprof has",
			     protocol);
	return true;
}

bool push_settings_read(struct push_settings *settings, const char *endpoint, char *why, size_t why_bytes)
{
	*settings = (struct push_settings){.certificate = variable("CERTIFICATE"),
					   .client_certificate = variable("CLIENT_CERTIFICATE"),
					   .client_key = variable("CLIENT_KEY")};
	return read_url(settings, endpoint, why, why_bytes) && read_headers(settings, why, why_bytes) &&
	       read_timeout(settings, why, why_bytes) && read_words(settings, why, why_bytes);
}

void push_settings_done(struct push_settings *settings)
{
	free(settings->url);
	for (unsigned i = 0; i < settings->header_count; i++)
		free(settings->headers[i]);
}
