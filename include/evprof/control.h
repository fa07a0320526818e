/*
 * control.h - how a process joins a collector.
 *
 * Owns the messages of the handshake and the names of the environment variables. The socket is a Unix socket of type
 * SOCK_SEQPACKET. The target connects and checks the listener's credentials (SO_PEERCRED: root, its own user, or
 * another user that is meant, see preload/join/peer.c). It sends one message and closes the connection: it keeps no
 * descriptor and reads no reply. The collector answers in ring_header.collector_state of the memory that came with the
 * message.
 *
 * The message is one JSON object (UTF-8, at most CONTROL_MESSAGE_MAX_BYTES) with SCM_RIGHTS: the memfd (ring.h), then a
 * pidfd of the sender. Where pidfd_open() is refused to the sender, the pidfd is missing and the collector opens one.
 *
 *   member      type      meaning
 *   evprof      integer   CONTROL_VERSION
 *   type        string    "join"
 *   session     string    32 hexadecimal digits: the session of this image. A secret: a process of another user than
 *                         the collector's may join if it knows them (a program may give up its user before it forks).
 *                         They are in this message and in the environment, and nowhere else. 16 zeros at the beginning
 *                         mean that there was no randomness yet: the session is not secret, and only the collector's
 *                         user may join
 *   start       string    "exec", "fork" or "rejoin"
 *   pid, ppid   integer   in the sender's pid namespace
 *   start_time  integer   field 22 of /proc/self/stat (clock ticks since boot, without the offset of the sender's time
 *                         namespace): distinguishes processes that had the same pid
 *   python      string    first word of Py_GetVersion(); "" where not known
 *   program     string    for file names: the base name of the script or module, made of [A-Za-z0-9._-] only
 *   argv        array     of strings; cut at CONTROL_ARGV_MAX_BYTES
 *   exe, cwd, host   string
 *   output      string    EVPROF_OUTPUT made absolute. The collector expands %p %n %h %t with the pid and program of
 *                         the session's first process. A private collector uses it, a daemon does not
 *   output_bytes  string  optional: output in hexadecimal digits, where it is not UTF-8; replaces output
 *   root        boolean   this image started the session
 *   events      array     of strings: the recorded kinds
 *   sample_rate integer   optional: stacks are sampled at this rate in samples a second, without hooks (sampling.h)
 *   outside     boolean   optional, with sample_rate: a tool sends the message in place of a process without library
 *                         (sampling.h). The pidfd is required, and the process's, as are pid and start_time. The tool's
 *                         user is that of the process, or root
 *   memory_interval  integer  optional: allocations are sampled, one for each so many bytes on average
 *   budget      integer   optional: EVPROF_BUDGET in 1/1000 %, where the process keeps within one
 *   keep_ns, keep_bytes  integer  optional: the trace keeps its last stretch only, of so many nanoseconds or bytes
 *   keep_alive  boolean   optional: the trace keeps what is alive, and sums of the rest
 *   trigger     string    optional: EVPROF_TRIGGER (trigger.h): on what the collector copies what the process did last
 *   native      boolean   optional: native stacks of allocations are recorded
 *   malloc_unseen  boolean  optional: native allocations were asked for, and do not reach evprof
 *   filtered    boolean   optional: functions are filtered (EVPROF_INCLUDE, EVPROF_EXCLUDE, EVPROF_EXCLUDE_SYSPATH)
 *   program_only   boolean  optional: what Python does before and after the program is left out (EVPROF_PROGRAM_ONLY)
 *   formats     string    optional: EVPROF_FORMAT, names with commas. A private collector has the finished trace
 *                         written in these formats, next to it; a daemon has an option for that
 *
 * `evprof run` opens a session itself and keeps the connection: {"evprof", "type":"hold", "session", "output"[,
 * "output_bytes"][, "wait_ms"]}. When it shuts down its side, the collector finishes the session and answers
 * {"type":"summary", "trace", "events", "lost", "processes", "running", "unsampled", "error"}. unsampled: number of
 * processes whose sampler ended before them. wait_ms (integer): how long the answer waits for processes that still run,
 * in addition to the collector's usual grace period.
 *
 * A process that should be recorded and is not reports the reason once: {"evprof", "type":"absent", "session",
 * "reason"}. Where no process has joined, the summary has the reason as "absent".
 *
 * A control request asks or changes something, and keeps the connection for its one answer: {"evprof", "type"[,
 * "target"]}. target (string) names the processes: "all" (the default), a pid in the collector's pid namespace (the
 * sender's, where the process has none there), or the program of its join. Any other type than those above is a
 * request:
 *
 *   type        answer
 *   "status"    {"collector": {...}, "processes": [...]}: what `evprof status --json` prints (docs/formats.md)
 *   "switch"    {"processes": [{"pid", "program", "follows", "followed", "refused", "outside"}]}. It has "action":
 *               "stop" or "start" the recording, "mark" with a "name" (shorter than RING_REQUEST_NAME_BYTES), or
 *               "look": what became of the last one. The collector passes it on (ring_header.request), once what it
 *               passed on before has been followed; where too many wait for that, the answer is an error. follows:
 *               the process has a handler for the signal that announces it; followed: it has got to it; refused: it
 *               could not do it, because recording is stopped; outside: a tool samples it, so that nothing in it
 *               could, and it is refused
 *   "snapshot"  {"traces": [{"path", "removed", "pids", "shown", "program", "since_ns", "until_ns", "hold"}]}:
 *               removed: the file was unlinked or replaced, so what is at path is another. pids are those of the
 *               trace, shown has for each the pid by which a target names it. All that was recorded is in the file,
 *               and for "hold_ms" (at most CONTROL_HOLD_MAX_MS) nothing leaves it. All events from since_ns (0: all
 *               at all) to until_ns, of CLOCK_MONOTONIC, are there, but for those that the collector could not read
 *               within a second. With "hold_ms" 0 the hold of that number ("hold") is given up. "start_time"
 *               (as in a join) is that of the process that has the target as its pid where the sender is: a process of
 *               that start time and own pid is meant before any other
 *
 * Root, the collector's own user and the group of --control-group may ask about all processes, another user about its
 * own (SO_PEERCRED, SO_PEERGROUPS, at the time of connect()). Every answer has {"evprof", "type":"answer"}, and where
 * it failed "error", one line. An answer of more than CONTROL_ANSWER_INLINE_BYTES is {"evprof", "type":"answer",
 * "attached"} with SCM_RIGHTS: a sealed memfd that holds the whole answer in `attached` bytes. So a client that does
 * not read delays nobody.
 *
 * evprof, type, session, the answers to "hold" and to requests and their "error" have one form in all versions. A
 * collector of another version answers a "hold" or a request with that error, and a join with the same text in the
 * memory. A request that a collector does not know is answered by an error, too.
 *
 * In strings that are not UTF-8, invalid bytes are replaced by U+FFFD.
 */
#ifndef EVPROF_CONTROL_H
#define EVPROF_CONTROL_H

#define CONTROL_VERSION 1
#define CONTROL_MESSAGE_MAX_BYTES 131072
#define CONTROL_ARGV_MAX_BYTES 32768
#define CONTROL_FDS 2
#define CONTROL_SESSION_DIGITS 32
#define CONTROL_OPEN_DIGITS 16 /* a session that begins with this many zeros is not secret */
#define CONTROL_BACKLOG 4096
#define CONTROL_FORMATS_MAX_BYTES 256
#define CONTROL_TRIGGER_MAX_BYTES 1024
#define CONTROL_REASON_MAX_BYTES 512
#define CONTROL_TARGET_MAX_BYTES 256
#define CONTROL_HOLD_MAX_MS 300000
#define CONTROL_ANSWER_INLINE_BYTES 16384
#define CONTROL_ANSWER_MAX_BYTES ((size_t)64 << 20)
#define CONTROL_MEMORY_INTERVAL_MAX 0x10000000000 /* bytes */

/* The formats of evprof export, as EVPROF_FORMAT names them. tools/cmd/export.c has them too; a test compares. */
#define CONTROL_FORMAT_NAMES                                                                                           \
	{                                                                                                              \
		"chrome", "perfetto", "pstats", "csv", "callgrind", "folded", "speedscope", "speedscope-sampled",      \
		    "pprof", "firefox", "html"                                                                         \
	}

/* The endings of files in these formats, without the dot, in the same order. A test compares them, too. */
#define CONTROL_FORMAT_SUFFIXES                                                                                        \
	{                                                                                                              \
		"json", "pftrace", "pstats", "csv", "callgrind", "folded", "speedscope.json",                          \
		    "sampled.speedscope.json", "pb.gz", "firefox.json", "html"                                         \
	}

/* Variables that the user sets. */
#define ENV_SWITCH "EVPROF"
#define ENV_OUTPUT "EVPROF_OUTPUT"
#define ENV_SOCKET "EVPROF_SOCKET"
#define ENV_EVENTS "EVPROF_EVENTS"
#define ENV_RING_SIZE "EVPROF_RING_SIZE"
#define ENV_FALLBACK "EVPROF_FALLBACK"
#define ENV_READER_LIBRARY "EVPROF_READER_LIBRARY" /* for the Python package */
#define ENV_ON_FULL "EVPROF_ON_FULL"
#define ENV_CHILDREN "EVPROF_CHILDREN"
#define ENV_LOG "EVPROF_LOG"
#define ENV_INCLUDE "EVPROF_INCLUDE"
#define ENV_EXCLUDE "EVPROF_EXCLUDE"
#define ENV_EXCLUDE_SYSPATH "EVPROF_EXCLUDE_SYSPATH"
#define ENV_FORMAT "EVPROF_FORMAT"
#define ENV_CALIBRATE "EVPROF_CALIBRATE"
#define ENV_SAMPLE_RATE "EVPROF_SAMPLE_RATE"
#define ENV_MEMORY_INTERVAL "EVPROF_MEMORY_INTERVAL"
#define ENV_MEMORY_LINES "EVPROF_MEMORY_LINES"
#define ENV_BUDGET "EVPROF_BUDGET"
#define ENV_KEEP "EVPROF_KEEP"
#define ENV_TRIGGER "EVPROF_TRIGGER"
#define ENV_NATIVE "EVPROF_NATIVE"
#define ENV_PROGRAM_ONLY "EVPROF_PROGRAM_ONLY"
#define ENV_START "EVPROF_START"
#define ENV_SIGNAL "EVPROF_SIGNAL"
#define ENV_PAGER "EVPROF_PAGER" /* for the verbs that read */
/*
 * Set by evprof for the programs that a profiled one starts: "<session>:<first>:<owner>:<socket>". first: pid of the
 * first process of the session. owner: pid of the process that waits for the result and prints the closing line (the
 * first process or `evprof run`). socket: a path, or '@' and an abstract name; that of a private collector is as in
 * network.h. It comes last because a path may contain any character.
 */
#define ENV_SESSION "EVPROF_SESSION"

#define OUTPUT_DEFAULT "evprof-%n-%p.evp"

/* Where a host's daemon listens, if its administrator does not say otherwise (evprof-collector.socket). */
#define CONTROL_DAEMON_SOCKET "/run/evprof/collector.sock"

/* A private collector inherits its listening socket as this descriptor. */
#define CONTROL_LISTEN_FD 3

/*
 * The number of descriptors of a collector that serves one process at a time: standard streams, socket, epoll, signals,
 * trace, the two of the process, and those that are free when it accepts a connection (server.c): the connection, the
 * two that come with the message, and two to check these. It cannot work with a lower limit.
 */
#define CONTROL_COLLECTOR_FDS 14

#endif
