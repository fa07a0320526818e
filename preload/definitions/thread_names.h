/*
 * thread_names.h - the names that Python's threading gives to threads.
 *
 * If calls are hooked, the calls of two functions of threading.py provide the names. If they are not there is no
 * such hook, see hooks/sampled.h.
 */
#ifndef PRELOAD_THREAD_NAMES_H
#define PRELOAD_THREAD_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct object;

/* Writes the name of the thread with this kernel id. */
void thread_names_define(uint32_t tid, struct object *name);

/* Stores the calling thread's name, for the child that it may fork. GIL held. */
void thread_names_remember(struct object *name);

/*
 * Writes the name that the thread had in the parent. Called when the child of a fork has joined. Does not call Python.
 */
void thread_names_define_inherited(void);

/* Writes the new name of a Thread that runs. It has its kernel id from 3.8 on. */
void thread_names_define_new(struct object *thread, struct object *name);

/* Writes the names of all threads that the module threading knows, if modules (sys.modules) has it. From 3.8 on. */
void thread_names_define_present(struct object *modules);

/* Reads a name. first: Thread._bootstrap_inner() starts, in the new thread; else the setter of Thread.name does. */
void thread_names_learn(bool first);

#endif
