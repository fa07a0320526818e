/*
 * An extension that does not say that it can do without the GIL: a free-threaded Python takes it when it is imported.
 */
#include <Python.h>

static PyObject *answer(PyObject *self, PyObject *nothing)
{
	(void)self;
	(void)nothing;
	return PyLong_FromLong(42);
}

static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "needs_gil", .m_methods = methods};

PyMODINIT_FUNC PyInit_needs_gil(void)
{
	return PyModule_Create(&module);
}
