/*
 * export_tables.c - see export_tables.h. Called by export.c.
 *
 * There is no writer of Parquet among the C libraries of distributions (docs/table.md), and the package reads traces
 * through the same library as this tool.
 */
#include "cmd/export_tables.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/verbs.h"
#include "evprof/proc.h"
#include "util/cli.h"

/* The folder of the package stands first, in place of the current one, where anybody may have put modules. */
static const char program[] = "import sys\n"
			      "folder = sys.argv.pop(1)\n"
			      "sys.path[:1] = [folder] if folder else []\n"
			      "from evprof.tables import main\n"
			      "sys.exit(main(sys.argv[1:]))\n";

/* Where the package is: the source tree, make install, pip. */
static const char *const folders[] = {"../tools/python", "../lib/evprof/python", "../.."};

bool export_tables_has(const char *format)
{
	return strcmp(format, "parquet") == 0 || strcmp(format, "arrow") == 0;
}

/* Writes the folder of the package. "": it is where Python finds it by itself. */
static void find_package(char folder[PATH_MAX])
{
	char own[PATH_MAX], path[PATH_MAX + 64];
	char *slash = proc_own_path(own) < 0 ? NULL : strrchr(own, '/');

	folder[0] = 0;
	if (!slash)
		return;
	*slash = 0;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s/evprof/tables.py", own, folders[i]);
		if (access(path, R_OK) < 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", own, folders[i]);
		if (realpath(path, folder))
			return;
		folder[0] = 0;
	}
}

int export_tables_run(const struct export_tables *tables)
{
	const char *python = tables->python ? tables->python : "python3";
	char folder[PATH_MAX];
	const char **words = calloc((size_t)tables->count + 5, sizeof(*words));
	size_t count = 0;

	if (!words) {
		fprintf(stderr, "evprof export: out of memory\n");
		return CLI_FAILED;
	}
	find_package(folder);
	words[count++] = python;
	words[count++] = "-c";
	words[count++] = program;
	words[count++] = folder;
	for (int i = 0; i < tables->count; i++)
		words[count++] = tables->arguments[i];
	fflush(stdout);
	execvp(python, (char **)(uintptr_t)words);
	fprintf(stderr,
		"evprof export: %s cannot be run: %s; --format %s needs Python 3.8 or later with pyarrow "
		"(--python PYTHON)\n",
		python, strerror(errno), tables->format);
	free(words);
	return CLI_FAILED;
}
