/*
 * curl.c - see curl.h.
 */
#include "push/curl.h"

#include <stddef.h>

#include "util/library.h"

struct curl_functions curl;

const char curl_missing[] =
    "libcurl is not here, which carries HTTP: install it (Debian, Ubuntu: apt install libcurl4; "
    "Fedora: libcurl; Arch: curl)";

void *curl_open(void)
{
	/* Debian's builds with GnuTLS have a name of their own, and the same functions. */
	static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", NULL};
	const struct library_symbol symbols[] = {
	    {"curl_global_init", &curl.global_init},	   {"curl_version_info", &curl.version_info},
	    {"curl_easy_init", &curl.easy_init},	   {"curl_easy_setopt", &curl.easy_setopt},
	    {"curl_easy_perform", &curl.easy_perform},	   {"curl_easy_getinfo", &curl.easy_getinfo},
	    {"curl_easy_cleanup", &curl.easy_cleanup},	   {"curl_slist_append", &curl.slist_append},
	    {"curl_slist_free_all", &curl.slist_free_all}, {NULL, NULL},
	};

	if (!library_load(names, symbols) || curl.global_init(POST_GLOBAL) != POST_FINE)
		return NULL;
	return curl.easy_init();
}
