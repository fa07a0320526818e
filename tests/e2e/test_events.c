/*
 * test_events.c - which events are recorded: the ways into and out of frames, exceptions, memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static bool is_frame_kind(const char *kind)
{
	static const char *const kinds[] = {"call", "resume", "throw", "return", "yield", "unwind", "exception"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(kinds[i], kind) == 0)
			return true;
	return false;
}

/* The last part of a qualified name: "Pause.__await__" is __await__, "f.<locals>.<genexpr>" is <genexpr>. */
static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

/* Between the marks, in functions of the program's file: "kind name" a line. Exceptions of any place. */
static char *frame_events(const struct outcome *outcome, const char *file, bool exceptions)
{
	size_t count, bytes = 0;
	struct event *events = trace_dump(outcome->trace, &count);
	char *result = calloc(1, count * 64 + 64);
	bool inside = false;

	for (size_t i = 0; i < count; i++) {
		struct event *event = &events[i];
		bool exception = strcmp(event->kind, "exception") == 0;

		if (strcmp(event->kind, "mark") == 0)
			inside = strcmp(event->name, "begin") == 0;
		if (!inside || !is_frame_kind(event->kind) || strcmp(event->name, "marked") == 0 ||
		    (exception ? !exceptions : !strstr(event->place, file)))
			continue;
		bytes += (size_t)sprintf(result + bytes, "%s %.40s\n", event->kind, last_part(event->name));
	}
	free(events);
	return result;
}

/* Where two lists of lines part: some lines before, and both at that place. */
static char *parting(const char *mine, const char *theirs)
{
	size_t at = 0, from;

	while (mine[at] && mine[at] == theirs[at])
		at++;
	while (at > 0 && mine[at - 1] != '\n')
		at--;
	from = at > 120 ? at - 120 : 0;
	return text("...%.*s\n  evprof: %.100s\n  oracle: %.100s", (int)(at - from), mine + from, mine + at,
		    theirs + at);
}

static char *without(const char *lines, const char *prefix)
{
	char *copy = text("%s", lines), *result = calloc(1, strlen(lines) + 1);

	for (char *at = copy, *line; (line = strsep(&at, "\n"));)
		if (*line && strncmp(line, prefix, strlen(prefix)) != 0)
			strcat(strcat(result, line), "\n");
	return result;
}

/* 3.12 and later: the same events as those of sys.monitoring. */
SCENARIO(events, frames_by_monitoring, 12)
{
	struct outcome *judge =
	    run(.python = python, .how = JOB_BARE, .args = {"@../oracle_monitoring.py", "@generators.py"});
	struct outcome *outcome = run(.python = python, .args = {"@generators.py"});
	char *mine, *theirs;

	json_decref(expect_trace(outcome, 1));
	expect(judge, strlen(judge->out) > 1000, "the oracle speaks");
	mine = frame_events(outcome, "generators.py", false);
	theirs = without(judge->out, "exception");
	expect(outcome, strcmp(mine, theirs) == 0, "events are not those of sys.monitoring: %s", parting(mine, theirs));
	mine = frame_events(outcome, "generators.py", true);
	expect(outcome, strcmp(mine, judge->out) == 0,
	       "exceptions are not where sys.monitoring has them "
	       "raised: %s",
	       parting(mine, judge->out));
}

/*
 * Every version: written down by hand. "a|b" are the versions before 3.12 and from there on.
 *
 * Up to 3.10 the interpreter does not report how a suspended generator resumes. .throw() and .close() are known because
 * they are C calls. del closes it too, but is not a C call: it is a resume there.
 */
static const char *const expected[] = {
    "call program",	 "call simple",	      "return simple",	   "call counting",    "yield counting",
    "resume counting",	 "yield counting",    "resume counting",   "yield counting",   "resume counting",
    "return counting",	 "call delegating",   "call counting",	   "yield counting",   "yield delegating",
    "resume delegating", "resume counting",   "yield counting",	   "yield delegating", "resume delegating",
    "resume counting",	 "return counting",   "return delegating", "call in_throw",    "call catching",
    "yield catching",	 "throw catching",    "yield catching",	   "throw catching",   "unwind catching",
    "return in_throw",	 "call in_raising",   "call raising",	   "yield raising",    "resume raising",
    "unwind raising",	 "return in_raising",
};

SCENARIO(events, frames_by_hand, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@generators.py"});
	char *mine = frame_events(outcome, "generators.py", false), *theirs = calloc(1, 10000), *known;

	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
		strcat(strcat(theirs, expected[i]), "\n");
	known = text("%.*s", (int)strlen(theirs), mine);
	expect(outcome, strcmp(known, theirs) == 0, "events are not as written down: %s", parting(known, theirs));
	expect(outcome,
	       strstr(mine, "call raises_deeper\ncall raises\nunwind raises\nunwind raises_deeper\nreturn catches\n"),
	       "an exception unwinds the frames that do not catch it:\n%.3000s", mine);
	expect(outcome,
	       strstr(mine, "call awaiting\ncall awaited\nreturn awaited\ncall __await__\nyield __await__\n"
			    "yield awaiting\nresume awaiting\nresume __await__\nreturn __await__\nreturn awaiting\n"),
	       "await suspends and resumes the whole chain:\n%.3000s", mine);
}

/* Each C call ends by a return or an exception, under its own name. */
SCENARIO(events, c_calls, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@raises.py"});
	size_t count, calls = 0, ends = 0, failed = 0;
	struct event *events = trace_dump(outcome->trace, &count);

	for (size_t i = 0; i < count; i++) {
		if (!strstr(events[i].name, "builtins.len"))
			continue;
		calls += strcmp(events[i].kind, "c_call") == 0;
		ends += strcmp(events[i].kind, "c_return") == 0;
		failed += strcmp(events[i].kind, "c_exception") == 0;
	}
	expect(outcome, failed == 20, "len(5) failed 20 times, not %zu", failed);
	expect(outcome, calls == ends + failed && ends >= 20, "%zu calls of len, %zu returns and %zu exceptions", calls,
	       ends, failed);
	free(events);
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

struct block {
	unsigned long long address, size;
	bool alive;
};

static int by_size(const void *a, const void *b)
{
	const unsigned long long *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void block_end(struct block *blocks, size_t count, unsigned long long address)
{
	for (size_t i = count; i-- > 0;)
		if (blocks[i].address == address && blocks[i].alive) {
			blocks[i].alive = false;
			return;
		}
}

/* Blocks above 512 bytes that were made between the marks and are alive at the second; sorted sizes in one line. */
static char *blocks_alive(const struct event *events, size_t count)
{
	struct block *blocks = calloc(count, sizeof(*blocks));
	unsigned long long *sizes = calloc(count, sizeof(*sizes)), sum = 0;
	size_t made = 0, alive = 0, used;
	bool inside = false;
	char *result;

	for (size_t i = 0; i < count; i++) {
		if (strcmp(events[i].kind, "mark") == 0)
			inside = strcmp(events[i].name, "begin") == 0;
		if (!inside || !*events[i].domain)
			continue;
		if (strcmp(events[i].kind, "free") == 0 || strcmp(events[i].kind, "realloc") == 0)
			block_end(blocks, made, events[i].old_address ? events[i].old_address : events[i].address);
		if (strcmp(events[i].kind, "free") == 0 || events[i].size <= 512 || events[i].address == 0)
			continue;
		block_end(blocks, made, events[i].address); /* the raw block below one of another domain: one block */
		blocks[made++] = (struct block){events[i].address, events[i].size, true};
	}
	for (size_t i = 0; i < made; i++)
		if (blocks[i].alive)
			sum += sizes[alive++] = blocks[i].size;
	qsort(sizes, alive, sizeof(*sizes), by_size);
	result = calloc(1, alive * 22 + 100);
	used = (size_t)sprintf(result, "%zu %llu\n", alive, sum);
	for (size_t i = 0; i < alive; i++)
		used += (size_t)sprintf(result + used, "%s%llu", i ? " " : "", sizes[i]);
	strcat(result, "\n");
	return result;
}

SCENARIO(events, memory_by_tracemalloc, SUPPORTED)
{
	struct outcome *judge, *outcome;
	struct event *events;
	size_t count;
	char *mine;

	python_needs(python, "ctypes");
	judge = run(.python = python, .how = JOB_BARE, .args = {"@memory.py", "tracemalloc"});
	outcome = run(.python = python, .args = {"@memory.py"});
	expect(judge, judge->status == 0 && atoi(judge->out) > 300, "tracemalloc traced hundreds of blocks");
	json_decref(expect_trace(outcome, 1));
	events = trace_dump(outcome->trace, &count);
	mine = blocks_alive(events, count);
	expect(outcome, strcmp(mine, judge->out) == 0, "blocks alive at the second mark:\n%s\ntracemalloc:\n%s", mine,
	       judge->out);
	free(events);
}

static bool has_block(const struct event *events, size_t count, const char *kind, const char *domain,
		      unsigned long long size)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(events[i].kind, kind) == 0 && strcmp(events[i].domain, domain) == 0 &&
		    events[i].size == size)
			return true;
	return false;
}

SCENARIO(events, memory_domains, SUPPORTED)
{
	static const struct domain {
		const char *name;
		unsigned long long size;
	} domains[] = {{"raw", 100003}, {"mem", 100019}, {"obj", 100043}};
	struct outcome *outcome;
	struct event *events;
	size_t count;

	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"@memory.py"});
	events = trace_dump(outcome->trace, &count);
	for (size_t i = 0; i < 3; i++) {
		expect(outcome, has_block(events, count, "malloc", domains[i].name, domains[i].size), "malloc of %s",
		       domains[i].name);
		expect(outcome, has_block(events, count, "realloc", domains[i].name, domains[i].size + 2),
		       "realloc of %s", domains[i].name);
		expect(outcome, has_block(events, count, "calloc", domains[i].name, domains[i].size + 4),
		       "calloc of %s", domains[i].name);
		for (size_t j = 0; j < 2; j++)
			expect(outcome,
			       !has_block(events, count, "malloc", domains[(i + j + 1) % 3].name, domains[i].size),
			       "a block of %s is recorded once, as %s", domains[i].name, domains[i].name);
	}
	free(events);
}

static int by_address_and_order(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	return x->address != y->address ? (x->address < y->address ? -1 : 1) : x->size < y->size ? -1 : 1;
}

/*
 * Life of every address: made, freed, made, freed ... No block is made where one is. A free without its block is one
 * from before the recording began, or one that Python made for evprof itself, which is no event of the program: what a
 * code object keeps for its id, the UTF-8 of a name that a definition asked for. There are a few for each definition.
 * For the same reason a block may, rarely, end unseen: made twice.
 */
SCENARIO(events, memory_addresses, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@memory.py"});
	size_t count, steps = 0, made_twice = 0, freed_twice = 0;
	struct event *events = trace_dump(outcome->trace, &count);
	struct block *life = calloc(2 * count + 2, sizeof(*life));

	/* size: the order; alive: made (true) or ended */
	for (size_t i = 0; i < count; i++) {
		if (!*events[i].domain || !events[i].address)
			continue;
		if (events[i].old_address)
			life[steps++] = (struct block){events[i].old_address, 2 * i, false};
		life[steps++] = (struct block){events[i].address, 2 * i + 1, strcmp(events[i].kind, "free") != 0};
	}
	expect(outcome, steps > 10000, "there are allocations: %zu", steps);
	qsort(life, steps, sizeof(*life), by_address_and_order);
	for (size_t i = 1; i < steps; i++)
		if (life[i].address == life[i - 1].address && life[i].alive == life[i - 1].alive)
			*(life[i].alive ? &made_twice : &freed_twice) += 1;
	expect(outcome, made_twice < 10, "%zu of %zu blocks are made where one is", made_twice, steps);
	expect(outcome, freed_twice < steps / 50, "%zu of %zu frees have no block", freed_twice, steps);
	free(life);
	free(events);
}

/* Times never go back, and begin near the start. */
/* A bytes object of this size; its head is 33 to 49 bytes, with the zero at the end. */
static bool is_bytes(const struct event *event, size_t size)
{
	return event->size > size && event->size < size + 64;
}

struct blocks {
	size_t made, cleared, grown, freed;
};

/* How many blocks were made or freed between those of the marks. */
static struct blocks blocks_between(const struct outcome *outcome, size_t first, size_t last)
{
	struct blocks blocks = {0};
	size_t count;
	struct event *events = trace_dump(outcome->trace, &count);
	bool inside = false;

	for (size_t i = 0; i < count; i++) {
		if (is_bytes(&events[i], last))
			inside = false;
		if (inside) {
			blocks.made += strcmp(events[i].kind, "malloc") == 0;
			blocks.cleared += strcmp(events[i].kind, "calloc") == 0;
			blocks.grown += strcmp(events[i].kind, "realloc") == 0;
			blocks.freed += strcmp(events[i].kind, "free") == 0;
		}
		if (is_bytes(&events[i], first))
			inside = true;
	}
	free(events);
	return blocks;
}

/*
 * The judge is the same program without a hook, for which Python makes no objects. 3.11: the frame object of a function
 * that handles an exception is not distinguished from those that Python makes for the profile function. Until
 * 3.9 a trace function, too, gets exceptions, one of which is made for it.
 */
SCENARIO(events, memory_is_the_programs, SUPPORTED)
{
	static const char *const sets[] = {"mem", "call,c_call,exception,mem", "call,mem", "c_call,mem",
					   "line,c_call,mem"};
	const size_t handled = 800; /* calls of far() */
	struct blocks alone = {0};

	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets) - (python->minor < 10); i++) {
		char *setting = text("EVPROF_EVENTS=%s", sets[i]);
		struct outcome *outcome =
		    run(.python = python, .args = {"@unasked.py"}, .env = {setting, "PYTHONHASHSEED=0"});
		struct blocks found = blocks_between(outcome, 100003, 200003);

		if (i == 0)
			alone = found;
		if (i > 0 && python->minor == 11)
			found.made += handled, found.freed += handled;
		expect(outcome, alone.made > 1000, "the program allocates: %zu", alone.made);
		expect(outcome, memcmp(&found, &alone, sizeof(found)) == 0,
		       "%s: %zu made, %zu cleared, %zu grown, %zu freed; alone: %zu, %zu, %zu, %zu", sets[i],
		       found.made, found.cleared, found.grown, found.freed, alone.made, alone.cleared, alone.grown,
		       alone.freed);
		free(setting);
	}
}
SCENARIO(events, times, SUPPORTED)
{
	struct outcome *outcome = run(.python = python, .args = {"@threads.py"});
	json_t *info = expect_trace(outcome, 1);
	long long last = 0, duration = json_integer_value(json_object_get(info, "duration_ns"));
	size_t count, shown = 0;
	struct event *events = trace_dump(outcome->trace, &count);

	for (size_t i = 0; i < count; i++) /* what is known of a stack is shown, but nothing that happened */
		shown += strcmp(events[i].kind, "stack") != 0 && strcmp(events[i].kind, "frame") != 0;
	expect(outcome, shown == (size_t)json_integer_value(json_object_get(info, "events")),
	       "dump shows all %lld, not %zu", (long long)json_integer_value(json_object_get(info, "events")), shown);
	for (size_t i = 0; i < count; i++) {
		expect(outcome, events[i].time_ns >= last, "event %zu is at %lld, after %lld", i, events[i].time_ns,
		       last);
		last = events[i].time_ns;
	}
	expect(outcome, last <= duration && duration < (long long)(outcome->seconds * 1e9),
	       "it lasts %lld ns, within %.3f s", duration, outcome->seconds);
	free(events);
	json_decref(info);
}

/* A reader that was written from docs/trace.md and docs/wire.md alone finds what the program did. */
SCENARIO_SOME(events, as_the_documents_say, SUPPORTED)
{
	static const char *const recordings[][2] = {{"EVPROF_EVENTS=call,c_call,exception,mem,cpu"},
						    {"EVPROF_EVENTS=call,line"},
						    {"EVPROF_EVENTS=call,mem", "EVPROF_NATIVE=1"},
						    {"EVPROF_EVENTS=sample"}};

	for (size_t i = 0; i < sizeof(recordings) / sizeof(*recordings); i++) {
		const char *const *env = recordings[i];
		struct outcome *outcome = run(.python = python, .args = {"@known.py"}, .env = {env[0], env[1]});
		struct outcome *read;

		expect_closing_line(outcome);
		read = run(.how = JOB_BARE, .args = {"python3", "@../oracle_trace.py", outcome->trace});
		expect(read, read->status == 0, "%s: the trace is as the documents say", env[0]);
		if (!strstr(env[0], "call"))
			continue;
		expect(read, strstr(read->out, "\nknown.py:leaf 1000 "), "1000 calls of leaf");
		expect(read, strstr(read->out, "\nknown.py:recurse 51 "), "51 calls of recurse");
		expect(read, strstr(read->out, "\nknown.py:numbers 1 "), "one call of numbers, which is resumed");
	}
}

/* Writes a copy of the running Python's library in which dict.fromkeys has another name: evprof looks at its layout. */
static const char renames_fromkeys[] =
    "import os\n"
    "path = [line.split()[-1] for line in open('/proc/self/maps') if 'libpython' in line][0]\n"
    "data = open(path, 'rb').read().replace(b'\\0fromkeys\\0', b'\\0fromkeyx\\0')\n"
    "open(os.path.basename(path), 'wb').write(data)\n";

/* Where the layouts are not those that evprof knows, its line says what is missing, and the rest is there. */
SCENARIO(events, unknown_layouts, SUPPORTED)
{
	static const struct {
		const char *events, *lost;
		bool allocations;
	} recordings[] = {
	    {"EVPROF_EVENTS=call,line", "; nothing is recorded", false},
	    {"EVPROF_EVENTS=call,mem", "; only allocations are recorded, without Python stacks", true},
	    {"EVPROF_EVENTS=mem", "; allocations have no Python stack", true},
	};
	struct outcome *made;

	python_needs(python, "shared");
	made = run(.python = python, .how = JOB_BARE, .args = {"-c", renames_fromkeys});
	expect(made, made->status == 0, "there is a copy");
	for (size_t i = 0; i < sizeof(recordings) / sizeof(*recordings); i++) {
		struct outcome *outcome =
		    run(.python = python, .args = {"-S", "-c", "print(len([bytes(9000) for i in range(50)]))"},
			.env = {recordings[i].events, text("LD_LIBRARY_PATH=%s", made->directory)});
		char *line = stderr_evprof_line(outcome, 0);
		json_t *info = trace_info(outcome->trace);

		expect(outcome, outcome->status == 0 && !strcmp(outcome->out, "50\n"), "it runs as without evprof");
		expect(outcome, strstr(line, "unknown to evprof") && strstr(line, recordings[i].lost), "%s: %s",
		       recordings[i].events, line);
		expect(outcome, info_events(info, "call") == 0 && info_events(info, "line") == 0, "%s: no calls",
		       recordings[i].events);
		expect(outcome,
		       (info_events(info, "malloc") + info_events(info, "calloc") >= 50) == recordings[i].allocations,
		       "%s: allocations", recordings[i].events);
		json_decref(info);
		free(line);
	}
}
