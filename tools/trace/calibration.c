/*
 * calibration.c - reads the overhead that a process measured, and subtracts it from the times between its events. See
 * calibration.h.
 */
#include "trace/calibration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Slow-down counts for at most this long in one interval. A longer interval without an event is rarely a sequence of
 * slowed instructions; it is one long operation (on an array, a file), or a wait for the GIL.
 */
#define SLOWED_MAX_NS 1000000

/*
 * The largest spread of two passes of a good measurement. A larger one means that other work on the machine disturbed
 * it; a load of eight times the processors gives 0.04 at most.
 */
#define SPREAD_MAX 0.2

/* The most that is carried over to the next interval, in 1/256 ticks. */
#define CARRIED_MAX (1 << 16)

/* The three values of each kind are A, B, C of wire.h; memory events have A only. */
struct costs {
	double of[CALIBRATION_KINDS][3];
	bool known[CALIBRATION_KINDS];
	double slow, spread;
	double work, work_after;
	double far_bytes, far, walk;
};

static const struct {
	const char *name;
	/*
	 * The share of the bare time of an empty function that lies between its timestamps and is the function's own.
	 * The rest of a Python call lies before and after. A C function has its body there, and little else.
	 */
	double own_share;
	enum calibration_kind fallback; /* used if the process did not measure this kind */
} kinds[CALIBRATION_KINDS] = {
    [CALIBRATION_CALL] = {"call", WIRE_COST_OWN_CALL, CALIBRATION_NOTHING},
    [CALIBRATION_ENTRY] = {"entry", WIRE_COST_OWN_CALL, CALIBRATION_CALL},
    [CALIBRATION_CALLBACK] = {"callback", WIRE_COST_OWN_CALL, CALIBRATION_ENTRY},
    [CALIBRATION_INIT] = {"init", WIRE_COST_OWN_CALL, CALIBRATION_CALL},
    [CALIBRATION_RESUME] = {"resume", WIRE_COST_OWN_RESUME, CALIBRATION_CALL},
    [CALIBRATION_PULL] = {"pull", WIRE_COST_OWN_RESUME, CALIBRATION_RESUME},
    [CALIBRATION_GENERATOR] = {"generator", WIRE_COST_OWN_CALL, CALIBRATION_CALL},
    [CALIBRATION_C_CALL] = {"c_call", WIRE_COST_OWN_C, CALIBRATION_NOTHING},
    [CALIBRATION_METHOD] = {"method", WIRE_COST_OWN_C, CALIBRATION_C_CALL},
    [CALIBRATION_UNWIND] = {"unwind", 0, CALIBRATION_NOTHING},
    [CALIBRATION_OTHER] = {"other", 0, CALIBRATION_NOTHING},
    [CALIBRATION_MALLOC] = {"malloc", 0, CALIBRATION_NOTHING},
    [CALIBRATION_FREE] = {"free", 0, CALIBRATION_MALLOC},
};

/* Parses at most three numbers after a name. Returns the text after them. */
static const char *parse_numbers(const char *at, double numbers[3], unsigned *count)
{
	char *end;

	for (*count = 0; *count < 3; ++*count, at = end) {
		numbers[*count] = strtod(at, &end);
		if (end == at)
			break;
	}
	return at;
}

static void set_measure(struct costs *costs, const char *name, const double numbers[3], unsigned count)
{
	if (strcmp(name, "slow") == 0 && count == 1 && numbers[0] > 0 && numbers[0] <= 1)
		costs->slow = numbers[0];
	if (strcmp(name, "spread") == 0 && count == 1 && numbers[0] > 0)
		costs->spread = numbers[0];
	if (strcmp(name, "work") == 0 && count == 2 && numbers[0] > 0 && numbers[0] < 1 && numbers[1] >= 0) {
		costs->work = numbers[0];
		costs->work_after = numbers[1];
	}
	if (strcmp(name, "far") == 0 && count == 2 && numbers[0] > 0 && numbers[1] > 0) {
		costs->far_bytes = numbers[0];
		costs->far = numbers[1];
	}
	if (strcmp(name, "walk") == 0 && count == 1 && numbers[0] > 0)
		costs->walk = numbers[0];
}

static void set_numbers(struct costs *costs, const char *name, const double numbers[3], unsigned count)
{
	unsigned kind;

	set_measure(costs, name, numbers, count);
	for (kind = CALIBRATION_CALL; kind < CALIBRATION_KINDS; kind++) {
		if (strcmp(name, kinds[kind].name) != 0 || count != (kind < CALIBRATION_UNWIND ? 3 : 1))
			continue;
		memcpy(costs->of[kind], numbers, sizeof(costs->of[kind]));
		costs->known[kind] = true;
	}
}

/* Ignores unknown names. */
static bool parse(struct text text, struct costs *costs)
{
	char copy[1024], name[16];
	const char *at = copy;
	unsigned kind, count;
	int length;

	*costs = (struct costs){.slow = 1};
	if (text.length >= sizeof(copy))
		return false;
	memcpy(copy, text.at, text.length);
	copy[text.length] = 0;
	while (sscanf(at, "%15s%n", name, &length) == 1) {
		double numbers[3] = {0};

		at = parse_numbers(at + length, numbers, &count);
		set_numbers(costs, name, numbers, count);
	}
	for (kind = CALIBRATION_CALL; kind < CALIBRATION_KINDS; kind++)
		if (!costs->known[kind])
			memcpy(costs->of[kind], costs->of[kinds[kind].fallback], sizeof(costs->of[kind]));
	return costs->known[CALIBRATION_CALL] && costs->known[CALIBRATION_C_CALL] && costs->spread <= SPREAD_MAX;
}

/* The costs of the process, or else of another one of the same Python. */
static bool find_costs(const struct trace *trace, const struct trace_process *process, struct costs *costs)
{
	const char *python = trace_process_text(process, "python");
	bool found = process->calibration.length && parse(process->calibration, costs);

	for (uint32_t i = 0; i < trace->process_count && !found; i++) {
		const struct trace_process *other = trace->processes[i];

		found = other && other->calibration.length &&
			strcmp(trace_process_text(other, "python"), python) == 0 && parse(other->calibration, costs);
	}
	return found;
}

enum calibration_state calibration_state(const struct trace *trace)
{
	enum calibration_state state = CALIBRATION_NONE;
	struct costs costs;
	uint32_t i;

	for (i = 0; i < trace->process_count && state != CALIBRATION_GOOD; i++) {
		const struct trace_process *process = trace->processes[i];

		if (process && process->calibration.length)
			state = parse(process->calibration, &costs) ? CALIBRATION_GOOD : CALIBRATION_UNSTABLE;
	}
	return state;
}

static double ticks_per_ns(const struct trace_process *process)
{
	return 1e-6 * (double)(trace_ticks(process, process->line.ns + 1000000) - process->line.ticks);
}

static int32_t fixed(double ticks)
{
	return ticks > -1e6 && ticks < 1e6 ? (int32_t)(ticks * 256) : 0;
}

/* The overhead of a call lies partly between its two timestamps, and otherwise outside them. */
static void set_costs(struct calibration *calibration, const struct costs *costs, double tick)
{
	unsigned kind;

	for (kind = CALIBRATION_CALL; kind < CALIBRATION_UNWIND; kind++) {
		const double *cost = costs->of[kind];
		double slow = kind < CALIBRATION_C_CALL ? costs->slow : 1;
		double inner = slow * cost[1] - kinds[kind].own_share * cost[2];
		struct calibration_cost *begin = &calibration->begin[kind], *end = &calibration->end[kind];

		inner = inner < 0 || cost[0] < 0 ? 0 : inner > cost[0] ? cost[0] : inner;
		begin->before = end->after = fixed((cost[0] - inner) * tick / 2);
		begin->after = end->before = fixed(inner * tick / 2);
	}
	for (kind = CALIBRATION_UNWIND; kind < CALIBRATION_KINDS; kind++) {
		int32_t half = fixed(costs->of[kind][0] * tick / 2);
		int32_t slowed_half = fixed(costs->slow * costs->of[kind][0] * tick / 2);

		calibration->begin[kind] = (struct calibration_cost){half, half};
		calibration->end[kind] = (struct calibration_cost){slowed_half, slowed_half};
	}
}

/*
 * An operator or an attribute enters a special method without a call instruction; __init__ has a kind of its own. A
 * code with WIRE_ENTERED was first entered that way, too.
 */
static enum calibration_kind kind_of_code(const struct wire_definition *code)
{
	struct text name = trace_string(code, 1);

	if (code->flags & WIRE_GENERATOR)
		return CALIBRATION_GENERATOR;
	if (name.length < 5 || memcmp(name.at, "__", 2) != 0 || memcmp(name.at + name.length - 2, "__", 2) != 0)
		return code->flags & WIRE_ENTERED ? CALIBRATION_ENTRY : CALIBRATION_CALL;
	return name.length == 8 && memcmp(name.at, "__init__", 8) == 0 ? CALIBRATION_INIT : CALIBRATION_ENTRY;
}

/* The offset of an event is not recorded: it is assumed to be anywhere in its code. */
static struct calibration_code code_costs(const struct wire_definition *code, const struct costs *costs, double tick)
{
	double size = (double)code->address, beyond = size - costs->far_bytes;

	return (struct calibration_code){.kind = (uint8_t)kind_of_code(code),
					 .far = beyond > 0 ? fixed(costs->far * beyond / size * tick / 2) : 0,
					 .walk = fixed(costs->walk * size / 2 * tick)};
}

static bool set_kinds(struct calibration *calibration, const struct trace_process *process, const struct costs *costs,
		      double tick)
{
	uint32_t id;

	calibration->codes = calloc(process->codes.count + 1, sizeof(*calibration->codes));
	calibration->functions = calloc(process->functions.count + 1, sizeof(*calibration->functions));
	if (!calibration->codes || !calibration->functions) {
		calibration_done(calibration);
		return false;
	}
	calibration->codes[0].kind = CALIBRATION_CALL; /* events with an unknown id */
	calibration->code_count = process->codes.count;
	calibration->function_count = process->functions.count;
	for (id = 0; id < process->codes.count; id++)
		if (process->codes.at[id])
			calibration->codes[id] = code_costs(process->codes.at[id], costs, tick);
	for (id = 0; id < process->functions.count; id++) {
		const struct wire_definition *function = process->functions.at[id];
		bool method = function && function->flags & WIRE_METHOD;

		calibration->functions[id] = method ? CALIBRATION_METHOD : CALIBRATION_C_CALL;
	}
	return true;
}

bool calibration_find(struct calibration *calibration, const struct trace *trace, const struct trace_process *process)
{
	struct costs costs;
	double tick = ticks_per_ns(process);

	memset(calibration, 0, sizeof(*calibration));
	if (!find_costs(trace, process, &costs))
		return false;
	set_costs(calibration, &costs, tick);
	/* No time is slowed where only waits count. */
	calibration->slowed = trace->clock == CPU_CLOCK_WAITED ? 0 : (uint32_t)((1 - costs.slow) * 256);
	calibration->slowed_max = (uint64_t)(SLOWED_MAX_NS * tick);
	calibration->disturbed = trace->clock == CPU_CLOCK_WAITED ? 0 : (uint32_t)(costs.work * 256);
	calibration->disturbed_from = fixed(costs.work_after * tick);
	calibration->disturbed_max = fixed(WIRE_COST_DISTURBED_NS * tick);
	calibration->has_other_calls = costs.known[CALIBRATION_OTHER];
	return set_kinds(calibration, process, &costs, tick);
}

void calibration_done(struct calibration *calibration)
{
	free(calibration->codes);
	free(calibration->functions);
	calibration->codes = NULL;
	calibration->functions = NULL;
}

void calibration_begin_thread(struct calibration *calibration)
{
	calibration->depth = 0;
	calibration->last = 0;
	calibration->after_other_call = false;
	calibration->removed = 0;
	calibration->carried = 0;
}

static inline struct calibration_open innermost(const struct calibration *calibration)
{
	return calibration->depth ? calibration->open[(calibration->depth - 1) % CALIBRATION_DEPTH]
				  : (struct calibration_open){.kind = CALIBRATION_NOTHING};
}

static inline bool is_c(enum calibration_kind kind)
{
	return kind == CALIBRATION_C_CALL || kind == CALIBRATION_METHOD;
}

static inline enum calibration_kind called_from_c(enum calibration_kind kind)
{
	if (kind == CALIBRATION_RESUME)
		return CALIBRATION_PULL;
	return kind == CALIBRATION_GENERATOR ? kind : CALIBRATION_CALLBACK;
}

static inline void push(struct calibration *calibration, enum calibration_kind kind, uint32_t code)
{
	calibration->open[calibration->depth++ % CALIBRATION_DEPTH] = (struct calibration_open){kind, code};
}

/* Adds the extra cost of an event at an instruction of the code, compared with the first instruction. */
static inline struct calibration_cost add_position(struct calibration *calibration, struct calibration_cost cost,
						   uint32_t code)
{
	const struct calibration_code *known = &calibration->codes[code];

	cost.before += known->far + (code == calibration->last ? 0 : known->walk);
	cost.after += known->far;
	calibration->last = code;
	return cost;
}

/*
 * The kind of a call. Where unrecorded calls are reported, the call of a class comes right before __init__ of the new
 * object; without it, __init__ was called explicitly, and is like any other call. The cost of INIT includes the call of
 * the class, which begin() subtracts if it was reported.
 */
static inline enum calibration_kind kind_of_call(const struct calibration *calibration, uint32_t code)
{
	enum calibration_kind kind = calibration->codes[code].kind;

	if (is_c(innermost(calibration).kind))
		return called_from_c(kind);
	if (kind == CALIBRATION_INIT && calibration->has_other_calls && !calibration->after_other_call)
		return CALIBRATION_CALL;
	return kind;
}

/* Begins a Python function. From Python 3.12 on, the interpreter also reports the call at the caller's instruction. */
static inline struct calibration_cost begin(struct calibration *calibration, uint32_t code)
{
	const struct calibration_cost *other = &calibration->begin[CALIBRATION_OTHER];
	enum calibration_kind kind = kind_of_call(calibration, code);
	struct calibration_cost cost = calibration->begin[kind];

	if (kind == CALIBRATION_INIT && calibration->after_other_call)
		cost.before -= other->before + other->after;
	else if (kind == CALIBRATION_CALL || kind == CALIBRATION_INIT)
		cost.before += 2 * calibration->codes[innermost(calibration).code].far;
	push(calibration, kind, code);
	calibration->last = 0; /* the frame is at its first instruction */
	return cost;
}

static inline struct calibration_cost resume(struct calibration *calibration, uint32_t code)
{
	bool pulled = is_c(innermost(calibration).kind);
	enum calibration_kind kind = pulled ? called_from_c(CALIBRATION_RESUME) : CALIBRATION_RESUME;

	push(calibration, kind, code);
	return add_position(calibration, calibration->begin[kind], code);
}

static inline struct calibration_cost call_c(struct calibration *calibration, uint32_t id)
{
	uint32_t code = innermost(calibration).code;
	enum calibration_kind kind = id < calibration->function_count ? calibration->functions[id] : CALIBRATION_C_CALL;

	push(calibration, kind, code);
	return add_position(calibration, calibration->begin[kind], code);
}

/* An unrecorded call, and its end. */
static inline struct calibration_cost other_call(struct calibration *calibration)
{
	uint32_t code = innermost(calibration).code;

	return add_position(calibration, add_position(calibration, calibration->begin[CALIBRATION_OTHER], code), code);
}

static inline struct calibration_cost end(struct calibration *calibration)
{
	struct calibration_open ended = innermost(calibration);

	calibration->depth -= calibration->depth > 0;
	return add_position(calibration, calibration->end[ended.kind], ended.code);
}

/* Follows the stack. Returns the cost of the event. */
static inline struct calibration_cost follow(struct calibration *calibration, unsigned kind, uint32_t id)
{
	enum calibration_kind memory = kind == WIRE_FREE ? CALIBRATION_FREE : CALIBRATION_MALLOC;
	uint32_t code = id < calibration->code_count ? id : 0;
	struct calibration_cost cost;

	switch (kind) {
	case WIRE_CALL:
	case WIRE_FRAME:
		return begin(calibration, code);
	case WIRE_RESUME:
	case WIRE_THROW:
		return resume(calibration, code);
	case WIRE_C_CALL:
		return call_c(calibration, id);
	case WIRE_RETURN:
	case WIRE_YIELD:
	case WIRE_C_RETURN:
	case WIRE_C_EXCEPTION:
		return end(calibration);
	case WIRE_UNWIND: /* the interpreter reports the exception both before and after it leaves the function */
		cost = end(calibration);
		cost.before += calibration->begin[CALIBRATION_UNWIND].before;
		cost.after += calibration->begin[CALIBRATION_UNWIND].after;
		return cost;
	case WIRE_MALLOC:
	case WIRE_CALLOC:
	case WIRE_REALLOC:
	case WIRE_FREE: /* in a Python function part of the cost is subtracted as slow-down already */
		return (is_c(innermost(calibration).kind) ? calibration->begin : calibration->end)[memory];
	case WIRE_OTHER_CALL:
		return other_call(calibration);
	case WIRE_STACK:
		calibration->depth = 0;
		/* fall through */
	default:
		return (struct calibration_cost){0, 0};
	}
}

/* The part of an interval in a Python function that is slow-down, in 1/256 ticks. */
static inline uint64_t slowed(const struct calibration *calibration, uint64_t ticks)
{
	if (!calibration->slowed || is_c(innermost(calibration).kind))
		return 0;
	return calibration->slowed * (ticks < calibration->slowed_max ? ticks : calibration->slowed_max);
}

/* The disturbed part of what remains of an interval in a Python function, in 1/256 ticks. */
static inline int64_t disturbed(const struct calibration *calibration, int64_t left)
{
	left -= calibration->disturbed_from;
	if (left <= 0)
		return 0;
	return (left < calibration->disturbed_max ? left : calibration->disturbed_max) * calibration->disturbed / 256;
}

/*
 * Subtracts a cost, in 1/256 ticks, from an interval, down to zero. Carries over the fraction of a tick, or a negative
 * cost: at most that of one call.
 */
static inline uint32_t subtract(struct calibration *calibration, int64_t cost, uint32_t ticks)
{
	uint32_t whole;

	if (cost < 0) {
		calibration->carried = cost > -CARRIED_MAX ? (int32_t)cost : -CARRIED_MAX;
		return 0;
	}
	whole = cost >> 8 < ticks ? (uint32_t)(cost >> 8) : ticks;
	calibration->carried = cost >> 8 > whole ? 0 : (int32_t)(cost & 255);
	return whole;
}

/* Whether an event only adds to the one before or after it, and has no cost of its own. */
static inline bool is_annotation(unsigned kind)
{
	return wire_is_time(kind) || kind == WIRE_NATIVE_STACK || kind == WIRE_AT_LINE;
}

/* The cost to subtract from the interval before the event, in 1/256 ticks; *later is that of the interval after it. */
static inline int64_t cost_of(struct calibration *calibration, unsigned kind, uint32_t id, uint32_t ticks,
			      int32_t *later)
{
	bool in_c = is_c(innermost(calibration).kind);
	int64_t cost = calibration->carried + (int64_t)slowed(calibration, ticks);
	struct calibration_cost own = follow(calibration, kind, id);

	calibration->after_other_call = kind == WIRE_OTHER_CALL;
	*later = own.after;
	cost += own.before;
	return in_c ? cost : cost + disturbed(calibration, ((int64_t)ticks << 8) - cost);
}

void calibration_apply(struct calibration *calibration, struct trace_events *events)
{
	uint32_t *ticks = (uint32_t *)events->ticks; /* in the stream's buffer, which is read once */
	uint64_t *extra = (uint64_t *)events->extras;
	uint64_t now = events->first_ticks;
	uint32_t i;

	events->first_ticks -= calibration->removed;
	for (i = 0; i < events->count; i++) {
		unsigned kind = wire_head_kind(events->heads[i]);
		uint64_t next = wire_time_of(kind, now, ticks[i], extra);
		uint32_t id = wire_head_arg(events->heads[i]), most, whole = 0;
		int32_t later;

		if (next != now || !is_annotation(kind)) {
			most = next <= now ? 0 : next - now < UINT32_MAX ? (uint32_t)(next - now) : UINT32_MAX;
			whole = subtract(calibration, cost_of(calibration, kind, id, most, &later), most);
			calibration->carried += later;
		}
		now = next;
		calibration->removed += whole;
		if (wire_is_time(kind))
			*extra -= calibration->removed;
		else
			ticks[i] -= whole;
		extra += wire_extra_words(events->heads[i]);
	}
}
