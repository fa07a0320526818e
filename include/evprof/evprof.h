/*
 * evprof.h - the optional interface for profiled programs.
 *
 * The functions are in libevprof.so, which is present only when it was preloaded. Look them up at run time:
 *
 *     void (*mark)(const char *) = dlsym(RTLD_DEFAULT, "evprof_mark");
 *     if (mark) mark("request begins");
 *
 * or from Python: ctypes.CDLL(None).evprof_mark(b"request begins"). Any thread may call them, with or without the GIL.
 * They do nothing in a process that is not profiled, and never change errno.
 */
#ifndef EVPROF_EVPROF_H
#define EVPROF_EVPROF_H

#ifdef __cplusplus
extern "C" {
#endif

/* Records a named mark in the calling thread, now. name: UTF-8, copied. */
void evprof_mark(const char *name);

/*
 * Stop and start the recording of events in all threads of the process. The hooks stay set, so starting is immediate;
 * the call stack is correct again at the first event afterwards. Redundant calls are allowed.
 */
void evprof_stop(void);
void evprof_start(void);

/* 1 while this process is recorded, 0 if not (no Python, switched off, stopped, or the collector is gone). */
int evprof_active(void);

#ifdef __cplusplus
}
#endif

#endif
