/*
 * forking.c - a signal handler that forks, whatever it interrupts.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long forks;

static void handle(int number)
{
	int saved_errno = errno;
	pid_t child = fork();

	(void)number;
	if (child == 0)
		_exit(0);
	forks += child > 0 && waitpid(child, NULL, 0) == child;
	errno = saved_errno;
}

/* interval_us: of the forks; 0: ends them. Returns how many there were. */
long forking(long interval_us)
{
	const struct itimerval timer = {{0, interval_us}, {0, interval_us}};
	const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	return forks;
}
