/*
 * sampler.c - see sampler.h.
 *
 *   each interval -> the process's struct sampling -> each thread state of its interpreter -> its stack
 *                 -> events in its slot
 *
 * The process is never stopped. sampled_stack.c decides what the stack is if it changes while it is read.
 */
#include "sampler/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "file/line_table.h"
#include "remote/remote.h"
#include "ring/ring_writer.h"
#include "sampler/sampled_code.h"
#include "sampler/sampled_stack.h"
#include "sampler/sampler_rights.h"

#define STATES_MAX RING_SLOTS
#define MISSES_MAX 3	      /* a thread that is missing in this many samples in a row has ended */
#define NAME_TURNS 20	      /* samples of a thread before its name is read */
#define END_MS 1000	      /* for a process without memory to end; else it has called exec */
#define READY_WAIT_NS 1000000 /* until Python runs a function, and while recording is stopped */
#define NS 1000000000u

/* A function on the stack of a thread, as it was recorded. */
struct sampled_frame {
	uint64_t frame; /* its address */
	uint32_t id;
	uint32_t line;
	int64_t instruction;
};

struct thread {
	uint32_t tid;
	uint32_t turns; /* number of samples */
	uint32_t misses;
	uint64_t gone;	  /* time of the first miss */
	int schedstat_fd; /* -1: none */
	uint64_t cpu_ns;
	struct ring_stream stream;
	struct remote_frame base;    /* the outermost frame */
	struct sampled_frame *stack; /* outermost first */
	uint32_t count, room;
};

struct sampler {
	pid_t pid;
	uint64_t sampling;
	int pidfd;
	int tool; /* whose end ends sampling; -1: the process itself has started the sampler */
	struct sampler_rights rights;
	struct remote remote;
	struct ring_writer writer;
	struct sampled_codes codes;
	struct sampled_stacks stacks;
	struct thread *threads;
	uint32_t thread_count, thread_room;
	uint64_t samples, dropped;
	bool begun; /* the first sample was taken */
	char comm[32];
};

static struct remote_frame frames[REMOTE_FRAMES];
static struct sampled_frame found[REMOTE_FRAMES];

/* ---- threads in /proc -------------------------------------------------------------------------------------------- */

static int open_thread_file(const struct sampler *sampler, uint32_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%u/%s", (int)sampler->pid, tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool read_line(int fd, char *out, size_t size)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, out, size - 1, 0);

	if (n <= 0)
		return false;
	out[n] = 0;
	out[strcspn(out, "\n")] = 0;
	return true;
}

static bool read_comm(const struct sampler *sampler, uint32_t tid, char out[32])
{
	int fd = open_thread_file(sampler, tid, "comm");
	bool done = read_line(fd, out, 32);

	if (fd >= 0)
		close(fd);
	return done;
}

/* Names a thread as the kernel does, unless that is the name of the process. The library records Python's name. */
static void name_thread(struct sampler *sampler, const struct thread *thread)
{
	char name[32];
	const char *const strings[WIRE_DEFINITION_STRINGS] = {"", name, "", ""};
	size_t lengths[WIRE_DEFINITION_STRINGS] = {0};
	struct wire_definition record = {.type = WIRE_DEFINE_THREAD_NAME, .flags = WIRE_KERNEL_NAME, .id = thread->tid};

	if (thread->tid == (uint32_t)sampler->pid || !read_comm(sampler, thread->tid, name) ||
	    !strcmp(name, sampler->comm))
		return;
	lengths[1] = strlen(name);
	ring_writer_define(&sampler->writer, &record, strings, lengths);
}

/*
 * The time of a sample. The first sample also stands for the time since Python was ready: short processes would lose a
 * third of their time.
 */
static uint64_t time_of_sample(const struct sampler *sampler)
{
	uint64_t now = ring_writer_now(&sampler->writer), ready = sampler->remote.layout.ready_ticks;
	uint64_t start = sampler->writer.layout.start_ticks;

	if (sampler->begun || ready > now)
		return now;
	return ready < start ? start : ready;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static struct thread *find_thread(struct sampler *sampler, uint32_t tid)
{
	for (uint32_t i = 0; i < sampler->thread_count; i++)
		if (sampler->threads[i].tid == tid)
			return &sampler->threads[i];
	return NULL;
}

static struct thread *new_thread(struct sampler *sampler, uint32_t tid)
{
	struct thread thread = {.tid = tid, .schedstat_fd = -1};
	int fd = open_thread_file(sampler, tid, "schedstat");

	if (fd < 0) /* a tid that was misread */
		return NULL;
	if (sampler->remote.layout.cpu)
		thread.schedstat_fd = fd;
	else
		close(fd);
	if (sampler->thread_count == sampler->thread_room) {
		uint32_t room = sampler->thread_room ? 2 * sampler->thread_room : 16;
		struct thread *more = realloc(sampler->threads, room * sizeof(*more));

		if (!more)
			goto failed;
		sampler->threads = more;
		sampler->thread_room = room;
	}
	if (!ring_writer_claim(&sampler->writer, &thread.stream, tid, time_of_sample(sampler)))
		goto failed;
	ring_stream_put(&thread.stream, wire_extended(WIRE_THREAD_START, 0, 0), time_of_sample(sampler));
	sampler->threads[sampler->thread_count] = thread;
	return &sampler->threads[sampler->thread_count++];
failed:
	if (thread.schedstat_fd >= 0)
		close(thread.schedstat_fd);
	return NULL;
}

static void put_returns(struct thread *thread, uint32_t from, uint64_t now)
{
	while (thread->count > from)
		ring_stream_put(&thread->stream, wire_head(WIRE_RETURN, thread->stack[--thread->count].id), now);
}

static void put_cpu_time(struct thread *thread, uint64_t now)
{
	char text[96];

	if (thread->schedstat_fd < 0)
		return;
	if (read_line(thread->schedstat_fd, text, sizeof(text))) /* fails for a thread that has ended */
		thread->cpu_ns = strtoull(text, NULL, 10);
	ring_stream_put_cpu(&thread->stream, thread->cpu_ns, now);
}

/* Ends a thread's slot. The last thread moves to its place in the array. */
static void end_thread(struct sampler *sampler, struct thread *thread)
{
	uint64_t now = thread->misses ? thread->gone : ring_writer_now(&sampler->writer);

	if (ring_stream_room(&thread->stream) > thread->count + 8) {
		put_cpu_time(thread, now);
		put_returns(thread, 0, now);
		ring_stream_put(&thread->stream, wire_extended(WIRE_THREAD_END, 0, 0), now);
	}
	ring_stream_end(&thread->stream);
	if (thread->schedstat_fd >= 0)
		close(thread->schedstat_fd);
	free(thread->stack);
	*thread = sampler->threads[--sampler->thread_count];
}

/* ---- one sample -------------------------------------------------------------------------------------------------- */

/* Whether the frame is the recorded one at that depth, at the same instruction: then its line is known. */
static bool is_unchanged(const struct thread *thread, const struct sampled_frame *frame, int depth)
{
	const struct sampled_frame *before;

	if ((uint32_t)depth >= thread->count)
		return false;
	before = &thread->stack[depth];
	return before->frame == frame->frame && before->id == frame->id && before->instruction == frame->instruction;
}

/* Looks up the functions of a stack, outermost first, into found[]. Returns their number, or -1. */
static int resolve_stack(struct sampler *sampler, const struct thread *thread, int count)
{
	for (int i = 0; i < count; i++) {
		const struct remote_frame *frame = &frames[count - 1 - i];
		const struct sampled_code *code =
		    sampled_code(&sampler->codes, &sampler->remote, &sampler->writer, frame->code);

		if (!code)
			return -1;
		found[i] =
		    (struct sampled_frame){.frame = frame->frame, .id = code->id, .instruction = frame->instruction};
		found[i].line = is_unchanged(thread, &found[i], i)
				    ? thread->stack[i].line
				    : (uint32_t)line_of((enum sampling_lines)sampler->remote.layout.lines, code->lines,
							code->lines_size, code->is.line, frame->instruction);
	}
	return count;
}

static bool has_space(struct thread *thread, uint32_t count)
{
	uint32_t room = thread->room ? thread->room : 64;
	struct sampled_frame *more;

	/* a return of each old frame, a call with a line for each new one, the times, and some more */
	if (ring_stream_room(&thread->stream) < thread->count + 2 * (uint64_t)count + 16)
		return false;
	if (count <= thread->room)
		return true;
	while (room < count)
		room *= 2;
	more = realloc(thread->stack, room * sizeof(*more));
	if (!more)
		return false;
	thread->stack = more;
	thread->room = room;
	return true;
}

/*
 * The number of functions that still run since the previous sample. Where a caller has moved on, its callees are new
 * calls. late: a caller may have moved on after its callee was read.
 */
static uint32_t count_unchanged(const struct thread *thread, uint32_t count, bool late)
{
	uint32_t same = 0;

	for (; same < count && same < thread->count; same++) {
		const struct sampled_frame *now = &found[same], *before = &thread->stack[same];

		if (now->id != before->id || now->frame != before->frame)
			break;
		if (now->instruction != before->instruction && !late)
			return same + 1;
	}
	return same;
}

/* Records the difference between the thread's stack and found[]. */
static void put_changes(struct thread *thread, uint32_t count, bool late, uint64_t now)
{
	uint32_t same = count_unchanged(thread, count, late);

	put_returns(thread, same, now);
	if (same && (same == count || found[same - 1].line != thread->stack[same - 1].line))
		ring_stream_put(&thread->stream, wire_head(WIRE_LINE, found[same - 1].line), now);
	for (uint32_t i = same; i < count; i++) {
		ring_stream_put(&thread->stream, wire_head(WIRE_CALL, found[i].id), now);
		ring_stream_put(&thread->stream, wire_head(WIRE_LINE, found[i].line), now);
	}
	if (count)
		memcpy(thread->stack, found, count * sizeof(*found));
	thread->count = count;
}

/*
 * Records the thread's stack. False: it could not be read, or there is no room for the thread, the stack or one of its
 * functions. The time until the next sample then counts for the stack of the previous one.
 */
static bool record_sample(struct sampler *sampler, uint64_t state, uint32_t tid)
{
	struct thread *thread = find_thread(sampler, tid);
	uint64_t now;
	int count;

	if (!thread)
		thread = new_thread(sampler, tid);
	if (!thread)
		return false;
	thread->misses = 0;
	if (thread->turns++ == NAME_TURNS)
		name_thread(sampler, thread);
	now = time_of_sample(sampler);
	count = sampled_stack(&sampler->stacks, state, &thread->base, frames);
	if (count >= 0)
		count = resolve_stack(sampler, thread, count);
	if (count < 0 || !has_space(thread, (uint32_t)count))
		return false;
	put_cpu_time(thread, now);
	put_changes(thread, (uint32_t)count, sampler->stacks.late, now);
	ring_stream_publish(&thread->stream);
	return true;
}

/* Samples a thread state. False: it is none, or of another interpreter. */
static bool sample_state(struct sampler *sampler, uint64_t state)
{
	const struct sampling *layout = &sampler->remote.layout;
	uint64_t interpreter, pointer;
	uint32_t tid;

	if (!remote_word(&sampler->remote, state + layout->state_interpreter, &interpreter) ||
	    interpreter != layout->interpreter)
		return false;
	if (!remote_word(&sampler->remote, state + layout->state_thread, &pointer) || !pointer ||
	    !remote_read(&sampler->remote, pointer + layout->thread_tid, &tid, sizeof(tid)) || !tid)
		return true;
	sampler->samples++;
	if (!record_sample(sampler, state, tid))
		sampler->dropped++;
	return true;
}

/* Samples the states on one side of the known one. */
static void sample_list(struct sampler *sampler, uint64_t state, uint32_t link)
{
	for (int i = 0; i < (int)STATES_MAX; i++) {
		uint64_t next;

		remote_refresh(&sampler->remote);
		if (!remote_word(&sampler->remote, state + link, &next) || !next || !sample_state(sampler, next))
			return;
		state = next;
	}
}

static void sample_all(struct sampler *sampler)
{
	const struct sampling *layout = &sampler->remote.layout;
	uint64_t now = ring_writer_now(&sampler->writer);

	for (uint32_t i = 0; i < sampler->thread_count; i++)
		if (sampler->threads[i].misses++ == 0)
			sampler->threads[i].gone = now;
	remote_refresh(&sampler->remote);
	if (sample_state(sampler, layout->state)) {
		sample_list(sampler, layout->state, layout->state_previous);
		sample_list(sampler, layout->state, layout->state_next);
	}
	for (uint32_t i = sampler->thread_count; i-- > 0;)
		if (sampler->threads[i].misses >= MISSES_MAX)
			end_thread(sampler, &sampler->threads[i]);
	atomic_store_explicit(&sampler->writer.header->samples, sampler->samples, memory_order_relaxed);
	atomic_store_explicit(&sampler->writer.header->samples_torn, sampler->stacks.torn, memory_order_relaxed);
	atomic_store_explicit(&sampler->writer.header->samples_dropped, sampler->dropped, memory_order_relaxed);
	sampler->begun |= sampler->thread_count > 0;
}

/* Recording is stopped: ends all calls, as the time until it starts again belongs to no function. */
static void pause_all(struct sampler *sampler)
{
	uint64_t now = ring_writer_now(&sampler->writer);

	for (uint32_t i = 0; i < sampler->thread_count; i++) {
		struct thread *thread = &sampler->threads[i];

		if (!thread->count || ring_stream_room(&thread->stream) < thread->count + 8)
			continue;
		put_cpu_time(thread, now);
		put_returns(thread, 0, now);
		ring_stream_publish(&thread->stream);
	}
}

/* ---- intervals --------------------------------------------------------------------------------------------------- */

enum turn { TURN_SAMPLE, TURN_WAIT, TURN_END };

/* Reads the layout from the process. A tool's stays: the read shows whether the image is still there. */
static int read_layout(struct sampler *sampler, struct sampling *layout)
{
	uint64_t word;

	if (sampler->tool < 0)
		return remote_read_now(&sampler->remote, sampler->sampling, layout, sizeof(*layout));
	*layout = sampler->remote.layout;
	return remote_read_now(&sampler->remote, layout->code_type, &word, sizeof(word));
}

/* Decides what to do in this interval. */
static enum turn next_turn(struct sampler *sampler)
{
	struct sampling layout;
	uint32_t recording;
	int r = read_layout(sampler, &layout);

	if (r || atomic_load(&sampler->writer.header->target_state) != RING_TARGET_RUNNING)
		return TURN_END;
	if (layout.ready != SAMPLING_READY || !layout.rate || layout.rate > SAMPLING_RATE_MAX)
		return TURN_WAIT;
	sampler->remote.layout = layout;
	if (sampler->tool >= 0)
		return TURN_SAMPLE;
	r = remote_read_now(&sampler->remote, layout.recording, &recording, sizeof(recording));
	if (r == 0 && recording == layout.recording_value)
		return TURN_SAMPLE;
	sampler->begun = true;
	return TURN_WAIT;
}

/* False: the process or the tool has ended. */
static bool wait_until(const struct sampler *sampler, uint64_t ns)
{
	uint64_t now = clock_now_ns(), left = ns > now ? ns - now : 0;
	struct timespec timeout = {.tv_sec = (time_t)(left / NS), .tv_nsec = (long)(left % NS)};
	struct pollfd ends[] = {{.fd = sampler->pidfd, .events = POLLIN}, {.fd = sampler->tool, .events = POLLRDHUP}};

	return ppoll(ends, 2, &timeout, NULL) == 0;
}

/*
 * A random interval from half to one and a half of the nominal one, so that periodic work is neither always hit nor
 * always missed. The time since the previous sample does not depend on what the sample finds.
 */
static uint64_t next_interval(uint64_t interval)
{
	static uint64_t state = UINT64_C(0x2545f4914f6cdd1d);

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return interval / 2 + interval * (state % 1024) / 1024;
}

static void sample_until_end(struct sampler *sampler)
{
	uint64_t due = clock_now_ns(), begin, took;
	enum turn turn;

	while (sampler_rights_follow(&sampler->rights, clock_now_ns()) && (turn = next_turn(sampler)) != TURN_END) {
		begin = clock_now_ns();
		if (turn == TURN_SAMPLE)
			sample_all(sampler);
		else
			pause_all(sampler);
		took = clock_now_ns() - begin;
		due += turn == TURN_SAMPLE ? next_interval(NS / sampler->remote.layout.rate) : READY_WAIT_NS;
		/* With many threads with deep stacks, sampling takes half a processor at most. */
		if (due < begin + 2 * took)
			due = begin + 2 * took;
		if (!wait_until(sampler, due))
			break;
	}
}

/* Takes the layout that a tool has sent. 0 or -errno. */
static int take_layout(struct sampler *sampler)
{
	struct sampling *layout = &sampler->remote.layout;

	sampler->tool = SAMPLING_TOOL_FD;
	fcntl(SAMPLING_TOOL_FD, F_SETFD, FD_CLOEXEC);
	return read(SAMPLING_TOOL_FD, layout, sizeof(*layout)) == sizeof(*layout) ? 0 : -EINVAL;
}

/*
 * The image goes on without the ring, as after a rejoin. If the process has ended, the collector sees how: a process
 * that ends loses its memory first.
 */
static void leave_process(struct sampler *sampler)
{
	struct pollfd end = {.fd = sampler->pidfd, .events = POLLIN};
	struct sampling layout;

	if (poll(&end, 1, read_layout(sampler, &layout) ? END_MS : 0) == 0)
		atomic_store_explicit(&sampler->writer.header->target_state, RING_TARGET_REPLACED,
				      memory_order_release);
}

int sampler_run(pid_t pid, uint64_t sampling)
{
	static struct sampler sampler;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SAMPLING_LOCK_BYTE, .l_len = 1};
	int error;

	sampler = (struct sampler){.pid = pid, .sampling = sampling, .tool = -1, .remote = {.fd = SAMPLING_MEMORY_FD}};
	sampler.stacks.remote = &sampler.remote;
	fcntl(SAMPLING_RING_FD, F_SETFD, FD_CLOEXEC);
	fcntl(SAMPLING_MEMORY_FD, F_SETFD, FD_CLOEXEC);
	error = sampling ? 0 : take_layout(&sampler);
	if (!error)
		error = ring_writer_open(&sampler.writer, SAMPLING_RING_FD);
	if (error)
		return error;
	/* If pidfd_open() is refused, the next read finds that the process is gone. */
	sampler.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (sampler.pidfd < 0 && errno == ESRCH)
		return -errno;
	error = sampler_rights_begin(&sampler.rights, pid);
	if (error)
		return error;
	fcntl(SAMPLING_RING_FD, F_SETLK, &lock);
	read_comm(&sampler, (uint32_t)pid, sampler.comm);
	sample_until_end(&sampler);
	while (sampler.thread_count)
		end_thread(&sampler, &sampler.threads[sampler.thread_count - 1]);
	if (sampler.tool >= 0)
		leave_process(&sampler);
	free(sampler.threads);
	sampled_codes_done(&sampler.codes);
	return 0;
}
