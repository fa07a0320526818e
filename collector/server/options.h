/*
 * options.h - the command line of evprof-collector.
 */
#ifndef COLLECTOR_OPTIONS_H
#define COLLECTOR_OPTIONS_H

#include <stdbool.h>

#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/users.h"
#include "evprof/settings.h"
#include "server/pusher.h"
#include "trace/folder.h"

struct options {
	bool private;	    /* serve one session on CONTROL_LISTEN_FD, then end */
	int sampled;	    /* pid to sample ... */
	uint64_t sampling;  /* ... and the address of its struct sampling; 0: serve */
	long resumes;	    /* pid of the first process of a session whose collector is gone; 0: none */
	const char *socket; /* a path, or @ and an abstract name; NULL with socket activation */
	const char *output_dir;
	const char *output;	  /* template below output_dir */
	const char *formats;	  /* names with commas; NULL: none */
	struct setting_keep keep; /* of each trace; all zeros: as its program wants */
	bool allow_other_users;
	bool has_control_group;
	gid_t control_group;
	struct user_limits limits; /* 0: the default */
	struct folder_limits folder_limits;
	struct setting_keep rotate; /* a trace ends after so much; all zeros: with its session */
	const char *trigger;	    /* of each trace; NULL: as its program wants */
	struct ship_options ship;
	const char *push;	     /* URL of evprof push; NULL: none */
	const char *metrics;	     /* path of a file; NULL: none */
	const char *metrics_address; /* for HTTP; NULL: none */
	unsigned log_level;	     /* enum log_level */
};

enum options_result { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_WRONG };

/* OPTIONS_DONE: --help or --version was answered. OPTIONS_WRONG: an error message was written to stderr, one line. */
enum options_result options_parse(int argc, char **argv, struct options *options);

#endif
