/*
 * calibrate.c - measures the cost of an event in this process: on this machine, in this interpreter, with these hooks.
 *
 * Loops that call functions of several kinds are timed with the hooks and without: the difference is what the hooks add
 * to a call and its return. It depends on the kind of call more than on the hook. With hooks set, the interpreter does
 * without its shortcuts (inlined calls of Python functions, specialized instructions), and the cost of that depends on
 * what the shortcut would have done. The part of the difference between the two timestamps looks like time of the
 * function; a function that does nothing shows its size. The rest looks like time of the caller. Until 3.11 every
 * instruction may be slower while a profile function is set; a loop without calls shows by how much.
 *
 * The measurement takes 15 to 20 milliseconds. The stack of the thread is recorded as empty meanwhile, so that this
 * time is attributed to no function. No event is written, because a private writer takes them, and no code of the
 * program is called. All objects are freed at the end; classes need a garbage collection.
 */
#include "calibrate/calibrate.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/config.h"
#include "base/log_line.h"
#include "base/text.h"
#include "definitions/define.h"
#include "hooks/budget.h"
#include "hooks/budget_account.h"
#include "hooks/budget_timer.h"
#include "hooks/event_counts.h"
#include "hooks/frame_evaluator.h"
#include "hooks/event_blocks.h"
#include "hooks/hooks.h"
#include "life/life.h"
#include "ring/process.h"
#include "ring/writer.h"

#define TURNS 100 /* of each loop, as in programs.py */
#define ROUNDS 5
/*
 * Passes are far apart: a disturbance of one may be over at the next. There are PASSES of them, and more until two
 * agree.
 */
#define PASSES 4
#define MOST_PASSES 12
#define AGREES 0.05
/*
 * Likewise of the loop for EVPROF_BUDGET, 0.2 to 0.4 ms each. A processor that others use, too, has two speeds, and
 * changes between them within a ms: the shortest run with the hooks may be of the one, that without of the other. So
 * passes are short, and the median counts.
 */
#define EVENT_PASSES 7
#define EVENT_ROUNDS 2	  /* the first of them meets code that is to be instrumented */
#define SLOWED_LEAST 0.05 /* less is noise */
#define SLOWED_MOST 0.75  /* of the difference: how much instructions are slowed differs between loops */
#define BLOCKS 64
#define WORDS 32768
/*
 * If instructions are slowed by more, the slowdown differs between loops too much for anything else to be derived from
 * it.
 */
#define SLOWED_MUCH 0.75
#define POPULATE_BYTES ((size_t)4 << 20)

/* The loops, programs.py. The assembler includes the file; the Makefile lists it as a dependency of this one. */
__asm__(".pushsection .rodata\n"
	"evprof_programs:\n"
	".incbin \"preload/calibrate/programs.py\"\n"
	".byte 0\n"
	".popsection\n");
extern const char programs[] __asm__("evprof_programs") __attribute__((visibility("hidden")));

/* Numbers of the loops, and names of their functions. */
/* clang-format off */
#define EACH_LOOP(X) \
	X(NOTHING, nothing) X(PLAIN, plain) X(LEAVES, leaves) X(CALLS, calls) X(RECURSION, recursion) \
	X(CATCHES, catches) X(ENTRIES, entries) X(CALLBACKS, callbacks) X(INITS, inits) X(RESUMES, resumes) \
	X(WALKS, walks) X(PULLS, pulls) X(GENERATORS, generators) X(LENGTHS, lengths) X(DISTANCES, distances) \
	X(C_FUNCTIONS, c_functions) X(APPENDS, appends) X(METHODS, methods) X(OTHERS, others) X(DENSE, dense) \
	X(SPARSE, sparse) X(ALLOCATIONS, allocations)
/* clang-format on */

#define LOOP_NUMBER(number, name) number,
#define LOOP_NAME(number, name) #name,
enum loop { EACH_LOOP(LOOP_NUMBER) LOOPS };
static const char *const names[LOOPS] = {EACH_LOOP(LOOP_NAME)};

#define BEGIN_KINDS (1u << WIRE_CALL | 1u << WIRE_RESUME | 1u << WIRE_C_CALL)
#define END_KINDS (1u << WIRE_RETURN | 1u << WIRE_YIELD | 1u << WIRE_C_RETURN)

/* Sums over the events of one run of a loop. In ticks. */
struct stamps {
	uint64_t count[WIRE_KINDS];
	uint64_t inner[WIRE_KINDS]; /* from a start to its end, if that is the next event */
	uint64_t inner_count[WIRE_KINDS];
	uint64_t in_c; /* while a C function ran */
};

/* The shortest runs. */
struct timing {
	double on_ns, off_ns;
	struct stamps stamps; /* of the run with the hooks */
};

struct measurement {
	struct timing loops[LOOPS];
	double malloc_ns, free_ns;
	double tick_ns;
	double slow;
	double spread; /* by how much the second best pass is slower than the sum of the shortest runs */
};

static struct writer private_writer;
static struct ring_slot private_slot;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void empty_private_writer(void)
{
	private_writer.head = 0;
	private_writer.last_ticks = clock_now();
	private_writer.room = private_writer.mask + 1 - WRITER_SPARE_WORDS;
	private_writer.limit = 0;
	writer_take_chunk(&private_writer);
}

/* Sums over the private writer's events. In each loop at most one C function is on the stack. */
static void read_stamps(struct stamps *stamps)
{
	unsigned last = WIRE_NONE, depth = 0, in_c = 0; /* the depth at which it runs */

	memset(stamps, 0, sizeof(*stamps));
	for (uint64_t at = 0; at < private_writer.head; at++) {
		uint32_t head = (uint32_t)private_writer.words[at];
		unsigned kind = wire_head_kind(head);
		uint64_t ticks = private_writer.words[at] >> 32;
		bool begins = BEGIN_KINDS >> kind & 1, ends = END_KINDS >> kind & 1;

		at += wire_extra_words(head);
		stamps->count[kind]++;
		if (in_c && depth == in_c)
			stamps->in_c += ticks;
		if (ends && BEGIN_KINDS >> last & 1) {
			stamps->inner[last] += ticks;
			stamps->inner_count[last]++;
		}
		depth += begins;
		depth -= ends && depth;
		if (kind == WIRE_C_CALL)
			in_c = depth;
		else if (kind == WIRE_C_RETURN)
			in_c = 0;
		last = kind;
	}
}

/*
 * Removes the memory events of the loops' own allocations, which happen with the hooks and without, and keeps all
 * times.
 */
static void drop_memory_events(void)
{
	uint64_t *words = private_writer.words, from = 0, to = 0, ticks = 0;

	while (from < private_writer.head) {
		unsigned kind = wire_head_kind((uint32_t)words[from]), extra = wire_extra_words((uint32_t)words[from]);
		bool time = wire_is_time(kind);

		if (wire_is_memory(kind)) {
			ticks += words[from] >> 32;
			from += 1 + extra;
			continue;
		}
		words[to] = words[from++] + (time ? 0 : ticks << 32);
		ticks = 0;
		for (to++; extra > 0; extra--)
			words[to++] = words[from++];
	}
	private_writer.head = to;
}

/* If Python allocates for the hooks, these allocations are part of their cost. */
static double run_once(struct object *globals, const char *name)
{
	struct object *function = python.PyDict_GetItemString(globals, name), *result;
	uint32_t nesting = thread_self.nesting;
	double begin;

	empty_private_writer();
	if (event_blocks_expected())
		thread_self.nesting = 0;
	begin = now_ns();
	result = python.PyObject_CallMethod(function, "__call__", "(O)", python.PyDict_GetItemString(globals, "times"));
	begin = now_ns() - begin;
	if (nesting && !thread_self.nesting)
		drop_memory_events();
	thread_self.nesting = nesting;
	python.Py_DecRef(result);
	python.PyErr_Clear();
	return begin;
}

static void time_loop(struct object *globals, enum loop loop, bool on, int rounds, struct timing *timing)
{
	double *shortest = on ? &timing->on_ns : &timing->off_ns;

	for (int i = 0; i < rounds; i++) {
		double ns = run_once(globals, names[loop]);

		if (*shortest > 0 && ns >= *shortest)
			continue;
		*shortest = ns;
		if (on)
			read_stamps(&timing->stamps);
	}
}

/* Switches the hooks of this thread off or on. */
static void switch_hooks(bool on)
{
	if (python.monitoring)
		hooks_monitoring_enable(on);
	else if (hooks_frame_enable(on))
		return;
	else if (on)
		hooks_profile_set();
	else
		python.PyEval_SetProfile(NULL, NULL);
}

static void set_allocators(const struct python_allocator allocators[2])
{
	python.PyMem_SetAllocator(WIRE_DOMAIN_MEM, (struct python_allocator *)&allocators[0]);
	python.PyMem_SetAllocator(WIRE_DOMAIN_OBJ, (struct python_allocator *)&allocators[1]);
}

/*
 * Times allocations with the allocators' hooks alone, and without them, in the domains that require the GIL. Each
 * allocator can free the other's blocks.
 */
static void time_allocations(struct object *globals, struct timing *timing)
{
	const struct python_allocator under[2] = {hooks_memory_under(WIRE_DOMAIN_MEM),
						  hooks_memory_under(WIRE_DOMAIN_OBJ)};
	struct python_allocator ours[2];
	uint32_t nesting = thread_self.nesting;

	if (!(config.events & EVENT_MEM) || !hooks_memory_on_top())
		return;
	python.PyMem_GetAllocator(WIRE_DOMAIN_MEM, &ours[0]);
	python.PyMem_GetAllocator(WIRE_DOMAIN_OBJ, &ours[1]);
	thread_self.nesting = 0; /* recorded, by the private writer */
	time_loop(globals, ALLOCATIONS, true, ROUNDS, timing);
	thread_self.nesting = nesting;
	set_allocators(under);
	time_loop(globals, ALLOCATIONS, false, ROUNDS, timing);
	set_allocators(ours);
}

static void time_pass(struct object *globals, struct timing loops[LOOPS])
{
	memset(loops, 0, LOOPS * sizeof(*loops));
	for (int i = 0; i < ALLOCATIONS; i++)
		time_loop(globals, i, true, ROUNDS, &loops[i]);
	switch_hooks(false);
	for (int i = 0; i < ALLOCATIONS; i++)
		time_loop(globals, i, false, ROUNDS, &loops[i]);
	time_allocations(globals, &loops[ALLOCATIONS]);
	switch_hooks(true);
}

/* Keeps the shortest runs in best. */
static void keep_shortest(struct timing *best, const struct timing *pass)
{
	if (best->on_ns == 0 || pass->on_ns < best->on_ns) {
		best->on_ns = pass->on_ns;
		best->stamps = pass->stamps;
	}
	if (best->off_ns == 0 || pass->off_ns < best->off_ns)
		best->off_ns = pass->off_ns;
}

static double total_ns(const struct timing loops[LOOPS])
{
	double total = 0;

	for (int i = 0; i < LOOPS; i++)
		total += loops[i].on_ns + loops[i].off_ns;
	return total;
}

static void time_loops(struct object *globals, struct measurement *measurement)
{
	struct timing pass[LOOPS];
	double shortest = 1e18, second = 1e18, total;

	for (int n = 0; n < MOST_PASSES && (n < PASSES || measurement->spread > AGREES); n++) {
		time_pass(globals, pass);
		for (int i = 0; i < LOOPS; i++)
			keep_shortest(&measurement->loops[i], &pass[i]);
		total = total_ns(pass);
		second = total < shortest ? shortest : total < second ? total : second;
		shortest = total < shortest ? total : shortest;
		measurement->spread = second / total_ns(measurement->loops) - 1;
	}
}

/* ns of a malloc and of a free of the allocator, the shortest of the rounds. */
static void time_allocator(const struct python_allocator *allocator, double ns[2])
{
	void *blocks[BLOCKS];
	double begin, middle, end;

	ns[0] = ns[1] = 1e9;
	for (int i = 0; i < 8 * ROUNDS; i++) {
		empty_private_writer();
		begin = now_ns();
		for (int k = 0; k < BLOCKS; k++)
			blocks[k] = allocator->malloc(allocator->context, 64);
		middle = now_ns();
		for (int k = 0; k < BLOCKS; k++)
			allocator->free(allocator->context, blocks[k]);
		end = now_ns();
		if (middle - begin < ns[0])
			ns[0] = middle - begin;
		if (end - middle < ns[1])
			ns[1] = end - middle;
	}
	ns[0] /= BLOCKS;
	ns[1] /= BLOCKS;
}

/*
 * The ns that the hooks add to a malloc and to a free. A Python loop shows their sum, because there much of the work
 * overlaps with waits of the processor. Timing each alone shows its share of the sum.
 */
static void time_memory(struct measurement *measurement)
{
	const struct timing *timing = &measurement->loops[ALLOCATIONS];
	const uint64_t *events = timing->stamps.count;
	double blocks = (double)(events[WIRE_MALLOC] + events[WIRE_CALLOC] + events[WIRE_FREE]) / 2, on[2], off[2],
	       both;
	struct python_allocator ours, under;
	uint32_t nesting = thread_self.nesting;

	if (blocks < TURNS)
		return;
	python.PyMem_GetAllocator(WIRE_DOMAIN_OBJ, &ours);
	under = hooks_memory_under(WIRE_DOMAIN_OBJ);
	thread_self.nesting = 0;
	time_allocator(&ours, on);
	thread_self.nesting = nesting;
	time_allocator(&under, off);
	both = (timing->on_ns - timing->off_ns) / blocks;
	if (both <= 0 || on[0] <= off[0] || on[1] <= off[1])
		return;
	measurement->malloc_ns = both * (on[0] - off[0]) / (on[0] - off[0] + on[1] - off[1]);
	measurement->free_ns = both - measurement->malloc_ns;
}

/* The ns that the hooks add to a run of the loop, without the slowdown of the instructions. */
static double added_ns(const struct measurement *measurement, enum loop loop)
{
	const struct timing *timing = &measurement->loops[loop];
	double in_c = (double)timing->stamps.in_c * measurement->tick_ns;

	return measurement->slow * (timing->on_ns - in_c) + in_c - timing->off_ns;
}

/* Calls, or other starts of this kind, in a run of the loop. */
static double count_events(const struct measurement *measurement, enum loop loop, unsigned kind)
{
	uint64_t own = kind == WIRE_CALL; /* the loop's function is called, too */

	return (double)(measurement->loops[loop].stamps.count[kind] - own);
}

/*
 * Adds the three numbers of a kind of call. trivial: the loop whose functions do nothing, for the time between the
 * stamps.
 */
static void add_costs(struct text *costs, const struct measurement *measurement, const char *word, double cost,
		      enum loop trivial, unsigned kind)
{
	const struct timing *timing = &measurement->loops[trivial];
	uint64_t inner_count = timing->stamps.inner_count[kind];
	double calls = count_events(measurement, trivial, kind);

	if (inner_count < TURNS || calls < TURNS)
		return;
	text_add(costs, " %s %.2f %.2f %.2f", word, cost,
		 (double)timing->stamps.inner[kind] * measurement->tick_ns / (double)inner_count,
		 (timing->off_ns - measurement->loops[NOTHING].off_ns) / calls);
}

/* The ns that the hooks add to one call of the loop. */
static double added_each(const struct measurement *measurement, enum loop loop, unsigned kind)
{
	double calls = count_events(measurement, loop, kind);

	return calls > 0 ? added_ns(measurement, loop) / calls : 0;
}

/*
 * Adds what an event costs more if it is far from the start of its code. From 3.12 on the interpreter creates an
 * integer of the offset, unless it is a cached small one; before, some versions walk the line table.
 */
static void add_distances(struct text *costs, const struct measurement *m, struct object *globals)
{
	struct object *small = python.PyDict_GetItemString(globals, "small");
	struct object *remote = python.PyDict_GetItemString(globals, "remote");
	struct object *code = remote ? python.PyObject_GetAttrString(remote, "__code__") : NULL;
	double far = added_each(m, DISTANCES, WIRE_C_CALL) - added_each(m, LENGTHS, WIRE_C_CALL);
	double walk = added_each(m, WALKS, WIRE_RESUME) - added_each(m, RESUMES, WIRE_RESUME);

	if (code && small && python.monitoring && far > 0)
		text_add(costs, " far %ld %.2f", python.PyLong_AsLong(small), far / 2);
	else if (code && python_has(PYTHON_WALKS_LINES) && walk > 0)
		text_add(costs, " walk %.4f", walk / (double)python_code_size(code));
	python.Py_DecRef(code);
	python.PyErr_Clear();
}

static void add_python_costs(struct text *costs, const struct measurement *m)
{
	double resume = added_each(m, RESUMES, WIRE_RESUME), generators = count_events(m, GENERATORS, WIRE_CALL);
	double call = (added_each(m, CALLS, WIRE_CALL) + added_each(m, RECURSION, WIRE_CALL)) / 2, generator = 0;

	/* The first call of a generator is followed by a resume, which ends it. */
	if (generators > 0)
		generator = (added_ns(m, GENERATORS) - resume * count_events(m, GENERATORS, WIRE_RESUME)) / generators;
	add_costs(costs, m, "call", call, LEAVES, WIRE_CALL);
	add_costs(costs, m, "entry", added_each(m, ENTRIES, WIRE_CALL), ENTRIES, WIRE_CALL);
	add_costs(costs, m, "callback", added_each(m, CALLBACKS, WIRE_CALL), CALLBACKS, WIRE_CALL);
	add_costs(costs, m, "init", added_each(m, INITS, WIRE_CALL), INITS, WIRE_CALL);
	add_costs(costs, m, "resume", resume, RESUMES, WIRE_RESUME);
	add_costs(costs, m, "pull", added_each(m, PULLS, WIRE_RESUME), PULLS, WIRE_RESUME);
	add_costs(costs, m, "generator", generator, GENERATORS, WIRE_CALL);
}

/* Adds the cost of calls that are reported but not recorded. Their number is that of the marks in the loop. */
static void add_others(struct text *costs, const struct measurement *m)
{
	uint64_t reported = m->loops[OTHERS].stamps.count[WIRE_OTHER_CALL];

	if (reported < TURNS)
		return;
	text_add(costs, " other %.2f", added_ns(m, OTHERS) / (double)reported);
}

/*
 * Adds the factor by which hooks slow the instructions between calls: how much more the hooks cost if there are
 * instructions, relative to the time of these. The second number is the time per event without hooks of a loop that has
 * none.
 */
static void add_work(struct text *costs, const struct measurement *m)
{
	const struct timing *dense = &m->loops[DENSE];
	double more = added_ns(m, SPARSE) - added_ns(m, DENSE), work = m->loops[SPARSE].off_ns - dense->off_ns;
	double events = 2 * (count_events(m, DENSE, WIRE_CALL) + count_events(m, DENSE, WIRE_C_CALL));

	if (more <= 0 || work <= 0 || events < TURNS || m->slow <= SLOWED_MUCH)
		return;
	text_add(costs, " work %.3f %.2f", more / work, dense->off_ns / events);
}

static void report_costs(const struct measurement *m, struct object *globals)
{
	char bytes[1024];
	struct text costs;

	text_init(&costs, bytes, sizeof(bytes));
	text_add(&costs, "slow %.3f spread %.2f", m->slow, m->spread);
	add_python_costs(&costs, m);
	add_costs(&costs, m, "c_call", added_each(m, C_FUNCTIONS, WIRE_C_CALL), LENGTHS, WIRE_C_CALL);
	add_costs(&costs, m, "method", added_each(m, METHODS, WIRE_C_CALL), APPENDS, WIRE_C_CALL);
	text_add(&costs, " unwind %.2f", added_each(m, CATCHES, WIRE_CALL) - added_each(m, LEAVES, WIRE_CALL));
	add_others(&costs, m);
	text_add(&costs, " malloc %.2f free %.2f", m->malloc_ns, m->free_ns);
	add_work(&costs, m);
	add_distances(&costs, m, globals);
	define_named(WIRE_DEFINE_CALIBRATION, 1, string_c(costs.bytes));
	log_line(LOG_DEBUG, "calibration: %s", costs.bytes);
}

static void measure_costs(struct measurement *measurement, struct object *globals)
{
	const struct timing *plain = &measurement->loops[PLAIN];
	uint64_t ticks = clock_now();
	double ns = now_ns();

	time_loops(globals, measurement);
	time_memory(measurement);
	measurement->tick_ns = (now_ns() - ns) / (double)(clock_now() - ticks + 1);
	/* If the profile function is called at calls only, nothing is slowed: a difference is noise. */
	measurement->slow = plain->off_ns < 0.95 * plain->on_ns ? plain->off_ns / plain->on_ns : 1;
	report_costs(measurement, globals);
}

/* The loops of measure_event(), which have to be compiled fast. */
static const char *first_programs(void)
{
	static char first[2048];
	const char *end = strstr(programs, "\n# The rest");

	if (!end || (size_t)(end - programs) >= sizeof(first))
		return programs;
	memcpy(first, programs, (size_t)(end - programs) + 1);
	return first;
}

/* A namespace in which the programs were executed; NULL: it could not be. */
static struct object *make_globals(const char *text)
{
	struct object *builtins = python.PyEval_GetBuiltins(), *globals = python.PyDict_New(), *exec, *done = NULL;

	exec = builtins ? python.PyDict_GetItemString(builtins, "exec") : NULL;
	if (exec && globals)
		done = python.PyObject_CallMethod(exec, "__call__", "sO", text, globals);
	python.PyErr_Clear();
	if (done)
		python.Py_DecRef(done);
	else if (globals)
		python.Py_DecRef(globals);
	return done ? globals : NULL;
}

/* Records an empty stack, so that the time of the measurement is attributed to no function. */
static void leave_stack(void)
{
	struct writer *writer = writer_reserve(WIRE_STACK);

	if (writer)
		writer_put(writer, wire_head(WIRE_STACK, WIRE_STACK_CUT));
}

/* Times a run of a loop with the hooks and without. */
static void time_hooks(struct object *globals, enum loop loop, struct timing *timing)
{
	time_loop(globals, loop, true, EVENT_ROUNDS, timing);
	switch_hooks(false);
	time_loop(globals, loop, false, EVENT_ROUNDS, timing);
	switch_hooks(true);
}

/* Likewise, without hooks, with the evaluations of thinned functions and without. */
static void time_passes(struct object *globals, enum loop loop, struct timing *timing)
{
	frame_evaluator before;

	switch_hooks(false);
	before = frame_evaluator_stand_in(true);
	if (before) {
		time_loop(globals, loop, true, EVENT_ROUNDS, timing);
		frame_evaluator_stand_in(false);
		time_loop(globals, loop, false, EVENT_ROUNDS, timing);
		frame_evaluator_put_back(before);
	}
	switch_hooks(true);
}

/* Keeps of some passes the one with the median difference. */
static void time_median(struct object *globals, enum loop loop,
			void (*time_both)(struct object *globals, enum loop loop, struct timing *timing),
			struct timing *median)
{
	struct timing sorted[EVENT_PASSES], pass;

	memset(sorted, 0, sizeof(sorted)); /* cppcheck does not see that each is set before it is read */
	for (int n = 0, at; n < EVENT_PASSES; n++) {
		memset(&pass, 0, sizeof(pass));
		time_both(globals, loop, &pass);
		for (at = n; at > 0 && sorted[at - 1].on_ns - sorted[at - 1].off_ns > pass.on_ns - pass.off_ns; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = pass;
	}
	*median = sorted[EVENT_PASSES / 2];
}

/* Measures what a pass costs, in ns, in a loop that does little else. step: of a generator. */
static void measure_pass(struct object *globals, enum loop loop, bool step, double *cost_ns)
{
	struct frame_passes *passes = &frame_evaluator_passes, before = *passes;
	struct timing timing;
	double count, added;

	run_once(globals, names[loop]); /* with hooks: its functions get ids */
	time_median(globals, loop, time_passes, &timing);
	count = (double)(step ? passes->steps - before.steps : passes->calls - before.calls) /
		(EVENT_PASSES * EVENT_ROUNDS);
	*passes = before; /* the measurement is charged by its time */
	added = timing.on_ns - timing.off_ns;
	if (count > 0)
		*cost_ns = added > 0 ? added / count : 0;
}

/* What the profile function does to the program but for its events, and thinned functions. */
static void measure_profile(struct object *globals)
{
	struct timing plain;

	time_median(globals, PLAIN, time_hooks, &plain);
	budget_costs.slowed = plain.on_ns > (1 + SLOWED_LEAST) * plain.off_ns ? plain.on_ns / plain.off_ns - 1 : 0;
	measure_pass(globals, LEAVES, false, &budget_costs.pass_call_ns);
	measure_pass(globals, RESUMES, true, &budget_costs.pass_step_ns);
	log_line(LOG_DEBUG, "a thinned call costs %.1f ns, a thinned step %.1f ns, instructions %.2f times as much",
		 budget_costs.pass_call_ns, budget_costs.pass_step_ns, 1 + budget_costs.slowed);
}

/*
 * SPARSE is what programs are like: the hooks slow down what lies between the calls, too. That is part of what an event
 * costs, but not of a report, which the account knows apart from it.
 */
static void measure_event(struct measurement *measurement, struct object *globals)
{
	struct timing *sparse = &measurement->loops[SPARSE];
	uint64_t others;
	double added, events;

	run_once(globals, names[SPARSE]);
	others = count_unrecorded();
	run_once(globals, names[SPARSE]);
	others = count_unrecorded() - others;
	if (!python.monitoring)
		measure_profile(globals);
	time_median(globals, SPARSE, time_hooks, sparse);
	added = sparse->on_ns - sparse->off_ns;
	events = 2 * (double)(sparse->stamps.count[WIRE_CALL] + sparse->stamps.count[WIRE_C_CALL]);
	if (events >= TURNS && added > 0) {
		double slowed = budget_costs.slowed * sparse->off_ns;

		budget_costs.event_ns = added / events;
		slowed = slowed < SLOWED_MOST * added ? slowed : SLOWED_MOST * added;
		budget_costs.report_ns = (added - slowed) / (events + (double)others);
	}
	log_line(LOG_DEBUG, "an event costs %.1f ns, a report %.1f ns", budget_costs.event_ns, budget_costs.report_ns);
}

/* Where memory is not recorded, garbage does not matter. */
static void collect(void)
{
	if (config.events & (EVENT_MEM | EVENT_MALLOC) || config.calibrate)
		python.PyGC_Collect();
}

/* Measures with the private writer and unrecorded memory: none of it is the program's. */
static void measure_apart(void (*measure)(struct measurement *measurement, struct object *globals))
{
	bool outside = thread_self.outside; /* of the program, EVPROF_PROGRAM_ONLY */
	struct measurement measurement = {0};
	struct object *globals;

	collect(); /* present garbage is the program's, and its frees are recorded as such */
	leave_stack();
	thread_self.outside = false;
	thread_self.writer = &private_writer;
	thread_self.nesting++;
	empty_private_writer();
	globals = make_globals(measure == measure_event ? first_programs() : programs);
	if (globals)
		measure(&measurement, globals);
	python.Py_DecRef(globals);
	collect();
	thread_self.nesting--;
	thread_self.outside = outside;
}

static void give_back(void *words, size_t bytes)
{
	thread_self.nesting++;
	munmap(words, bytes);
	thread_self.nesting--;
}

/* Calls measure() with a writer that nobody reads. */
static int calibrate_with(void (*measure)(struct measurement *measurement, struct object *globals))
{
	struct writer *writer = thread_self.writer;
	size_t bytes = WORDS * sizeof(uint64_t);
	void *words;

	thread_self.nesting++; /* the memory is not the program's */
	words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	thread_self.nesting--;
	if (words == MAP_FAILED)
		return 0;
	if (!python.PyDict_New || !python.PyEval_GetBuiltins || !python.PyGC_Collect || !writer->slot) {
		give_back(words, bytes);
		return 0;
	}
	private_writer =
	    (struct writer){.words = words, .mask = WORDS - 1, .slot = &private_slot, .pause = UINT64_C(1) << 32};
	thread_self.entered = 1; /* the hooks that are set here are evprof's */
	measure_apart(measure);
	/*
	 * In the first lap, a fault for each page of the ring would cost as much as the hooks do. The pages are
	 * allocated before.
	 */
	if (measure == measure_costs)
		writer_populate(writer, POPULATE_BYTES);
	thread_self.writer = writer;
	thread_self.entered = 0;
	writer_expect_stack();
	give_back(words, bytes);
	return 0;
}

static int calibrate(void *data)
{
	(void)data;
	return calibrate_with(measure_costs);
}

static int calibrate_event(void *data)
{
	uint64_t begin_ns = budget_clock();

	(void)data;
	calibrate_with(measure_event);
	budget_charge(begin_ns);
	return 0;
}

void calibrate_soon(void)
{
	static bool asked, asked_event;

	if (!asked_event && config.budget && (python.monitoring || frame_evaluator_is_possible()) &&
	    config.events & EVENT_CALL) {
		asked_event = true;
		python.Py_AddPendingCall(calibrate_event, NULL);
	}

	if (asked || !config.calibrate || !(config.events & EVENT_CALL) || !(config.events & EVENT_C_CALL))
		return;
	asked = true;
	python.Py_AddPendingCall(calibrate, NULL);
}
