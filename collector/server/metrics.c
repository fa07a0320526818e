/*
 * metrics.c - see metrics.h. Called by collector.c between rounds.
 */
#include "server/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "evprof/system_calls.h"

struct metric {
	const char *name, *member, *type, *help;
};

static const struct metric collector_metrics[] = {
    {"evprof_collector_uptime_seconds", "uptime_s", "gauge", "Time since the collector has started."},
    {"evprof_collector_cpu_seconds_total", "cpu_s", "counter", "Processor time of the collector."},
    {"evprof_collector_resident_bytes", "rss_bytes", "gauge", "Resident memory of the collector."},
    {"evprof_collector_disk_bytes", "disk_bytes", "gauge", "Size of all traces in the folder, and their exports."},
    {"evprof_collector_free_bytes", "free_bytes", "gauge", "What the file system of the folder has left."},
};

static const struct metric process_metrics[] = {
    {"evprof_process_events_total", "events", "counter", "Events of the process in its trace."},
    {"evprof_process_lost_events_total", "lost", "counter", "Events of the process that were lost."},
    {"evprof_process_trace_bytes_total", "bytes", "counter", "What the process has added to its trace."},
    {"evprof_process_events_per_second", "events_per_s", "gauge", "Events of the last second or few."},
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void put_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Integers whole; the others are seconds, to the ms. */
static void put_value(FILE *out, const json_t *value)
{
	if (json_is_integer(value))
		fprintf(out, " %" JSON_INTEGER_FORMAT "\n", json_integer_value(value));
	else
		fprintf(out, " %.3f\n", json_number_value(value));
}

/* The value of a label, which may have any character. */
static void put_label(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", out);
		else if (*text == '\\' || *text == '"')
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

/* more: further labels, or "". */
static void put_process(FILE *out, const char *name, const json_t *process, const char *more)
{
	const char *program = json_string_value(json_object_get(process, "program"));
	const json_t *number = json_object_get(process, "number");

	fprintf(out, "%s{pid=\"%" JSON_INTEGER_FORMAT "\",program=\"", name,
		json_integer_value(json_object_get(process, "pid")));
	put_label(out, program ? program : "");
	fputc('"', out);
	if (json_is_integer(number)) /* two containers may have one pid and program */
		fprintf(out, ",number=\"%" JSON_INTEGER_FORMAT "\"", json_integer_value(number));
	fprintf(out, "%s}", more);
}

static void put_recordings(FILE *out, const json_t *processes)
{
	static const char name[] = "evprof_process_recording";

	put_head(out, name, "gauge", "1: how the process is recorded now: events, sample or off.");
	for (size_t i = 0; i < json_array_size(processes); i++) {
		const json_t *process = json_array_get(processes, i);
		const char *mode = json_string_value(json_object_get(process, "recording"));
		char label[64];

		snprintf(label, sizeof(label), ",mode=\"%s\"", mode ? mode : "");
		put_process(out, name, process, label);
		fputs(" 1\n", out);
	}
}

static void put_processes(FILE *out, const json_t *processes)
{
	for (size_t k = 0; k < COUNT_OF(process_metrics); k++) {
		const struct metric *metric = &process_metrics[k];

		put_head(out, metric->name, metric->type, metric->help);
		for (size_t i = 0; i < json_array_size(processes); i++) {
			const json_t *process = json_array_get(processes, i);

			put_process(out, metric->name, process, "");
			put_value(out, json_object_get(process, metric->member));
		}
	}
	put_recordings(out, processes);
}

char *metrics_text(const json_t *status, size_t *bytes)
{
	const json_t *collector = json_object_get(status, "collector");
	const json_t *processes = json_object_get(status, "processes");
	char *text = NULL;
	FILE *out = open_memstream(&text, bytes);

	if (!out)
		return NULL;
	for (size_t k = 0; k < COUNT_OF(collector_metrics); k++) {
		const struct metric *metric = &collector_metrics[k];
		const json_t *value = json_object_get(collector, metric->member);

		if (!json_is_number(value))
			continue;
		put_head(out, metric->name, metric->type, metric->help);
		fputs(metric->name, out);
		put_value(out, value);
	}
	put_head(out, "evprof_processes", "gauge", "Processes that are recorded.");
	fprintf(out, "evprof_processes %zu\n", json_array_size(processes));
	put_processes(out, processes);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* --- the file --- */

/* Readable for the exporter, which runs as another user. */
static int replace_file(const char *path, const char *text, size_t bytes)
{
	char temporary[PATH_MAX];
	int fd, error;

	if (snprintf(temporary, sizeof(temporary), "%s.%d", path, (int)getpid()) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	unlink(temporary); /* left by a collector that was killed */
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	error = system_write_all(fd, text, bytes);
	if (!error && (fchmod(fd, 0644) < 0 || rename(temporary, path) < 0))
		error = -errno;
	close(fd);
	if (error)
		unlink(temporary);
	return error;
}

bool metrics_are_due(const struct metrics *metrics, uint64_t now_ns)
{
	return metrics->path && now_ns >= metrics->next_ns;
}

void metrics_write(struct metrics *metrics, const json_t *status, uint64_t now_ns)
{
	size_t bytes = 0;
	char *text = status ? metrics_text(status, &bytes) : NULL;
	int error = text ? replace_file(metrics->path, text, bytes) : -ENOMEM;

	if (error && !metrics->failed)
		log_warning("cannot write %s: %s", metrics->path, strerror(-error));
	metrics->failed = error != 0;
	metrics->next_ns = now_ns + METRICS_NS;
	free(text);
}

int metrics_patience_us(const struct metrics *metrics, uint64_t now_ns)
{
	if (!metrics->path)
		return -1;
	return metrics->next_ns > now_ns ? (int)((metrics->next_ns - now_ns) / 1000) : 0;
}

void metrics_done(struct metrics *metrics)
{
	if (metrics->path)
		unlink(metrics->path);
}
