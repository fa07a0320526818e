/*
 * test_tools_serve.c - requests to evprof serve, its history, and what it knows of libmicrohttpd.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "serve/address.h"
#include "serve/history.h"
#include "serve/microhttpd.h"
#include "serve/page.h"
#include "serve/route.h"

#if __has_include(<microhttpd.h>)
#include <microhttpd.h>
#define HAS_HEADER 1
#else
#define HAS_HEADER 0
#endif

#define TOKEN "0123456789abcdef0123456789abcdef"

/* ---- the library -------------------------------------------------------------------------------------------- */

Test(serve, numbers_are_those_of_the_header)
{
	if (!HAS_HEADER)
		cr_skip_test("microhttpd.h is not installed");
#if HAS_HEADER
	cr_expect_eq(MHD_FAILED, MHD_NO);
	cr_expect_eq(MHD_FINE, MHD_YES);
	cr_expect_eq(MHD_OWN_THREAD, MHD_USE_INTERNAL_POLLING_THREAD);
	cr_expect_eq(MHD_EPOLL, MHD_USE_EPOLL);
	cr_expect_eq(MHD_WAKE_PIPE, MHD_USE_ITC);
	cr_expect_eq(MHD_END, MHD_OPTION_END);
	cr_expect_eq(MHD_MEMORY_LIMIT, MHD_OPTION_CONNECTION_MEMORY_LIMIT);
	cr_expect_eq(MHD_CONNECTION_LIMIT, MHD_OPTION_CONNECTION_LIMIT);
	cr_expect_eq(MHD_TIMEOUT, MHD_OPTION_CONNECTION_TIMEOUT);
	cr_expect_eq(MHD_LISTEN_SOCKET, MHD_OPTION_LISTEN_SOCKET);
	cr_expect_eq(MHD_HEADER, MHD_HEADER_KIND);
	cr_expect_eq(MHD_ARGUMENT, MHD_GET_ARGUMENT_KIND);
	cr_expect_eq(MHD_KEEPS, MHD_RESPMEM_PERSISTENT);
	cr_expect_eq(MHD_FREES, MHD_RESPMEM_MUST_FREE);
	cr_expect_eq(sizeof(enum MHD_Result), sizeof(int));
#endif
}

/* ---- addresses ---------------------------------------------------------------------------------------------- */

Test(serve, addresses)
{
	static const struct {
		const char *text;
		bool is_one, is_loopback;
	} cases[] = {{"127.0.0.1:0", true, true},
		     {"127.8.8.8:65535", true, true},
		     {"[::1]:80", true, true},
		     {"localhost:8", true, true},
		     {"0.0.0.0:80", true, false},
		     {"[::]:80", true, false},
		     {"10.0.0.1:80", true, false},
		     {"127.0.0.1:65536", false, 0},
		     {"127.0.0.1:", false, 0},
		     {"127.0.0.1", false, 0},
		     {"[::1]", false, 0},
		     {"[::1]80", false, 0},
		     {"127.0.0.1:-1", false, 0},
		     {"127.0.0.1:8x", false, 0},
		     {":80", false, 0},
		     {"evil.example:80", false, 0},
		     {"", false, 0},
		     {"[", false, 0},
		     {"127.1:80", false, 0},
		     {"[::ffff:127.0.0.1]:80", true, false}};
	struct serve_address address;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool is_one = serve_address_parse(cases[i].text, &address);

		cr_expect_eq(is_one, cases[i].is_one, "%s", cases[i].text);
		if (is_one)
			cr_expect_eq(address.is_loopback, cases[i].is_loopback, "%s", cases[i].text);
	}
}

Test(serve, hosts)
{
	static const char *const fine[] = {"127.0.0.1",	  "127.0.0.1:8000", "localhost",   "localhost:1",
					   "[::1]:12345", "[::1]",	    "10.1.2.3:80", "[fe80::1]:9"};
	static const char *const wrong[] = {"",
					    "evil.example",
					    "evil.example:8000",
					    "127.0.0.1.evil.example",
					    "localhost.evil.example:1",
					    "127.0.0.1:8000 ",
					    " 127.0.0.1",
					    "127.0.0.1:1:2",
					    "[::1",
					    "::1",
					    "[127.0.0.1]:1",
					    "user@127.0.0.1",
					    "127.0.0.1:000000001",
					    "LOCALHOST.:1"};

	for (size_t i = 0; i < sizeof(fine) / sizeof(*fine); i++)
		cr_expect(serve_host_is_address(fine[i]), "%s", fine[i]);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		cr_expect(!serve_host_is_address(wrong[i]), "%s", wrong[i]);
}

/* ---- requests ----------------------------------------------------------------------------------------------- */

/* context: name, value, ..., NULL */
static const char *find_value(const void *context, const char *name)
{
	for (const char *const *at = context; *at; at += 2)
		if (strcmp(*at, name) == 0)
			return at[1];
	return NULL;
}

static int ask(const char *method, const char *path, const char *const *values, struct serve_request *request)
{
	static const char *const none[] = {NULL};
	struct serve_message message = {.method = method,
					.path = path,
					.host = "127.0.0.1:1",
					.value = find_value,
					.context = values ? values : none};

	return serve_route(&message, TOKEN, request);
}

Test(serve, places)
{
	static const struct {
		const char *method, *path;
		int status;
		enum serve_place place;
	} cases[] = {{"GET", "/" TOKEN "/", 200, SERVE_PAGE},
		     {"HEAD", "/" TOKEN "/serve.js", 200, SERVE_SCRIPT},
		     {"GET", "/" TOKEN "/serve.css", 200, SERVE_STYLE},
		     {"GET", "/" TOKEN "/live", 200, SERVE_LIVE},
		     {"POST", "/" TOKEN "/snapshot", 200, SERVE_SNAPSHOT},
		     {"GET", "/" TOKEN "/report/7.html", 200, SERVE_REPORT},
		     {"GET", "/" TOKEN "/report/7.evp", 200, SERVE_TRACE},
		     {"GET", "/" TOKEN "/snapshot", 405, SERVE_PAGE},
		     {"POST", "/" TOKEN "/live", 405, SERVE_PAGE},
		     {"DELETE", "/" TOKEN "/report/7.evp", 405, SERVE_PAGE},
		     {"GET", "/" TOKEN, 404, SERVE_PAGE},
		     {"GET", "/" TOKEN "/report/.html", 404, SERVE_PAGE},
		     {"GET", "/" TOKEN "/report/7.htmlx", 404, SERVE_PAGE},
		     {"GET", "/" TOKEN "/report/1234567890.html", 404, SERVE_PAGE},
		     {"GET", "/" TOKEN "/report/../7.html", 404, SERVE_PAGE},
		     {"GET", "/0123456789abcdef0123456789abcdee/", 404, SERVE_PAGE},
		     {"GET", "/0123456789ABCDEF0123456789abcdef/", 404, SERVE_PAGE},
		     {"GET", "//" TOKEN "/", 404, SERVE_PAGE},
		     {"GET", "/", 404, SERVE_PAGE},
		     {"GET", "", 404, SERVE_PAGE}};
	struct serve_request request;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cr_expect_eq(ask(cases[i].method, cases[i].path, NULL, &request), cases[i].status, "%s %s",
			     cases[i].method, cases[i].path);
		if (cases[i].status == 200)
			cr_expect_eq(request.place, cases[i].place, "%s", cases[i].path);
	}
	ask("GET", "/" TOKEN "/report/7.evp", NULL, &request);
	cr_expect_eq(request.number, 7);
}

Test(serve, values)
{
	static const char *const all[] = {"pid",  "12",	     "focus",  "0",	"rows", "5",	"stacks",
					  "1",	  "history", "12",     "after", "9",	"last", "60",
					  "sort", "total",   "filter", "a b",	NULL};
	static const char *const wrong[][3] = {{"pid", "-1"},	 {"pid", "99999999999"},  {"rows", "1001"},
					       {"stacks", "2"},	 {"focus", "4294967295"}, {"last", "86401"},
					       {"sort", "name"}, {"after", "0x1"},	  {"history", "1 "}};
	struct serve_request request;

	cr_assert_eq(ask("GET", "/" TOKEN "/live", NULL, &request), 200);
	cr_expect(request.pid == 0 && request.focus == 0 && request.rows == 100 && !request.has_stacks &&
		  request.history_pid == -1 && request.order == WATCH_BY_OWN && !request.filter[0]);
	cr_assert_eq(ask("GET", "/" TOKEN "/live", all, &request), 200);
	cr_expect(request.pid == 12 && request.focus == 1 && request.rows == 5 && request.has_stacks &&
		  request.history_pid == 12 && request.after == 9 && request.last_s == 60 &&
		  request.order == WATCH_BY_TOTAL && strcmp(request.filter, "a b") == 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		cr_expect_eq(ask("GET", "/" TOKEN "/live", wrong[i], &request), 400, "%s=%s", wrong[i][0], wrong[i][1]);
}

/* As many letters as the field of the page takes. */
Test(serve, filter_of_long_letters)
{
	char filter[1024] = "";
	const char *const values[] = {"filter", filter, NULL};
	struct serve_request request;

	for (int i = 0; i < 150; i++)
		strcat(filter, "\u540d");
	cr_expect_eq(ask("GET", "/" TOKEN "/live", values, &request), 200);
	cr_expect_str_eq(request.filter, filter);
	memset(filter, 'x', SERVE_FILTER_BYTES);
	cr_expect_eq(ask("GET", "/" TOKEN "/live", values, &request), 400);
}

/* ---- the page and its history ------------------------------------------------------------------------------- */

Test(serve, text_of_programs_is_no_markup)
{
	struct output output;
	size_t length;
	char *text;

	cr_assert(output_open_memory(&output) == 0);
	serve_put_html(&output, text_of("<script>a & b\x1b</script>"));
	text = output_close_memory(&output, &length);
	cr_assert(text);
	cr_expect_str_eq(strndup(text, length), "&#60;script&#62;a &#38; b&#60;/script&#62;");
	free(text);
}

static json_t *samples_of(const struct history *history, int64_t pid, uint64_t after)
{
	struct output output;
	size_t length;
	char *text;
	json_t *parsed;

	cr_assert(output_open_memory(&output) == 0);
	history_put(history, pid, after, &output);
	text = output_close_memory(&output, &length);
	parsed = json_loadb(text, length, 0, NULL);
	cr_assert(json_is_array(parsed));
	free(text);
	return parsed;
}

/* The last refreshes of the host and of each process stay, and there is room for a new process when old ones go. */
Test(serve, history_is_bounded)
{
	static struct history history;
	struct watch_process_row row = {.pid = 7, .events = 3, .cpu_ns = -1, .rss_bytes = 4096};
	struct watch_host host = {.processes = &row, .process_count = 1, .stretch_ns = 1000};
	uint64_t number = 0;
	json_t *samples;

	while (++number <= 700)
		history_add(&history, &host, number, 1);
	samples = samples_of(&history, 7, 0);
	cr_expect_eq(json_array_size(samples), HISTORY_SAMPLES);
	cr_expect_eq(json_integer_value(json_array_get(json_array_get(samples, 0), 0)), 101);
	cr_expect_eq(json_integer_value(json_array_get(json_array_get(samples, 0), 3)), 3);
	cr_expect(json_is_null(json_array_get(json_array_get(samples, 0), 8)));
	cr_expect_eq(json_array_size(samples_of(&history, 0, 690)), 10);
	cr_expect_eq(json_array_size(samples_of(&history, 8, 0)), 0);
	for (row.pid = 1000; row.pid < 2000; row.pid++, number++)
		history_add(&history, &host, number, 1);
	cr_expect_eq(history.count, HISTORY_PROCESSES);
	cr_expect_eq(json_array_size(samples_of(&history, 1999, 0)), 1);
	cr_expect_eq(json_array_size(samples_of(&history, 7, 0)), 0);
	history_done(&history);
}
