/*
 * main.c - evprof-collector(1): options, signals, and the loop until the end.
 *
 * Started by libevprof.so or evprof(1) (--private), or by an operator or systemd as the host's daemon.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/listen.h"
#include "server/collector.h"
#include "server/options.h"
#include "server/pusher.h"
#include "sampler/sampler.h"

#define FILES_OURS 64	     /* descriptors that belong to no user */
#define USER_FILES_SHARE 20u /* a user may use a quarter of the others, five for each process */
#define USER_PROCESSES_MIN 4u
#define USER_PROCESSES_MAX 4096u

/* Signals arrive through the loop, like all other events. */
struct stopper {
	struct loop_source source;
	bool stopped;
	bool status; /* to be logged */
};

static void signal_ready(struct loop_source *source)
{
	struct stopper *stopper = LOOP_OWNER(source, struct stopper, source);
	struct signalfd_siginfo info;

	while (read(source->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		stopper->stopped |= info.ssi_signo != SIGUSR1;
		stopper->status |= info.ssi_signo == SIGUSR1;
	}
}

static void ignore_signals(void)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
}

static int watch_signals(struct stopper *stopper, struct loop *loop)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ignore_signals();
	signal(SIGCHLD, SIG_DFL); /* if ignored, the statuses of our own children are lost */
	signal(SIGXFSZ, SIG_IGN); /* a file at its size limit makes write() fail instead */
	*stopper =
	    (struct stopper){.source = {.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .ready = signal_ready}};
	return stopper->source.fd < 0 ? -errno : loop_add(loop, &stopper->source);
}

/* Each process that joins takes two descriptors. False: there are too few for one process. */
static bool raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return true;
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_max >= CONTROL_COLLECTOR_FDS)
		return true;
	log_error("the limit of open files is %llu, a collector needs %d", (unsigned long long)limit.rlim_max,
		  CONTROL_COLLECTOR_FDS);
	return false;
}

/* The socket from systemd's socket activation, or -1. */
static int activated_socket(void)
{
	const char *pid = getenv("LISTEN_PID");
	const char *count = getenv("LISTEN_FDS");

	if (!pid || !count || atol(pid) != (long)getpid() || atoi(count) < 1) {
		unsetenv("LISTEN_FDS"); /* meant for another process */
		return -1;
	}
	return fcntl(3, F_SETFD, FD_CLOEXEC) < 0 || fcntl(3, F_SETFL, O_NONBLOCK) < 0 ? -1 : 3;
}

static int open_socket(const struct options *options)
{
	char reason[256];
	int fd;

	if (options->private) {
		fcntl(CONTROL_LISTEN_FD, F_SETFD, FD_CLOEXEC);
		fcntl(CONTROL_LISTEN_FD, F_SETFL, O_NONBLOCK);
		return CONTROL_LISTEN_FD;
	}
	fd = activated_socket();
	if (fd >= 0)
		return fd;
	if (!options->socket) {
		log_error("systemd has handed no socket over: give --socket SOCKET");
		return -EINVAL;
	}
	fd = server_listen(options->socket, options->allow_other_users,
			   options->has_control_group ? &options->control_group : NULL, reason, sizeof(reason));
	if (fd < 0)
		log_error("%s", reason);
	return fd;
}

/* A descriptor; 0: none is wanted; or -errno, after an error message. */
static int open_metrics(const char *address)
{
	int fd = address ? metrics_http_listen(address) : 0;

	if (fd < 0)
		log_error("cannot listen at %s for --metrics: %s", address, strerror(-fd));
	return fd;
}

/* Whether we made the socket file. One of systemd stays for the next start. */
static bool made_socket_file(const struct options *options)
{
	return !options->private && options->socket && options->socket[0] != '@' && !getenv("LISTEN_FDS");
}

/*
 * The absolute path of the folder, as programs in any folder get the paths of their traces. NULL, after an error
 * message: not writable.
 */
static const char *find_folder(const char *path)
{
	static char whole[PATH_MAX];
	struct stat status;

	if (stat(path, &status) == 0 && S_ISDIR(status.st_mode) && access(path, W_OK | X_OK) == 0 &&
	    realpath(path, whole))
		return whole;
	log_error("cannot write to the folder %s: make it, or give another with --output-dir", path);
	return NULL;
}

/*
 * Sets the limits for which no option was given. Processes: so few that users at their limit, with a trace and a hold
 * for each process, leave most descriptors to others. Trace size: a quarter of the free disk.
 */
static void default_limits(struct user_limits *limits, const char *folder)
{
	struct rlimit files;
	struct statvfs disk;

	if (!limits->processes && getrlimit(RLIMIT_NOFILE, &files) == 0) {
		rlim_t share = files.rlim_cur > FILES_OURS ? (files.rlim_cur - FILES_OURS) / USER_FILES_SHARE : 0;

		limits->processes = share < USER_PROCESSES_MIN	 ? USER_PROCESSES_MIN
				    : share > USER_PROCESSES_MAX ? USER_PROCESSES_MAX
								 : (uint32_t)share;
	}
	if (!limits->trace_bytes && statvfs(folder, &disk) == 0)
		limits->trace_bytes = (uint64_t)disk.f_bavail * disk.f_frsize / 4 + 1;
}

#define PUSHERS 2 /* evprof push, evprof ship */

/* Returns the ms until one is to be tended again, -1: any. */
static int tend(struct pusher pushers[PUSHERS])
{
	int least_ms = -1;

	for (unsigned i = 0; i < PUSHERS; i++) {
		int ms = pusher_tend(&pushers[i], clock_now_ns());

		least_ms = least_ms < 0 || (ms >= 0 && ms < least_ms) ? ms : least_ms;
	}
	return least_ms;
}

/* Before the traces are finished: then the file may be that of the next collector. */
static void leave_socket(const struct options *options)
{
	if (made_socket_file(options))
		unlink(options->socket);
}

static int run_collector(struct collector *collector, const struct options *options, struct pusher pushers[PUSHERS])
{
	struct stopper stopper;
	int error = watch_signals(&stopper, &collector->loop), wait_ms = -1;

	if (error) {
		log_error("cannot watch signals: %s", strerror(-error));
		leave_socket(options);
		return error;
	}
	for (unsigned i = 0; i < PUSHERS; i++)
		pusher_start(&pushers[i], &collector->loop);
	while (!stopper.stopped && collector_turn(collector, wait_ms)) {
		wait_ms = tend(pushers);
		if (stopper.status)
			collector_log_status(collector);
		stopper.status = false;
	}
	leave_socket(options);
	if (stopper.stopped)
		collector_stop(collector);
	loop_remove(&collector->loop, &stopper.source);
	close(stopper.source.fd);
	return 0;
}

static int sample(const struct options *options)
{
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	return sampler_run(options->sampled, options->sampling) ? 1 : 0;
}

/* What only a daemon has. False: it cannot run, an error is logged. */
static bool prepare_daemon(struct options *options)
{
	/* Our children must not inherit capabilities, except by pass_capabilities(). */
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	options->output_dir = find_folder(options->output_dir);
	if (!options->output_dir)
		return false;
	default_limits(&options->limits, options->output_dir);
	return true;
}

/* Opens the sockets. False: an error is logged. The options stay valid as long as the collector. */
static bool configure(const struct options *options, struct collector_config *config)
{
	*config = (struct collector_config){
	    .listen_fd = open_socket(options),
	    .private = options->private,
	    .resumes = (pid_t)options->resumes,
	    .server = {.allow_other_users = options->allow_other_users,
		       .control_group = options->has_control_group ? &options->control_group : NULL},
	    .output_dir = options->output_dir,
	    .formats = options->formats,
	    .output = options->output,
	    .keep = options->keep,
	    .rotate = options->rotate,
	    .trigger = options->trigger,
	    .limits = options->limits,
	    .folder_limits = options->folder_limits,
	    .metrics = options->metrics};
	if (config->listen_fd >= 0)
		config->metrics_fd = open_metrics(options->metrics_address);
	return config->listen_fd >= 0 && config->metrics_fd >= 0;
}

/* Runs until the end, with evprof push and evprof ship beside it, which end after the last trace is finished. */
static int serve(struct collector *collector, const struct options *options)
{
	struct pusher pushers[PUSHERS] = {
	    {.url = options->push, .socket = options->socket, .folder = options->output_dir},
	    {.ship = &options->ship, .folder = options->output_dir}};
	int error = run_collector(collector, options, pushers), pushing[PUSHERS];

	for (unsigned i = 0; i < PUSHERS; i++)
		pushing[i] = pusher_leave(&pushers[i]);
	collector_done(collector);
	for (unsigned i = 0; i < PUSHERS; i++)
		pusher_finish(&pushers[i], pushing[i]);
	return error;
}

int main(int argc, char **argv)
{
	static struct collector collector;
	struct collector_config config;
	struct options options;
	enum options_result parsed = options_parse(argc, argv, &options);
	bool enough;
	int error;

	if (parsed != OPTIONS_RUN)
		return parsed == OPTIONS_DONE ? 0 : 2;
	log_level = (enum log_level)options.log_level;
	enough = raise_file_limit();
	if (options.sampled)
		return sample(&options);
	if (!enough || (!options.private && !prepare_daemon(&options)) || !configure(&options, &config))
		return 1;
	error = collector_init(&collector, &config);
	if (error) {
		log_error("cannot serve the socket: %s (it must be a listening SOCK_SEQPACKET socket)",
			  strerror(-error));
		return 1;
	}
	return serve(&collector, &options) ? 1 : 0;
}
