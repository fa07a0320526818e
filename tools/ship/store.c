/* store.c - see store.h. */
#include "ship/store.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ship/command.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"
#define UNRESERVED LETTERS DIGITS "-._~"
#define REGION "us-east-1"
#define BUCKET_MIN 3
#define BUCKET_MAX 63

bool store_is_named(const char *word)
{
	return strncmp(word, STORE_BEGIN, strlen(STORE_BEGIN)) == 0;
}

/* The first of the variables that is set and not empty, or NULL. */
static const char *variable(const char *first, const char *second)
{
	const char *value = getenv(first);

	if ((!value || !*value) && second)
		value = getenv(second);
	return value && *value ? value : NULL;
}

static bool has_only(const char *text, const char *characters)
{
	return text[strspn(text, characters)] == 0;
}

/* A line end in a header would be two headers. */
static bool is_printable(const char *text)
{
	while (text && *text)
		if (!isgraph((unsigned char)*text++))
			return false;
	return true;
}

static bool make(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool make(char **text, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(text, format, arguments);
	va_end(arguments);
	if (length < 0)
		*text = NULL;
	return length >= 0;
}

/* libcurl takes a part . or .. out of a URL, and the part before it, which may be the bucket. */
static bool has_dots(const char *key)
{
	for (;; key++) {
		size_t length = strcspn(key, "/");

		if ((length == 1 || length == 2) && strspn(key, ".") == length)
			return true;
		key += length;
		if (!*key)
			return false;
	}
}

static const char *take_word(struct store *store, const char *word)
{
	const char *bucket = word + strlen(STORE_BEGIN), *prefix = strchr(bucket, '/');
	size_t length = prefix ? (size_t)(prefix - bucket) : strlen(bucket);
	const char *slash;

	prefix = prefix ? prefix + 1 : "";
	slash = *prefix && prefix[strlen(prefix) - 1] != '/' ? "/" : "";
	if (!make(&store->bucket, "%.*s", (int)length, bucket) ||
	    !make(&store->key, strstr(prefix, "{name}") ? "%s" : "%s%s{name}", prefix, slash))
		return "there is no memory";
	if (length < BUCKET_MIN || length > BUCKET_MAX || !has_only(store->bucket, LETTERS DIGITS "-._"))
		return "a store is s3://BUCKET or s3://BUCKET/PREFIX";
	if (strstr(prefix, "{}"))
		return "{} is the path of a trace; a store's words are {name} and {host}";
	if (has_dots(store->key))
		return "a part of a store's prefix is . or ..";
	return NULL;
}

static const char *take_credentials(struct store *store)
{
	store->access_key = variable("AWS_ACCESS_KEY_ID", NULL);
	store->secret_key = variable("AWS_SECRET_ACCESS_KEY", NULL);
	store->token = variable("AWS_SESSION_TOKEN", NULL);
	store->certificates = variable("AWS_CA_BUNDLE", NULL);
	if (!store->access_key || !store->secret_key)
		return "a store wants AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment";
	if (!is_printable(store->access_key) || !is_printable(store->secret_key) || !is_printable(store->token))
		return "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_SESSION_TOKEN has spaces or control characters";
	return NULL;
}

/*
 * A user in the address would take the place of the key, and be in messages. Whatever is encoded in a path would be
 * signed otherwise than it is sent.
 */
static bool is_address(const char *endpoint)
{
	static const char *const schemes[] = {"https://", "http://"};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
		size_t length = strlen(schemes[i]);

		if (strncmp(endpoint, schemes[i], length) == 0)
			return isalnum((unsigned char)endpoint[length]) || endpoint[length] == '['
				   ? has_only(endpoint + length, UNRESERVED ":/[]")
				   : false;
	}
	return false;
}

static const char *take_server(struct store *store)
{
	const char *endpoint = variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
	const char *region = variable("AWS_REGION", "AWS_DEFAULT_REGION");

	region = region ? region : REGION;
	if (!has_only(region, LETTERS DIGITS "-"))
		return "AWS_REGION is not the name of a region";
	if (endpoint && !is_address(endpoint))
		return "AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL is not http://HOST:PORT or https://HOST";
	/* The certificate of Amazon's hosts is good for one name before theirs, which has no dot. */
	store->in_path = endpoint || strchr(store->bucket, '.');
	if (!make(&store->scope, "aws:amz:%s:s3", region) ||
	    !(endpoint	       ? make(&store->server, "%s", endpoint)
	      : store->in_path ? make(&store->server, "https://s3.%s.amazonaws.com", region)
			       : make(&store->server, "https://%s.s3.%s.amazonaws.com", store->bucket, region)))
		return "there is no memory";
	for (size_t length = strlen(store->server); length && store->server[length - 1] == '/'; length--)
		store->server[length - 1] = 0;
	return NULL;
}

const char *store_open(struct store *store, const char *word)
{
	const char *wrong;

	*store = (struct store){0};
	wrong = take_word(store, word);
	if (!wrong)
		wrong = take_credentials(store);
	return wrong ? wrong : take_server(store);
}

void store_done(struct store *store)
{
	free(store->bucket);
	free(store->key);
	free(store->server);
	free(store->scope);
	*store = (struct store){0};
}

char *store_key(const struct store *store, const char *name)
{
	return ship_words(store->key, name, name);
}

char *store_url(const struct store *store, const char *key)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	fprintf(out, "%s/%s%s", store->server, store->in_path ? store->bucket : "", store->in_path ? "/" : "");
	/* What the signature is over is what is sent, so each other byte is encoded here, once, as AWS describes it. */
	for (; *key; key++)
		fprintf(out, strchr(UNRESERVED "/", *key) ? "%c" : "%%%02X", (unsigned char)*key);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
