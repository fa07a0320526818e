/*
 * target.h - a running Python to which evprof attaches: its user, its namespaces, and where its functions are.
 */
#ifndef EVPROF_TOOLS_ATTACH_TARGET_H
#define EVPROF_TOOLS_ATTACH_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/elf_file.h"

/* A file that is mapped: its first mapping. */
struct target_file {
	uint64_t start, end, inode;
	char path[4096]; /* as we see it, or the process, or neither */
};

struct target {
	pid_t pid;
	uid_t user;
	gid_t group;
	char program[256];   /* its name, for messages */
	pid_t own_pid;	     /* as the process itself has it, in its pid namespace */
	bool same_root;	     /* it sees the files that we see */
	bool same_network;   /* it reaches abstract sockets of ours */
	bool has_library;    /* libevprof.so is mapped */
	char library[4096];  /* the path of that one */
	uint32_t version;    /* PY_VERSION_HEX, where it is known (from 3.11 on); else 0 */
	uint64_t add_call;   /* addresses in the process; 0: not found. Py_AddPendingCall */
	uint64_t run_string; /* PyRun_SimpleString */
	uint64_t evaluate;   /* _PyEval_EvalFrameDefault, and its bytes */
	uint64_t evaluate_bytes;
	uint64_t runtime;	   /* _PyRuntime; 3.6 has none */
	uint64_t is_initialized;   /* Py_IsInitialized */
	struct target_file python; /* the file that defines Python's functions */
	uint64_t python_end;	   /* address behind its variables, the zeroed ones too */
	uint64_t follow;	   /* the library's evprof_attach_follow(); 0: not loaded, or another version */
};

/*
 * Finds the process and its Python. Returns 0, or -1 with one line, without a period, in why: no such process, another
 * user's, not a Python.
 */
int target_find(struct target *target, pid_t pid, char *why, size_t why_bytes);

/* Likewise, for a look from outside: another version of evprof may be loaded. */
int target_look(struct target *target, pid_t pid, char *why, size_t why_bytes);

/*
 * The addresses in the process of symbols of Python's file; 0: not found. Returns 0 or -errno: the file cannot be read.
 */
int target_symbols(const struct target *target, struct elf_symbol *symbols, unsigned count);

/* The id of a thread as its process has it: in the innermost pid namespace. tid, if that is not known. */
pid_t target_own_id(pid_t pid, pid_t tid);

/* Reads memory of the process. 0 or -errno. */
int target_read(const struct target *target, uint64_t address, void *out, size_t bytes);

#endif
