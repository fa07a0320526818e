/*
 * post.c - see post.h.
 */
#include "push/post.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "push/curl.h"

/* --- answers --- */

int64_t post_retry_after(const char *value, int64_t now)
{
	struct tm date = {0};
	char *end;
	long long seconds;

	value += strspn(value, " \t");
	if (isdigit((unsigned char)*value)) {
		seconds = strtoll(value, &end, 10);
		return seconds <= 86400 ? seconds * 1000 : INT64_C(86400000);
	}
	if (!strptime(value, "%a, %d %b %Y %H:%M:%S GMT", &date))
		return -1;
	seconds = (long long)timegm(&date) - now;
	return seconds < 0 ? 0 : seconds <= 86400 ? seconds * 1000 : INT64_C(86400000);
}

static size_t take_header(char *line, size_t size, size_t count, void *owner)
{
	static const char name[] = "retry-after:";
	struct post_answer *answer = owner;
	size_t length = size * count;
	char value[64];

	if (length <= sizeof(name) || strncasecmp(line, name, sizeof(name) - 1) != 0)
		return length;
	snprintf(value, sizeof(value), "%.*s", (int)(length - sizeof(name) + 1), line + sizeof(name) - 1);
	answer->retry_after_ms = post_retry_after(value, time(NULL));
	return length;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *owner)
{
	struct post_answer *answer = owner;
	size_t length = size * count, room = POST_ANSWER_BYTES - answer->length;

	memcpy(answer->body + answer->length, bytes, length < room ? length : room);
	answer->length += length < room ? length : room;
	return length;
}

/* Not 0: the request is given up. */
static int look_for_stop(void *owner, int64_t download, int64_t downloaded, int64_t upload, int64_t uploaded)
{
	const struct post *post = owner;

	(void)download;
	(void)downloaded;
	(void)upload;
	(void)uploaded;
	return *post->stop;
}

/* --- requests --- */

void post_close(struct post *post)
{
	if (post->handle)
		curl.easy_cleanup(post->handle);
	post->handle = NULL;
}

/* False: this libcurl lacks one of them, and the request would be another. */
static bool set_texts(const struct post *post)
{
	const struct push_settings *settings = post->settings;
	const struct {
		int option;
		const char *value;
	} texts[] = {{POST_URL, settings->url},
		     {POST_CAINFO, settings->certificate},
		     {POST_SSLCERT, settings->client_certificate},
		     {POST_SSLKEY, settings->client_key}};
	int wrong = 0;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (texts[i].value)
			wrong |= curl.easy_setopt(post->handle, texts[i].option, texts[i].value);
	return !wrong;
}

static bool set_options(struct post *post)
{
	long timeout_ms = post->settings->timeout_ms;
	int wrong = 0;

	wrong |= curl.easy_setopt(post->handle, POST_NOSIGNAL, 1L);
	wrong |= curl.easy_setopt(post->handle, POST_PROTOCOLS, POST_HTTP_AND_HTTPS);
	wrong |= curl.easy_setopt(post->handle, POST_TIMEOUT_MS, timeout_ms);
	wrong |= curl.easy_setopt(post->handle, POST_CONNECTTIMEOUT_MS, timeout_ms);
	wrong |= curl.easy_setopt(post->handle, POST_WRITEFUNCTION, take_body);
	wrong |= curl.easy_setopt(post->handle, POST_HEADERFUNCTION, take_header);
	wrong |= curl.easy_setopt(post->handle, POST_NOPROGRESS, 0L);
	wrong |= curl.easy_setopt(post->handle, POST_XFERINFOFUNCTION, look_for_stop);
	wrong |= curl.easy_setopt(post->handle, POST_XFERINFODATA, post);
	return !wrong;
}

bool post_open(struct post *post, const struct push_settings *settings, const volatile bool *stop, char *reason,
	       size_t reason_bytes)
{
	*post = (struct post){.settings = settings, .stop = stop, .handle = curl_open()};
	if (!post->handle) {
		snprintf(reason, reason_bytes, "%s", curl_missing);
		return false;
	}
	if (set_texts(post) && set_options(post))
		return true;
	snprintf(reason, reason_bytes,
		 "this libcurl cannot do what the endpoint or the OTEL_EXPORTER_OTLP_* variables ask for: HTTPS, or a "
		 "certificate");
	post_close(post);
	return false;
}

static void *add_header(void *list, const char *text)
{
	void *longer = curl.slist_append(list, text);

	return longer ? longer : list;
}

static void *make_headers(const struct push_settings *settings, bool is_gzip)
{
	/* Without "Expect:" libcurl waits for a server's consent before it sends a large body. */
	void *list = add_header(NULL, "Expect:");
	char type[64];

	snprintf(type, sizeof(type), "Content-Type: %s", push_form_type(settings->form));
	list = add_header(list, type);
	if (is_gzip)
		list = add_header(list, "Content-Encoding: gzip");
	for (unsigned i = 0; i < settings->header_count; i++)
		list = add_header(list, settings->headers[i]);
	return list;
}

static bool looks_gzipped(const uint8_t *body, size_t length)
{
	return length > 2 && body[0] == 0x1f && body[1] == 0x8b;
}

static void explain(struct post_answer *answer, int result, const char *error)
{
	bool certificate =
	    result == POST_CANNOT_VERIFY || result == POST_BAD_CERTIFICATE || result == POST_BAD_CERTIFICATE_FILE;

	snprintf(answer->reason, sizeof(answer->reason), "%.240s%s", error[0] ? error : "no answer",
		 certificate ? " (OTEL_EXPORTER_OTLP_CERTIFICATE?)" : "");
}

void post_send(struct post *post, const void *body, size_t length, struct post_answer *answer)
{
	char error[POST_ERROR_BYTES] = "";
	int result;

	answer->status = 0;
	answer->retry_after_ms = -1;
	answer->length = 0;
	answer->reason[0] = 0;
	post->headers = make_headers(post->settings, looks_gzipped(body, length));
	curl.easy_setopt(post->handle, POST_HTTPHEADER, post->headers);
	curl.easy_setopt(post->handle, POST_POSTFIELDSIZE_LARGE, (int64_t)length);
	curl.easy_setopt(post->handle, POST_POSTFIELDS, body);
	curl.easy_setopt(post->handle, POST_WRITEDATA, answer);
	curl.easy_setopt(post->handle, POST_HEADERDATA, answer);
	curl.easy_setopt(post->handle, POST_ERRORBUFFER, error);
	result = curl.easy_perform(post->handle);
	if (result == POST_FINE)
		curl.easy_getinfo(post->handle, POST_RESPONSE_CODE, &answer->status);
	if (!answer->status)
		explain(answer, result, error);
	curl.easy_setopt(post->handle, POST_ERRORBUFFER, NULL);
	curl.easy_setopt(post->handle, POST_HTTPHEADER, NULL);
	curl.slist_free_all(post->headers);
	post->headers = NULL;
}
