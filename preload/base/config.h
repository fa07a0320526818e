/* config.h - the values of the EVPROF_* variables. Constant after the constructor, or an attach. */
#ifndef PRELOAD_CONFIG_H
#define PRELOAD_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "evprof/control.h"
#include "evprof/settings.h"
#include "evprof/trigger.h"

/* Names as in EVPROF_EVENTS and the trace: number i is 1 << i of enum setting_event. */
#define CONFIG_EVENTS SETTING_EVENTS
extern const char *const config_event_names[CONFIG_EVENTS];

struct config {
	bool attached;		  /* the settings are not those of the environment: config_use() */
	bool enabled;		  /* EVPROF */
	bool children;		  /* EVPROF_CHILDREN */
	bool fallback;		  /* EVPROF_FALLBACK: a private collector if none answers at EVPROF_SOCKET */
	bool calibrate;		  /* EVPROF_CALIBRATE */
	bool native_stacks;	  /* EVPROF_NATIVE, if possible (native.h) */
	bool start;		  /* EVPROF_START: record from the start on */
	bool memory_lines;	  /* EVPROF_MEMORY_LINES: allocations have lines where calls are recorded */
	bool program_only;	  /* EVPROF_PROGRAM_ONLY; implies EVENT_CALL */
	bool malloc_unseen;	  /* EVENT_MALLOC, and the program's malloc() is not evprof's (interposed.h) */
	unsigned events;	  /* EVPROF_EVENTS: enum setting_event */
	uint64_t ring_bytes;	  /* EVPROF_RING_SIZE: a power of two */
	uint32_t wait_ms;	  /* EVPROF_ON_FULL: 0 for drop */
	uint32_t signal;	  /* EVPROF_SIGNAL: stops and starts the recording; 0: none */
	bool signal_snapshot;	  /* it asks for a snapshot instead */
	uint32_t sample_rate;	  /* EVPROF_SAMPLE_RATE: samples a second */
	struct setting_keep keep; /* EVPROF_KEEP; all zeros: the whole trace is kept */
	uint32_t budget;	  /* EVPROF_BUDGET: 1/1000 of a percent of the CPU time; 0: none */
	uint64_t memory_interval; /* EVPROF_MEMORY_INTERVAL; 0: every allocation is recorded, or none is */
	char output[PATH_MAX];
	char formats[CONTROL_FORMATS_MAX_BYTES]; /* EVPROF_FORMAT: known names with commas, or "" */
	char trigger[CONTROL_TRIGGER_MAX_BYTES]; /* EVPROF_TRIGGER, or "" */
	char socket[PATH_MAX];			 /* EVPROF_SOCKET, "" for a private collector */

	/* EVPROF_SESSION, set by the first process of the tree */
	char session[33]; /* "" in the first process */
	pid_t session_first;
	pid_t session_owner;
	char session_socket[PATH_MAX];
};

extern struct config config;

/* Whether a budget may thin functions while these events are recorded: a line does not name its function. */
static inline bool config_may_thin(void)
{
	return config.events & EVENT_CALL && !(config.events & EVENT_LINE);
}

/*
 * Settings that replace the environment: lines of NAME=VALUE (start/attach.c). NULL: the environment counts again.
 * They are copied; false: there are more than 16 KiB. No other thread reads the configuration meanwhile.
 */
bool config_use(const char *settings);

/* The value of a variable in those settings, or in the environment. NULL: it is not set. */
const char *config_variable(const char *name);

/* Reads the environment. complain: print a line for each error in it. May be called again. */
void config_read(bool complain);

/* Reads a variable that is 0 or 1; fallback: its value where it is not set, or wrong. */
bool config_switch(const char *name, bool fallback, bool complain);

#endif
