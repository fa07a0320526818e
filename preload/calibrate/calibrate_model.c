/*
 * calibrate_model.c - see calibrate_model.h. The events are one run's, from a private ring, of one thread, with all
 * hooks.
 */
#include "calibrate/calibrate_model.h"

#include "evprof/wire.h"

#define DEPTH 128u /* a power of two, above the depth of the program */

static const double own_shares[MODEL_KINDS] = {
    [MODEL_CALL] = WIRE_COST_OWN_CALL,	    [MODEL_ENTRY] = WIRE_COST_OWN_CALL,
    [MODEL_CALLBACK] = WIRE_COST_OWN_CALL,  [MODEL_INIT] = WIRE_COST_OWN_CALL,
    [MODEL_RESUME] = WIRE_COST_OWN_RESUME,  [MODEL_PULL] = WIRE_COST_OWN_RESUME,
    [MODEL_GENERATOR] = WIRE_COST_OWN_CALL, [MODEL_C_CALL] = WIRE_COST_OWN_C,
    [MODEL_METHOD] = WIRE_COST_OWN_C,
};

/* A running function. */
struct open {
	enum model_kind kind;
	bool far;	/* it was called far from the start of its caller's code */
	uint32_t place; /* of the last event of this Python function */
};

struct state {
	const struct model *model;
	double times;
	struct open open[DEPTH];
	unsigned depth;
	bool told, far;	      /* the last event was a call that is not recorded; the next event is far */
	uint32_t place;	      /* of the next event, if it is recorded */
	double before, after; /* costs of the next event, and of the last one */
};

static const struct model_code unknown = {.kind = MODEL_CALL};

static bool is_c(const struct state *state)
{
	const struct open *open = &state->open[(state->depth - 1) % DEPTH];

	return state->depth && (open->kind == MODEL_C_CALL || open->kind == MODEL_METHOD);
}

static const struct model_code *find_code(const struct model *model, uint32_t id)
{
	for (unsigned i = 0; i < model->code_count; i++)
		if (model->codes[i].id == id)
			return &model->codes[i];
	return &unknown;
}

/* The part of the costs between the two timestamps. */
static double inner_cost(const struct model *model, enum model_kind kind)
{
	const double *cost = model->cost[kind];
	double slow = kind < MODEL_C_CALL ? model->slow : 1, inner = slow * cost[1] - own_shares[kind] * cost[2];

	return inner < 0 || cost[0] < 0 ? 0 : inner > cost[0] ? cost[0] : inner;
}

static void add_begin(struct state *state, enum model_kind kind)
{
	double inner = inner_cost(state->model, kind), outer = state->model->cost[kind][0] - inner;

	state->before += outer / 2;
	state->after += inner / 2;
}

static void add_end(struct state *state, enum model_kind kind)
{
	double inner = inner_cost(state->model, kind), outer = state->model->cost[kind][0] - inner;

	state->before += inner / 2;
	state->after += outer / 2;
}

static void add_both(struct state *state, double ns)
{
	state->before += ns / 2;
	state->after += ns / 2;
}

/* The cost of the line-table walk from the frame's last event to this one. */
static void walk(struct state *state)
{
	struct open *open = &state->open[(state->depth - 1) % DEPTH];

	if (!state->place || !state->depth)
		return;
	state->before +=
	    state->model->walk * (state->place > open->place ? state->place - open->place : open->place - state->place);
	open->place = state->place;
}

static void push(struct state *state, enum model_kind kind, bool far)
{
	state->open[state->depth++ % DEPTH] = (struct open){kind, far, 0};
}

static enum model_kind kind_of_call(const struct state *state, const struct model_code *code)
{
	if (is_c(state))
		return code->kind == MODEL_GENERATOR ? MODEL_GENERATOR : MODEL_CALLBACK;
	if (code->kind == MODEL_INIT && state->model->other > 0 && !state->told)
		return MODEL_CALL;
	return code->kind;
}

static void begin(struct state *state, uint32_t id)
{
	const struct model_code *code = find_code(state->model, id);
	enum model_kind kind = kind_of_call(state, code);

	add_begin(state, kind);
	if (kind == MODEL_INIT && state->told)
		state->before -= state->model->other;
	push(state, kind, false);
}

static void resume(struct state *state)
{
	enum model_kind kind = is_c(state) ? MODEL_PULL : MODEL_RESUME;

	add_begin(state, kind);
	push(state, kind, false);
	walk(state);
}

static void begin_c(struct state *state, uint32_t id)
{
	enum model_kind kind = MODEL_METHOD;

	walk(state);
	for (unsigned i = 0; i < state->model->function_count; i++)
		if (state->model->functions[i] == id)
			kind = MODEL_C_CALL;
	add_begin(state, kind);
	push(state, kind, state->far);
}

static void end(struct state *state)
{
	struct open ended = {MODEL_CALL, false, 0};

	walk(state);
	if (state->depth)
		ended = state->open[--state->depth % DEPTH];
	add_end(state, ended.kind);
	if (ended.far)
		add_both(state, state->model->far);
}

static void follow(struct state *state, uint32_t head)
{
	unsigned kind = wire_head_kind(head);

	if (kind == WIRE_CALL)
		begin(state, wire_head_arg(head));
	else if (kind == WIRE_RESUME || kind == WIRE_THROW)
		resume(state);
	else if (kind == WIRE_C_CALL)
		begin_c(state, wire_head_arg(head));
	else if (kind >= WIRE_RETURN && kind <= WIRE_C_EXCEPTION)
		end(state);
	if (kind == WIRE_UNWIND)
		add_both(state, state->model->unwind);
	if (kind >= WIRE_CALL && kind <= WIRE_C_EXCEPTION)
		state->place = 0;
	state->told = head == wire_head(WIRE_TIME, WIRE_TIME_OF_CALL);
	if (state->told)
		add_both(state, state->model->other + (state->far ? state->model->far : 0));
	if (state->far)
		add_both(state, state->model->far);
	state->far = false;
}

/* The slowdown of an interval that has the program's own time alone. */
static double disturbed(const struct model *model, double left)
{
	left -= model->work_after;
	return left <= 0 ? 0 : model->work * (left < WIRE_COST_DISTURBED_NS ? left : WIRE_COST_DISTURBED_NS);
}

/* The part of the interval before an event that is not the program's. */
static double take(struct state *state, uint32_t head, double interval)
{
	bool native = is_c(state);
	double taken = state->times * state->after + (native ? 0 : (1 - state->model->slow) * interval);

	state->before = state->after = 0;
	follow(state, head);
	taken += state->times * state->before;
	if (!native)
		taken += disturbed(state->model, interval - taken);
	return taken < interval ? taken : interval;
}

double model_explained(const struct model *model, const struct model_events *events, double times)
{
	struct state state = {.model = model, .times = times};
	uint64_t at, time = events->begin_ticks;
	double explained = 0;

	for (at = 0; at < events->count; at++) {
		uint32_t head = (uint32_t)events->words[at];

		at += wire_extra_words(wire_head_kind(head));
		if (wire_is_mark(head)) {
			state.far = !wire_place(head);
			state.place = wire_place(head);
			continue;
		}
		if (wire_head_kind(head) == WIRE_TIME) {
			uint64_t told = events->words[at];

			explained += take(&state, head, (double)(told - time) * events->tick_ns);
			time = told;
			continue;
		}
		time += events->words[at] >> 32;
		explained += take(&state, head, (double)(events->words[at] >> 32) * events->tick_ns);
	}
	return explained;
}

double model_times(const struct model *model, const struct model_events *events, double ns)
{
	double low = 0, high = 4;

	if (model_explained(model, events, low) >= ns || model_explained(model, events, high) <= ns)
		return 0;
	for (int i = 0; i < 12; i++) {
		double middle = (low + high) / 2;

		if (model_explained(model, events, middle) < ns)
			low = middle;
		else
			high = middle;
	}
	return low;
}
