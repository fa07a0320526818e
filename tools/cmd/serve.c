/*
 * serve.c - evprof serve: what evprof top shows, on a page for browsers of this machine.
 */
#include <stdio.h>
#include <unistd.h>

#include "cmd/verbs.h"
#include "control/collectors.h"
#include "serve/serve.h"
#include "util/cli.h"

static const char help_text[] =
    "usage: evprof serve [options] [PID|NAME|all]\n"
    "\n"
    "Serves a page that shows what recorded processes do now: charts, functions by time, calls and allocations, their\n"
    "callers and callees, processes, threads with their stacks, tasks. A button takes a snapshot and opens its "
    "report.\n"
    "Prints the address, which has a random token in it: only who knows it sees the page. Needs libmicrohttpd. Ends "
    "on\n"
    "Ctrl-C.\n"
    "\n"
    "      --listen ADDRESS  127.0.0.1:PORT or [::1]:PORT; PORT 0 is any free one (default: 127.0.0.1:0)\n"
    "      --allow-remote    ADDRESS may be one that other machines reach. What the page shows, and its token, then "
    "go\n"
    "                        over the network unencrypted: a tunnel is better (ssh -L 8000:127.0.0.1:PORT HOST)\n"
    "      --interval S      seconds between two refreshes (default: 1)\n"
    "      --socket SOCKET   ask the collector at this socket (default: EVPROF_SOCKET, or else all of the user's)\n"
    "\n"
    "Exit status: 0; 2 if it cannot listen, or libmicrohttpd is not here.\n";

struct request {
	const char *socket, *listen;
	bool allow_remote;
	struct serve_settings settings;
};

static bool take_address(struct request *request)
{
	const char *text = request->listen ? request->listen : "127.0.0.1:0";

	if (!serve_address_parse(text, &request->settings.address))
		return cli_misused(
		    "serve", "--listen is an address with a port, such as 127.0.0.1:8000 or [::1]:0, not %s", text);
	if (!request->settings.address.is_loopback && !request->allow_remote)
		return cli_misused(
		    "serve",
		    "other machines reach %s, and the page is not encrypted; use 127.0.0.1 and a tunnel, "
		    "or insist with --allow-remote",
		    text);
	return true;
}

/* That none is there now is said once: one may come. */
static void find_collectors(const char *socket)
{
	struct control_collectors collectors;

	control_collectors_find("serve", socket, &collectors);
	control_collectors_done(&collectors);
}

int cmd_serve(int argc, char **argv)
{
	static const struct verb_option options_known[] = {
	    VERB_TEXT("listen", 0, request, listen),
	    VERB_FLAG("allow-remote", 0, request, allow_remote),
	    VERB_INTERVAL(request, settings.interval_ms),
	    VERB_TEXT("socket", 0, request, socket),
	    VERB_OPTIONS_END,
	};
	static const struct verb_usage usage = {"serve", options_known, {help_text}};
	struct request request = {.settings = {.target = "all", .interval_ms = VERB_INTERVAL_MS}};
	int status = verb_parse(&usage, argc, argv, &request, NULL);

	if (status != VERB_PARSED)
		return status;
	if (!verb_take_target("serve", argc, argv, &request.settings.target))
		return CLI_FAILED;
	request.settings.socket = request.socket;
	if (!take_address(&request))
		return CLI_FAILED;
	find_collectors(request.socket);
	return serve(&request.settings);
}
