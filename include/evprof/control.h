/*
 * control.h - how a process joins a collector.
 *
 * Owns the names of the handshake and of the environment variables. A Unix socket of type SOCK_SEQPACKET; the target
 * connects, looks at who listens there (SO_PEERCRED: root, its own user, or another who is meant, see preload/peer.c),
 * sends one message and closes: it keeps no descriptor and waits for no answer. The answer is
 * ring_header.collector_state in the memory it sent.
 *
 * The message is one JSON object (UTF-8, at most CONTROL_MESSAGE_MAX_BYTES) with SCM_RIGHTS: the memfd (ring.h), then
 * a pidfd of the sender. Without the latter (pidfd_open() is refused there) the collector takes its own.
 *
 *   member      type      meaning
 *   evprof      integer   CONTROL_VERSION
 *   type        string    "join"
 *   session     string    32 hexadecimal digits: the process tree this image belongs to. A secret: of another user
 *                         than the collector's, who knows it may join (a program may give up its user before it
 *                         forks). It stands in this message and in the environment, and nowhere else. One that begins
 *                         with 16 zeros is none: there was no randomness yet, and only the collector's user joins
 *   start       string    "exec", "fork" or "rejoin"
 *   pid, ppid   integer   as the sender sees them
 *   start_time  integer   field 22 of /proc/self/stat (clock ticks since boot, as outside of the sender's time
 *                         namespace): tells a reused pid
 *   python      string    Py_GetVersion(), first word; "" where not known
 *   program     string    for file names: the script's or module's base name, made of [A-Za-z0-9._-] only
 *   argv        array     of strings; cut at CONTROL_ARGV_MAX_BYTES
 *   exe, cwd, host   string
 *   output      string    EVPROF_OUTPUT made absolute; the collector expands %p %n %h %t with the pid and program of
 *                         the session's first process (a private collector obeys it, a host's daemon does not)
 *   output_bytes  string  optional: output in hexadecimal digits, where it is not UTF-8; then it counts
 *   root        boolean   this image started the session
 *   events      array     of strings: what is recorded
 *   sample_rate integer   optional: stacks are sampled so many times a second, not hooked (sampling.h)
 *   native      boolean   optional: native stacks of allocations are recorded
 *   filtered    boolean   optional: functions are left out (EVPROF_INCLUDE, EVPROF_EXCLUDE, EVPROF_EXCLUDE_SYSPATH)
 *   formats     string    optional: EVPROF_FORMAT, names with commas; a private collector has the finished trace
 *                         written in them, beside it (a host's daemon has an option of its own for that)
 *
 * `evprof run` opens a session itself and keeps the connection: {"evprof", "type":"hold", "session", "output"[,
 * "output_bytes"][, "wait_ms"]}. When it shuts its side down, the collector finishes the session and answers
 * {"type":"summary", "trace", "events", "lost", "processes", "running", "unsampled", "error"}; unsampled: processes
 * whose sampler was ended before them. wait_ms (integer): how long the answer waits for processes that still run,
 * beside the collector's own moment.
 *
 * A process that is not recorded although it should be says why, once: {"evprof", "type":"absent", "session",
 * "reason"}. The summary has that as "absent" where no process has joined.
 *
 * Strings that are not UTF-8 are sent with U+FFFD in place of the bytes that are not.
 */
#ifndef EVPROF_CONTROL_H
#define EVPROF_CONTROL_H

#define CONTROL_VERSION 1
#define CONTROL_MESSAGE_MAX_BYTES 131072
#define CONTROL_ARGV_MAX_BYTES 32768
#define CONTROL_FDS 2
#define CONTROL_SESSION_DIGITS 32
#define CONTROL_OPEN_DIGITS 16 /* so many zeros: the session is no secret */
#define CONTROL_BACKLOG 4096
#define CONTROL_FORMATS_MAX_BYTES 256
#define CONTROL_REASON_MAX_BYTES 512

/* The formats of evprof export: what EVPROF_FORMAT may name. tools/cmd/export.c has them; a test compares. */
#define CONTROL_FORMAT_NAMES                                                                                           \
	{                                                                                                              \
		"chrome", "perfetto", "pstats", "csv", "callgrind", "folded", "speedscope", "speedscope-sampled",      \
		    "pprof", "firefox", "html"                                                                         \
	}

/* What the user may set. */
#define ENV_SWITCH "EVPROF"
#define ENV_OUTPUT "EVPROF_OUTPUT"
#define ENV_SOCKET "EVPROF_SOCKET"
#define ENV_EVENTS "EVPROF_EVENTS"
#define ENV_RING_SIZE "EVPROF_RING_SIZE"
#define ENV_FALLBACK "EVPROF_FALLBACK"
#define ENV_ON_FULL "EVPROF_ON_FULL"
#define ENV_CHILDREN "EVPROF_CHILDREN"
#define ENV_LOG "EVPROF_LOG"
#define ENV_INCLUDE "EVPROF_INCLUDE"
#define ENV_EXCLUDE "EVPROF_EXCLUDE"
#define ENV_EXCLUDE_SYSPATH "EVPROF_EXCLUDE_SYSPATH"
#define ENV_FORMAT "EVPROF_FORMAT"
#define ENV_CALIBRATE "EVPROF_CALIBRATE"
#define ENV_SAMPLE_RATE "EVPROF_SAMPLE_RATE"
#define ENV_NATIVE "EVPROF_NATIVE"
/*
 * Set by evprof itself for the programs that a profiled one starts: "<session>:<first>:<owner>:<socket>". first is the
 * pid of the first process of the tree; owner is the pid of who waits for the result and prints the closing line (the
 * first process itself, or `evprof run`). The socket is a path, or '@' and an abstract name, of a private collector as
 * network.h has it; it comes last because a path may hold anything.
 */
#define ENV_SESSION "EVPROF_SESSION"

#define OUTPUT_DEFAULT "evprof-%n-%p.evp"

/* A private collector gets its listening socket as this descriptor. */
#define CONTROL_LISTEN_FD 3

/*
 * The descriptors of a collector that serves one process after another: the standard ones, socket, epoll, signals,
 * trace, the connection, what comes with the message, and two to look at that. With a lower limit it can do nothing.
 */
#define CONTROL_COLLECTOR_FDS 12

#endif
