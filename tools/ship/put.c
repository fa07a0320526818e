/*
 * put.c - see put.h.
 *
 * libcurl signs the request (CURLOPT_AWS_SIGV4). The body is not part of the signature (UNSIGNED-PAYLOAD): a hash would
 * have to be sent before it, so each trace would be read twice. TLS protects the body; without TLS anybody on the way
 * could read it anyway.
 *
 * libcurl signs headers of the caller since 7.87; older ones know the option, and S3 refuses what they send.
 */
#include "ship/put.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "push/curl.h"
#include "ship/command.h"
#include "util/output.h"

#define VERSION_LEAST 0x075800 /* 7.88: the oldest that the tests run */
#define ANSWER_BYTES 4096      /* of an error; more is dropped */
#define CODE_BYTES 64
#define GRACE_MS 2000 /* libcurl ends at the timeout and says so; a process that does not is ended this much later */

struct put {
	void *handle, *headers;
	int fd;
	int64_t size_bytes;
	size_t length;
	char answer[ANSWER_BYTES + 1];
	char error[POST_ERROR_BYTES];
};

const char *put_open(void)
{
	static char reason[256];
	void *handle = curl_open();
	bool signs;

	if (!handle)
		return curl_missing;
	signs = curl.version_info(POST_VERSION_FIRST)->number >= VERSION_LEAST &&
		curl.easy_setopt(handle, POST_AWS_SIGV4, "aws:amz:us-east-1:s3") == POST_FINE;
	curl.easy_cleanup(handle);
	if (signs)
		return NULL;
	snprintf(reason, sizeof(reason),
		 "libcurl %.32s does not sign what a store takes, 7.88 does; a command can: "
		 "evprof ship FOLDER aws s3 cp {} s3://BUCKET/{host}/{name}",
		 curl.version_info(POST_VERSION_FIRST)->text);
	return reason;
}

/* --- what libcurl calls --- */

static size_t give_body(char *bytes, size_t size, size_t count, void *owner)
{
	const struct put *put = owner;
	ssize_t length = read(put->fd, bytes, size * count);

	return length < 0 ? POST_READ_ABORT : (size_t)length;
}

/* A server that closes a connection before it has read anything gets the body from its beginning. */
static int go_back(void *owner, int64_t offset, int origin)
{
	const struct put *put = owner;

	return lseek(put->fd, offset, origin) < 0;
}

static size_t take_answer(char *bytes, size_t size, size_t count, void *owner)
{
	struct put *put = owner;
	size_t length = size * count, room = ANSWER_BYTES - put->length;

	memcpy(put->answer + put->length, bytes, length < room ? length : room);
	put->length += length < room ? length : room;
	return length;
}

/* --- the request --- */

static bool add_header(struct put *put, const char *name, const char *value)
{
	char *line = NULL;
	void *longer;

	if (asprintf(&line, "%s: %s", name, value) < 0)
		return false;
	longer = curl.slist_append(put->headers, line);
	free(line);
	put->headers = longer ? longer : put->headers;
	return longer != NULL;
}

/* Without one of these the request would be another, so each is checked. */
static bool set_request(struct put *put, const struct store *store, const char *url)
{
	const struct {
		int option;
		const void *value;
	} pointers[] = {{POST_URL, url},
			{POST_AWS_SIGV4, store->scope},
			{POST_USERNAME, store->access_key},
			{POST_PASSWORD, store->secret_key},
			{POST_CAINFO, store->certificates},
			{POST_HTTPHEADER, put->headers},
			{POST_READDATA, put},
			{POST_SEEKDATA, put},
			{POST_WRITEDATA, put},
			{POST_ERRORBUFFER, put->error}};
	int wrong = 0;

	for (size_t i = 0; i < sizeof(pointers) / sizeof(*pointers); i++)
		if (pointers[i].value)
			wrong |= curl.easy_setopt(put->handle, pointers[i].option, pointers[i].value);
	wrong |= curl.easy_setopt(put->handle, POST_READFUNCTION, give_body);
	wrong |= curl.easy_setopt(put->handle, POST_SEEKFUNCTION, go_back);
	wrong |= curl.easy_setopt(put->handle, POST_WRITEFUNCTION, take_answer);
	wrong |= curl.easy_setopt(put->handle, POST_INFILESIZE_LARGE, put->size_bytes);
	return !wrong;
}

static bool set_behaviour(struct put *put, int timeout_ms)
{
	const struct {
		int option;
		long value;
	} numbers[] = {
	    {POST_UPLOAD, 1},	      {POST_FOLLOWLOCATION, 0}, /* the body goes to nobody that a server names */
	    {POST_SSL_VERIFYPEER, 1}, {POST_SSL_VERIFYHOST, 2},	     {POST_PROTOCOLS, POST_HTTP_AND_HTTPS},
	    {POST_NOSIGNAL, 1},	      {POST_TIMEOUT_MS, timeout_ms}, {POST_CONNECTTIMEOUT_MS, timeout_ms}};
	int wrong = 0;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		wrong |= curl.easy_setopt(put->handle, numbers[i].option, numbers[i].value);
	return !wrong;
}

/* --- the answer --- */

/* <Code> of an error. The rest of it may have the key's id, or anything. */
static void find_code(const struct put *put, char code[CODE_BYTES])
{
	const char *at = strstr(put->answer, "<Code>");
	size_t length = 0;

	if (at)
		for (at += strlen("<Code>"); length < CODE_BYTES - 1 && isalnum((unsigned char)*at); at++)
			code[length++] = *at;
	code[length] = 0;
}

static bool has_arrived(const struct put *put, const char *where, int result)
{
	bool certificate = result == POST_CANNOT_VERIFY || result == POST_BAD_CERTIFICATE_FILE;
	char code[CODE_BYTES];
	long status = 0;

	if (result == POST_FINE)
		curl.easy_getinfo(put->handle, POST_RESPONSE_CODE, &status);
	if (status >= 200 && status < 300)
		return true;
	if (!status) {
		output_message("evprof ship: %s: %s%s", where, *put->error ? put->error : "no answer",
			       certificate ? " (AWS_CA_BUNDLE?)" : "");
		return false;
	}
	find_code(put, code);
	output_message("evprof ship: %s: HTTP %ld%s%s%s", where, status, *code ? ", " : "", code,
		       status / 100 == 3 || strcmp(code, "AuthorizationHeaderMalformed") == 0 ? " (AWS_REGION?)" : "");
	return false;
}

/* --- a trace --- */

static bool open_file(struct put *put, const char *path, const char *where)
{
	struct stat status;

	put->fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (put->fd < 0 || fstat(put->fd, &status) < 0) {
		output_message("evprof ship: cannot read %s: %s", path, strerror(errno));
		return false;
	}
	put->size_bytes = status.st_size;
	if (put->size_bytes <= STORE_OBJECT_MAX_BYTES)
		return true;
	output_message("evprof ship: %s: the trace has %" PRId64
		       " bytes and a PUT at most 5 GiB; a command sends more: "
		       "evprof ship FOLDER aws s3 cp {} s3://BUCKET/{host}/{name}",
		       where, put->size_bytes);
	return false;
}

static bool send_file(const struct store *store, const char *path, const char *name, int timeout_ms)
{
	struct put put = {.fd = -1};
	char *key = store_key(store, name), *url = key ? store_url(store, key) : NULL, *where = NULL;

	if (!url || asprintf(&where, STORE_BEGIN "%s/%s", store->bucket, key) < 0) {
		output_message("evprof ship: there is no memory");
		return false;
	}
	if (!open_file(&put, path, where))
		return false;
	put.handle = curl.easy_init();
	if (!put.handle || !add_header(&put, "x-amz-content-sha256", "UNSIGNED-PAYLOAD") ||
	    (store->token && !add_header(&put, "x-amz-security-token", store->token)) ||
	    !set_request(&put, store, url) || !set_behaviour(&put, timeout_ms)) {
		output_message("evprof ship: %s: libcurl cannot be set up for it", where);
		return false;
	}
	return has_arrived(&put, where, curl.easy_perform(put.handle));
}

bool put_file(const struct store *store, const char *path, const char *name, int timeout_ms)
{
	pid_t child = fork();

	if (child == 0) {
		signal(SIGTERM, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		signal(SIGPIPE, SIG_IGN); /* some TLS libraries write without MSG_NOSIGNAL */
		_exit(send_file(store, path, name, timeout_ms) ? 0 : 1);
	}
	return child > 0 && ship_wait(child, timeout_ms + GRACE_MS);
}
