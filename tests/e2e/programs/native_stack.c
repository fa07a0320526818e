/*
 * native_stack.c - allocates from Python's allocators below functions of several kinds, and prints the stack at that
 * place as the C library's backtrace() sees it. Loaded by native_stack.py; knows no Python header.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

/* Not exported: a stripped library has no names of them. */
#define NOINLINE __attribute__((noinline, noclone, visibility("hidden")))
#define FRAMES 200

#ifndef INNER
#define INNER level_inner
#endif

typedef void *(*allocate)(size_t size);

static __thread void *frames[FRAMES];
static __thread int count;

NOINLINE void *INNER(allocate f, size_t size)
{
	void *block;

	count = backtrace(frames, FRAMES);
	block = f(size);
	__asm__ volatile("" : : "r"(block) : "memory"); /* no tail call */
	return block;
}

/* A frame whose size is not known when it is compiled. */
NOINLINE void *level_variable(allocate f, size_t size)
{
	volatile char room[size % 100 + 1];
	void *block;

	room[0] = 1;
	block = INNER(f, size);
	room[0]++;
	return block;
}

/* A frame that is aligned to more than its caller's. */
NOINLINE void *level_aligned(allocate f, size_t size)
{
	_Alignas(64) volatile char room[128];
	void *block;

	room[0] = 1;
	block = level_variable(f, size);
	room[0]++;
	return block;
}

static inline __attribute__((always_inline)) void *level_inlined(allocate f, size_t size)
{
	void *block = level_aligned(f, size);

	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}

NOINLINE void *level_of_cpp(allocate f, size_t size) __asm__("_ZN5outer5innerEv");

NOINLINE void *level_of_cpp(allocate f, size_t size)
{
	void *block = level_inlined(f, size);

	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}

NOINLINE void *level_recursive(allocate f, size_t size, int depth)
{
	void *block = depth > 0 ? level_recursive(f, size, depth - 1) : INNER(f, size);

	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}

void *native_all(allocate f, size_t size)
{
	void *block = level_of_cpp(f, size);

	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}

void *native_inner(allocate f, size_t size)
{
	void *block = INNER(f, size);

	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}

void *native_recursive(allocate f, size_t size)
{
	return level_recursive(f, size, 100);
}

/* On a stack of its own. */
static ucontext_t caller, callee;
static allocate allocate_there;
static size_t size_there;
static void *block_there;

static void run_there(void)
{
	block_there = INNER(allocate_there, size_there);
}

void *native_elsewhere(allocate f, size_t size)
{
	static char stack[1 << 18];

	allocate_there = f;
	size_there = size;
	getcontext(&callee);
	callee.uc_stack.ss_sp = stack;
	callee.uc_stack.ss_size = sizeof(stack);
	callee.uc_link = &caller;
	makecontext(&callee, run_there, 0);
	swapcontext(&caller, &callee);
	return block_there;
}

/* "path+0xaddress", as in the file, of each call, the innermost first. */
const char *native_trace(void)
{
	static __thread char text[FRAMES * 300];
	size_t used = 0;

	for (int i = 0; i < count && used + 300 < sizeof(text); i++) {
		struct link_map *map = NULL;
		Dl_info info;

		if (!dladdr1((char *)frames[i] - 1, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
			break;
		used += (size_t)snprintf(text + used, 300, "%s%s+%#lx", i ? " " : "",
					 map->l_name[0] ? map->l_name : "program",
					 (unsigned long)((uintptr_t)frames[i] - 1 - map->l_addr));
	}
	text[used] = 0;
	return text;
}
