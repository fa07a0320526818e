/*
 * evprof.h - what a program may ask of evprof, if it wants to. No program has to.
 *
 * The functions are in libevprof.so, which is there only when it was preloaded. Look them up at run time:
 *
 *     void (*mark)(const char *) = dlsym(RTLD_DEFAULT, "evprof_mark");
 *     if (mark) mark("request begins");
 *
 * or from Python: ctypes.CDLL(None).evprof_mark(b"request begins"). All may be called from any thread, with or without
 * the GIL, and do nothing where the process is not profiled. None changes errno.
 */
#ifndef EVPROF_EVPROF_H
#define EVPROF_EVPROF_H

#ifdef __cplusplus
extern "C" {
#endif

/* Puts a named mark at this moment of the calling thread. name: UTF-8, copied. */
void evprof_mark(const char *name);

/*
 * Stops and starts the recording of events in all threads of the process. The hooks stay where they are, so starting is
 * immediate; the call stack is right again at the first event after it. Both may be called when nothing is to do.
 */
void evprof_stop(void);
void evprof_start(void);

/* 1 if this process is being recorded, 0 if not (no Python, switched off, stopped, or the collector is gone). */
int evprof_active(void);

#ifdef __cplusplus
}
#endif

#endif
