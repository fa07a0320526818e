/*
 * microhttpd.h - what http.c uses of libmicrohttpd's ABI 12, declared without its header.
 */
#ifndef EVPROF_TOOLS_SERVE_MICROHTTPD_H
#define EVPROF_TOOLS_SERVE_MICROHTTPD_H

#include <stddef.h>

#define MHD_FAILED 0 /* MHD_NO */
#define MHD_FINE 1   /* MHD_YES */

/* Flags of a server: MHD_USE_INTERNAL_POLLING_THREAD, MHD_USE_EPOLL, MHD_USE_ITC */
#define MHD_OWN_THREAD 8u
#define MHD_EPOLL 512u
#define MHD_WAKE_PIPE 1024u

/* MHD_OPTION_...; behind them an unsigned int, but a size_t for the memory and an int for the socket. */
#define MHD_END 0
#define MHD_MEMORY_LIMIT 1
#define MHD_CONNECTION_LIMIT 2
#define MHD_TIMEOUT 3
#define MHD_LISTEN_SOCKET 12

/* MHD_HEADER_KIND, MHD_GET_ARGUMENT_KIND */
#define MHD_HEADER 1
#define MHD_ARGUMENT 8

/* MHD_RESPMEM_PERSISTENT, MHD_RESPMEM_MUST_FREE */
#define MHD_KEEPS 0
#define MHD_FREES 1

/* MHD_AccessHandlerCallback, with int for the enum of its result and void for its structures */
typedef int mhd_handler(void *owner, void *connection, const char *url, const char *method, const char *version,
			const char *upload_data, size_t *upload_data_size, void **state);

#endif
