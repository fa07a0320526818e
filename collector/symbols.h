/*
 * symbols.h - what is said between the collector and evprof-symbols, the process that finds the functions and lines of
 * native addresses.
 *
 * It is a program of its own, because the files that it reads are those that a recorded program names: they are not to
 * hang, grow or crash the collector; and because loading elfutils takes time that most recordings have no use for.
 * Started as `evprof-symbols UID GID`, whose rights it takes before it reads anything (symbols_sandbox.h). Messages go
 * over a SOCK_SEQPACKET pair, which it has as its standard input, each with one struct symbols_message in front. Each
 * SYMBOLS_MODULE and SYMBOLS_LOOK is answered before the next one is asked. resolver.c has the other end.
 */
#ifndef COLLECTOR_SYMBOLS_H
#define COLLECTOR_SYMBOLS_H

#include <stdint.h>

#include "evprof/wire.h"

enum symbols_kind {
	SYMBOLS_MODULE =
	    1, /* to it: the client has a module; its path follows. With a descriptor: the client's root directory */
	SYMBOLS_LOOK = 2,   /* to it: struct symbols_address follow, at most SYMBOLS_ADDRESSES_MAX */
	SYMBOLS_FORGET = 3, /* to it: the client is no more */
	SYMBOLS_FOUND = 4,  /* from it: definitions follow */
	SYMBOLS_DONE = 5,   /* from it: the end of a SYMBOLS_MODULE or a SYMBOLS_LOOK; definitions follow */
};

#define SYMBOLS_ADDRESSES_MAX 256u
#define SYMBOLS_MESSAGE_MAX_BYTES 65536u
#define SYMBOLS_BUILD_ID_MAX_BYTES 64u

struct symbols_address {
	uint64_t address;
	uint32_t frame; /* the id of the first native frame with it */
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
