/*
 * test_collector_parts.c - the small parts of the collector: messages, output paths, options, the trace writer.
 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/base/clock.h"
#include "collector/base/control.h"
#include "collector/ring/layout.h"
#include "collector/server/options.h"
#include "collector/session/process.h"
#include "collector/trace/output.h"
#include "collector/server/listen.h"
#include "collector/server/server.h"
#include "tools/shared/file/trace_writer.h"
#include "evprof/ring.h"
#include "fake_target.h"
#include "tools/trace/chunk.h"
#include "tools/trace/reader.h"

static char folder[64];

static void set_up(void)
{
	signal(SIGXFSZ, SIG_IGN);
	strcpy(folder, "/tmp/evprof-test-XXXXXX");
	cr_assert(mkdtemp(folder));
}

static void tear_down(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(collector_parts, .init = set_up, .fini = tear_down, .timeout = 60);

static int parse(const char *text, char *reason, size_t reason_bytes)
{
	struct control_message message;
	int error = control_parse(text, strlen(text), &message, reason, reason_bytes);

	if (!error)
		control_message_done(&message);
	return error;
}

Test(collector_parts, a_join_is_parsed)
{
	const char *text = fake_join_text(&(struct fake_join){.start = "fork", .pid = 12, .ppid = 3});
	struct control_message message;
	char reason[256] = "";

	cr_assert_eq(control_parse(text, strlen(text), &message, reason, sizeof(reason)), 0, "%s", reason);
	cr_assert_eq(message.type, CONTROL_JOIN);
	cr_assert_eq(message.start, WIRE_START_FORK);
	cr_assert_eq(message.pid, 12);
	cr_assert_eq(message.ppid, 3);
	cr_assert_eq(message.session[0], 0x00);
	cr_assert_eq(message.session[15], 0xff);
	cr_assert(message.root);
	cr_assert_str_eq(message.host, "box");
	control_message_done(&message);
}

/* Every member is needed, and none may be of another type. */
Test(collector_parts, every_member_is_checked)
{
	const char *good = fake_join_text(&(struct fake_join){.pid = 12});
	json_t *object = json_loads(good, 0, NULL);
	const char *name;
	json_t *value;

	json_object_foreach(object, name, value)
	{
		for (int wrong = 0; wrong < 2; wrong++) {
			json_t *copy = json_deep_copy(object);
			char reason[256] = "";
			char *text;

			if (wrong)
				json_object_set_new(copy, name, json_pack("[[i]]", 1));
			else
				json_object_del(copy, name);
			text = json_dumps(copy, 0);
			cr_assert_eq(parse(text, reason, sizeof(reason)), -EINVAL, "%s", name);
			cr_assert(reason[0]);
			free(text);
			json_decref(copy);
		}
	}
	json_decref(object);
}

Test(collector_parts, values_out_of_range_are_refused)
{
	const char *const changes[][2] = {{"pid", "0"},
					  {"pid", "-1"},
					  {"pid", "99999999999"},
					  {"session", "\"0011\""},
					  {"session", "\"0011223344556677889900aabbccddeeffGG\""},
					  {"session", "\"0011223344556677889900aabbccddEE\""},
					  {"output", "\"relative\""},
					  {"output_bytes", "7"},
					  {"output_bytes", "\"\""},
					  {"output_bytes", "\"2f6\""},
					  {"output_bytes", "\"2fG1\""},
					  {"output_bytes", "\"2f0061\""},
					  {"output_bytes", "\"612f\""},
					  {"start", "\"begin\""},
					  {"evprof", "2"}};

	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		json_t *object = json_loads(fake_join_text(&(struct fake_join){.pid = 12}), 0, NULL);
		char reason[256] = "";
		char *text;

		json_object_set_new(object, changes[i][0], json_loads(changes[i][1], JSON_DECODE_ANY, NULL));
		text = json_dumps(object, 0);
		cr_assert_eq(parse(text, reason, sizeof(reason)),
			     strcmp(changes[i][0], "evprof") ? -EINVAL : -EPROTONOSUPPORT, "%s %s", changes[i][0],
			     changes[i][1]);
		free(text);
		json_decref(object);
	}
}

Test(collector_parts, a_path_that_is_no_utf8)
{
	json_t *object = json_loads(fake_join_text(&(struct fake_join){.pid = 12}), 0, NULL);
	struct control_message message;
	char reason[256] = "", *text;

	json_object_set_new(object, "output_bytes", json_string("2fff612ffe"));
	text = json_dumps(object, 0);
	cr_assert_eq(control_parse(text, strlen(text), &message, reason, sizeof(reason)), 0, "%s", reason);
	cr_assert_str_eq(message.output, "/\xff"
					 "a/\xfe");
	control_message_done(&message);
	free(text);
	json_decref(object);
}

Test(collector_parts, templates_are_expanded)
{
	const struct output_values values = {.program = "my app/../x", .host = ".box", .pid = 42};
	const struct output_values nameless = {.program = "", .host = "", .pid = 1};
	char path[256];
	char small[8];

	cr_assert_eq(output_expand("/a b:c/%n-%p@%h%%%q%", &values, path, sizeof(path)), 0);
	cr_assert_str_eq(path, "/a b:c/my_app_.._x-42@_box%%q%");
	cr_assert_eq(output_expand("%n%h", &nameless, path, sizeof(path)), 0);
	cr_assert_str_eq(path, "pythonhost");
	cr_assert_eq(output_expand("%t", &values, path, sizeof(path)), 0);
	cr_assert_eq(strlen(path), strlen("20260101-000000"));
	cr_assert_eq(output_expand("12345678", &values, small, sizeof(small)), -ENAMETOOLONG);
	cr_assert_eq(output_expand("1234567", &values, small, sizeof(small)), 0);
}

Test(collector_parts, a_template_of_the_daemon_stays_in_its_folder)
{
	cr_assert(output_is_below("evprof-%n-%p.evp"));
	cr_assert(output_is_below("a/b..c/%n"));
	cr_assert_not(output_is_below("/etc/passwd"));
	cr_assert_not(output_is_below("../x"));
	cr_assert_not(output_is_below("a/../../x"));
	cr_assert_not(output_is_below("a/.."));
	cr_assert_not(output_is_below("a/"));
	cr_assert_not(output_is_below(""));
}

Test(collector_parts, existing_files_of_a_daemon_are_kept)
{
	char path[256];
	char expected[256];

	for (int i = 1; i <= 3; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/x.evp", folder);
		fd = output_create(path, sizeof(path), OUTPUT_ADD_SUFFIX);
		cr_assert(fd >= 0);
		close(fd);
		if (i == 1)
			snprintf(expected, sizeof(expected), "%s/x.evp", folder);
		else
			snprintf(expected, sizeof(expected), "%s/x-%d.evp", folder, i);
		cr_assert_str_eq(path, expected);
	}
}

/* Numbers have no end, and the next one is found without trying all before. */
Test(collector_parts, ten_thousand_equal_names, .timeout = 60)
{
	char expected[256], path[256];

	for (int i = 1; i <= 12000; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/x.evp", folder);
		snprintf(expected, sizeof(expected), i == 1 ? "%s/x.evp" : "%s/x-%d.evp", folder, i);
		fd = i % 100 && i != 12000 ? open(expected, O_WRONLY | O_CREAT | O_EXCL, 0600)
					   : output_create(path, sizeof(path), OUTPUT_ADD_SUFFIX);
		cr_assert(fd >= 0, "number %d: %s", i, strerror(fd == -1 ? errno : -fd));
		close(fd);
		cr_assert(i % 100 || !strcmp(path, expected), "%s instead of %s", path, expected);
	}
}

/* Pages of hugetlbfs can be missing when they are touched, which would kill the collector. */
Test(collector_parts, only_ordinary_memory_is_taken)
{
	int fds[2] = {memfd_create("ordinary", MFD_ALLOW_SEALING),
		      memfd_create("huge", MFD_ALLOW_SEALING | MFD_HUGETLB)};
	uint64_t size;

	if (fds[1] < 0)
		cr_skip("this kernel has no huge pages");
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(ftruncate(fds[i], 2 << 20), 0);
		cr_assert_eq(fcntl(fds[i], F_ADD_SEALS, F_SEAL_SHRINK), 0);
		cr_assert_eq(layout_check_memfd(fds[i], &size) == NULL, i == 0);
		close(fds[i]);
	}
}

Test(collector_parts, a_device_or_folder_is_not_replaced)
{
	char path[256] = "/dev/null";

	cr_assert_eq(output_create(path, sizeof(path), OUTPUT_REPLACE), -EEXIST);
	snprintf(path, sizeof(path), "%s", folder);
	cr_assert_eq(output_create(path, sizeof(path), OUTPUT_REPLACE), -EEXIST);
}

Test(collector_parts, calibration_is_of_one_moment)
{
	struct trace_clock first;
	struct trace_clock second;

	clock_calibrate(RING_CLOCK_MONOTONIC, 3, &first);
	clock_calibrate(RING_CLOCK_MONOTONIC, 3, &second);
	cr_assert_eq(first.ticks, first.monotonic_ns >> 3);
	cr_assert(second.monotonic_ns > first.monotonic_ns);
	cr_assert(clock_realtime_ns() - second.realtime_ns < UINT64_C(1000000000));
}

static int new_file(char path[256])
{
	snprintf(path, 256, "%s/w.evp", folder);
	return output_create(path, 256, OUTPUT_REPLACE);
}

Test(collector_parts, the_index_finds_every_chunk)
{
	const uint8_t session[16] = {1};
	struct trace_packer *packer = trace_packer_new();
	struct trace_writer writer;
	struct trace *trace;
	char error[256] = "";
	char text[512];
	char path[256];
	const struct trace_clock clock = {.ticks = 1, .monotonic_ns = 1, .realtime_ns = 1};
	struct trace_chunk chunk = {.type = TRACE_CHUNK_CLOCK, .process = TRACE_NOBODY, .thread = TRACE_NOBODY};

	cr_assert_eq(trace_writer_open(&writer, packer, new_file(path), 1, session), 0);
	for (unsigned i = 0; i < 3 * TRACE_INDEX_EVERY + 5; i++)
		cr_assert_eq(trace_writer_chunk(&writer, &chunk, &clock, sizeof(clock)), 0);
	cr_assert(writer.entry_capacity <= TRACE_INDEX_EVERY, "memory does not grow with the file");
	cr_assert_eq(trace_writer_finish(&writer, 0, 0, 0), 0);
	trace_writer_close(&writer);
	trace_packer_free(packer);

	cr_assert_eq(trace_open(&trace, path, error, sizeof(error)), 0, "%s", error);
	cr_assert_eq(trace_verdict(trace, text, sizeof(text)), CLI_FINE, "%s", text);
	cr_assert(trace->complete);
	cr_assert_eq(trace->place_count, 3 * TRACE_INDEX_EVERY + 5);
	trace_close(trace);
}

struct columns_case {
	size_t events, extras;
	size_t period; /* after which the lowest bytes recur; 0: never */
};

/* Columns with forty values in the lowest bytes. The size is 8 bytes for each event and extra word. */
static uint8_t *make_columns(const struct columns_case *one)
{
	uint8_t *raw = malloc((one->events + one->extras) * 8), *low = raw + 4 * one->events,
		*words = raw + 8 * one->events;

	memset(raw, 7, (one->events + one->extras) * 8);
	for (size_t i = 0; i < one->events; i++)
		low[i] = one->period && i >= one->period ? low[i - one->period] : (uint8_t)(rand() % 40);
	for (size_t i = 0; i < 2 * one->extras; i++)
		words[i] = one->period && i >= one->period ? words[i - one->period] : (uint8_t)(rand() % 40);
	return raw;
}

/* Large payloads are compressed in parts: without a search where nothing recurs. */
Test(collector_parts, columns_of_any_size_are_read_back)
{
	static const struct columns_case cases[] = {
	    {1, 0, 0},		{2047, 3000, 0},    {2048, 0, 0},	{2048, 2047, 0}, {5000, 17, 0},
	    {5000, 60000, 0},	{131072, 2048, 0},  {70000, 60000, 0},	{50000, 0, 30},	 {2048, 2048, 30},
	    {40000, 60000, 30}, {40000, 10, 10000}, {100000, 0, 50000},
	};
	const unsigned count = sizeof(cases) / sizeof(cases[0]);
	const uint8_t session[16] = {1};
	struct trace_packer *packer = trace_packer_new();
	struct trace_writer writer;
	uint8_t *raws[sizeof(cases) / sizeof(cases[0])];
	struct trace_payload payload = {0};
	struct trace *trace;
	char error[256] = "", path[256];

	cr_assert_eq(trace_writer_open(&writer, packer, new_file(path), 1, session), 0);
	for (unsigned i = 0; i < count; i++) {
		const struct columns_case *one = &cases[i];
		struct trace_chunk chunk = {.type = TRACE_CHUNK_EVENTS,
					    .thread = i, /* what recurs in one thread says nothing of another */
					    .events = (uint32_t)one->events,
					    .extras = (uint32_t)one->extras};
		/* 5.4 bits for each of forty values. */
		double most = one->period == 30 ? 1500 : 0.7 * (double)(one->events + 2 * one->extras) + 600;
		uint64_t before = writer.offset;

		raws[i] = make_columns(one);
		cr_assert_eq(trace_writer_chunk(&writer, &chunk, raws[i], (one->events + one->extras) * 8), 0);
		cr_assert((double)(writer.offset - before) < most, "%u: %zu bytes", i,
			  (size_t)(writer.offset - before));
	}
	cr_assert_eq(trace_writer_finish(&writer, 0, 0, 0), 0);
	trace_writer_close(&writer);
	trace_packer_free(packer);
	cr_assert_eq(trace_open(&trace, path, error, sizeof(error)), 0, "%s", error);
	cr_assert_eq(trace->place_count, count);
	for (unsigned i = 0; i < count; i++) {
		cr_assert_eq(trace_read_payload(trace, &trace->places[i], &payload), 0);
		cr_assert_eq(payload.chunk.raw_bytes, (cases[i].events + cases[i].extras) * 8);
		cr_assert_eq(memcmp(payload.raw, raws[i], payload.chunk.raw_bytes), 0, "%u", i);
		free(raws[i]);
	}
	trace_payload_done(&payload);
	trace_close(trace);
}

/* A thread that begins to repeat itself is found out, and one that ceases to; not with every chunk, as trying costs. */
Test(collector_parts, what_recurs_is_tried_again)
{
	static const struct columns_case loop = {5000, 0, 30}, noise = {5000, 0, 0};
	const uint8_t session[16] = {1};
	struct trace_chunk chunk = {.type = TRACE_CHUNK_EVENTS, .events = 5000};
	struct trace_packer *packer = trace_packer_new();
	struct trace_writer writer;
	uint64_t bytes[3][200];
	char path[256];

	cr_assert_eq(trace_writer_open(&writer, packer, new_file(path), 1, session), 0);
	for (unsigned part = 0; part < 3; part++)
		for (unsigned i = 0; i < 200; i++) {
			uint8_t *raw = make_columns(part == 1 ? &loop : &noise);
			uint64_t before = writer.offset;

			cr_assert_eq(trace_writer_chunk(&writer, &chunk, raw, 5000 * 8), 0);
			bytes[part][i] = writer.offset - before;
			free(raw);
		}
	cr_assert(bytes[0][199] > 3000 && bytes[0][199] < 4200, "%zu bytes of noise", (size_t)bytes[0][199]);
	cr_assert(bytes[1][199] < 700, "%zu bytes of a loop", (size_t)bytes[1][199]);
	cr_assert(bytes[2][199] < 4200, "%zu bytes of noise again", (size_t)bytes[2][199]);
	trace_writer_close(&writer);
	trace_packer_free(packer);
}

/* The bytes that a chunk of columns takes in the file. */
static uint64_t write_columns(struct trace_writer *writer, uint32_t process, uint32_t thread,
			      const struct columns_case *one)
{
	struct trace_chunk chunk = {.type = TRACE_CHUNK_EVENTS,
				    .process = process,
				    .thread = thread,
				    .events = (uint32_t)one->events,
				    .extras = (uint32_t)one->extras};
	uint8_t *raw = make_columns(one);
	uint64_t before = writer->offset;

	cr_assert_eq(trace_writer_chunk(writer, &chunk, raw, (one->events + one->extras) * 8), 0);
	free(raw);
	return writer->offset - before;
}

/* Threads of forked workers, whose chunks alternate: each has the number of its process. */
Test(collector_parts, the_noise_of_workers_is_not_tried_with_each_chunk)
{
	static const struct columns_case loop = {5000, 0, 30}, noise = {5000, 0, 0};
	const uint8_t session[16] = {1};
	struct trace_packer *packer = trace_packer_new();
	struct trace_writer writer;
	char path[256];

	cr_assert_eq(trace_writer_open(&writer, packer, new_file(path), 1, session), 0);
	for (unsigned i = 0; i < 70; i++)
		for (uint32_t worker = 0; worker < 8; worker++)
			write_columns(&writer, worker, worker, &noise);
	for (uint32_t worker = 0; worker < 8; worker++)
		cr_assert_gt(write_columns(&writer, worker, worker, &loop), 2000, "%u: not with its 71st", worker);
	trace_writer_close(&writer);
	trace_packer_free(packer);
}

Test(collector_parts, what_recurs_in_one_trace_says_nothing_of_another)
{
	static const struct columns_case cases[2] = {{5000, 0, 0}, {5000, 0, 30}};
	const uint8_t session[16] = {1};
	struct trace_packer *packer = trace_packer_new();
	struct trace_writer writers[2];
	char path[256];

	for (unsigned one = 0; one < 2; one++)
		cr_assert_eq(trace_writer_open(&writers[one], packer, new_file(path), 1, session), 0);
	for (unsigned i = 0; i < 70; i++) {
		write_columns(&writers[0], 0, 0, &cases[0]);
		cr_assert_lt(write_columns(&writers[1], 0, 0, &cases[1]), 700, "chunk %u of a loop", i);
	}
	for (unsigned one = 0; one < 2; one++)
		trace_writer_close(&writers[one]);
	trace_packer_free(packer);
}

static void make_noise(uint8_t *noise, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		noise[i] = (uint8_t)rand();
}

Test(collector_parts, a_full_file_takes_its_end_and_nothing_else)
{
	const struct rlimit small = {.rlim_cur = 12000, .rlim_max = RLIM_INFINITY};
	const uint8_t session[16] = {1};
	struct trace_packer *packer = trace_packer_new();
	struct trace_chunk chunk = {.type = TRACE_CHUNK_META, .process = TRACE_NOBODY, .thread = TRACE_NOBODY};
	struct trace_writer writer;
	struct stat status;
	uint8_t noise[3000];
	char path[256];

	make_noise(noise, sizeof(noise));
	cr_assert_eq(trace_writer_open(&writer, packer, new_file(path), 1, session), 0);
	writer.closing_bytes = 2000;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(trace_writer_chunk(&writer, &chunk, noise, sizeof(noise)), 0);
	cr_assert_eq(trace_writer_chunk(&writer, &chunk, noise, 1000), -EFBIG, "1700 bytes are kept for the end");
	cr_assert_eq(trace_writer_chunk(&writer, &chunk, noise, 8), -EFBIG, "even if it would fit");
	cr_assert_eq(trace_writer_last(&writer, &chunk, noise, 500), 0);
	cr_assert_eq(trace_writer_last(&writer, &chunk, noise, 2000), -EFBIG, "more than was kept");
	while (trace_writer_last(&writer, &chunk, noise, 100) == 0)
		continue;
	cr_assert_eq(trace_writer_last(&writer, &chunk, noise, 100), -EFBIG);
	cr_assert_eq(trace_writer_finish(&writer, 0, 0, 0), 0, "there is room for the index and the end");
	cr_assert_eq(stat(path, &status), 0);
	cr_assert_eq((uint64_t)status.st_size, writer.offset);
	trace_writer_close(&writer);
	cr_assert_eq(stat(path, &status), 0);
	cr_assert(status.st_blocks * 512 < 20000, "what was kept is given back: %ld blocks", (long)status.st_blocks);
	trace_packer_free(packer);
}

Test(collector_parts, a_failed_write_leaves_whole_chunks_and_stays_failed)
{
	const struct rlimit small = {.rlim_cur = 10000, .rlim_max = RLIM_INFINITY};
	const uint8_t session[16] = {1};
	struct trace_packer *packer = trace_packer_new();
	struct trace_chunk chunk = {.type = TRACE_CHUNK_META, .process = TRACE_NOBODY, .thread = TRACE_NOBODY};
	struct trace_writer writer;
	struct stat status;
	uint8_t noise[3000];
	uint64_t end;
	char path[256];

	make_noise(noise, sizeof(noise));
	cr_assert_eq(trace_writer_open(&writer, packer, new_file(path), 1, session), 0);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(trace_writer_last(&writer, &chunk, noise, sizeof(noise)), 0);
	end = writer.offset;
	cr_assert_eq(trace_writer_last(&writer, &chunk, noise, sizeof(noise)), -EFBIG);
	cr_assert_eq(trace_writer_last(&writer, &chunk, noise, 8), -EFBIG, "even if it would fit");
	cr_assert_eq(trace_writer_chunk(&writer, &chunk, noise, 8), -EFBIG);
	cr_assert_eq(trace_writer_finish(&writer, 0, 0, 0), -EFBIG);
	cr_assert_eq(stat(path, &status), 0);
	cr_assert_eq((uint64_t)status.st_size, end);
	trace_writer_close(&writer);
	trace_packer_free(packer);
}

Test(collector_parts, a_socket_left_behind_is_replaced_one_in_use_is_not)
{
	char path[256];
	char reason[256] = "";
	struct stat status;
	int first;
	int second;

	snprintf(path, sizeof(path), "%s/sock", folder);
	first = server_listen(path, false, NULL, reason, sizeof(reason));
	cr_assert(first >= 0, "%s", reason);
	cr_assert_eq(stat(path, &status), 0);
	cr_assert_eq(status.st_mode & 0777, 0600);
	cr_assert_eq(server_listen(path, false, NULL, reason, sizeof(reason)), -EADDRINUSE);
	cr_assert(strstr(reason, "is in use"));
	close(first);
	second = server_listen(path, false, NULL, reason, sizeof(reason));
	cr_assert(second >= 0, "%s", reason);
	close(second);
	unlink(path);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	cr_assert_eq(server_listen(path, false, NULL, reason, sizeof(reason)), -EADDRINUSE, "a file of the user's");
	cr_assert_eq(stat(path, &status), 0);
}

static enum options_result options_of(const char *const *words, struct options *options)
{
	char *arguments[8] = {"evprof-collector"};
	int count = 1;

	while (words[count - 1] && count < 7) {
		arguments[count] = (char *)(uintptr_t)words[count - 1];
		count++;
	}
	optind = 0; /* getopt begins anew */
	return options_parse(count, arguments, options);
}

Test(collector_parts, a_wrong_option_is_named)
{
	struct options options;

	cr_redirect_stderr();
	cr_assert_eq(options_of((const char *[]){"--private", "--nonsense", NULL}, &options), OPTIONS_WRONG);
	cr_assert_eq(options_of((const char *[]){"-xy", "--private", NULL}, &options), OPTIONS_WRONG);
	cr_assert_eq(options_of((const char *[]){"--socket", NULL}, &options), OPTIONS_WRONG);
	cr_assert_stderr_eq_str(
	    "evprof-collector: an option is not known or lacks its value: --nonsense; see evprof-collector --help\n"
	    "evprof-collector: an option is not known or lacks its value: -xy; see evprof-collector --help\n"
	    "evprof-collector: an option is not known or lacks its value: --socket; see evprof-collector --help\n");
}

Test(collector_parts, options_are_checked)
{
	struct options options;

	cr_assert_eq(options_of((const char *[]){"--private", NULL}, &options), OPTIONS_RUN);
	cr_assert(options.private);
	cr_assert_eq(options_of((const char *[]){"--socket", "@x", "--output-dir", "/tmp", NULL}, &options),
		     OPTIONS_RUN);
	cr_assert_str_eq(options.output, OUTPUT_DEFAULT);
	cr_assert_eq(options_of((const char *[]){"--socket", "@x", NULL}, &options), OPTIONS_WRONG);
	cr_assert_eq(options_of((const char *[]){"--private", "--socket", "@x", NULL}, &options), OPTIONS_WRONG);
	cr_assert_eq(options_of((const char *[]){"--private", "--log", "loud", NULL}, &options), OPTIONS_WRONG);
	cr_assert_eq(options_of((const char *[]){"--private", "word", NULL}, &options), OPTIONS_WRONG);
	cr_assert_eq(
	    options_of((const char *[]){"--socket", "@x", "--output-dir", "/tmp", "--output", "../x", NULL}, &options),
	    OPTIONS_WRONG);
	cr_assert_eq(options_of((const char *[]){"--private", "--output", "x-%q", NULL}, &options), OPTIONS_WRONG);
	cr_assert_eq(options_of((const char *[]){"--private", "--format", "pstats,nonsense", NULL}, &options),
		     OPTIONS_WRONG);
	cr_assert_eq(options_of((const char *[]){"--private", "--format", "pstats,html", NULL}, &options), OPTIONS_RUN);
}

Test(collector_parts, a_tool_joins_for_its_own_processes)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0), file = open("/dev/null", O_RDONLY);
	const struct ucred tool = {.pid = 1, .uid = geteuid()}, stranger = {.pid = 1, .uid = geteuid() + 1},
			   root = {.pid = 1};
	struct ucred who = tool;

	cr_assert_geq(pidfd, 0);
	cr_expect_null(process_of_tool(pidfd, &who));
	cr_expect(who.pid == getpid() && who.uid == geteuid(), "it is the process, and its user");
	who = root;
	cr_expect_null(process_of_tool(pidfd, &who));
	who = stranger;
	cr_expect(strstr(process_of_tool(pidfd, &who), "another user's"));
	cr_expect_eq(who.pid, 1);
	who = tool;
	cr_expect(strstr(process_of_tool(file, &who), "does not find"), "no pidfd");
	close(file);
	close(pidfd);
}
