/* native.c - see native.h. */
#include "stack/native.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "util/grow.h"

#define LIBRARY "libunwind-ptrace.so.0"
#define STOP_TURNS 20000   /* of 100 us */
#define CURSOR_BYTES 65536 /* unw_cursor_t is smaller on all architectures */
#define TRIES 5
#define NO_CACHE 0 /* UNW_CACHE_NONE */
#define EVALUATE "_PyEval_EvalFrameDefault"

#if defined(__x86_64__)
#define UNWINDER "libunwind-x86_64.so.8"
#define PREFIX "_Ux86_64_"
#define REGISTER_IP 16 /* UNW_X86_64_RIP */
#define REGISTER_SP 7  /* UNW_X86_64_RSP */
#else
#define UNWINDER "libunwind-aarch64.so.8"
#define PREFIX "_Uaarch64_"
#define REGISTER_IP 30 /* UNW_AARCH64_X30, which stands for the instruction */
#define REGISTER_SP 31 /* UNW_AARCH64_SP */
#endif

/* What is used of libunwind's ABI 8, declared without its headers. */
static struct {
	void *accessors;
	void *(*create_space)(void *accessors, int order);
	void (*destroy_space)(void *space);
	int (*set_caching)(void *space, int policy);
	int (*init_remote)(void *cursor, void *space, void *target);
	int (*step)(void *cursor);
	int (*get_reg)(void *cursor, int number, uint64_t *value);
	void *(*target_new)(pid_t tid);
	void (*target_free)(void *target);
} unwind;

/* --- the library --- */

static bool find(void *library, const char *prefix, const char *name, void *to)
{
	char text[64];

	snprintf(text, sizeof(text), "%s%s", prefix, name);
	*(void **)to = dlsym(library, text);
	return *(void **)to != NULL;
}

/* The library for other processes takes functions of the other one and of liblzma, without naming them (Debian). */
static bool load(struct native *native)
{
	void *unwinder = native->unwinder = dlopen(UNWINDER, RTLD_NOW | RTLD_GLOBAL);
	void *library = native->library = unwinder ? dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL) : NULL;

	return library && find(library, "_UPT_", "accessors", &unwind.accessors) &&
	       find(library, "_UPT_", "create", &unwind.target_new) &&
	       find(library, "_UPT_", "destroy", &unwind.target_free) &&
	       find(unwinder, PREFIX, "create_addr_space", &unwind.create_space) &&
	       find(unwinder, PREFIX, "destroy_addr_space", &unwind.destroy_space) &&
	       find(unwinder, PREFIX, "set_caching_policy", &unwind.set_caching) &&
	       find(unwinder, PREFIX, "init_remote", &unwind.init_remote) &&
	       find(unwinder, PREFIX, "step", &unwind.step) && find(unwinder, PREFIX, "get_reg", &unwind.get_reg);
}

int native_open(struct native *native, const struct process *process, char *why, size_t bytes)
{
	const struct target *target = &process->target;
	int r = -1;

	*native = (struct native){0};
	if (!target->same_root)
		snprintf(why, bytes,
			 "process %d sees other files than this one: run evprof stack --native in its container",
			 (int)target->pid);
	else if (!load(native) || !(native->space = unwind.create_space(unwind.accessors, 0)))
		snprintf(why, bytes, "--native needs " LIBRARY ": install libunwind (Debian, Ubuntu: libunwind8)");
	else if (modules_read(&native->modules, target->pid) < 0)
		snprintf(why, bytes, "the mappings of process %d cannot be read", (int)target->pid);
	else
		r = 0;
	if (r == 0)
		unwind.set_caching(native->space, NO_CACHE); /* a few steps for each thread: nothing is gained by one */
	return r;
}

void native_close(struct native *native)
{
	if (native->space)
		unwind.destroy_space(native->space);
	if (native->library)
		dlclose(native->library);
	if (native->unwinder)
		dlclose(native->unwinder);
	modules_done(&native->modules);
	*native = (struct native){0};
}

/* --- a stop --- */

/* Until it stops by PTRACE_INTERRUPT; signals on their way are delivered. False: it has ended, or does not stop. */
static bool await_stop(pid_t tid)
{
	const struct timespec pause = {.tv_nsec = 100000};
	int status;

	for (int i = 0; i < STOP_TURNS; i++) {
		pid_t found = waitpid(tid, &status, __WALL | WNOHANG);

		if (found < 0 && errno != EINTR)
			return false;
		if (found != tid) {
			nanosleep(&pause, NULL);
			continue;
		}
		if (!WIFSTOPPED(status))
			return false;
		if (status >> 16 == PTRACE_EVENT_STOP)
			return true;
		ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)WSTOPSIG(status));
	}
	return false;
}

static bool stop(pid_t tid)
{
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return false;
	return ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 && await_stop(tid);
}

/* Also after a stop that failed: one that comes late ends with evprof. */
static void resume(pid_t tid)
{
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
}

/* What unwinding finds, innermost first. */
static struct {
	uint64_t address; /* of the call */
	uint64_t stack;	  /* the stack pointer */
} steps[NATIVE_FRAMES_MAX];

/* Of a thread that is stopped. Returns their number. */
static size_t read_steps(const struct native *native, void *target)
{
	static char cursor[CURSOR_BYTES] __attribute__((aligned(16)));
	size_t count = 0;

	if (unwind.init_remote(cursor, native->space, target) < 0)
		return 0;
	do {
		if (unwind.get_reg(cursor, REGISTER_IP, &steps[count].address) < 0 || !steps[count].address ||
		    unwind.get_reg(cursor, REGISTER_SP, &steps[count].stack) < 0)
			break;
		steps[count].address -= count > 0; /* a return address is behind its call */
		count++;
	} while (count < NATIVE_FRAMES_MAX && unwind.step(cursor) > 0);
	return count;
}

/* --- the Python stack of a stopped thread --- */

static struct remote_frame frames[REMOTE_FRAMES];
static struct stack_frame found[REMOTE_FRAMES];

static int read_frames(const struct layout *layout, struct process *process, struct codes *codes,
		       struct stack_thread *thread)
{
	struct stack_frame *kept;
	int count;

	remote_refresh(process->remote);
	count = remote_stack(process->remote, thread->state, frames);
	for (int i = 0; i < count; i++) {
		found[i] = (struct stack_frame){.at = frames[i]};
		if (!codes_find(codes, process, frames[i].code, &found[i].code))
			return 0;
		found[i].line = codes_line(codes, layout, found[i].code, frames[i].instruction);
	}
	if (count < 0)
		return 0;
	kept = malloc(((size_t)count + 1) * sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	memcpy(kept, found, (size_t)count * sizeof(*kept));
	free(thread->frames);
	thread->frames = kept;
	thread->count = (size_t)count;
	thread->changed = false;
	return 0;
}

/* Of each Python frame, innermost first. */
static struct {
	bool entered;	/* C code has called it: it is the first one of an evaluation */
	uint64_t entry; /* the evaluation's entry frame, which is on the stack of C; 0: none */
} calls[REMOTE_FRAMES];

/* The entry frame between a frame and its caller. From 3.12 on. */
static uint64_t entry_behind(const struct layout *layout, struct process *process, uint64_t frame, uint64_t caller)
{
	uint32_t owner = (uint32_t)layout->row->layout.frame_owner;
	uint8_t byte;

	for (int i = 0; i < 8; i++) {
		if (!process_word(process, frame + layout->fields.frame_back, &frame) || !frame || frame == caller ||
		    !remote_read(process->remote, frame + owner, &byte, 1))
			return 0;
		if (byte >= PYTHON_FRAME_OWNED_BY_C)
			return frame;
	}
	return 0;
}

/* Until 3.10 each frame has an evaluation of its own; 3.11 marks its first one, in the byte before the owner. */
static void find_calls(const struct layout *layout, struct process *process, const struct stack_thread *thread)
{
	const struct python_layout *known = &layout->row->layout;
	uint8_t byte;

	for (size_t i = 0; i < thread->count; i++) {
		uint64_t frame = thread->frames[i].at.frame;
		uint64_t caller = i + 1 < thread->count ? thread->frames[i + 1].at.frame : 0;

		calls[i].entry = 0;
		if (!layout_has(layout, PYTHON_OWN_FRAMES))
			calls[i].entered = true;
		else if (known->inner_previous)
			calls[i].entered =
			    !caller || !remote_read(process->remote, frame + known->frame_owner - 1, &byte, 1) || byte;
		else
			calls[i].entered = (calls[i].entry = entry_behind(layout, process, frame, caller)) || !caller;
	}
}

/*
 * Whether a native frame evaluates Python functions: the entry frame is a variable of its own. Before there were any,
 * by its function; a part of that may be elsewhere.
 */
static bool evaluates(const struct process *process, const struct native_frame *frame, uint64_t stack, uint64_t end,
		      size_t count)
{
	const struct target *python = &process->target;

	for (size_t i = 0; i < count; i++)
		if (calls[i].entry)
			break;
		else if (i + 1 == count)
			return frame->address - python->evaluate < python->evaluate_bytes ||
			       !strncmp(frame->name, EVALUATE, sizeof(EVALUATE) - 1);
	for (size_t i = 0; i < count; i++)
		if (calls[i].entry >= stack && calls[i].entry < end)
			return true;
	return false;
}

/* --- both --- */

static int add_merged(struct native_stack *stack, size_t *room, bool native, size_t number)
{
	if (grow_by_one(&stack->merged, room, stack->merged_count, sizeof(*stack->merged)) < 0)
		return -ENOMEM;
	stack->merged[stack->merged_count++] = (struct merged_frame){native, (uint32_t)number};
	return 0;
}

/* The innermost evaluation may have no frame yet. */
static int merge(struct native_stack *stack, size_t count)
{
	size_t evaluations = 0, groups = 0, room = 0, at = 0, extra;
	int r = 0;

	for (size_t i = 0; i < stack->count; i++)
		evaluations += stack->at[i].evaluates;
	for (size_t i = 0; i < count; i++)
		groups += calls[i].entered;
	extra = evaluations - groups;
	stack->apart = evaluations < groups || extra > 1;
	for (size_t i = 0; i < stack->count && r == 0; i++) {
		if (stack->apart || !stack->at[i].evaluates || extra) {
			extra -= !stack->apart && stack->at[i].evaluates;
			r = add_merged(stack, &room, true, i);
			continue;
		}
		do {
			r = add_merged(stack, &room, false, at);
		} while (r == 0 && !calls[at++].entered && at < count);
	}
	while (at < count && r == 0)
		r = add_merged(stack, &room, false, at++);
	return r;
}

static int set_frames(struct native *native, const struct process *process, size_t count, struct native_stack *stack)
{
	if (!stack->count)
		return 0;
	stack->at = calloc(stack->count, sizeof(*stack->at));
	if (!stack->at)
		return -ENOMEM;
	for (size_t i = 0; i < stack->count; i++) {
		struct native_frame *frame = &stack->at[i];
		uint64_t end = i + 1 < stack->count ? steps[i + 1].stack : steps[i].stack;

		frame->address = steps[i].address;
		modules_name(&native->modules, frame->address, frame->name, frame->module, sizeof(frame->module));
		frame->evaluates = evaluates(process, frame, steps[i].stack, end, count);
	}
	return merge(stack, count);
}

static int read_once(struct native *native, const struct layout *layout, struct process *process, struct codes *codes,
		     struct stack_thread *thread, struct native_stack *stack)
{
	void *target = unwind.target_new(thread->tid);
	size_t count = 0;
	int r = 0;

	if (!target)
		return -ENOMEM;
	if (stop(thread->tid)) {
		r = read_frames(layout, process, codes, thread);
		find_calls(layout, process, thread);
		count = read_steps(native, target);
	}
	resume(thread->tid);
	unwind.target_free(target);
	if (r < 0)
		return r;
	stack->count = count;
	return set_frames(native, process, thread->count, stack);
}

/* A thread that was stopped between two frames is stopped again. */
int native_read(struct native *native, const struct layout *layout, struct process *process, struct codes *codes,
		struct stack_thread *thread, struct native_stack *stack)
{
	int r = 0;

	for (int i = 0; i < TRIES && r == 0 && (i == 0 || stack->apart); i++) {
		native_stack_done(stack);
		r = read_once(native, layout, process, codes, thread, stack);
	}
	return r;
}

void native_stack_done(struct native_stack *stack)
{
	free(stack->at);
	free(stack->merged);
	memset(stack, 0, sizeof(*stack));
}
