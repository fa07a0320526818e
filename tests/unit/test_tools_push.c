/*
 * test_tools_push.c - the encoder of OTLP against bytes made by hand after the schema, the labels of series, the counts
 * of a small trace in intervals, the settings, the attributes of a process, the spool, and what post.c knows of
 * libcurl.
 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/memory_estimate.h"
#include "evprof/version.h"
#include "push/counts.h"
#include "push/curl.h"
#include "push/follow.h"
#include "push/interval.h"
#include "push/otlp.h"
#include "push/percent.h"
#include "push/post.h"
#include "push/resource.h"
#include "push/sender.h"
#include "push/series.h"
#include "push/settings.h"
#include "push/spool.h"
#include "slow/slow_calls.h"
#include "trace_fixture.h"
#include "watch/process.h"

#if __has_include(<curl/curl.h>)
#include <curl/curl.h>
#define HAS_HEADER 1
#else
#define HAS_HEADER 0
#endif

/* ---- the library -------------------------------------------------------------------------------------------- */

#if HAS_HEADER
/* Those that ship/put.c uses, too. */
static void expect_numbers_of_put(void)
{
	cr_expect_eq(POST_READDATA, (int)CURLOPT_READDATA);
	cr_expect_eq(POST_SEEKDATA, (int)CURLOPT_SEEKDATA);
	cr_expect_eq(POST_USERNAME, (int)CURLOPT_USERNAME);
	cr_expect_eq(POST_PASSWORD, (int)CURLOPT_PASSWORD);
#if LIBCURL_VERSION_NUM >= 0x074b00
	cr_expect_eq(POST_AWS_SIGV4, (int)CURLOPT_AWS_SIGV4);
#endif
	cr_expect_eq(POST_READFUNCTION, (int)CURLOPT_READFUNCTION);
	cr_expect_eq(POST_SEEKFUNCTION, (int)CURLOPT_SEEKFUNCTION);
	cr_expect_eq(POST_UPLOAD, (int)CURLOPT_UPLOAD);
	cr_expect_eq(POST_FOLLOWLOCATION, (int)CURLOPT_FOLLOWLOCATION);
	cr_expect_eq(POST_SSL_VERIFYPEER, (int)CURLOPT_SSL_VERIFYPEER);
	cr_expect_eq(POST_SSL_VERIFYHOST, (int)CURLOPT_SSL_VERIFYHOST);
	cr_expect_eq(POST_INFILESIZE_LARGE, (int)CURLOPT_INFILESIZE_LARGE);
	cr_expect_eq(POST_READ_ABORT, CURL_READFUNC_ABORT);
	cr_expect_eq(POST_VERSION_FIRST, (int)CURLVERSION_FIRST);
	cr_expect_eq(offsetof(struct post_version, text), offsetof(curl_version_info_data, version));
	cr_expect_eq(offsetof(struct post_version, number), offsetof(curl_version_info_data, version_num));
}
#endif

Test(push, numbers_are_those_of_the_header)
{
	if (!HAS_HEADER)
		cr_skip_test("curl/curl.h is not installed");
#if HAS_HEADER
	cr_expect_eq(POST_GLOBAL, CURL_GLOBAL_DEFAULT);
	expect_numbers_of_put();
	cr_expect_eq(POST_WRITEDATA, (int)CURLOPT_WRITEDATA);
	cr_expect_eq(POST_URL, (int)CURLOPT_URL);
	cr_expect_eq(POST_ERRORBUFFER, (int)CURLOPT_ERRORBUFFER);
	cr_expect_eq(POST_POSTFIELDS, (int)CURLOPT_POSTFIELDS);
	cr_expect_eq(POST_HTTPHEADER, (int)CURLOPT_HTTPHEADER);
	cr_expect_eq(POST_SSLCERT, (int)CURLOPT_SSLCERT);
	cr_expect_eq(POST_HEADERDATA, (int)CURLOPT_HEADERDATA);
	cr_expect_eq(POST_XFERINFODATA, (int)CURLOPT_XFERINFODATA);
	cr_expect_eq(POST_CAINFO, (int)CURLOPT_CAINFO);
	cr_expect_eq(POST_SSLKEY, (int)CURLOPT_SSLKEY);
	cr_expect_eq(POST_WRITEFUNCTION, (int)CURLOPT_WRITEFUNCTION);
	cr_expect_eq(POST_HEADERFUNCTION, (int)CURLOPT_HEADERFUNCTION);
	cr_expect_eq(POST_XFERINFOFUNCTION, (int)CURLOPT_XFERINFOFUNCTION);
	cr_expect_eq(POST_NOPROGRESS, (int)CURLOPT_NOPROGRESS);
	cr_expect_eq(POST_NOSIGNAL, (int)CURLOPT_NOSIGNAL);
	cr_expect_eq(POST_TIMEOUT_MS, (int)CURLOPT_TIMEOUT_MS);
	cr_expect_eq(POST_CONNECTTIMEOUT_MS, (int)CURLOPT_CONNECTTIMEOUT_MS);
	cr_expect_eq(POST_PROTOCOLS, (int)CURLOPT_PROTOCOLS);
	cr_expect_eq(POST_POSTFIELDSIZE_LARGE, (int)CURLOPT_POSTFIELDSIZE_LARGE);
	cr_expect_eq(POST_HTTP_AND_HTTPS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
	cr_expect_eq(POST_RESPONSE_CODE, (int)CURLINFO_RESPONSE_CODE);
	cr_expect_eq(POST_ERROR_BYTES, CURL_ERROR_SIZE);
	cr_expect_eq(POST_FINE, (int)CURLE_OK);
	cr_expect_eq(POST_CANNOT_VERIFY, (int)CURLE_PEER_FAILED_VERIFICATION);
	cr_expect_eq(POST_BAD_CERTIFICATE_FILE, (int)CURLE_SSL_CACERT_BADFILE);
	cr_expect_eq(POST_BAD_CERTIFICATE, (int)CURLE_SSL_CERTPROBLEM);
	cr_expect_eq(sizeof(curl_off_t), sizeof(int64_t));
#endif
}

/* ---- counts and the encoder ---------------------------------------------------------------------------------- */

enum { F = 1, G = 2 };

static struct fixture *fixture;
static uint32_t process, thread;
static struct trace *trace;
static struct push_counts counts;

static void put(unsigned kind, uint32_t argument, uint32_t ticks)
{
	fixture_event(fixture, thread, kind, argument, ticks);
}

/* f() at 1000 calls g() from 1100 to 1400 and from 2000 to 2600, and ends at 3000. */
static void begin(void)
{
	char error[256];

	fixture = fixture_new();
	process = fixture_process(fixture, 10, 1);
	fixture_code(fixture, process, F, "a.py", 1, "f");
	fixture_code(fixture, process, G, "a.py", 7, "g");
	thread = fixture_thread(fixture, process, 10, 1000);
	put(WIRE_CALL, F, 0);
	put(WIRE_CALL, G, 100);
	put(WIRE_RETURN, G, 300);
	put(WIRE_CALL, G, 600);
	put(WIRE_RETURN, G, 600);
	put(WIRE_RETURN, F, 400);
	fixture_end(fixture);
	cr_assert(trace_open_memory(&trace, fixture->bytes, fixture->size, "test", error, sizeof(error)) == 0, "%s",
		  error);
	cr_assert(push_counts_begin(&counts, trace, trace->processes[process], 0) == 0);
}

static void end(void)
{
	push_counts_done(&counts);
	trace_close(trace);
	fixture_free(fixture);
}

/* Of the stack with that number: 1 is f(), 2 is g() in it. */
static void expect_stack(uint32_t stack, uint64_t calls, uint64_t wall_ns)
{
	struct push_values values = {0};
	bool any = stack < counts.stacks.count && push_counts_take(&counts, stack, &values);

	cr_expect_eq(any, calls || wall_ns, "stack %u", stack);
	cr_expect_eq(values.at[PUSH_CALLS], calls, "stack %u: %lu calls", stack, values.at[PUSH_CALLS]);
	cr_expect_eq(values.at[PUSH_WALL_NS], wall_ns, "stack %u: %lu ns", stack, values.at[PUSH_WALL_NS]);
}

/* Calls that go on count in each interval; what they did after their last event counts once. */
Test(push, intervals, .init = begin, .fini = end)
{
	cr_assert(push_counts_next(&counts, 1200, 1200) == 0);
	cr_assert(push_counts_end_interval(&counts, 1200) == 0);
	expect_stack(1, 1, 100);
	expect_stack(2, 1, 100);
	cr_assert(push_counts_next(&counts, 1300, 1300) == 0);
	cr_assert(push_counts_end_interval(&counts, 1300) == 0);
	expect_stack(1, 0, 0);
	expect_stack(2, 0, 100);
	cr_assert(push_counts_next(&counts, 2500, 2500) == 0);
	cr_assert(push_counts_end_interval(&counts, 2500) == 0);
	expect_stack(1, 0, 600);
	expect_stack(2, 1, 600);
	cr_assert(push_counts_next(&counts, UINT64_MAX, UINT64_MAX) == 0);
	cr_assert(push_counts_end_interval(&counts, 9000) == 0);
	expect_stack(1, 0, 400);
	expect_stack(2, 0, 100);
	expect_stack(3, 0, 0);
	cr_assert(push_counts_end_interval(&counts, 9999) == 0);
	expect_stack(1, 0, 0);
	expect_stack(2, 0, 0);
}

/* f() allocates 64 bytes at 1100. alive: and 3 blocks of 200 bytes together whose events are not there. */
static void begin_memory_alone(bool alive)
{
	const uint64_t place = wire_place(F, 0);
	char error[256];

	fixture = fixture_new();
	process = fixture_process_with(fixture, "\"events\":[\"mem\"]");
	fixture_code(fixture, process, F, "a.py", 1, "f");
	thread = fixture_thread(fixture, process, 10, 1000);
	fixture_extended(fixture, thread, WIRE_STACK_CHANGE, 0, &place, 1, 0);
	fixture_memory(fixture, thread, WIRE_MALLOC, WIRE_DOMAIN_OBJ, 4096, 64, 0, 100);
	if (alive)
		fixture_extended(fixture, thread, WIRE_FREED, wire_freed_value(WIRE_DOMAIN_OBJ, false, 70),
				 (const uint64_t[]){3 * ESTIMATE_UNIT, 200, 0}, WIRE_FREED_WORDS, 100);
	fixture_end(fixture);
	cr_assert(trace_open_memory(&trace, fixture->bytes, fixture->size, "test", error, sizeof(error)) == 0, "%s",
		  error);
	cr_assert(push_counts_begin(&counts, trace, trace->processes[process], 0) == 0);
}

/* The stack of an allocation is known, and not how long its functions ran. */
Test(push, memory_alone_has_no_times, .fini = end)
{
	struct push_values values = {0};
	struct watch_process seen;

	begin_memory_alone(false);
	cr_assert(push_counts_next(&counts, UINT64_MAX, UINT64_MAX) == 0);
	cr_assert(push_counts_end_interval(&counts, 9000) == 0);
	cr_assert(counts.stacks.count == 2 && push_counts_take(&counts, 1, &values));
	cr_expect_eq(values.at[PUSH_WALL_NS], 0, "%lu ns", values.at[PUSH_WALL_NS]);
	cr_expect_eq(values.at[PUSH_ALLOCATED_BYTES], 64);
	cr_expect(!trace_process_has_times(trace->processes[process]));
	cr_assert(watch_process_begin(&seen, trace, trace->processes[process], 0) == 0);
	cr_assert(watch_process_next(&seen, 9000) == 0);
	cr_expect_eq(seen.sum.own, 0, "%lu ns", seen.sum.own);
	cr_expect_eq(seen.counts[2 * F].total, 0);
	cr_expect_eq(seen.sum.bytes, 64);
	watch_process_done(&seen);
}

/* What a trace has only as a sum counts, too. */
Test(push, what_was_freed_in_a_trace_of_what_is_alive, .fini = end)
{
	struct push_values values = {0};
	struct watch_process seen;

	begin_memory_alone(true);
	cr_assert(push_counts_next(&counts, UINT64_MAX, UINT64_MAX) == 0);
	cr_assert(push_counts_end_interval(&counts, 9000) == 0);
	cr_assert(push_counts_take(&counts, 1, &values));
	cr_expect_eq(values.at[PUSH_ALLOCATIONS], 4, "%lu", values.at[PUSH_ALLOCATIONS]);
	cr_expect_eq(values.at[PUSH_ALLOCATED_BYTES], 264, "%lu", values.at[PUSH_ALLOCATED_BYTES]);
	cr_expect_eq(values.at[PUSH_LIVE_BYTES], 64);
	cr_assert(watch_process_begin(&seen, trace, trace->processes[process], 0) == 0);
	cr_assert(watch_process_next(&seen, 9000) == 0);
	cr_expect_eq(seen.sum.bytes, 264, "%lu", seen.sum.bytes);
	watch_process_done(&seen);
}

/* ---- numbers of threads that are used again -------------------------------------------------------------------- */

static struct push_counts pushed[2]; /* by process */
static struct watch_process watched[2];
static unsigned slow_found[2];

static void take_slow(void *owner, const struct slow_call *call)
{
	(void)owner;
	slow_found[call->process->number]++;
}

/* Thread 0 is one of that process with that tid from now on. */
static void use_again(uint32_t owner, uint32_t tid, uint64_t start_ticks)
{
	fixture_meta(fixture, owner, "{\"type\":\"thread\",\"process\":%u,\"thread\":0,\"tid\":%u,\"start_ticks\":%lu}",
		     owner, tid, start_ticks);
	fixture->threads[0].process = owner;
	fixture->threads[0].first_ticks = fixture->threads[0].now = start_ticks;
}

static void put_call(void)
{
	put(WIRE_CALL, F, 10);
	put(WIRE_RETURN, F, 2000);
	fixture_flush(fixture, 0);
}

static void put_end(void)
{
	put(WIRE_THREAD_END, 0, 10);
	fixture_flush(fixture, 0);
	fixture_meta(fixture, process, "{\"type\":\"thread_end\",\"thread\":0,\"events\":{},\"lost\":{}}");
}

/* Writes what the fixture has now, and expects that each process has that number of new calls. */
static void look(int fd, struct slow_calls *slow, uint64_t first, uint64_t second)
{
	const uint64_t wanted[2] = {first, second};

	cr_assert(pwrite(fd, fixture->bytes, fixture->size, 0) == (ssize_t)fixture->size);
	cr_assert(trace_follow(trace) == 0);
	slow_found[0] = slow_found[1] = 0;
	cr_assert(slow_calls_next(slow) == 0);
	for (unsigned i = 0; i < 2; i++) {
		struct push_values values = {0};

		cr_assert(push_counts_next(&pushed[i], UINT64_MAX, UINT64_MAX) == 0);
		push_counts_expect_more(&pushed[i]);
		cr_assert(push_counts_end_interval(&pushed[i], UINT64_MAX) == 0);
		cr_expect_eq(pushed[i].stacks.count > 1 && push_counts_take(&pushed[i], 1, &values), wanted[i] > 0);
		cr_expect_eq(values.at[PUSH_CALLS], wanted[i], "process %u: %lu pushed", i, values.at[PUSH_CALLS]);
		cr_assert(watch_process_next(&watched[i], UINT64_MAX) == 0);
		cr_expect_eq(watched[i].sum.calls, wanted[i], "process %u: %lu seen", i, watched[i].sum.calls);
		cr_expect_eq(slow_found[i], wanted[i], "process %u: %u slow", i, slow_found[i]);
	}
}

/* The text of an attribute; "": it has none. */
static const char *text_at(const struct push_resource *resource, const char *key)
{
	const char *found = "";

	for (size_t i = 0; i < resource->count; i++)
		if (strcmp(resource->at[i].key, key) == 0) {
			cr_expect_str_empty(found, "%s is there once", key);
			found = resource->at[i].value ? resource->at[i].value : "";
		}
	return found;
}

static struct push_source *open_found(int fd, const char *name, int expected)
{
	struct push_source *source = NULL;

	cr_assert(pwrite(fd, fixture->bytes, fixture->size, 0) == (ssize_t)fixture->size);
	cr_expect_eq(push_source_open(&source, name, 500, INT64_MAX), expected);
	return source;
}

/* A trace that was found in the folder is not taken for an old one before it has its first event. */
Test(push, a_trace_without_an_event_has_no_age)
{
	char name[] = "/tmp/evprof-push-XXXXXX";
	struct push_source *source;
	int fd = mkstemp(name);

	cr_assert(fd >= 0);
	fixture = fixture_new();
	fixture_process(fixture, 10, 1);
	thread = fixture_thread(fixture, 0, 10, 1000);
	cr_expect_null(open_found(fd, name, -EINVAL));
	put(WIRE_CALL, F, 10);
	fixture_flush(fixture, 0);
	source = open_found(fd, name, 0);
	cr_assert(source);
	push_source_free(source);
	close(fd);
	unlink(name);
	fixture_free(fixture);
}

#define BUDGET_LINE                                                                                                    \
	"evprof: recorded within a budget of 2.5%: short calls that were not recorded are missing here, their time "   \
	"is in their callers; evprof report has estimates\n"

/*
 * What recording left out within a budget is not in the profiles: a line says so, once for a trace that is pushed as a
 * whole and once for one that is followed, and each request.
 */
Test(push, budget, .init = cr_redirect_stderr)
{
	char name[] = "/tmp/evprof-push-XXXXXX", error[256];
	struct push_source *source;
	struct push_target target = {0};
	const volatile bool stop = false;
	int fd = mkstemp(name);

	cr_assert(fd >= 0);
	fixture = fixture_new();
	for (unsigned i = 0; i < 2; i++) {
		fixture_meta(
		    fixture, i,
		    "{\"type\":\"process\",\"process\":%u,\"pid\":%u,\"ppid\":1,\"start\":\"exec\",\"clock_kind\":0,"
		    "\"clock_shift\":0,\"start_ticks\":0,\"events\":[\"call\"],\"budget\":2.5}",
		    i, 10 + i);
		fixture->processes++;
	}
	cr_assert(trace_open_memory(&trace, fixture->bytes, fixture->size, "test", error, sizeof(error)) == 0);
	cr_assert(push_whole(trace, &target, 1000000000, &stop) == 0);
	trace_close(trace);
	thread = fixture_thread(fixture, 0, 10, 1000);
	put(WIRE_CALL, F, 10);
	fixture_flush(fixture, 0);
	source = open_found(fd, name, 0);
	cr_assert(source && source->process_count == 2);
	for (size_t i = 0; i < source->process_count; i++)
		cr_expect_str_eq(text_at(&source->processes[i]->resource, "evprof.budget"), "2.5%");
	cr_assert(push_source_count(source, &target, 2000) == 0);
	push_source_free(source);
	close(fd);
	unlink(name);
	fixture_free(fixture);
	cr_assert_stderr_eq_str(BUDGET_LINE BUDGET_LINE);
}

/* Also where a thread's end and the next one's beginning come together, and where a thread has no end. */
Test(push, numbers_of_threads_are_used_again)
{
	char name[] = "/tmp/evprof-push-XXXXXX", error[256];
	struct triggers triggers;
	struct slow_calls slow = {.triggers = &triggers, .found = take_slow};
	int fd = mkstemp(name);

	cr_assert_null(setting_triggers("*:f>1us", &triggers));
	fixture = fixture_new();
	for (unsigned i = 0; i < 2; i++)
		fixture_code(fixture, fixture_process(fixture, 10 + (int)i, 1), F, "a.py", 1, "f");
	thread = fixture_thread(fixture, 0, 10, 1000);
	fixture_define(fixture, 0, WIRE_DEFINE_THREAD_NAME, 10, 0, "", "first", "", "");
	cr_assert(fd >= 0 && pwrite(fd, fixture->bytes, fixture->size, 0) == (ssize_t)fixture->size);
	cr_assert(trace_open(&trace, name, error, sizeof(error)) == 0, "%s", error);
	slow.trace = trace;
	cr_assert(slow_calls_begin(&slow) == 0);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert(push_counts_begin(&pushed[i], trace, trace->processes[i], 0) == 0);
		cr_assert(watch_process_begin(&watched[i], trace, trace->processes[i], 0) == 0);
	}
	put_call();
	look(fd, &slow, 1, 0);
	put_call();
	put_end();
	use_again(0, 11, 10000);
	put_call();
	put_call();
	look(fd, &slow, 3, 0);
	cr_expect(trace->threads[0]->tid == 11 && !trace->threads[0]->ended && !trace->threads[0]->name);
	put_call();
	use_again(1, 12, 20000);
	put_call();
	look(fd, &slow, 1, 1);
	put_end();
	look(fd, &slow, 0, 0);
	use_again(0, 10, 30000);
	put_call();
	look(fd, &slow, 1, 0);
	slow_calls_done(&slow);
	for (unsigned i = 0; i < 2; i++) {
		push_counts_done(&pushed[i]);
		watch_process_done(&watched[i]);
	}
	trace_close(trace);
	fixture_free(fixture);
	close(fd);
	unlink(name);
}

/* The request of request_is_that_of_the_schema. A table of the dictionary begins with an element of zeros. */
/* clang-format off */
static const char request_begin[] =
    "\x0a\x57"					/* resource_profiles */
    "\x0a\x10\x0a\x0e\x0a\x01k"			/* resource, attributes, key */
    "\x12\x09\x0a\x07v\xef\xbf\xbd\xef\xbf\xbd"	/* value: v and two invalid bytes */
    "\x12\x43"					/* scope_profiles */
    "\x0a\x0d\x0a\x06" "evprof\x12\x03" EVPROF_VERSION
    "\x12\x32"					/* profile */
    "\x0a\x04\x08\x02\x10\x03"			/* sample_type: strings 2 and 3 */
    "\x12\x05\x08\x01\x22\x01\x01"		/* sample: stack 1, values: 1 */
    "\x12\x06\x08\x02\x22\x02\xac\x02"		/* sample: stack 2, values: 300 */
    "\x19\x08\x07\x06\x05\x04\x03\x02\x01"	/* time_unix_nano */
    "\x20\x05"					/* duration_nano */
    "\x3a\x10\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\x01" /* profile_id */
    "\x12";					/* dictionary */
static const char request_tables[] =
    "\x0a\x00"					/* mapping_table */
    "\x12\x00"					/* location_table: line, attribute */
    "\x12\x09\x1a\x04\x08\x01\x10\x01\x22\x01\x01"
    "\x12\x09\x1a\x04\x08\x02\x10\x07\x22\x01\x01"
    "\x1a\x00"					/* function_table: name, file, line */
    "\x1a\x06\x08\x12\x18\x13\x20\x01"
    "\x1a\x06\x08\x14\x18\x15\x20\x07"
    "\x22\x00"					/* link_table */
    "\x2a\x00\x2a\x12profile.frame.type\x2a\x05" "calls\x2a\x05" "count";
static const char request_end[] = "\x2a\x01g\x2a\x04" "a.py"
    "\x32\x00\x32\x0d\x08\x01\x12\x09\x0a\x07" "cpython\x32\x0c\x08\x01\x12\x08\x0a\x06native"
    "\x3a\x00\x3a\x03\x0a\x01\x01"		/* stack_table: innermost first */
    "\x3a\x04\x0a\x02\x02\x01";
/* clang-format on */

Test(push, request_is_that_of_the_schema, .init = begin, .fini = end)
{
	struct push_resource resource = {0};
	struct protobuf request = {0};
	struct otlp otlp = {0};
	struct push_interval interval = {.begin_ns = UINT64_C(0x0102030405060708),
					 .length_ns = 5,
					 .known = {[PUSH_CALLS] = true},
					 .resource = &resource,
					 .id = {1, 2}};

	cr_assert(push_counts_next(&counts, UINT64_MAX, UINT64_MAX) == 0);
	push_resource_text(&resource, "k", "v\xff\xfe");
	otlp_begin(&otlp, &counts);
	cr_assert(otlp_add(&otlp, 1, &(struct push_values){.at = {[PUSH_CALLS] = 1}}) == 0);
	cr_assert(otlp_add(&otlp, 2, &(struct push_values){.at = {[PUSH_CALLS] = 300}}) == 0);
	cr_assert(otlp_finish(&otlp, &interval, &request) == 0);
	cr_assert(request.used > sizeof(request_begin) + sizeof(request_tables) + sizeof(request_end));
	cr_expect_arr_eq(request.bytes, request_begin, sizeof(request_begin) - 1);
	/* The length of the dictionary has two bytes. */
	cr_expect_arr_eq(request.bytes + sizeof(request_begin) + 1, request_tables, sizeof(request_tables) - 1);
	cr_expect_arr_eq(request.bytes + request.used - sizeof(request_end) + 1, request_end, sizeof(request_end) - 1);
	protobuf_done(&request);
	push_resource_done(&resource);
	otlp_done(&otlp);
}

/* ---- series of profiles in pprof's form ---------------------------------------------------------------------- */

/* The request for one stack, with those attributes and every weight known but those of memory. */
static json_t *series_request(const struct push_resource *resource, bool is_parca)
{
	struct series series = {0};
	struct protobuf request = {0};
	struct push_interval interval = {.begin_ns = 7,
					 .length_ns = 5,
					 .known = {[PUSH_CALLS] = true, [PUSH_WALL_NS] = true},
					 .resource = resource,
					 .id = {UINT64_C(0x0102030405060708), 2}};
	json_t *parsed;

	cr_assert(push_counts_next(&counts, UINT64_MAX, UINT64_MAX) == 0);
	series_begin(&series, &counts);
	cr_assert(series_add(&series, 1, &(struct push_values){.at = {[PUSH_CALLS] = 1, [PUSH_ALLOCATIONS] = 1}}) == 0);
	cr_expect(!series_is_full(&series));
	cr_assert(series_finish(&series, &interval, is_parca, &request) == 0);
	parsed = json_loadb((char *)request.bytes, request.used, 0, NULL);
	cr_assert(parsed, "%.*s", (int)request.used, request.bytes);
	protobuf_done(&request);
	series_done(&series);
	return parsed;
}

static const char *label_of(const json_t *labels, const char *name)
{
	const json_t *label;
	size_t i;

	json_array_foreach(labels, i, label)
	{
		if (strcmp(json_string_value(json_object_get(label, "name")), name) == 0)
			return json_string_value(json_object_get(label, "value"));
	}
	return NULL;
}

/* A series has what is known and not zero; a label has a name of letters, digits and "_", once. */
Test(push, series_have_labels, .init = begin, .fini = end)
{
	struct push_resource resource = {0};
	json_t *request, *one, *labels;
	char key[24];

	push_resource_text(&resource, "service.name", "v\"\xff");
	push_resource_text(&resource, "service_name", "second");
	push_resource_text(&resource, "__1.a-\xc3\xa4", "reserved");
	push_resource_text(&resource, "...", "no name");
	push_resource_number(&resource, "process.pid", -4);
	for (int i = 0; i < SERIES_LABELS_MAX; i++) {
		snprintf(key, sizeof(key), "more.%d", i);
		push_resource_text(&resource, key, "x");
	}
	request = series_request(&resource, false);
	cr_expect_eq(json_array_size(json_object_get(request, "series")), 1, "time is zero, allocations are not known");
	one = json_array_get(json_object_get(request, "series"), 0);
	labels = json_object_get(one, "labels");
	cr_expect_eq(json_array_size(labels), SERIES_LABELS_MAX);
	cr_expect_str_eq(label_of(labels, "__name__"), "calls");
	cr_expect_str_eq(label_of(labels, "__delta__"), "false");
	cr_expect_str_eq(label_of(labels, "service_name"), "v\"\xef\xbf\xbd");
	cr_expect_str_eq(label_of(labels, "a___"), "reserved");
	cr_expect_str_eq(label_of(labels, "process_pid"), "-4");
	one = json_array_get(json_object_get(one, "samples"), 0);
	cr_expect_str_eq(json_string_value(json_object_get(one, "ID")), "08070605-0403-0201-0200-000000000001");
	json_decref(request);
	request = series_request(&resource, true);
	cr_expect(json_is_true(json_object_get(request, "normalized")));
	labels = json_array_get(json_object_get(request, "series"), 0);
	labels = json_object_get(json_object_get(labels, "labels"), "labels");
	cr_expect_str_eq(label_of(labels, "process_pid"), "-4");
	cr_expect(!label_of(labels, "__delta__"), "that is Pyroscope's");
	json_decref(request);
	push_resource_done(&resource);
}

/* ---- lists and settings -------------------------------------------------------------------------------------- */

Test(push, pairs)
{
	char text[] = " a = b%20c ,junk,=x,d=%zz%4,e=%00f,g=", *list = text, *key, *value;
	static const char *const wanted[][2] = {{"a", "b c"}, {"d", "%zz%4"}, {"e", "%00f"}, {"g", ""}};

	for (unsigned i = 0; i < 4; i++) {
		cr_assert(percent_next(&list, &key, &value));
		cr_expect_str_eq(key, wanted[i][0]);
		cr_expect_str_eq(value, wanted[i][1]);
	}
	cr_expect(!percent_next(&list, &key, &value));
}

static void set_variables(const char *const variables[][2])
{
	static const char *const all[] = {"ENDPOINT", "HEADERS", "TIMEOUT", "COMPRESSION", "PROTOCOL", "CERTIFICATE"};
	char name[64];

	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) {
		snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s", all[i]);
		unsetenv(name);
		snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_PROFILES_%s", all[i]);
		unsetenv(name);
	}
	for (unsigned i = 0; variables[i][0]; i++) {
		snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s", variables[i][0]);
		setenv(name, variables[i][1], 1);
	}
}

static void expect_url(const char *const variables[][2], const char *endpoint, const char *url)
{
	struct push_settings settings;
	char why[512] = "";
	bool fine;

	set_variables(variables);
	fine = push_settings_read(&settings, endpoint, why, sizeof(why));
	cr_expect_eq(fine, url != NULL, "%s", why);
	if (fine && url)
		cr_expect_str_eq(settings.url, url);
	cr_expect_eq(fine, !why[0], "a reason only where it fails");
	push_settings_done(&settings);
}

#define VARIABLES(...)                                                                                                 \
	(const char *const[][2])                                                                                       \
	{                                                                                                              \
		__VA_ARGS__,                                                                                           \
		{                                                                                                      \
			NULL, NULL                                                                                     \
		}                                                                                                      \
	}
#define NO_VARIABLES VARIABLES({"TIMEOUT", ""})

Test(push, endpoints)
{
	static const char path[] = "http://h:1/v1development/profiles";

	expect_url(NO_VARIABLES, NULL, "http://localhost:4318/v1development/profiles");
	expect_url(VARIABLES({"ENDPOINT", "http://h:1"}), NULL, path);
	expect_url(VARIABLES({"ENDPOINT", "http://h:1/"}), NULL, path);
	expect_url(VARIABLES({"ENDPOINT", "http://x"}), "http://h:1", path);
	expect_url(VARIABLES({"ENDPOINT", "http://x"}, {"PROFILES_ENDPOINT", "https://h/p"}), NULL, "https://h/p");
	expect_url(VARIABLES({"PROFILES_ENDPOINT", "https://h/p"}), "http://h:1", path);
	expect_url(NO_VARIABLES, "pyroscope+http://h:1/prefix/", "http://h:1/prefix/push.v1.PusherService/Push");
	expect_url(VARIABLES({"PROFILES_ENDPOINT", "https://h/p"}), "parca+https://h", "https://h/profiles/writeraw");
	expect_url(VARIABLES({"ENDPOINT", "parca+http://h"}), NULL, NULL);
	expect_url(NO_VARIABLES, "otlp+http://h", NULL);
	expect_url(NO_VARIABLES, "pyroscope+", NULL);
	expect_url(VARIABLES({"ENDPOINT", "localhost:4318"}), NULL, NULL);
	expect_url(VARIABLES({"ENDPOINT", "file:///etc/passwd"}), NULL, NULL);
	expect_url(VARIABLES({"ENDPOINT", "http://"}), NULL, NULL);
	expect_url(VARIABLES({"TIMEOUT", "0"}), NULL, NULL);
	expect_url(VARIABLES({"TIMEOUT", "10s"}), NULL, NULL);
	expect_url(VARIABLES({"COMPRESSION", "zstd"}), NULL, NULL);
	expect_url(VARIABLES({"PROTOCOL", "grpc"}), NULL, NULL);
	expect_url(VARIABLES({"PROTOCOL", "grpc"}, {"PROFILES_PROTOCOL", "http/protobuf"}, {"ENDPOINT", "http://h:1"}),
		   NULL, path);
	expect_url(VARIABLES({"HEADERS", "a=b%0d%0aX: y"}), NULL, NULL);
}

Test(push, settings)
{
	struct push_settings settings;
	char why[512];

	set_variables(VARIABLES({"HEADERS", "api-key=a%2Cb,x=y"}, {"TIMEOUT", "250"}, {"PROFILES_TIMEOUT", "500"},
				{"COMPRESSION", "gzip"}, {"CERTIFICATE", "/c.pem"}));
	cr_assert(push_settings_read(&settings, NULL, why, sizeof(why)), "%s", why);
	cr_expect_eq(settings.header_count, 2);
	cr_expect_str_eq(settings.headers[0], "api-key: a,b");
	cr_expect_str_eq(settings.headers[1], "x: y");
	cr_expect_eq(settings.timeout_ms, 500);
	cr_expect(settings.gzip);
	cr_expect_str_eq(settings.certificate, "/c.pem");
	push_settings_done(&settings);
}

/* ---- a process ----------------------------------------------------------------------------------------------- */

static struct push_resource attributes(const char *environ_of, size_t length, const char *cgroup)
{
	struct push_resource resource = {0};
	struct resource_source source = {
	    .process = trace->processes[process], .environ = environ_of, .cgroup = cgroup, .length = length};

	resource_put_from(&resource, &source);
	cr_expect_eq(resource.error, 0);
	return resource;
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "kubepods-burstable-pod01234567_89ab_cdef_0123_456789abcdef.slice"

Test(push, attributes, .init = begin, .fini = end)
{
	static const char both[] =
	    "A=b\0OTEL_RESOURCE_ATTRIBUTES=service.name=no,deployment.environment=a%20b,host.name=h"
	    "\0OTEL_SERVICE_NAME=shop\0HOME=/",
			  one[] = "OTEL_RESOURCE_ATTRIBUTES=x=y,service.name=of the list,x=z\0OTEL_SERVICE_NAME=",
			  cut[] = "OTEL_SERVICE_NAMEX=no\0OTEL_RESOURCE_ATTRIBUTES";
	struct push_resource resource = attributes(both, sizeof(both), "0::/system.slice/docker-" ID ".scope\n");

	cr_expect_str_eq(text_at(&resource, "service.name"), "shop");
	cr_expect_str_eq(text_at(&resource, "deployment.environment"), "a b");
	cr_expect_str_eq(text_at(&resource, "host.name"), "h");
	cr_expect_str_eq(text_at(&resource, "container.id"), ID);
	push_resource_done(&resource);
	resource = attributes(one, sizeof(one), "0::/" POD "/cri-containerd-" ID ".scope\n");
	cr_expect_str_eq(text_at(&resource, "service.name"), "of the list");
	cr_expect_str_eq(text_at(&resource, "x"), "y");
	cr_expect_str_eq(text_at(&resource, "k8s.pod.uid"), "01234567-89ab-cdef-0123-456789abcdef");
	push_resource_done(&resource);
	resource = attributes(cut, sizeof(cut), "0::/user.slice/" ID "0\n");
	cr_expect(strstr(text_at(&resource, "service.name"), "unknown_service:"));
	cr_expect_str_empty(text_at(&resource, "container.id"), "65 digits are no id");
	push_resource_done(&resource);
}

/* ---- answers ------------------------------------------------------------------------------------------------- */

Test(push, retry_after)
{
	cr_expect_eq(post_retry_after(" 3", 0), 3000);
	cr_expect_eq(post_retry_after("0\r\n", 0), 0);
	cr_expect_eq(post_retry_after("99999999999999999999", 0), 86400000);
	cr_expect_eq(post_retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 50), 10000);
	cr_expect_eq(post_retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 70), 0);
	cr_expect_eq(post_retry_after("soon", 0), -1);
	cr_expect_eq(post_retry_after("", 0), -1);
}

static uint64_t rejected(const char *bytes, size_t length)
{
	return sender_rejected((const uint8_t *)bytes, length);
}

Test(push, partial_success)
{
	cr_expect_eq(rejected("", 0), 0);
	cr_expect_eq(rejected("\x0a\x03\x08\xac\x02", 5), 300);
	cr_expect_eq(rejected("\x0a\x07\x12\x03yes\x08\x05", 9), 5);
	cr_expect_eq(rejected("\x10\x01\x0a\x02\x08\x05", 6), 5, "other fields are passed over");
	cr_expect_eq(rejected("\x0a\x7f\x08\x05", 4), 0, "it is cut");
	cr_expect_eq(rejected("\x0a\x04\x12\x7f\x08\x05", 6), 0);
	cr_expect_eq(rejected("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11), 0);
}

/* ---- the spool ----------------------------------------------------------------------------------------------- */

static void expect_first(struct push_spool *spool, const char *wanted)
{
	uint8_t *body = NULL;
	size_t bytes = 0;

	cr_assert_eq(push_spool_first(spool, &body, &bytes), wanted != NULL);
	if (wanted)
		cr_expect(bytes == strlen(wanted) && memcmp(body, wanted, bytes) == 0, "%.*s", (int)bytes, body);
	free(body);
}

static void open_spool(struct push_spool *spool, const char *folder, size_t limit)
{
	char why[256] = "";

	cr_assert(push_spool_open(spool, folder, "otlp", limit, why, sizeof(why)), "%s", why);
}

static void use_spool(const char *folder)
{
	struct push_spool spool;

	open_spool(&spool, folder, 10);
	expect_first(&spool, NULL);
	cr_expect_eq(push_spool_add(&spool, "aaaa", 4), 0);
	cr_expect_eq(push_spool_add(&spool, "bbbb", 4), 0);
	expect_first(&spool, "aaaa"); /* is being sent, so it stays */
	cr_expect_eq(push_spool_add(&spool, "cccc", 4), 0);
	cr_expect_eq(spool.dropped, 1);
	push_spool_remove(&spool, true);
	expect_first(&spool, "cccc");
	push_spool_keep(&spool);
	cr_expect(push_spool_add(&spool, "too large...", 12) < 0);
	cr_expect_eq(spool.dropped, 2);
	cr_expect_eq(spool.dropped_bytes, 16);
	cr_expect_eq(push_spool_add(&spool, "dddd", 4), 0);
	expect_first(&spool, "cccc");
	push_spool_remove(&spool, false);
	cr_expect_eq(spool.dropped, 3);
	cr_expect_eq(spool.bytes, 4);
	push_spool_close(&spool);
	cr_expect_eq(spool.dropped, folder ? 3 : 4, "what was in memory is lost");
}

Test(push, spool_in_memory)
{
	use_spool(NULL);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	return remove(path);
}

Test(push, spool_in_files)
{
	char folder[] = "/tmp/evprof-push-XXXXXX", path[64], why[256];
	struct push_spool spool, second;
	FILE *file;

	cr_assert(mkdtemp(folder));
	use_spool(folder);
	snprintf(path, sizeof(path), "%s/junk.otlp", folder);
	file = fopen(path, "w");
	cr_assert(file && fclose(file) == 0);
	open_spool(&spool, folder, 10);
	cr_expect(!push_spool_open(&second, folder, "otlp", 10, why, sizeof(why)), "one at a time");
	cr_expect(strstr(why, "another evprof push uses it"), "%s", why);
	cr_expect_eq(push_spool_add(&spool, "eeee", 4), 0);
	expect_first(&spool, "dddd");
	push_spool_keep(&spool);
	push_spool_close(&spool);
	open_spool(&spool, folder, 5); /* now it is smaller */
	cr_expect_eq(spool.dropped, 1);
	expect_first(&spool, "eeee");
	push_spool_remove(&spool, true);
	expect_first(&spool, NULL);
	push_spool_close(&spool);
	cr_expect_eq(access(path, F_OK), 0, "a file that is not ours stays");
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
