/*
 * process.c - starts programs with and without evprof and collects what they say, how they end and what they leave.
 *
 * Owns every process and working directory of a test. The test's process adopts orphans (PR_SET_CHILD_SUBREAPER), so
 * nothing that a program starts escapes: a private collector that would not end is found, named and killed.
 */
#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

#define ARGUMENTS_MAX 48
#define VARIABLES_MAX 48
#define DIRECTORIES_MAX 256
#define BACKGROUNDS_MAX 8
#define TIMEOUT_DEFAULT_S 60
#define SETTLE_TIMEOUT_S 30
#define LISTEN_TRIES 6000      /* of 10 ms */
#define SOCKET_LISTENS 0x10000 /* __SO_ACCEPTCON of Linux's net.h */

static char *directories[DIRECTORIES_MAX];
static size_t directories_count;
static struct background *backgrounds[BACKGROUNDS_MAX];
static size_t backgrounds_count;

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- directories ----------------------------------------------------------------------------------------------- */

static char *directory_new(void)
{
	const char *above = getenv("EVPROF_E2E_SCRATCH");
	char *path = text("%s/w.XXXXXX", above ? above : "/tmp");

	cr_assert(mkdtemp(path) && directories_count < DIRECTORIES_MAX, "cannot make a directory %s", path);
	directories[directories_count++] = path;
	return path;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	remove(path);
	return 0;
}

void directory_remove(const char *directory)
{
	nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void process_remove_directories(void)
{
	if (getenv("EVPROF_TEST_KEEP"))
		return;
	while (directories_count > 0)
		directory_remove(directories[--directories_count]);
}

static bool is_trace(const char *name)
{
	size_t length = strlen(name);

	return length > 4 && strcmp(name + length - 4, ".evp") == 0;
}

void outcome_find_traces(struct outcome *outcome, const char *directory)
{
	struct dirent *entry;
	DIR *list;

	if (!directory)
		directory = outcome->directory;
	outcome->traces = 0;
	outcome->trace[0] = '\0';
	list = opendir(directory);
	while (list && (entry = readdir(list))) {
		if (!is_trace(entry->d_name))
			continue;
		outcome->traces++;
		strcpy(outcome->trace, text("%.*s/%s", PATH_MAX - 300, directory, entry->d_name));
	}
	if (list)
		closedir(list);
}

/* ---- descendants ----------------------------------------------------------------------------------------------- */

void process_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* The children of a process; the kernel's list. */
static size_t children_of(pid_t pid, pid_t *children, size_t room)
{
	char *path = text("/proc/%d/task/%d/children", pid, pid);
	char *list = file_read(path, NULL);
	size_t count = 0;

	for (char *at = list, *word; at && (word = strsep(&at, " ")) && count < room;)
		if (*word)
			children[count++] = (pid_t)atoi(word);
	free(list);
	free(path);
	return count;
}

static bool is_background(pid_t pid)
{
	for (size_t i = 0; i < backgrounds_count; i++)
		if (backgrounds[i]->pid == pid)
			return true;
	return false;
}

static size_t children_left(pid_t *children, size_t room)
{
	size_t count = children_of(getpid(), children, room), kept = 0;

	for (size_t i = 0; i < count; i++)
		if (!is_background(children[i]) && waitpid(children[i], NULL, WNOHANG) == 0)
			children[kept++] = children[i];
	return kept;
}

static void kill_tree(pid_t pid)
{
	pid_t children[64];
	size_t count = children_of(pid, children, 64);

	for (size_t i = 0; i < count; i++)
		kill_tree(children[i]);
	kill(pid, SIGKILL);
}

void process_kill_all(void)
{
	pid_t children[256];

	for (int round = 0; round < 20; round++) {
		size_t count = children_of(getpid(), children, 256);

		for (size_t i = 0; i < count; i++) {
			kill_tree(children[i]);
			waitpid(children[i], NULL, 0);
		}
		if (count == 0)
			return;
	}
}

pid_t process_child_named(const char *name)
{
	pid_t children[256], found = 0;
	size_t count = children_of(getpid(), children, 256);

	for (size_t i = 0; i < count && !found; i++) {
		char *path = text("/proc/%d/comm", children[i]), *comm = file_read(path, NULL);

		if (comm && strcspn(comm, "\n") == strlen(name) && strncmp(comm, name, strlen(name)) == 0)
			found = children[i];
		free(comm);
		free(path);
	}
	return found;
}

bool process_has_ended(pid_t pid)
{
	char *status = file_read(text("/proc/%d/status", (int)pid), NULL);
	bool ended = !status || strstr(status, "State:\tZ");

	free(status);
	return ended;
}

static char *command_line(pid_t pid)
{
	char *path = text("/proc/%d/cmdline", pid);
	size_t bytes = 0;
	char *line = file_read(path, &bytes);

	for (size_t i = 0; line && i + 1 < bytes; i++)
		if (line[i] == '\0')
			line[i] = ' ';
	free(path);
	return line ? line : text("?");
}

void outcome_settle(struct outcome *outcome)
{
	double end = now_s() + SETTLE_TIMEOUT_S;
	pid_t children[256];
	size_t count;

	while ((count = children_left(children, 256)) > 0 && now_s() < end)
		usleep(5000);
	if (count > 0) {
		char *line = command_line(children[0]);

		expect(outcome, count == 0, "%zu processes are still there %d s after the program ended: %d %s", count,
		       SETTLE_TIMEOUT_S, children[0], line);
	}
	outcome_find_traces(outcome, NULL);
}

/* ---- what is started ------------------------------------------------------------------------------------------- */

static const char *expand(const char *word)
{
	if (strncmp(word, "@@", 2) == 0)
		return word + 1;
	if (word[0] == '@')
		return program_path(word + 1);
	if (strncmp(word, "%B", 2) == 0)
		return text("%s%s", build_path(""), word + (word[2] == '/' ? 3 : 2));
	return word;
}

/* What runs the judges: run_tests.sh finds one that starts quickly; "python3" may be a script of pyenv. */
static const char *judges_python(void)
{
	const char *found = getenv("EVPROF_E2E_PYTHON3");

	return found && *found ? found : "python3";
}

static void make_arguments(const struct job *job, const char **argv)
{
	size_t n = 0;

	if (job->how == JOB_RUN) {
		argv[n++] = build_path("evprof");
		argv[n++] = "run";
		for (int i = 0; i < 6 && job->options[i]; i++)
			argv[n++] = expand(job->options[i]);
		argv[n++] = "--";
	}
	for (int i = 0; job->python && i < 4 && job->python->command[i]; i++)
		argv[n++] = job->python->command[i];
	for (int i = 0; i < JOB_ARGUMENTS && job->args[i]; i++)
		argv[n++] = expand(job->args[i]);
	if (job->how == JOB_BARE && !job->python && argv[0] && strcmp(argv[0], "python3") == 0)
		argv[0] = judges_python();
	argv[n] = NULL;
}

static void variable_put(const char **envp, const char *variable)
{
	size_t length = strcspn(variable, "="), at = 0;

	while (envp[at] && !(strncmp(envp[at], variable, length) == 0 && envp[at][length] == '='))
		at++;
	if (variable[length]) {
		envp[at] = variable;
		return;
	}
	for (; envp[at]; at++)
		envp[at] = envp[at + 1];
}

static const char *events; /* see process_events() */

void process_events(const char *variable)
{
	events = variable;
}

bool process_calls_only(void)
{
	return events && !strstr(events, "c_call");
}

/* A small, fixed environment, so that nothing of the caller's changes what a program does. */
static void make_environment(const struct job *job, const char **envp)
{
	static const char *const passed[] = {"PATH",	     "HOME",	     "ASAN_OPTIONS",
					     "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"};

	for (size_t i = 0; i < sizeof(passed) / sizeof(*passed); i++)
		if (getenv(passed[i]))
			variable_put(envp, text("%s=%s", passed[i], getenv(passed[i])));
	variable_put(envp, "LC_ALL=C.UTF-8");
	variable_put(envp, "PYTHONHASHSEED=0");
	variable_put(envp, "PYTHONDONTWRITEBYTECODE=1");
	variable_put(envp, "PYTHONWARNINGS=ignore"); /* 3.12 names the pid in one of them */
	if (job->how == JOB_PRELOAD)
		variable_put(envp, text("LD_PRELOAD=%s", build_path("libevprof.so")));
	if (events)
		variable_put(envp, events);
	for (int i = 0; i < JOB_VARIABLES && job->env[i]; i++) {
		const char *value = strchr(job->env[i], '=');

		if (value && (value[1] == '@' || value[1] == '%'))
			variable_put(envp,
				     text("%.*s%s", (int)(value + 1 - job->env[i]), job->env[i], expand(value + 1)));
		else
			variable_put(envp, job->env[i]);
	}
}

static int make_input(const char *input)
{
	int fd;

	if (!input)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	fd = memfd_create("input", MFD_CLOEXEC);
	cr_assert(fd >= 0 && write(fd, input, strlen(input)) == (ssize_t)strlen(input) && lseek(fd, 0, SEEK_SET) == 0,
		  "cannot make the input");
	return fd;
}

static void start_child(const char *directory, const char *const *argv, const char *const *envp, int in, int out,
			int err)
{
	struct rlimit none = {0, 0};

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	setpgid(0, 0);
	setrlimit(RLIMIT_CORE, &none);
	if (chdir(directory) || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(126);
	close_range(3, ~0U, 0);
	for (int number = 1; number < 32; number++)
		signal(number, SIG_DFL);
	execvpe(argv[0], (char *const *)argv, (char *const *)envp);
	dprintf(2, "cannot start %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* A test that has read a large trace has many pages, which fork() would copy. */
static __attribute__((noinline)) pid_t spawn(const char *directory, const char *const *argv, const char *const *envp,
					     int in, int out, int err)
{
	pid_t pid = vfork();

	if (pid == 0)
		start_child(directory, argv, envp, in, out, err);
	return pid;
}

static pid_t start(const struct job *job, const char *directory, int out, int err)
{
	const char *argv[ARGUMENTS_MAX] = {NULL}, *envp[VARIABLES_MAX] = {NULL};
	int in = make_input(job->input);
	pid_t pid;

	make_arguments(job, argv);
	make_environment(job, envp);
	pid = spawn(directory, argv, envp, in, out, err);
	cr_assert(pid > 0, "cannot fork");
	close(in);
	return pid;
}

/* ---- a run ----------------------------------------------------------------------------------------------------- */

struct capture {
	int fd;
	char *data;
	size_t bytes, size;
};

static bool capture_read(struct capture *capture)
{
	ssize_t got;

	if (capture->size - capture->bytes < 4096)
		capture->data = realloc(capture->data, capture->size = capture->size * 2 + 65536);
	got = read(capture->fd, capture->data + capture->bytes, capture->size - capture->bytes - 1);
	if (got > 0)
		capture->bytes += (size_t)got;
	capture->data[capture->bytes] = '\0';
	return got > 0;
}

static int status_of(int status)
{
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void follow(struct outcome *outcome, struct capture capture[2], double start, double timeout)
{
	struct pollfd fds[3] = {{capture[0].fd, POLLIN, 0},
				{capture[1].fd, POLLIN, 0},
				{(int)syscall(SYS_pidfd_open, outcome->pid, 0), POLLIN, 0}};
	int pidfd = fds[2].fd, status;

	while (fds[0].fd >= 0 || fds[1].fd >= 0 || fds[2].fd >= 0) {
		if (poll(fds, 3, 200) < 0 && errno != EINTR)
			break;
		for (int i = 0; i < 2; i++)
			if (fds[i].fd >= 0 && fds[i].revents && !capture_read(&capture[i]))
				fds[i].fd = -1, outcome->eof_seconds = now_s() - start;
		if (fds[2].fd >= 0 && fds[2].revents && waitpid(outcome->pid, &status, 0) == outcome->pid) {
			outcome->status = status_of(status);
			outcome->seconds = now_s() - start;
			fds[2].fd = -1;
		}
		if (now_s() - start > timeout)
			break;
	}
	close(pidfd);
	outcome->out = capture[0].data;
	outcome->out_bytes = capture[0].bytes;
	outcome->err = capture[1].data;
	outcome->err_bytes = capture[1].bytes;
	if (fds[2].fd >= 0)
		kill_tree(outcome->pid);
	expect(outcome, fds[2].fd < 0, "the program did not end within %.0f s", timeout);
	expect(outcome, fds[0].fd < 0 && fds[1].fd < 0, "stdout or stderr is held open %.0f s after the program's end",
	       now_s() - start - outcome->seconds);
}

static struct outcome *outcome_new(const struct job *job)
{
	struct outcome *outcome = calloc(1, sizeof(*outcome));
	char *directory = job->directory ? text("%s", job->directory) : directory_new();

	if (job->subdirectory) {
		directory = text("%s/%s", directory, job->subdirectory);
		mkdir(directory, 0755);
	}
	snprintf(outcome->directory, sizeof(outcome->directory), "%s", directory);
	outcome->out = outcome->err = text("%s", "");
	return outcome;
}

struct outcome *job_run(const struct job *job)
{
	struct outcome *outcome = outcome_new(job);
	struct capture capture[2] = {{0}, {0}};
	int out[2], err[2];
	double begin = now_s();

	cr_assert(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0, "cannot make pipes");
	outcome->pid = start(job, outcome->directory, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	capture[0].fd = out[0];
	capture[1].fd = err[0];
	follow(outcome, capture, begin, job->timeout_s ? job->timeout_s : TIMEOUT_DEFAULT_S);
	close(out[0]);
	close(err[0]);
	if (!job->lingers)
		outcome_settle(outcome);
	outcome_find_traces(outcome, NULL);
	return outcome;
}

struct outcome *tool_run(const char *const *args)
{
	struct job job = {.how = JOB_BARE, .args = {build_path("evprof")}, .timeout_s = 120, .directory = "/"};

	for (int i = 0; args[i] && i + 2 < JOB_ARGUMENTS; i++)
		job.args[i + 1] = args[i];
	job.lingers = true;
	return job_run(&job);
}

struct outcome *run_with_package(const struct python *python, const char *code, const char *first, const char *second)
{
	return run(.python = python, .how = JOB_BARE, .lingers = true, .args = {"-c", code, first, second},
		   .env = {text("PYTHONPATH=%s", program_path("../../../tools/python")),
			   text("EVPROF_READER_LIBRARY=%s", build_path("libevprof-reader.so"))});
}

struct background *background_start(const struct job *job)
{
	struct background *background = calloc(1, sizeof(*background));
	const char *directory = job->directory ? job->directory : directory_new();
	int log;

	cr_assert(backgrounds_count < BACKGROUNDS_MAX);
	snprintf(background->log, sizeof(background->log), "%s/background.log", directory);
	log = open(background->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	cr_assert(log >= 0, "cannot write %s", background->log);
	background->pid = start(job, directory, log, log);
	close(log);
	backgrounds[backgrounds_count++] = background;
	return background;
}

int background_wait(struct background *background)
{
	double end = now_s() + SETTLE_TIMEOUT_S;
	int status = 0;

	while (waitpid(background->pid, &status, WNOHANG) == 0) {
		cr_assert(now_s() < end, "process %d does not end: %s", background->pid, command_line(background->pid));
		usleep(5000);
	}
	background->pid = -1;
	return status_of(status);
}

int background_stop(struct background *background)
{
	kill(background->pid, SIGTERM);
	return background_wait(background);
}

/* The kernel knows a socket by the path that was given to bind(), which may be relative. */
static bool is_path_of(const char *path, const char *socket)
{
	size_t bytes = strlen(path), all = strlen(socket);

	return bytes <= all && strcmp(socket + all - bytes, path) == 0 && access(socket, F_OK) == 0;
}

/* As /proc/net/unix says, which the collector does not see. */
static bool is_listening(const char *socket)
{
	FILE *sockets = fopen("/proc/net/unix", "re");
	char line[512], path[sizeof(line)];
	unsigned flags;
	bool found = false;

	while (sockets && !found && fgets(line, sizeof(line), sockets))
		found = sscanf(line, "%*s %*s %*s %x %*s %*s %*s %511[^\n]", &flags, path) == 2 &&
			flags & SOCKET_LISTENS && is_path_of(path, socket);
	if (sockets)
		fclose(sockets);
	return found;
}

void background_listens(const struct background *collector, const char *socket)
{
	int tries = LISTEN_TRIES;

	while (!is_listening(socket) && !process_has_ended(collector->pid) && --tries)
		usleep(10000);
	cr_assert(is_listening(socket), "nobody listens at %s: %s", socket, file_read(collector->log, NULL));
}

/* ---- verdicts -------------------------------------------------------------------------------------------------- */

/* The end of a text: enough to see what happened. */
static const char *tail(const char *from)
{
	size_t length = from ? strlen(from) : 0;

	return !from ? "" : length > 1500 ? from + length - 1500 : from;
}

void expect_failed(const struct outcome *outcome, const char *file, int line, const char *condition, const char *format,
		   ...)
{
	char *message = NULL;
	va_list list;

	va_start(list, format);
	if (vasprintf(&message, format, list) < 0)
		message = NULL;
	va_end(list);
	cr_assert_fail("%s:%d: %s\n  not so: %s\n  directory %s, status %d\n  stderr: %s\n  stdout: %s", file, line,
		       message ? message : "", condition, outcome ? outcome->directory : "",
		       outcome ? outcome->status : 0, outcome ? tail(outcome->err) : "",
		       outcome ? tail(outcome->out) : "");
}

/* A line of the summary of evprof run, which is below the closing line. */
static bool is_summary_line(const char *line)
{
	return strncmp(line, "evprof:   ", 10) == 0;
}

static bool is_evprof_line(const char *line)
{
	return strncmp(line, "evprof", 6) == 0 && !is_summary_line(line);
}

char *stderr_of_program(const struct outcome *outcome)
{
	char *copy = text("%s", outcome->err), *result = calloc(1, strlen(copy) + 2);

	for (char *at = copy, *line; (line = strsep(&at, "\n"));)
		if (!is_evprof_line(line) && !is_summary_line(line))
			strcat(strcat(result, line), at ? "\n" : "");
	free(copy);
	return result;
}

char *stderr_evprof_line(const struct outcome *outcome, unsigned n)
{
	char *copy = text("%s", outcome->err), *result = NULL;

	for (char *at = copy, *line; !result && (line = strsep(&at, "\n"));)
		if (is_evprof_line(line) && n-- == 0)
			result = text("%s", line);
	free(copy);
	return result ? result : text("%s", "");
}

unsigned stderr_evprof_lines(const struct outcome *outcome)
{
	unsigned count = 0;
	char *line;

	while (*(line = stderr_evprof_line(outcome, count))) {
		free(line);
		count++;
	}
	return count;
}

void expect_same(const struct outcome *bare, const struct outcome *profiled)
{
	char *of_bare = stderr_of_program(bare), *of_profiled = stderr_of_program(profiled);

	expect(profiled, bare->status == profiled->status, "the status is %d under evprof, %d bare", profiled->status,
	       bare->status);
	expect(profiled, bare->out_bytes == profiled->out_bytes && !memcmp(bare->out, profiled->out, bare->out_bytes),
	       "stdout is not that of a bare run, which is:\n%s", tail(bare->out));
	expect(profiled, strcmp(of_bare, of_profiled) == 0, "stderr is not that of a bare run, which is:\n%s",
	       tail(bare->err));
	free(of_bare);
	free(of_profiled);
}

char *python_home(const struct python *python)
{
	struct outcome *outcome =
	    run(.python = python, .how = JOB_BARE, .args = {"-c", "import sys; sys.stdout.write(sys.prefix)"});

	return outcome->out;
}
