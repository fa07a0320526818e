/* target.c - see target.h. */
#include "attach/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "attach/elf_file.h"
#include "evprof/proc.h"
#include "util/why.h"

#define LIBRARY "/libevprof.so"

int target_read(const struct target *target, uint64_t address, void *out, size_t bytes)
{
	struct iovec to = {.iov_base = out, .iov_len = bytes};
	struct iovec from = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
	ssize_t n = process_vm_readv(target->pid, &to, 1, &from, 1, 0);

	return n == (ssize_t)bytes ? 0 : n < 0 ? -errno : -EFAULT;
}

/* By the link of the namespace, "net:[4026531840]". */
static bool same_namespace(pid_t pid, const char *name)
{
	char path[64], own[64], its[64];
	ssize_t a, b;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	a = readlink(path, own, sizeof(own));
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
	b = readlink(path, its, sizeof(its));
	return a > 0 && a == b && memcmp(own, its, (size_t)a) == 0;
}

static bool same_root(pid_t pid)
{
	struct stat own, its;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	return !stat("/", &own) && !stat(path, &its) && own.st_dev == its.st_dev && own.st_ino == its.st_ino;
}

pid_t target_own_id(pid_t pid, pid_t tid)
{
	char text[65536], *ids = proc_status_of(pid, tid, "\nNSpid:", text, sizeof(text)), *last;

	if (!ids)
		return tid;
	ids[strcspn(ids, "\n")] = 0;
	last = strrchr(ids, '\t');
	return last ? (pid_t)strtoul(last + 1, NULL, 10) : tid;
}

/* The process of a thread: /proc has a folder for each thread, too, which it does not list. */
static pid_t process_of(pid_t tid)
{
	char text[4096];
	const char *id = proc_status_of(tid, 0, "\nTgid:", text, sizeof(text));

	return id ? (pid_t)strtoul(id, NULL, 10) : tid;
}

static void read_program(struct target *target)
{
	if (proc_read_of(target->pid, 0, "comm", target->program, sizeof(target->program)) < 0)
		target->program[0] = 0;
	target->program[strcspn(target->program, "\n")] = 0;
}

static int check_access(struct target *target, char *why, size_t bytes)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", (int)target->pid);
	if (stat(path, &status) < 0)
		return complain(why, bytes, "there is no process %d", (int)target->pid);
	target->user = status.st_uid;
	target->group = status.st_gid;
	read_program(target);
	if (geteuid() && geteuid() != target->user)
		return complain(why, bytes, "process %d is user %u's: run evprof as that user or as root",
				(int)target->pid, (unsigned)target->user);
	target->same_root = same_namespace(target->pid, "mnt") && same_root(target->pid);
	target->same_network = same_namespace(target->pid, "net");
	target->own_pid = target_own_id(target->pid, target->pid);
	return 0;
}

/* A line of /proc/PID/maps. */
struct mapping {
	struct target_file file;
	uint64_t offset;
};

static bool parse_mapping(const char *line, struct mapping *mapping)
{
	struct target_file *file = &mapping->file;
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %" SCNx64 " %*s %" SCNu64 " %n", &file->start, &file->end,
		   &mapping->offset, &file->inode, &path) < 4 ||
	    !path || line[path] != '/')
		return false;
	snprintf(file->path, sizeof(file->path), "%.*s", (int)strcspn(line + path, "\n"), line + path);
	return true;
}

static int open_same(const char *path, uint64_t inode)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat status;

	if (fd >= 0 && !fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_ino == inode)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Opens the file of a mapping. The path may be that in a root of the process, and the file may have been replaced. */
static int open_mapped(const struct target *target, const struct target_file *file)
{
	char path[64 + PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)target->pid, file->start,
		 file->end);
	fd = open_same(path, file->inode); /* root only */
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)target->pid, file->path);
	fd = open_same(path, file->inode);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)target->pid);
	fd = open_same(path, file->inode);
	return fd >= 0 ? fd : open_same(file->path, file->inode);
}

/* Fills in the addresses of the file's symbols in the process. *end: that behind what is loaded of the file. */
static int find_symbols(const struct target *target, const struct target_file *file, struct elf_symbol *symbols,
			unsigned count, uint64_t *end)
{
	int fd = open_mapped(target, file), r;
	uint64_t base = 0;

	*end = 0;
	if (fd < 0)
		return -ENOENT;
	r = elf_file_find(fd, symbols, count);
	if (r >= 0)
		r = elf_file_image(fd, &base, end);
	close(fd);
	*end += file->start - base;
	for (unsigned i = 0; i < count; i++)
		symbols[i].value = r == 0 && symbols[i].value ? symbols[i].value + file->start - base : 0;
	return r;
}

int target_symbols(const struct target *target, struct elf_symbol *symbols, unsigned count)
{
	uint64_t end;

	return find_symbols(target, &target->python, symbols, count, &end);
}

/* Takes the addresses of a file that defines Python's functions. */
static void take_python(struct target *target, const struct target_file *file)
{
	struct elf_symbol symbols[] = {
	    {.name = "Py_AddPendingCall"}, {.name = "PyRun_SimpleString"}, {.name = "_PyEval_EvalFrameDefault"},
	    {.name = "_PyRuntime"},	   {.name = "Py_Version"},	   {.name = "Py_IsInitialized"}};
	uint64_t end;

	if (find_symbols(target, file, symbols, sizeof(symbols) / sizeof(symbols[0]), &end) < 0 || !symbols[0].value)
		return;
	target->python = *file;
	target->python_end = end;
	target->add_call = symbols[0].value;
	target->run_string = symbols[1].value;
	target->evaluate = symbols[2].value;
	target->evaluate_bytes = symbols[2].size;
	target->runtime = symbols[3].value;
	target->is_initialized = symbols[5].value;
	if (symbols[4].value && target_read(target, symbols[4].value, &target->version, 4) < 0)
		target->version = 0;
}

/* The function of the loaded library that takes requests. */
static void take_library(struct target *target, const struct mapping *mapping)
{
	struct elf_symbol follow = {.name = "evprof_attach_follow"};
	uint64_t end;

	target->has_library = true;
	snprintf(target->library, sizeof(target->library), "%s", mapping->file.path);
	if (!mapping->offset && find_symbols(target, &mapping->file, &follow, 1, &end) == 0)
		target->follow = follow.value;
}

/* Its file may have been removed since it was loaded. */
static bool is_library(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && (strcmp(name, LIBRARY) == 0 || strcmp(name, LIBRARY " (deleted)") == 0);
}

/* Whether the file may define Python's functions: the program itself, or a shared libpython. */
static bool may_be_python(const struct mapping *mapping, const char *program)
{
	const char *name = strrchr(mapping->file.path, '/');

	return mapping->offset == 0 &&
	       (strcmp(mapping->file.path, program) == 0 || (name && strstr(name, "libpython")));
}

static void read_mapping(struct target *target, const struct mapping *mapping, const char *program)
{
	if (is_library(mapping->file.path))
		take_library(target, mapping);
	if (!target->add_call && may_be_python(mapping, program))
		take_python(target, &mapping->file);
}

static int read_mappings(struct target *target, char *why, size_t bytes)
{
	char path[64], program[PATH_MAX], *line = NULL;
	struct mapping mapping;
	size_t size = 0;
	ssize_t n;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)target->pid);
	n = readlink(path, program, sizeof(program) - 1);
	program[n > 0 ? n : 0] = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)target->pid);
	maps = fopen(path, "re");
	if (!maps)
		return complain(why, bytes, "cannot read %s: %s", path, strerror(errno));
	while (getline(&line, &size, maps) > 0)
		if (parse_mapping(line, &mapping))
			read_mapping(target, &mapping, program);
	free(line);
	fclose(maps);
	return 0;
}

int target_look(struct target *target, pid_t pid, char *why, size_t bytes)
{
	*target = (struct target){.pid = pid};
	if (process_of(pid) != pid)
		return complain(why, bytes, "%d is a thread of process %d", (int)pid, (int)process_of(pid));
	if (check_access(target, why, bytes) < 0 || read_mappings(target, why, bytes) < 0)
		return -1;
	if (!target->add_call || !target->run_string)
		return complain(why, bytes, "process %d (%s) is no CPython of its own, 3.6 or later", (int)pid,
				target->program);
	return 0;
}

int target_find(struct target *target, pid_t pid, char *why, size_t bytes)
{
	if (target_look(target, pid, why, bytes) < 0)
		return -1;
	if (target->has_library && !target->follow)
		return complain(why, bytes, "process %d has another version of evprof loaded, %s", (int)pid,
				target->library);
	return 0;
}
