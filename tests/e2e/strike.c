/*
 * strike.c - oracles and strikers, see strike.h.
 */
#include "strike.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define BEGIN_TIMEOUT_US 60000000
#define LOOK_US 500

bool runs_by_default(const struct python *python)
{
	return test_all() || python_stands_for_hook(python);
}

struct oracle *oracle_new(const char *directory)
{
	char *path = text("%s/oracle", directory);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	struct oracle *oracle = MAP_FAILED;

	if (fd >= 0 && fchmod(fd, 0666) == 0 && ftruncate(fd, sizeof(*oracle)) == 0)
		oracle = mmap(NULL, sizeof(*oracle), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(oracle != MAP_FAILED, "cannot make %s", path);
	close(fd);
	free(path);
	return oracle;
}

void oracle_clear(struct oracle *oracle)
{
	memset((void *)oracle, 0, sizeof(*oracle));
}

long oracle_begun(const struct oracle *oracle)
{
	uint64_t sum = 0;

	for (int i = 0; i < ORACLE_PAIRS; i++)
		sum += oracle->calls[i].begun;
	return (long)sum;
}

long oracle_ended(const struct oracle *oracle)
{
	uint64_t sum = 0;

	for (int i = 0; i < ORACLE_PAIRS; i++)
		sum += oracle->calls[i].ended;
	return (long)sum;
}

unsigned oracle_entries(const struct oracle *oracle)
{
	unsigned entries = 0;
	size_t i;

	for (i = 0; i < ORACLE_PAIRS; i++)
		entries += oracle->calls[i].ended > 0;
	return entries;
}

static bool may_begin(const struct strike *strike)
{
	return strike->oracle->pid && (!strike->after || access(strike->after, F_OK) == 0);
}

void strike(struct strike strike)
{
	pid_t pid = fork();

	cr_assert(pid >= 0, "cannot fork");
	if (pid > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (long waited = 0; !may_begin(&strike) && waited < BEGIN_TIMEOUT_US; waited += LOOK_US)
		usleep(LOOK_US);
	usleep((useconds_t)strike.delay_us);
	if (strike.oracle->pid)
		strike.act(&strike);
	_exit(0);
}

/* Orphans are the test's children, as the striker is. */
pid_t strike_collector(void)
{
	char *path = text("/proc/%d/task/%d/children", getppid(), getppid()), *list = file_read(path, NULL);
	pid_t found = 0;

	for (char *at = list, *word; at && !found && (word = strsep(&at, " "));) {
		char *status = *word ? file_read(text("/proc/%s/status", word), NULL) : NULL;

		if (status && strncmp(status, "Name:\tevprof-collecto\n", 22) == 0 && !strstr(status, "State:\tZ"))
			found = (pid_t)atoi(word);
		free(status);
	}
	free(list);
	free(path);
	return found;
}

void strike_program(const struct strike *strike)
{
	kill((pid_t)strike->oracle->pid, (int)strike->argument);
}

void strike_program_group(const struct strike *strike)
{
	kill(-(pid_t)strike->oracle->pid, (int)strike->argument);
}

void strike_collector_signal(const struct strike *strike)
{
	pid_t collector = strike_collector();

	if (collector > 0)
		kill(collector, (int)strike->argument);
}

void strike_collector_pause(const struct strike *strike)
{
	pid_t collector = strike_collector();

	if (collector <= 0)
		return;
	kill(collector, SIGSTOP);
	usleep((useconds_t)strike->argument * 1000);
	kill(collector, SIGCONT);
}

void strike_collector_slow(const struct strike *strike)
{
	useconds_t round_us = (useconds_t)strike->argument * 1000;
	pid_t collector;

	while ((collector = strike_collector()) > 0) {
		kill(collector, SIGSTOP);
		usleep(round_us / 10 * 9);
		kill(collector, SIGCONT);
		usleep(round_us / 10);
	}
}

void strike_program_while_stopped(const struct strike *strike)
{
	pid_t collector = strike_collector();

	if (collector > 0)
		kill(collector, SIGSTOP);
	usleep(30000);
	strike_program(strike);
	usleep(100000);
	if (collector > 0)
		kill(collector, SIGCONT);
}

struct outcome *strike_run_with_losses(const struct python *python, const char *events)
{
	const char *directory = run(.how = JOB_BARE, .args = {"true"})->directory;
	struct oracle *oracle = oracle_new(directory);
	struct outcome *outcome;

	strike((struct strike){.oracle = oracle, .act = strike_collector_slow, .argument = 30});
	outcome = run(.python = python, .args = {"@accounting.py", "4", "6000"}, .directory = directory,
		      .env = {"EVPROF_OUTPUT=losses.evp", "EVPROF_ON_FULL=drop", "EVPROF_RING_SIZE=64K", events});
	expect(outcome, outcome->status == 0 && !strstr(outcome->err, ", 0 lost"), "events are lost");
	return outcome;
}

const char *strike_memory_group(void)
{
	static const char *const places[][2] = {{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
						{"/sys/fs/cgroup", "memory.max"}};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char *group = text("%s/evprof-test-%d", places[i][0], getpid());
		char *limit = text("%s/%s", group, places[i][1]);
		FILE *file = mkdir(group, 0755) == 0 ? fopen(limit, "we") : NULL;

		if (file && fputs("100663296", file) >= 0 && fclose(file) == 0)
			return group;
		rmdir(group);
	}
	return NULL;
}
