/*
 * test_memory_sampled.c - allocations that are sampled by bytes: the estimates against what the program allocates,
 * within the error that the formula gives.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "harness.h"

#define INTERVAL 65536.0
#define SETTING "EVPROF_MEMORY_INTERVAL=64K"
#define EVENTS "EVPROF_EVENTS=mem,malloc"

/* A column, from 1, of the function's row in the process with that pid; 0: there is none. */
static double cell(const struct outcome *outcome, long pid, const char *function, unsigned column)
{
	struct outcome *result = tool("memory", "--by", "function", "--format", "csv", outcome->trace);
	char *begins = text("%ld,\"%s\",", pid, function), *rest = result->out, *line;

	while ((line = strsep(&rest, "\n"))) {
		const char *at = line + strlen(begins) - 1;

		if (strncmp(line, begins, strlen(begins)) != 0)
			continue;
		for (unsigned i = 0; i < 2 + column && at; i++) /* behind file and line */
			at = strchr(at + 1, ',');
		return at ? atof(at + 1) : 0;
	}
	return 0;
}

enum { PEAK, END, ALLOCATED, ALLOCATIONS };

/* Six sigma of the bytes of that many blocks. */
static double bound(double blocks, double size)
{
	double p = -expm1(-size / INTERVAL);

	return 6 * size * sqrt(blocks * (1 - p) / p);
}

static void expect_near(const struct outcome *outcome, long pid, const char *function, unsigned column, double blocks,
			double size)
{
	double found = cell(outcome, pid, function, column), unit = column == ALLOCATIONS ? size : 1;

	expect(outcome, fabs(found * unit - blocks * size) <= bound(blocks, size) + 0.002 * blocks * size,
	       "%s, column %u: %.0f of %.0f, at most %.0f off", function, column, found * unit, blocks * size,
	       bound(blocks, size));
}

static struct outcome *record(const struct python *python, const char *how)
{
	struct outcome *outcome =
	    run(.python = python, .args = {"@sampled_memory.py", how}, .env = {EVENTS, SETTING}, .timeout_s = 120);

	expect(outcome, outcome->status == 0, "it ends well");
	return outcome;
}

/* Outputs without a text around the figures say that these are estimates, too. */
static void expect_notes(const struct python *python, const char *trace)
{
	static const char *const note = "Memory is sampled every 64 KiB: figures are estimates";
	static const char *const formats[] = {"csv", "folded", "pprof", "html", "perfetto"};
	char *pprof = text("%s.pb.gz", trace);
	struct outcome *said = tool("memory", "--format", "csv", trace);

	expect(said, strstr(said->err, note), "csv of sites");
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		said = tool("export", "--format", formats[i], trace, "-o", i == 2 ? pprof : "-");
		/* By the time, which has no memory, folded stacks have no note. */
		expect(said, i == 1 || strstr(said->err, note), "%s", formats[i]);
		expect(said, i != 3 || strstr(said->out, "\"memory_interval\":65536"), "the page has it, too");
	}
	said = run(.python = python, .how = JOB_BARE,
		   .args = {"-c", "import gzip, sys; print(sys.argv[2].encode() in gzip.open(sys.argv[1]).read())",
			    pprof, note});
	expect(said, !strcmp(said->out, "True\n"), "pprof's comment");
}

/* The list itself grows in small(), too: at most 4 MB at its end, 20 MB in all. */
SCENARIO(memory_sampled, totals_by_function, SUPPORTED)
{
	struct outcome *outcome, *result;

	needs_own_malloc();
	outcome = record(python, NULL);
	expect_near(outcome, outcome->pid, "middle", ALLOCATED, 3000, 100000);
	expect_near(outcome, outcome->pid, "middle", ALLOCATIONS, 3000, 100000);
	expect_near(outcome, outcome->pid, "large", ALLOCATED, 8, 10000000);
	expect_near(outcome, outcome->pid, "large", END, 8, 10000000);
	expect(outcome, fabs(cell(outcome, outcome->pid, "small", END) - 202e6) < bound(400000, 500) + 3e6,
	       "small blocks at the end: %f", cell(outcome, outcome->pid, "small", END));
	expect(outcome, cell(outcome, outcome->pid, "middle", END) < 1e6, "those of middle() are freed");
	expect(outcome, cell(outcome, outcome->pid, "grow", END) < 4e6, "one block of grow() is alive");
	result = tool("memory", outcome->trace);
	expect(result, strstr(result->out, "Memory is sampled every 64 KiB: figures are estimates"), "it is said");
	result = tool("memory", "--json", outcome->trace);
	expect(result, strstr(result->out, "\"memory_interval\": 65536") && strstr(result->out, "\"temporary\": null"),
	       "JSON has it");
	result = tool("check", "--max-heap", "1G", outcome->trace);
	expect(result, result->status == 0 && strstr(result->out, "estimate"), "check says it");
	expect_notes(python, outcome->trace);
	result = tool("memory", "--temporary", outcome->trace);
	expect(result, result->status == 2, "temporary allocations are not known");
}

/*
 * With a mean of one byte every block is in the sample, and small ones come from another allocator. The program looks
 * at its bytes and at the number of blocks that Python says, and knows what is alive.
 */
SCENARIO(memory_sampled, every_block, SUPPORTED)
{
	struct outcome *outcome;

	needs_own_malloc();
	outcome = run(.python = python, .args = {"@changed_blocks.py"}, .env = {EVENTS, "EVPROF_MEMORY_INTERVAL=1"});
	expect(outcome, outcome->status == 0, "no byte is wrong, nor the number of blocks");
	expect(outcome, fabs(cell(outcome, outcome->pid, "kept", END) - atof(outcome->out)) < 1,
	       "alive at the end: %.0f of %s", cell(outcome, outcome->pid, "kept", END), outcome->out);
	expect(outcome, !strstr(outcome->err, "lost") || strstr(outcome->err, " 0 lost"), "nothing is lost");
	expect(outcome, cell(outcome, outcome->pid, "change", END) < 30000,
	       "of these 300 tuples are alive, which Python keeps for the next: %.0f",
	       cell(outcome, outcome->pid, "change", END));
}

/* pymalloc maps and unmaps a hundred of them. */
SCENARIO(memory_sampled, arenas_are_no_mappings_of_the_program, SUPPORTED)
{
	static const char *const program = "for _ in range(3): many = [bytes(100) for _ in range(200000)]; del many";
	struct outcome *outcome;
	json_t *info;

	needs_own_malloc();
	if (python_is_free_threaded(python))
		cr_skip_test("this Python has mimalloc");
	outcome = run(.python = python, .args = {"-c", program}, .env = {EVENTS, SETTING});
	info = trace_info(outcome->trace);
	expect(outcome, info_events(info, "mmap") < 5 && info_events(info, "munmap") < 5, "%ld and %ld mappings",
	       info_events(info, "mmap"), info_events(info, "munmap"));
	json_decref(info);
}

SCENARIO(memory_sampled, freed_in_another_thread, SUPPORTED)
{
	struct outcome *outcome = record(python, "threads");

	expect(outcome, fabs(cell(outcome, outcome->pid, "small", PEAK) - 202e6) < bound(400000, 500) + 3e6,
	       "small blocks at the peak");
	expect(outcome, cell(outcome, outcome->pid, "small", END) < 1e6, "and none at the end: %f",
	       cell(outcome, outcome->pid, "small", END));
}

SCENARIO(memory_sampled, blocks_live_through_a_fork, SUPPORTED)
{
	struct outcome *outcome;

	needs_own_malloc();
	outcome = record(python, "fork");

	expect(outcome, fabs(cell(outcome, outcome->pid, "small", END) - 202e6) < bound(400000, 500) + 3e6,
	       "the parent's blocks are alive, though the child has freed its own");
}

/* Native blocks are the first in the sample of a thread and of a child, and go first when the program has ended. */
SCENARIO(memory_sampled, native_blocks, SUPPORTED)
{
	static const char *const program =
	    "import ctypes, os, threading\n"
	    "api = ctypes.PyDLL(None)\n"
	    "api.calloc.restype, api.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]\n"
	    "def make(): return api.calloc(1, 20000000)\n"
	    "class Block:\n"
	    "    def __init__(self): self.at = make()\n"
	    "    def __del__(self, free=api.free): free(self.at)\n"
	    "def first(): return Block()\n"
	    "def second(): kept.append(Block())\n"
	    "def third(): return Block()\n"
	    "kept = [first()]\n"
	    "thread = threading.Thread(target=second)\n"
	    "thread.start(); thread.join()\n"
	    "child = os.fork()\n"
	    "if not child: kept.append(third()); print(os.getpid(), flush=True); os._exit(0)\n"
	    "os.waitpid(child, 0)\n";
	struct outcome *outcome;

	needs_own_malloc();
	python_needs(python, "ctypes");
	outcome = run(.python = python, .args = {"-c", program}, .env = {EVENTS, "EVPROF_MEMORY_INTERVAL=512K"});
	expect(outcome, outcome->status == 0, "it ends well");
	expect(outcome, cell(outcome, outcome->pid, "make", END) == 40000000, "two blocks at the end: %f",
	       cell(outcome, outcome->pid, "make", END));
	expect(outcome, cell(outcome, atol(outcome->out), "make", END) == 20000000, "one in the child: %f",
	       cell(outcome, atol(outcome->out), "make", END));
}

/* The whole sample costs less than a hundredth of the events. */
SCENARIO(memory_sampled, few_events, SUPPORTED)
{
	struct outcome *outcome = record(python, NULL);
	json_t *info = trace_info(outcome->trace);

	expect(outcome, info_events(info, "malloc") < 20000, "%lld events", (long long)info_events(info, "malloc"));
	json_decref(info);
}
