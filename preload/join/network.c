/*
 * network.c - see network.h. Called by handshake.c when no collector answers.
 *
 * A socket belongs to the namespace in which it was created, whoever uses it. So a process of evprof's that shares the
 * program's memory and descriptors enters that namespace and creates one; the program stays where it is. As with
 * spawn.c, the program does not see that process.
 */
#include "join/network.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evprof/network.h"

#define STACK_BYTES 4096

/* network: a descriptor of the namespace. fd: the socket, or -errno. */
struct errand {
	int network;
	int fd;
};

/* Only system calls: it runs in the program's memory, where the address sanitizer's notes on the frame would stay. */
__attribute__((no_sanitize_address)) static int make_socket_there(void *argument)
{
	struct errand *errand = argument;

	errand->fd = (int)syscall(SYS_setns, errand->network, CLONE_NEWNET);
	if (errand->fd == 0)
		errand->fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (errand->fd < 0)
		errand->fd = -errno;
	syscall(SYS_exit, 0);
	return 0;
}

static int send_there(int network)
{
	_Alignas(16) char stack[STACK_BYTES];
	struct errand errand = {.network = network, .fd = -EPERM};
	sigset_t all, before;
	pid_t child;

	/* No handler of the program may run in a process that shares its memory. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	child = clone(make_socket_there, stack + sizeof(stack), CLONE_VM | CLONE_FILES | CLONE_VFORK, &errand);
	if (child < 0)
		errand.fd = -errno;
	while (child > 0 && waitpid(child, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return errand.fd;
}

/* The pid may belong to another process by now: the namespace must be the expected one. */
static int open_network_of(pid_t pid, unsigned long inode)
{
	struct stat status;
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) == 0 && (unsigned long)status.st_ino == inode)
		return fd;
	close(fd);
	return -ESRCH;
}

int network_socket(const char *name, const pid_t members[2])
{
	int network = -ESRCH, fd;

	for (int i = 0; i < 2 && network < 0; i++)
		network = open_network_of(members[i], network_of(name));
	if (network < 0)
		return network;
	fd = send_there(network);
	close(network);
	return fd;
}
