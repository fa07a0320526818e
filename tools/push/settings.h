/*
 * settings.h - where profiles are pushed to: OpenTelemetry's variables OTEL_EXPORTER_OTLP_PROFILES_..., and behind them
 * OTEL_EXPORTER_OTLP_....
 *
 *   ENDPOINT     a URL: that of the signal as it is, the general one with /v1development/profiles appended
 *   HEADERS      key=value,...; values are percent-encoded
 *   CERTIFICATE  the file of the authorities that the server's certificate is checked with
 *   CLIENT_CERTIFICATE, CLIENT_KEY
 *   TIMEOUT      of one request, in ms
 *   COMPRESSION  gzip or none
 *   PROTOCOL     http/protobuf, the only one
 *
 * A URL of the command line may begin with pyroscope+ or parca+: then the form of requests, and the path that is
 * appended, are those of Pyroscope and Parca (series.h). The variables count for them, too, except for ENDPOINT, and
 * COMPRESSION, as profiles are compressed there one by one.
 */
#ifndef EVPROF_TOOLS_PUSH_SETTINGS_H
#define EVPROF_TOOLS_PUSH_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#define PUSH_HEADERS_MAX 64

enum push_form { PUSH_OTLP, PUSH_PYROSCOPE, PUSH_PARCA, PUSH_FORMS };

struct push_settings {
	enum push_form form;
	char *url;
	char *headers[PUSH_HEADERS_MAX]; /* "Key: value" */
	unsigned header_count;
	const char *certificate, *client_certificate, *client_key; /* NULL: none */
	long timeout_ms;
	bool gzip;
};

/*
 * endpoint: of the command line, a URL as OTEL_EXPORTER_OTLP_ENDPOINT has it, or with the form before it; NULL: none.
 * False after one line in `why`. push_settings_done() frees it in both cases.
 */
bool push_settings_read(struct push_settings *settings, const char *endpoint, char *why, size_t why_bytes);
void push_settings_done(struct push_settings *settings);

/* "otlp", "pyroscope" or "parca". */
const char *push_form_name(enum push_form form);
/* The media type of its requests. */
const char *push_form_type(enum push_form form);

#endif
