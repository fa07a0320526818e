/* versions.c - applies the row of this Python's version (evprof/python_versions.h). */
#include "evprof/python_versions.h"

#include "python/python.h"

void python_choose_version(int minor)
{
	static const struct python_layout unknown;
	const struct python_version *known = python_version_row(minor);
	const struct python_version *row = known ? known : python_version_row(PYTHON_NEWEST_MINOR);

	python.traits = row->traits;
	python.lines = row->lines;
	python.monitoring = python_has(PYTHON_OWN_FRAMES) && !row->layout.inner_previous;
	python.inner_frames = row->layout.inner_previous != 0;
	python.layout = known ? row->layout : unknown;
}
