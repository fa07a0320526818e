/*
 * store.h - an S3-compatible store that evprof ship writes to: what the word s3://BUCKET/PREFIX and the variables of
 * AWS say, and the URL of a trace. For put.c. The keys of AWS are in no text that is made here.
 */
#ifndef EVPROF_TOOLS_SHIP_STORE_H
#define EVPROF_TOOLS_SHIP_STORE_H

#include <stdbool.h>
#include <stdint.h>

#define STORE_BEGIN "s3://"
#define STORE_OBJECT_MAX_BYTES (INT64_C(5) << 30) /* of one PUT */

struct store {
	char *bucket;
	char *key;    /* with {name}, and {host} if it has one */
	char *server; /* scheme and host, without a slash at its end */
	bool in_path; /* the bucket is the first part of the path, or else the first of the host's name */
	char *scope;  /* what is signed for, in libcurl's words */
	const char *access_key, *secret_key, *token; /* of the environment; token: NULL if there is none */
	const char *certificates;		     /* a file of authorities; NULL: those of libcurl */
};

bool store_is_named(const char *word);

/* Returns NULL, or what is wrong. The store is to be freed in both cases. */
const char *store_open(struct store *store, const char *word);
void store_done(struct store *store);

/* The key of the trace with that name, and the URL of a key. NULL: no memory. The caller frees them. */
char *store_key(const struct store *store, const char *name);
char *store_url(const struct store *store, const char *key);

#endif
