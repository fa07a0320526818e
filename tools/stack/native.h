/*
 * native.h - the native frames of threads of another process, for evprof stack --native. The owner of libunwind's part
 * for other processes, which is loaded by name.
 *
 * A thread is stopped while its Python stack and its native one are read, for some milliseconds, as a debugger does it:
 * a native stack that runs cannot be followed. The others run on. Whoever ends evprof meanwhile ends the stop.
 */
#ifndef EVPROF_TOOLS_STACK_NATIVE_H
#define EVPROF_TOOLS_STACK_NATIVE_H

#include "stack/modules.h"
#include "stack/threads.h"

#define NATIVE_FRAMES_MAX 1024

struct native_frame {
	uint64_t address;
	char name[MODULES_NAME_BYTES]; /* of the function; "": not known */
	char module[64];	       /* the file of its code; "": none */
	bool evaluates;		       /* it runs Python functions */
};

/* A frame of both: the number of a native one, or of a Python one. Innermost first. */
struct merged_frame {
	bool native;
	uint32_t number;
};

/* The stack of a thread. All zeros: it has ended, cannot be stopped, or is traced by a debugger. */
struct native_stack {
	struct native_frame *at; /* innermost first; owned */
	size_t count;
	struct merged_frame *merged; /* owned */
	size_t merged_count;
	bool apart; /* it is not known which Python functions a native frame runs: native ones first, then Python's */
};

struct native {
	void *unwinder, *library, *space;
	struct modules modules;
};

/* Returns 0, or -1 with one line, without a period, in why. The caller calls native_close() in both cases. */
int native_open(struct native *native, const struct process *process, char *why, size_t why_bytes);

void native_close(struct native *native);

/*
 * Stops the thread, reads both stacks, and lets it go on. Its frames become those of that moment. Nothing changes where
 * it cannot be stopped. 0 or -ENOMEM.
 */
int native_read(struct native *native, const struct layout *layout, struct process *process, struct codes *codes,
		struct stack_thread *thread, struct native_stack *stack);

void native_stack_done(struct native_stack *stack);

#endif
