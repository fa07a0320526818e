/*
 * metrics.h - the status of a collector in Prometheus' text format, as a file for the textfile collector of the node
 * exporter (--metrics).
 */
#ifndef COLLECTOR_METRICS_H
#define COLLECTOR_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_t;

#define METRICS_NS UINT64_C(15000000000)

/* All zeros: no file. */
struct metrics {
	const char *path; /* not owned */
	uint64_t next_ns;
	bool failed; /* the last write, which was logged */
};

/* The text for a status (server/status.h). The caller frees it. NULL: no memory. */
char *metrics_text(const struct json_t *status, size_t *bytes);

/* Whether the file is to be written now. */
bool metrics_are_due(const struct metrics *metrics, uint64_t now_ns);

/* Replaces the file as a whole: a reader sees the old one or the new one. status: NULL: no memory. */
void metrics_write(struct metrics *metrics, const struct json_t *status, uint64_t now_ns);

/* The time until the next write, in us; -1: there is none. */
int metrics_patience_us(const struct metrics *metrics, uint64_t now_ns);

/* Removes the file: nothing is measured any more. */
void metrics_done(struct metrics *metrics);

#endif
