/*
 * symbols.h - the protocol between the collector and evprof-symbols, the process that symbolizes native addresses.
 *
 * evprof-symbols is a separate program for two reasons. It reads files that a recorded program names: these must not
 * hang, grow or crash the collector. And loading elfutils takes time, which most recordings need not spend. It is
 * started as `evprof-symbols UID GID`, and takes these rights before it reads anything (symbols_sandbox.h). Messages
 * use a SOCK_SEQPACKET pair, which is its standard input. Each message begins with a struct symbols_message. Each
 * SYMBOLS_MODULE and SYMBOLS_LOOK is answered before the next request is sent. resolver.c is the other end.
 */
#ifndef COLLECTOR_SYMBOLS_H
#define COLLECTOR_SYMBOLS_H

#include <stdint.h>

#include "evprof/wire.h"

enum symbols_kind {
	SYMBOLS_MODULE =
	    1, /* request: a module of the client; its path follows. Has a descriptor: the client's root directory */
	SYMBOLS_LOOK = 2,   /* request: struct symbols_address follow, at most SYMBOLS_ADDRESSES_MAX */
	SYMBOLS_FORGET = 3, /* request: the client is gone */
	SYMBOLS_FOUND = 4,  /* answer: definitions follow */
	SYMBOLS_DONE = 5,   /* answer: the last one to a SYMBOLS_MODULE or a SYMBOLS_LOOK; definitions follow */
};

#define SYMBOLS_ADDRESSES_MAX 256u
#define SYMBOLS_MESSAGE_MAX_BYTES 65536u
#define SYMBOLS_BUILD_ID_MAX_BYTES 64u

struct symbols_address {
	uint64_t address;
	uint32_t frame; /* id of the first native frame with this address */
	uint32_t reserved;
};

struct symbols_message {
	uint32_t kind;
	uint32_t client;
	/* SYMBOLS_MODULE */
	uint64_t start;
	uint64_t end;
	uint32_t build_id_bytes;
	uint8_t build_id[SYMBOLS_BUILD_ID_MAX_BYTES];
	uint32_t reserved;
};

#endif
