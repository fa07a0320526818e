/*
 * resource.c - see resource.h.
 *
 * What a process wrote to its environment and its names of cgroups may be anything: values are cut, and their bytes
 * become valid UTF-8 in the request.
 */
#include "push/resource.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evprof/proc.h"
#include "push/percent.h"

#define ENVIRON_BYTES ((size_t)256 << 10)
#define ATTRIBUTES_MAX 128
#define CONTAINER_DIGITS 64
#define POD_DIGITS 36

/* The keys of OTEL_RESOURCE_ATTRIBUTES. */
struct given {
	const char *keys[ATTRIBUTES_MAX];
	unsigned count;
};

static bool is_given(const struct given *given, const char *key)
{
	for (unsigned i = 0; i < given->count; i++)
		if (strcmp(given->keys[i], key) == 0)
			return true;
	return false;
}

/* A variable of the process; NULL: it is not set, or empty. */
static const char *variable(const struct resource_source *source, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = source->environ; at < source->environ + source->length; at += strlen(at) + 1)
		if (strncmp(at, name, length) == 0 && at[length] == '=' && at[length + 1])
			return at + length + 1;
	return NULL;
}

static void put_new(struct push_resource *resource, const struct given *given, const char *key, const char *value)
{
	if (value && *value && !is_given(given, key))
		push_resource_text(resource, key, value);
}

/* Takes key=value,... apart where it is. */
static void put_given(struct push_resource *resource, struct given *given, char *list)
{
	char *key, *value;

	while (given->count < ATTRIBUTES_MAX && percent_next(&list, &key, &value)) {
		if (is_given(given, key))
			continue;
		given->keys[given->count++] = key;
		if (strcmp(key, "service.name") != 0)
			push_resource_text(resource, key, value);
		else
			given->keys[given->count - 1] = ""; /* OTEL_SERVICE_NAME comes before it */
	}
}

/* service.name of OTEL_RESOURCE_ATTRIBUTES, which the caller frees; NULL: none. */
static char *given_service(const char *list)
{
	char *copy = list ? strdup(list) : NULL, *at = copy, *key, *value, *found = NULL;

	while (!found && copy && percent_next(&at, &key, &value))
		if (strcmp(key, "service.name") == 0)
			found = strdup(value);
	free(copy);
	return found;
}

static void put_service(struct push_resource *resource, const struct resource_source *source)
{
	const char *named = variable(source, "OTEL_SERVICE_NAME");
	const char *program = trace_process_text(source->process, "program");
	char *given = given_service(variable(source, "OTEL_RESOURCE_ATTRIBUTES")), unknown[512];

	snprintf(unknown, sizeof(unknown), "unknown_service:%s", program[0] ? program : "python");
	push_resource_text(resource, "service.name", named ? named : given && *given ? given : unknown);
	free(given);
}

static bool is_hex(const char *text, size_t digits)
{
	for (size_t i = 0; i < digits; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return !isxdigit((unsigned char)text[digits]);
}

/* The last run of so many hexadecimal digits; "": none. */
static void find_container(const char *cgroup, char id[CONTAINER_DIGITS + 1])
{
	id[0] = 0;
	for (const char *at = cgroup; *at; at++) {
		bool begins = at == cgroup || !isxdigit((unsigned char)at[-1]);

		if (begins && is_hex(at, CONTAINER_DIGITS)) {
			memcpy(id, at, CONTAINER_DIGITS);
			id[CONTAINER_DIGITS] = 0;
		}
	}
}

/* The uid behind "pod", whose dashes systemd makes underscores; "": none. */
static void find_pod(const char *cgroup, char uid[POD_DIGITS + 1])
{
	uid[0] = 0;
	for (const char *at = strstr(cgroup, "pod"); at && !uid[0]; at = strstr(at + 3, "pod")) {
		size_t length = strspn(at + 3, "0123456789abcdef-_");

		if (length != POD_DIGITS)
			continue;
		memcpy(uid, at + 3, POD_DIGITS);
		uid[POD_DIGITS] = 0;
		for (char *c = uid; *c; c++)
			*c = *c == '_' ? '-' : *c;
	}
}

static void put_container(struct push_resource *resource, const struct given *given, const char *cgroup)
{
	char id[CONTAINER_DIGITS + 1], uid[POD_DIGITS + 1];

	find_container(cgroup, id);
	find_pod(cgroup, uid);
	put_new(resource, given, "container.id", id);
	put_new(resource, given, "k8s.pod.uid", uid);
}

static void put_process(struct push_resource *resource, const struct given *given, const struct trace_process *process)
{
	const char *path = trace_process_text(process, "exe"), *slash = strrchr(path, '/');
	char budget[32];

	if (!is_given(given, "process.pid"))
		push_resource_number(resource, "process.pid", process->pid);
	if (!is_given(given, "process.parent_pid") && process->ppid > 0)
		push_resource_number(resource, "process.parent_pid", process->ppid);
	put_new(resource, given, "process.executable.path", path);
	put_new(resource, given, "process.executable.name", slash ? slash + 1 : path);
	put_new(resource, given, "process.command", trace_process_text(process, "program"));
	put_new(resource, given, "process.runtime.name", "cpython");
	put_new(resource, given, "process.runtime.version", trace_process_text(process, "python"));
	put_new(resource, given, "host.name", trace_process_text(process, "host"));
	if (trace_process_memory_interval(process)) /* figures of memory are estimates */
		push_resource_number(resource, "evprof.memory.interval_bytes",
				     (int64_t)trace_process_memory_interval(process));
	if (trace_process_budget(process) > 0) { /* short calls may be missing */
		snprintf(budget, sizeof(budget), "%g%%", trace_process_budget(process));
		put_new(resource, given, "evprof.budget", budget);
	}
}

void resource_put_from(struct push_resource *resource, const struct resource_source *source)
{
	const char *list = variable(source, "OTEL_RESOURCE_ATTRIBUTES");
	char *copy = strdup(list ? list : "");
	struct given given = {.count = 0};

	put_service(resource, source);
	if (copy)
		put_given(resource, &given, copy);
	put_process(resource, &given, source->process);
	put_container(resource, &given, source->cgroup);
	free(copy);
}

/* A file of the process while that runs; the pid could be another's afterwards. Returns the length. */
static size_t read_of(const struct trace_process *process, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t length;

	text[0] = 0;
	if (process->ended || process->seen_pid <= 0 || !proc_is_ours())
		return 0;
	snprintf(path, sizeof(path), "/proc/%lld/%s", (long long)process->seen_pid, name);
	length = proc_read(path, text, size);
	return length > 0 ? (size_t)length : 0;
}

void resource_put(struct push_resource *resource, const struct trace_process *process)
{
	static char environ_of[ENVIRON_BYTES], cgroup[8192];
	struct resource_source source = {.process = process, .environ = environ_of, .cgroup = cgroup};

	source.length = read_of(process, "environ", environ_of, sizeof(environ_of));
	read_of(process, "cgroup", cgroup, sizeof(cgroup));
	resource_put_from(resource, &source);
}
