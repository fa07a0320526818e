/*
 * unwind.c - finds the caller of a native frame. The only file that uses libunwind.
 *
 * libunwind's local unwinding is unfit for somebody else's process. Its memory check keeps the two descriptors of a
 * pipe, and writes to whatever has their numbers after the program has closed them; and it waits for locks that a fork
 * may have left locked. So libunwind is used as a debugger uses it, through accessors, for one question only: how the
 * unwind tables find the caller at an instruction.
 *
 * The answer comes from a step with made-up registers. Their values, and those of the memory around them, are such that
 * the results show where they came from: "the caller's stack pointer is 48 above ours, its frame pointer is saved 16
 * below that". Such a rule holds whenever execution is at the same instruction, and most functions have one. It is kept
 * in a table; applying it takes two loads. Where the tables say something else (a deeper expression, a signal frame),
 * libunwind makes each step with the real registers and the real stack. Where there are no tables, the stack ends.
 *
 * Whatever the tables say, memory is read only between the stack pointer and the end of the thread's stack, and each
 * step must go up. On a stack that is not the thread's (a coroutine of C code) the kernel checks each word.
 */
#include "definitions/unwind.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <libunwind.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/seccomp.h"
#include "definitions/modules.h"
#include "python/python.h"
#include "ring/writer.h"

#define TEXT_OF(x) #x
#define NAME_OF(x) TEXT_OF(x)

#if defined(__x86_64__)
#define LIBRARY "libunwind-x86_64.so.8"
#define FRAME_POINTER UNW_X86_64_RBP
#define JUMP_ALIGNMENT 1
#else
#define LIBRARY "libunwind-aarch64.so.8"
#define FRAME_POINTER UNW_AARCH64_X29
#define JUMP_ALIGNMENT 4
#endif

#define GUESSED_BYTES ((uintptr_t)1 << 20)

#define RULES_BITS 14
#define RULES ((size_t)1 << RULES_BITS)
#define RULES_PROBES 8

enum rule_kind {
	RULE_UNKNOWN = 0, /* an unused entry */
	RULE_PLAIN = 1,
	RULE_LAST = 2, /* the outermost function */
	RULE_DEEP = 3, /* libunwind makes the step */
	RULE_NONE = 4, /* no tables */
};

/* How to find the caller of a function at one of its instructions. */
union rule {
	struct {
		uint64_t kind : 3;     /* enum rule_kind */
		uint64_t by_frame : 1; /* from the frame pointer, not from the stack pointer */
		uint64_t saved : 1;    /* the caller's frame pointer is in memory; else it is ours */
		int64_t caller : 24;   /* its stack pointer, relative to that register */
		int64_t address : 14;  /* of the return address, relative to the caller's stack pointer */
		int64_t frame : 21;    /* of its frame pointer, likewise */
	};
	uint64_t word;
};

_Static_assert(sizeof(union rule) == sizeof(uint64_t), "a rule is one word");

/* check: address xor rule, so that a reader rejects an entry that is being written. */
struct rule_entry {
	_Atomic uint64_t check;
	_Atomic uint64_t rule;
};

/* The source of the accessors' answers. */
struct probe {
	struct module module; /* of the address */
	struct unwind_place place;
	struct unwind_bounds bounds; /* of the stack; high 0: registers and stack are made up */
	uintptr_t start_ip;	     /* of the function, once its table is found */
	uintptr_t end_ip;
	bool found;   /* a table was found */
	bool foreign; /* another register was read */
};

/*
 * Made-up registers, and the memory around them, each of whose words holds its own address plus MADE_UP_WORD. Nothing
 * is mapped there.
 */
#define MADE_UP_STACK (UINT64_C(1) << 44)
#define MADE_UP_FRAME (UINT64_C(2) << 44)
#define MADE_UP_REACH (UINT64_C(1) << 30)
#define MADE_UP_WORD (UINT64_C(4) << 44)

static struct {
	unw_addr_space_t (*create_addr_space)(unw_accessors_t *, int);
	int (*init_remote)(unw_cursor_t *, unw_addr_space_t, void *);
	int (*step)(unw_cursor_t *);
	int (*get_reg)(unw_cursor_t *, int, unw_word_t *);
	int (*search)(unw_addr_space_t, unw_word_t, unw_dyn_info_t *, unw_proc_info_t *, int, void *);
} library;

static unw_addr_space_t space;
static struct rule_entry *rules;
static uintptr_t own_start, own_end;

/* The ranges of the function that executes bytecode: compilers move its unlikely parts elsewhere. */
#define EVAL_PARTS 4
static struct range {
	uintptr_t start, end;
} eval[EVAL_PARTS];
static unsigned eval_parts;

#define JUMP_BYTES 6
#define EVAL_JUMPS_MAX 4096 /* jumps examined at most */

/*
 * Kept by a fork, unlike the lock: another thread may have been in libunwind, and the child has its internal locks
 * locked.
 */
static _Atomic bool inside;

static __thread struct {
	uintptr_t low, high; /* of the thread's stack; 0: not known yet */
} stack_bounds __attribute__((tls_model("initial-exec")));

/* ---- what libunwind asks ----------------------------------------------------------------------------------------- */

/* The layout of .eh_frame_hdr that linkers write: a sorted table of four-byte offsets. */
struct table_head {
	uint8_t version, frame_encoding, count_encoding, table_encoding;
	int32_t frame;
	uint32_t count;
};

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *info, int need_unwind_info,
			  void *context)
{
	struct probe *probe = context;
	const struct module *module = &probe->module;
	unw_dyn_info_t tables = {.start_ip = module->start, .end_ip = module->end};
	struct table_head head;
	int result;

	if (ip < module->start || ip >= module->end || !module->tables ||
	    !module_has(module, module->tables, sizeof(head)))
		return -UNW_ENOINFO;
	memcpy(&head, (const void *)module->tables, sizeof(head));
	if (head.version != 1 || (head.frame_encoding & 0x0f) != 0x0b || head.count_encoding != 0x03 ||
	    head.table_encoding != 0x3b)
		return -UNW_ENOINFO;
	tables.format = UNW_INFO_FORMAT_REMOTE_TABLE;
	tables.u.rti.segbase = module->tables;
	tables.u.rti.table_data = module->tables + sizeof(head);
	tables.u.rti.table_len = (unw_word_t)head.count * 8 / sizeof(unw_word_t);
	result = library.search(as, ip, &tables, info, need_unwind_info, context);
	if (result < 0)
		return result;
	probe->found = true;
	probe->start_ip = info->start_ip;
	probe->end_ip = info->end_ip;
	return result;
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *info, void *context)
{
	(void)as, (void)info, (void)context;
}

static int get_dynamic_list(unw_addr_space_t as, unw_word_t *address, void *context)
{
	(void)as, (void)address, (void)context;
	return -UNW_ENOINFO;
}

static bool read_stack(uintptr_t at, const struct unwind_place *place, const struct unwind_bounds *bounds,
		       uintptr_t *word)
{
	if (at < place->stack || at > bounds->high - sizeof(*word) || at & (sizeof(*word) - 1))
		return false;
	if (__builtin_expect(bounds->guessed, 0))
		return python_peek((const void *)at, word, sizeof(*word));
	*word = *(const uintptr_t *)at;
	return true;
}

static bool is_made_up(uintptr_t address)
{
	return address - (MADE_UP_STACK - MADE_UP_REACH) < 2 * MADE_UP_REACH ||
	       address - (MADE_UP_FRAME - MADE_UP_REACH) < 2 * MADE_UP_REACH;
}

static int access_memory(unw_addr_space_t as, unw_word_t address, unw_word_t *value, int write, void *context)
{
	const struct probe *probe = context;

	(void)as;
	if (write)
		return -UNW_EINVAL;
	if (module_has(&probe->module, address, sizeof(*value))) {
		memcpy(value, (const void *)address, sizeof(*value));
		return 0;
	}
	if (probe->bounds.high)
		return read_stack(address, &probe->place, &probe->bounds, value) ? 0 : -UNW_EINVAL;
	if (!is_made_up(address))
		return -UNW_EINVAL;
	*value = MADE_UP_WORD + address;
	return 0;
}

static int access_register(unw_addr_space_t as, unw_regnum_t number, unw_word_t *value, int write, void *context)
{
	struct probe *probe = context;

	(void)as;
	if (write)
		return -UNW_EREADONLYREG;
	*value = 0;
	if (number == UNW_REG_IP)
		*value = probe->place.address - 1; /* of the call, not after it: that may be another function's */
	else if (number == UNW_REG_SP)
		*value = probe->place.stack;
	else if (number == FRAME_POINTER)
		*value = probe->place.frame;
	else
		probe->foreign = true;
	return 0;
}

static int access_other_register(unw_addr_space_t as, unw_regnum_t number, unw_fpreg_t *value, int write, void *context)
{
	(void)as, (void)number, (void)value, (void)write, (void)context;
	return -UNW_EBADREG;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/*
 * Makes one step from the probe's place. Lock held. Returns the result of unw_step(); sets *caller if that is above 0.
 */
static int unwind_step(struct probe *probe, struct unwind_place *caller)
{
	static union {
		unw_cursor_t cursor;
		char room[16384]; /* a later libunwind may need more */
	} memory;
	unw_word_t address, stack, frame;
	int result = library.init_remote(&memory.cursor, space, probe);

	if (result >= 0)
		result = library.step(&memory.cursor);
	if (result <= 0)
		return result;
	if (library.get_reg(&memory.cursor, UNW_REG_IP, &address) < 0 ||
	    library.get_reg(&memory.cursor, UNW_REG_SP, &stack) < 0 ||
	    library.get_reg(&memory.cursor, FRAME_POINTER, &frame) < 0)
		return -UNW_EBADREG;
	*caller = (struct unwind_place){.address = address, .stack = stack, .frame = frame};
	return result;
}

/* Derives the rule from the caller's registers, which are relative to the made-up ones. */
static union rule read_rule(const struct unwind_place *caller)
{
	int64_t by_stack = (int64_t)(caller->stack - MADE_UP_STACK);
	int64_t by_frame = (int64_t)(caller->stack - MADE_UP_FRAME);
	bool frames = by_stack != (int64_t)(int32_t)by_stack, saved = caller->frame != MADE_UP_FRAME;
	int64_t stack = frames ? by_frame : by_stack;
	int64_t address = (int64_t)(caller->address - MADE_UP_WORD - caller->stack);
	int64_t frame = saved ? (int64_t)(caller->frame - MADE_UP_WORD - caller->stack) : 0;
	union rule rule = {.kind = RULE_PLAIN,
			   .by_frame = frames,
			   .saved = saved,
			   .caller = stack,
			   .address = address,
			   .frame = frame};

	if (rule.caller != stack || rule.address != address || address >= 0 || rule.frame != frame)
		return (union rule){.kind = RULE_DEEP};
	return rule;
}

/*
 * Finds the module of the probe's address. No lock held: before glibc 2.35, and with musl, the search waits for a lock
 * of the loader, and whoever has that may be in free() or malloc(), waiting for a lock of evprof's.
 */
static bool find_module(struct probe *probe)
{
	return module_find(probe->place.address - 1, &probe->module);
}

/* The module is found. Lock held. */
static union rule find_out(struct probe *probe)
{
	struct unwind_place caller;
	int result;

	probe->place.stack = MADE_UP_STACK;
	probe->place.frame = MADE_UP_FRAME;
	probe->bounds = (struct unwind_bounds){0};
	result = unwind_step(probe, &caller);
	if (!probe->found)
		return (union rule){.kind = RULE_NONE};
	if (result == 0)
		return (union rule){.kind = RULE_LAST};
	return result > 0 && !probe->foreign ? read_rule(&caller) : (union rule){.kind = RULE_DEEP};
}

static _Atomic uint32_t *unwind_lock; /* of callers of libunwind; free in the child of a fork */

/* False: this process can no longer use libunwind (a fork interrupted it). */
static bool enter_library(void)
{
	lock_take(unwind_lock);
	thread_self.nesting++;
	if (!atomic_exchange(&inside, true))
		return true;
	thread_self.nesting--;
	lock_give(unwind_lock);
	return false;
}

static void leave_library(void)
{
	atomic_store(&inside, false);
	thread_self.nesting--;
	lock_give(unwind_lock);
}

static struct rule_entry *rule_place(uintptr_t address, size_t probe)
{
	return &rules[((address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - RULES_BITS)) + probe) & (RULES - 1)];
}

static union rule recall_rule(uintptr_t address)
{
	for (size_t i = 0; i < RULES_PROBES; i++) {
		struct rule_entry *entry = rule_place(address, i);
		union rule rule = {.word = atomic_load_explicit(&entry->rule, memory_order_relaxed)};

		if ((atomic_load_explicit(&entry->check, memory_order_relaxed) ^ rule.word) == address && rule.kind)
			return rule;
		if (!rule.word)
			break;
	}
	return (union rule){0};
}

/* Stores a rule in the first free place, or replaces another one. Lock held. */
static void keep_rule(uintptr_t address, union rule rule)
{
	struct rule_entry *entry = rule_place(address, 0);

	for (size_t i = 0; i < RULES_PROBES; i++)
		if (!atomic_load_explicit(&rule_place(address, i)->rule, memory_order_relaxed)) {
			entry = rule_place(address, i);
			break;
		}
	atomic_store_explicit(&entry->check, address ^ rule.word, memory_order_relaxed);
	atomic_store_explicit(&entry->rule, rule.word, memory_order_relaxed);
}

static __attribute__((noinline, cold)) union rule learn_rule(uintptr_t address)
{
	struct probe probe = {.place.address = address};
	union rule rule = {.kind = RULE_NONE};
	bool found = find_module(&probe);

	if (!enter_library())
		return rule;
	if (found)
		rule = find_out(&probe);
	keep_rule(address, rule);
	leave_library();
	return rule;
}

void unwind_forget(void)
{
	lock_take(unwind_lock);
	for (size_t i = 0; i < RULES; i++)
		atomic_store_explicit(&rules[i].rule, 0, memory_order_relaxed);
	lock_give(unwind_lock);
}

/* False: there is no caller, or it cannot be found. */
static __attribute__((noinline, cold)) bool step_deep(struct unwind_place *place, const struct unwind_bounds *bounds)
{
	struct probe probe = {.place = *place, .bounds = *bounds};
	struct unwind_place caller = {0};
	bool made;

	if (!find_module(&probe) || !enter_library())
		return false;
	made = unwind_step(&probe, &caller) > 0 && probe.found && !probe.foreign;
	leave_library();
	if (!made || caller.stack <= place->stack || caller.stack > bounds->high)
		return false;
	*place = caller;
	return true;
}

static bool step_plain(struct unwind_place *place, union rule rule, const struct unwind_bounds *bounds,
		       struct unwind_source *source)
{
	uintptr_t stack = (rule.by_frame ? place->frame : place->stack) + (uintptr_t)(int64_t)rule.caller;
	uintptr_t address, frame = place->frame;

	if (stack <= place->stack || stack > bounds->high ||
	    !read_stack(stack + (uintptr_t)(int64_t)rule.address, place, bounds, &address) ||
	    (rule.saved && !read_stack(stack + (uintptr_t)(int64_t)rule.frame, place, bounds, &frame)))
		return false;
	*source = (struct unwind_source){
	    .address_at = (const uintptr_t *)(stack + (uintptr_t)(int64_t)rule.address),
	    .frame_at = rule.saved ? (const uintptr_t *)(stack + (uintptr_t)(int64_t)rule.frame) : NULL,
	    .by_frame = rule.by_frame};
	*place = (struct unwind_place){.address = address & UNWIND_ADDRESS_MASK, .stack = stack, .frame = frame};
	return true;
}

/* ---- the steps of a walk ---------------------------------------------------------------------------------------- */

static __attribute__((noinline, cold)) void learn_bounds(void)
{
	pthread_attr_t attributes;
	void *low;
	size_t size;

	stack_bounds.high = 1;
	if (seccomp_active())
		return;
	thread_self.nesting++; /* it allocates */
	if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
		if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
			stack_bounds.low = (uintptr_t)low;
			stack_bounds.high = (uintptr_t)low + size;
		}
		pthread_attr_destroy(&attributes);
	}
	thread_self.nesting--;
}

struct unwind_bounds unwind_bounds(uintptr_t stack)
{
	if (__builtin_expect(!stack_bounds.high, 0))
		learn_bounds();
	if (__builtin_expect(stack >= stack_bounds.low && stack < stack_bounds.high, 1))
		return (struct unwind_bounds){.high = stack_bounds.high, .whole = true};
	/* Under a seccomp filter no system call is made; this page is mapped. */
	if (seccomp_active())
		return (struct unwind_bounds){.high = (stack & ~(uintptr_t)4095) + 4096};
	return (struct unwind_bounds){.high = stack + GUESSED_BYTES, .guessed = true};
}

bool unwind_up(struct unwind_place *place, const struct unwind_bounds *bounds, struct unwind_source *source, bool *cut)
{
	union rule rule = recall_rule(place->address);

	if (__builtin_expect(!rule.kind, 0))
		rule = learn_rule(place->address);
	if (__builtin_expect(rule.kind == RULE_PLAIN, 1)) {
		*cut = !step_plain(place, rule, bounds, source);
		return !*cut;
	}
	*cut = rule.kind != RULE_LAST && !(rule.kind == RULE_DEEP && step_deep(place, bounds));
	return rule.kind == RULE_DEEP && !*cut;
}

bool unwind_is_eval(uintptr_t address)
{
	for (unsigned i = 0; i < eval_parts; i++)
		if (address - eval[i].start < eval[i].end - eval[i].start)
			return true;
	return false;
}

bool unwind_is_own(uintptr_t address)
{
	return address - own_start < own_end - own_start;
}

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

#ifdef EVPROF_STATIC_UNWIND /* libunwind is in libevprof.so: in packages, which want nothing installed */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t *, unw_proc_info_t *, int, void *);

static bool find_functions(void)
{
	library.create_addr_space = unw_create_addr_space;
	library.init_remote = unw_init_remote;
	library.step = unw_step;
	library.get_reg = unw_get_reg;
	library.search = UNW_OBJ(dwarf_search_unwind_table);
	return true;
}
#else
static bool find_functions(void)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return false;
	*(void **)&library.create_addr_space = dlsym(handle, NAME_OF(UNW_OBJ(create_addr_space)));
	*(void **)&library.init_remote = dlsym(handle, NAME_OF(UNW_OBJ(init_remote)));
	*(void **)&library.step = dlsym(handle, NAME_OF(UNW_OBJ(step)));
	*(void **)&library.get_reg = dlsym(handle, NAME_OF(UNW_OBJ(get_reg)));
	*(void **)&library.search = dlsym(handle, NAME_OF(UNW_OBJ(dwarf_search_unwind_table)));
	return library.create_addr_space && library.init_remote && library.step && library.get_reg && library.search;
}
#endif

/*
 * The target of a jump at this address; 0: there is no jump. On x86-64 the bytes of a jump may be part of another
 * instruction.
 */
static uintptr_t jump_target(uintptr_t at)
{
#if defined(__x86_64__)
	const uint8_t *code = (const uint8_t *)at;
	bool conditional = code[0] == 0x0f && (code[1] & 0xf0) == 0x80;
	int32_t distance;

	if ((!conditional && code[0] != 0xe9) || at > UINTPTR_MAX - JUMP_BYTES)
		return 0;
	code += 1 + conditional;
	distance =
	    (int32_t)((uint32_t)code[0] | (uint32_t)code[1] << 8 | (uint32_t)code[2] << 16 | (uint32_t)code[3] << 24);
	return at + 5 + conditional + (uintptr_t)(intptr_t)distance;
#else
	uint32_t code;

	memcpy(&code, (const void *)at, sizeof(code));
	return code >> 26 == 5 ? at + (uintptr_t)((intptr_t)((uint64_t)code << 38) >> 36) : 0;
#endif
}

/*
 * A candidate part of the function. A jump into the middle of another function that does not leave the frame leads to a
 * part of the same function: the rules on both sides are then equal. A single such jump may be chance.
 */
struct part {
	struct range range;
	unsigned jumps;
};

static void count_jump(struct part parts[EVAL_PARTS], const struct module *module, const struct range *function,
		       uintptr_t from, uintptr_t to)
{
	struct probe source = {.place.address = from + 1, .module = *module};
	struct probe target = {.place.address = to + 1, .module = *module};
	union rule here, there;
	unsigned i = 0;

	here = find_out(&source);
	there = find_out(&target);
	if (!source.found || !target.found || here.word != there.word || target.start_ip == to ||
	    target.start_ip == function->start)
		return;
	while (i < EVAL_PARTS && parts[i].jumps && parts[i].range.start != target.start_ip)
		i++;
	if (i == EVAL_PARTS)
		return;
	parts[i].range = (struct range){target.start_ip, target.end_ip};
	parts[i].jumps++;
}

/* A jump leads to the same module. Lock held. */
static void find_parts(const struct module *module, const struct range *function)
{
	struct part parts[EVAL_PARTS] = {0};
	unsigned looks = 0;

	if (!function->start || !module_has(module, function->start, function->end - function->start))
		return;
	for (uintptr_t at = function->start; at + JUMP_BYTES <= function->end && looks < EVAL_JUMPS_MAX;
	     at += JUMP_ALIGNMENT) {
		uintptr_t target = jump_target(at);

		if (target - function->start < function->end - function->start || target < module->start ||
		    target >= module->end)
			continue;
		count_jump(parts, module, function, at, target);
		looks++;
	}
	for (unsigned i = 0; i < EVAL_PARTS && eval_parts < EVAL_PARTS; i++)
		if (parts[i].jumps > 1)
			eval[eval_parts++] = parts[i].range;
}

/* Finds the bytecode loop: the range of its unwind table, and the parts that it jumps to. */
static void find_eval(void)
{
	struct probe probe = {.place.address = (uintptr_t)python_symbol("_PyEval_EvalFrameDefault") + 2};

	if (probe.place.address == 2 || !find_module(&probe) || !enter_library())
		return;
	find_out(&probe);
	if (probe.found) {
		eval[0] = (struct range){probe.start_ip, probe.end_ip};
		eval_parts = 1;
		find_parts(&probe.module, &eval[0]);
	}
	leave_library();
}

/*
 * The first use of libunwind creates the pipe of the memory check, which is never used here. Its two descriptors, the
 * lowest that were free, are closed if they are what they must be.
 */
static bool is_pipe(int fd, int way, const struct stat *other, struct stat *status)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) == way && flags & O_NONBLOCK && fcntl(fd, F_GETFD) == FD_CLOEXEC &&
	       fstat(fd, status) == 0 && S_ISFIFO(status->st_mode) && (!other || other->st_ino == status->st_ino);
}

static int free_descriptor(int from)
{
	while (fcntl(from, F_GETFD) >= 0)
		from++;
	return from;
}

static void use_first(void)
{
	struct probe probe = {.place = {1, MADE_UP_STACK, MADE_UP_FRAME}};
	int first = free_descriptor(0), second = free_descriptor(first + 1);
	struct stat status, other;
	struct unwind_place caller;

	if (!enter_library())
		return;
	unwind_step(&probe, &caller);
	leave_library();
	if (is_pipe(first, O_RDONLY, NULL, &status) && is_pipe(second, O_WRONLY, &status, &other)) {
		close(first);
		close(second);
	}
}

const char *unwind_begin(void)
{
	/* resume and get_proc_name are not set: no step calls them. */
	static union {
		unw_accessors_t accessors;
		char room[1024]; /* a later libunwind may have more accessors */
	} memory = {.accessors = {.find_proc_info = find_proc_info,
				  .put_unwind_info = put_unwind_info,
				  .get_dyn_info_list_addr = get_dynamic_list,
				  .access_mem = access_memory,
				  .access_reg = access_register,
				  .access_fpreg = access_other_register}};
	struct module own;

	if (!find_functions())
		return LIBRARY;
	unwind_lock = wiped_memory_new(sizeof(*unwind_lock));
	space = library.create_addr_space(&memory.accessors, 0);
	if (!space || !unwind_lock)
		return "memory";
	rules = mmap(NULL, RULES * sizeof(*rules), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (rules == MAP_FAILED)
		return "memory";
	modules_begin();
	if (module_find((uintptr_t)unwind_begin, &own)) {
		own_start = own.start;
		own_end = own.end;
	}
	use_first();
	find_eval();
	return NULL;
}
