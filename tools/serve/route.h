/*
 * route.h - what a browser asks evprof serve for: the request's method, address and headers, checked. Nothing of it is
 * trusted. Uses no library and has no state, for the fuzzer.
 */
#ifndef EVPROF_TOOLS_SERVE_ROUTE_H
#define EVPROF_TOOLS_SERVE_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "watch/rows.h"

#define SERVE_TOKEN_DIGITS 32
#define SERVE_FILTER_BYTES 512 /* serve.html lets in 150 UTF-16 units, of up to 3 bytes */
#define SERVE_ROWS_MAX 1000
#define SERVE_LAST_MAX_S 86400

enum serve_place {
	SERVE_PAGE,
	SERVE_SCRIPT,
	SERVE_STYLE,
	SERVE_LIVE,	/* the data of the page */
	SERVE_SNAPSHOT, /* to be made */
	SERVE_REPORT,	/* of a snapshot */
	SERVE_TRACE,	/* of a snapshot */
};

/* As the library of HTTP has it. Strings; NULL: there is none. */
struct serve_message {
	const char *method;
	const char *path;		  /* decoded, without the query */
	const char *host, *origin, *site; /* headers: Host, Origin, Sec-Fetch-Site */
	/* A value of the query, decoded; NULL: it has none of that name. */
	const char *(*value)(const void *context, const char *name);
	const void *context;
};

struct serve_request {
	enum serve_place place;
	int64_t pid;	/* 0: all */
	uint32_t focus; /* function number + 1; 0: none */
	enum watch_order order;
	char filter[SERVE_FILTER_BYTES];
	uint32_t rows;
	bool has_stacks;
	int64_t history_pid; /* -1: no history is wanted; 0: of all */
	uint64_t after;	     /* history of later refreshes only */
	uint32_t last_s;     /* of a snapshot: so many seconds; 0: all */
	uint32_t number;     /* of a report or a trace */
};

/*
 * Returns the status of HTTP: 200, and the request; 400: a value is wrong; 403: the request comes from another site, or
 * by a name; 404: there is no such place, or the token is wrong; 405: not by this method.
 */
int serve_route(const struct serve_message *message, const char token[SERVE_TOKEN_DIGITS + 1],
		struct serve_request *request);

#endif
