/*
 * curl.h - what post.c and ship/put.c use of libcurl's ABI 4: declared without its header, loaded when it is wanted.
 *
 * The numbers and types are those of libcurl.so.4 (curl.h of 7.32 to 8), the same on all machines.
 * tests/unit/test_tools_push.c compares them with the header where that is installed.
 */
#ifndef EVPROF_TOOLS_PUSH_CURL_H
#define EVPROF_TOOLS_PUSH_CURL_H

#include <stdbool.h>

/* CURL_GLOBAL_DEFAULT */
#define POST_GLOBAL 3L

/* CURLOPT_... */
#define POST_WRITEDATA 10001
#define POST_URL 10002
#define POST_READDATA 10009
#define POST_ERRORBUFFER 10010
#define POST_POSTFIELDS 10015
#define POST_HTTPHEADER 10023
#define POST_SSLCERT 10025
#define POST_HEADERDATA 10029
#define POST_XFERINFODATA 10057
#define POST_CAINFO 10065
#define POST_SSLKEY 10087
#define POST_SEEKDATA 10168
#define POST_USERNAME 10173
#define POST_PASSWORD 10174
#define POST_AWS_SIGV4 10305
#define POST_WRITEFUNCTION 20011
#define POST_READFUNCTION 20012
#define POST_HEADERFUNCTION 20079
#define POST_SEEKFUNCTION 20167
#define POST_XFERINFOFUNCTION 20219
#define POST_NOPROGRESS 43
#define POST_UPLOAD 46
#define POST_FOLLOWLOCATION 52
#define POST_SSL_VERIFYPEER 64
#define POST_SSL_VERIFYHOST 81
#define POST_NOSIGNAL 99
#define POST_TIMEOUT_MS 155
#define POST_CONNECTTIMEOUT_MS 156
#define POST_PROTOCOLS 181
#define POST_INFILESIZE_LARGE 30115
#define POST_POSTFIELDSIZE_LARGE 30120

#define POST_HTTP_AND_HTTPS 3L	     /* CURLPROTO_HTTP | CURLPROTO_HTTPS */
#define POST_RESPONSE_CODE 0x200002  /* CURLINFO_RESPONSE_CODE */
#define POST_READ_ABORT 0x10000000   /* CURL_READFUNC_ABORT */
#define POST_VERSION_FIRST 0	     /* CURLVERSION_FIRST */
#define POST_ERROR_BYTES 256	     /* CURL_ERROR_SIZE */
#define POST_FINE 0		     /* CURLE_OK */
#define POST_CANNOT_VERIFY 60	     /* CURLE_PEER_FAILED_VERIFICATION */
#define POST_BAD_CERTIFICATE_FILE 77 /* CURLE_SSL_CACERT_BADFILE */
#define POST_BAD_CERTIFICATE 58	     /* CURLE_SSL_CERTPROBLEM */

/* The first members of struct curl_version_info_data. */
struct post_version {
	int age;
	const char *text;
	unsigned number; /* 0x075801: 7.88.1 */
};

struct curl_functions {
	int (*global_init)(long flags);
	const struct post_version *(*version_info)(int age);
	void *(*easy_init)(void);
	int (*easy_setopt)(void *handle, int option, ...);
	int (*easy_perform)(void *handle);
	int (*easy_getinfo)(void *handle, int info, ...);
	void (*easy_cleanup)(void *handle);
	void *(*slist_append)(void *list, const char *text);
	void (*slist_free_all)(void *list);
};

extern struct curl_functions curl;
/* What to say where there is no libcurl. */
extern const char curl_missing[];

/* Loads and prepares libcurl. Returns a handle (curl.easy_cleanup()), or NULL: it is not here. */
void *curl_open(void);

#endif
