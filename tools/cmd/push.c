/*
 * push.c - evprof push: profiles by stack to OpenTelemetry, Pyroscope or Parca, from all that is recorded, or from
 * finished traces.
 */
#include "push/push.h"

#include "cmd/verbs.h"
#include "evprof/settings.h"
#include "util/cli.h"

#define SPOOL_BYTES ((size_t)64 << 20)
#define FOLLOW_PATIENCE_MS 10000
#define FILE_PATIENCE_MS 60000

static const char help_text[] =
    "usage: evprof push [options] [TRACE...]\n"
    "\n"
    "Pushes profiles by OpenTelemetry's protocol (OTLP over HTTP, profiles v1development), or as pprof to Pyroscope\n"
    "or Parca: for each recorded process and interval calls, own time, CPU and waiting, allocations and live blocks\n"
    "by stack. Without a trace it follows all processes that are recorded on this machine, from now on, until SIGTERM\n"
    "or Ctrl-C. Needs libcurl.\n"
    "\n"
    "      --endpoint URL    http://HOST:4318 or https://...; /v1development/profiles is appended\n"
    "                        (default: OTEL_EXPORTER_OTLP_ENDPOINT, or http://localhost:4318);\n"
    "                        or pyroscope+http://HOST:4040, or parca+http://HOST:7070\n"
    "      --interval S      seconds of an interval (default: 60)\n"
    "      --spool FOLDER    keep in files what is not sent yet; the next evprof push sends it (default: in memory)\n"
    "      --spool-size SIZE of what is not sent yet; for more, the oldest is dropped and counted (default: 64M)\n"
    "      --folder FOLDER   push all new traces of this folder, too: of programs that run for less than a second\n"
    "      --socket SOCKET   ask the collector at this socket (default: EVPROF_SOCKET, or else all of the user's)\n"
    "      --since NS        push from their start all traces that began after this time of CLOCK_MONOTONIC (default: "
    "now)\n"
    "      --until-closed    end when standard input is closed, and not on signals, as a collector's --push does\n"
    "\n"
    "The variables OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _CERTIFICATE, _CLIENT_CERTIFICATE, _CLIENT_KEY, _TIMEOUT "
    "and\n"
    "_COMPRESSION count, and before them those with OTLP_PROFILES_. A process is described by its own\n"
    "OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.\n"
    "\n"
    "Exit status: 0; 1 if profiles were dropped or rejected, or are left in the spool, or a trace is damaged; 2 if\n"
    "nothing can be pushed.\n";

struct request {
	const char *spool_size;
	int64_t since_ns;
	int interval_ms;
	struct push_request push;
};

static bool take_spool_size(struct request *request)
{
	request->push.spool_bytes = SPOOL_BYTES;
	if (!request->spool_size)
		return true;
	request->push.spool_bytes = (size_t)setting_size(request->spool_size);
	return request->push.spool_bytes ||
	       cli_misused("push", "--spool-size is a size, such as 64M, not %s", request->spool_size);
}

int cmd_push(int argc, char **argv)
{
	static const struct verb_option options_known[] = {
	    VERB_TEXT("endpoint", 0, request, push.endpoint),
	    VERB_INTERVAL(request, interval_ms),
	    VERB_TEXT("spool", 0, request, push.spool),
	    VERB_TEXT("spool-size", 0, request, spool_size),
	    VERB_TEXT("folder", 0, request, push.folder),
	    VERB_TEXT("socket", 0, request, push.socket),
	    VERB_TAKE("since", 0, required_argument, verb_take_count, offsetof(struct request, since_ns)),
	    VERB_FLAG("until-closed", 0, request, push.until_closed),
	    VERB_OPTIONS_END,
	};
	static const struct verb_usage usage = {"push", options_known, {help_text}};
	struct request request = {.interval_ms = 60000};
	int status = verb_parse(&usage, argc, argv, &request, NULL);

	if (status != VERB_PARSED)
		return status;
	if (!take_spool_size(&request))
		return CLI_FAILED;
	request.push.traces = argv + optind;
	request.push.since_ns = request.since_ns;
	request.push.interval_ns = (int64_t)request.interval_ms * 1000000;
	request.push.patience_ms = argv[optind] ? FILE_PATIENCE_MS : FOLLOW_PATIENCE_MS;
	return push(&request.push);
}
