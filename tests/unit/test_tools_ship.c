/*
 * test_tools_ship.c - what evprof ship makes of s3://BUCKET/PREFIX and the variables of AWS: the URL of a trace, and
 * what is refused, without a key in the line. What is sent is tested with a server (tests/e2e/programs/drive_store.py).
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ship/store.h"

static const char *const variables[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
					"AWS_REGION",	     "AWS_DEFAULT_REGION",    "AWS_ENDPOINT_URL_S3",
					"AWS_ENDPOINT_URL",  "AWS_CA_BUNDLE"};

static void clear(void)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		unsetenv(variables[i]);
	setenv("AWS_ACCESS_KEY_ID", "id", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
}

static void expect_url(const char *word, const char *name, const char *url, const char *scope)
{
	struct store store;
	const char *wrong = store_open(&store, word);
	char *key, *made;

	cr_assert_null(wrong, "%s: %s", word, wrong);
	key = store_key(&store, name);
	made = store_url(&store, key);
	cr_expect_str_eq(made, url);
	cr_expect_str_eq(store.scope, scope);
	free(key);
	free(made);
	store_done(&store);
}

static void expect_refused(const char *word, const char *line)
{
	struct store store;
	const char *wrong = store_open(&store, word);

	cr_assert_not_null(wrong, "%s is taken", word);
	cr_expect(strstr(wrong, line) && !strstr(wrong, "secret"), "%s: %s", word, wrong);
	store_done(&store);
}

Test(ship, urls_of_amazon, .init = clear)
{
	expect_url("s3://bucket", "a.evp", "https://bucket.s3.us-east-1.amazonaws.com/a.evp", "aws:amz:us-east-1:s3");
	setenv("AWS_DEFAULT_REGION", "eu-north-1", 1);
	expect_url("s3://bucket/", "a.evp", "https://bucket.s3.eu-north-1.amazonaws.com/a.evp",
		   "aws:amz:eu-north-1:s3");
	setenv("AWS_REGION", "eu-west-1", 1);
	expect_url("s3://bucket/x/y", "a.evp", "https://bucket.s3.eu-west-1.amazonaws.com/x/y/a.evp",
		   "aws:amz:eu-west-1:s3");
	expect_url("s3://my.bucket/x/", "a.evp", "https://s3.eu-west-1.amazonaws.com/my.bucket/x/a.evp",
		   "aws:amz:eu-west-1:s3");
}

Test(ship, urls_of_others, .init = clear)
{
	char host[256] = "", url[512];

	setenv("AWS_ENDPOINT_URL", "http://other:1", 1);
	setenv("AWS_ENDPOINT_URL_S3", "http://[::1]:9000/", 1);
	expect_url("s3://bucket/x", "a.evp", "http://[::1]:9000/bucket/x/a.evp", "aws:amz:us-east-1:s3");
	setenv("AWS_ENDPOINT_URL_S3", "", 1);
	gethostname(host, sizeof(host) - 1);
	snprintf(url, sizeof(url), "http://other:1/bucket/%s/-a.evp", host);
	expect_url("s3://bucket/{host}/-{name}", "a.evp", url, "aws:amz:us-east-1:s3");
	expect_url("s3://bucket", " +%/\xc3\xbc~.evp", "http://other:1/bucket/%20%2B%25/%C3%BC~.evp",
		   "aws:amz:us-east-1:s3");
}

Test(ship, refused_words, .init = clear)
{
	expect_refused("s3://", "a store is s3://BUCKET");
	expect_refused("s3://ab/x", "a store is s3://BUCKET");
	expect_refused("s3://evil.example:1@/x", "a store is s3://BUCKET");
	expect_refused("s3://bucket/..", "is . or ..");
	expect_refused("s3://bucket/x/../../other/{name}", "is . or ..");
	expect_refused("s3://bucket/./{name}", "is . or ..");
	expect_url("s3://bucket/..x/.{name}/...", "a", "https://bucket.s3.us-east-1.amazonaws.com/..x/.a/...",
		   "aws:amz:us-east-1:s3");
	expect_refused("s3://bucket/{}", "a store's words are {name} and {host}");
}

Test(ship, refused_variables, .init = clear)
{
	static const char *const endpoints[] = {
	    "other:1",	      "ftp://other",	"http://",	  "http://secret:x@other",
	    "http://other?x", "http://other#x", "http://o\nther", "http:///x"};

	for (size_t i = 0; i < sizeof(endpoints) / sizeof(*endpoints); i++) {
		setenv("AWS_ENDPOINT_URL", endpoints[i], 1);
		expect_refused("s3://bucket", "AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL is not");
	}
	unsetenv("AWS_ENDPOINT_URL");
	setenv("AWS_REGION", "x.evil.example/", 1);
	expect_refused("s3://bucket", "AWS_REGION is not");
	setenv("AWS_REGION", "", 1);
	setenv("AWS_SESSION_TOKEN", "secret\r\nX: y", 1);
	expect_refused("s3://bucket", "has spaces or control characters");
	setenv("AWS_SESSION_TOKEN", "", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "", 1);
	expect_refused("s3://bucket", "wants AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
}
