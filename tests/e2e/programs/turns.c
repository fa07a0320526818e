/*
 * turns.c - a server of several applications: a thread of C code has a thread state in each of two sub-interpreters and
 * calls them in turn, as mod_wsgi and uWSGI do. The states are made by that thread, or by the one that starts it.
 * Loaded by turns.py.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#define APPLICATIONS 2

static void *(*new_interpreter)(void), *(*head)(void), *(*new_state)(void *), *(*swap)(void *), *(*leave)(void);
static void (*end_interpreter)(void *), (*enter)(void *), (*acquire)(void *), (*release)(void *), (*clear)(void *);
static void (*delete_current)(void);
static void *(*add_module)(const char *), *(*attribute)(void *, const char *), *(*call)(void *, void *);
static int (*run)(const char *);

static struct application {
	void *first, *interpreter, *state, *function;
} applications[APPLICATIONS];
static int rounds, calls;

static void find(void)
{
	static const struct {
		void *where;
		const char *name;
	} all[] = {{&new_interpreter, "Py_NewInterpreter"},
		   {&head, "PyInterpreterState_Head"},
		   {&new_state, "PyThreadState_New"},
		   {&swap, "PyThreadState_Swap"},
		   {&leave, "PyEval_SaveThread"},
		   {&end_interpreter, "Py_EndInterpreter"},
		   {&enter, "PyEval_RestoreThread"},
		   {&acquire, "PyEval_AcquireThread"},
		   {&release, "PyEval_ReleaseThread"},
		   {&clear, "PyThreadState_Clear"},
		   {&delete_current, "PyThreadState_DeleteCurrent"},
		   {&add_module, "PyImport_AddModule"},
		   {&attribute, "PyObject_GetAttrString"},
		   {&call, "PyObject_CallObject"},
		   {&run, "PyRun_SimpleString"}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		*(void **)all[i].where = dlsym(RTLD_DEFAULT, all[i].name);
}

static void make_states(void)
{
	for (int i = 0; i < APPLICATIONS; i++)
		applications[i].state = new_state(applications[i].interpreter);
}

static void *serve(void *own_states)
{
	if (own_states)
		make_states();
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < APPLICATIONS; i++) {
			acquire(applications[i].state);
			calls += call(applications[i].function, NULL) != NULL;
			release(applications[i].state);
		}
	}
	for (int i = 0; i < APPLICATIONS; i++) {
		acquire(applications[i].state);
		clear(applications[i].state);
		delete_current();
	}
	return NULL;
}

/* GIL held. Returns how many calls succeeded. */
int take_turns(const char *code, int count, int own_states)
{
	pthread_t thread;
	void *own;

	find();
	rounds = count;
	own = leave();
	enter(own);
	for (int i = 0; i < APPLICATIONS; i++) {
		applications[i].first = new_interpreter();
		applications[i].interpreter = head();
		if (run(code))
			return -1;
		applications[i].function = attribute(add_module("__main__"), "app");
		swap(own);
	}
	if (!own_states)
		make_states();
	leave();
	if (pthread_create(&thread, NULL, serve, own_states ? &rounds : NULL) || pthread_join(thread, NULL))
		return -1;
	enter(own);
	for (int i = 0; i < APPLICATIONS; i++) {
		swap(applications[i].first);
		end_interpreter(applications[i].first);
		swap(own);
	}
	return calls;
}
