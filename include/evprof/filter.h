/*
 * filter.h - the patterns of filters: EVPROF_INCLUDE and EVPROF_EXCLUDE when recording, --include and --exclude when
 * reading.
 *
 * A pattern is a glob over the whole of a name, or "re:" and a POSIX extended regular expression that matches anywhere
 * in it. A function has up to four names: its file ("~" for C functions), its name, its qualified name ("str.join"),
 * and module.qualified name. A pattern matches the function if it matches one of them. With include patterns, a
 * function that matches none of them is left out. A function that matches an exclude pattern is left out in any case.
 */
#ifndef EVPROF_FILTER_H
#define EVPROF_FILTER_H

#include <fnmatch.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILTER_NAMES 4

struct filter_pattern {
	char *glob; /* NULL: the pattern is `expression` */
	regex_t expression;
	bool exclude;
};

/* Returns NULL or the error, possibly in why. The caller frees the pattern with filter_pattern_done(). */
static inline const char *filter_pattern_parse(struct filter_pattern *pattern, const char *text, bool exclude,
					       char *why, size_t why_bytes)
{
	int error;

	*pattern = (struct filter_pattern){.exclude = exclude};
	if (strncmp(text, "re:", 3) == 0) {
		error = regcomp(&pattern->expression, text + 3, REG_EXTENDED | REG_NOSUB);
		if (!error)
			return NULL;
		regerror(error, &pattern->expression, why, why_bytes);
		return why;
	}
	pattern->glob = strdup(text);
	return pattern->glob ? NULL : "out of memory";
}

static inline void filter_pattern_done(struct filter_pattern *pattern)
{
	if (!pattern->glob)
		regfree(&pattern->expression);
	free(pattern->glob);
}

/*
 * Copies the first pattern of a non-empty list with commas ("a,b\,c" is a and b,c). pattern has room for the whole
 * list. Returns the rest of the list.
 */
static inline const char *filter_next(const char *list, char *pattern)
{
	while (*list && *list != ',') {
		list += list[0] == '\\' && list[1] == ',';
		*pattern++ = *list++;
	}
	*pattern = 0;
	return *list ? list + 1 : list;
}

static inline bool filter_pattern_matches(const struct filter_pattern *pattern, const char *const names[FILTER_NAMES])
{
	for (int i = 0; i < FILTER_NAMES; i++) {
		if (!names[i][0])
			continue;
		if (pattern->glob ? fnmatch(pattern->glob, names[i], 0) == 0
				  : regexec(&pattern->expression, names[i], 0, NULL, 0) == 0)
			return true;
	}
	return false;
}

/* Whether the function passes the filter. names: as above, "" where there is none. */
static inline bool filter_includes(const struct filter_pattern *patterns, size_t count,
				   const char *const names[FILTER_NAMES])
{
	bool includes = false, included = false;

	for (size_t i = 0; i < count; i++) {
		bool matches = (patterns[i].exclude || !included) && filter_pattern_matches(&patterns[i], names);

		if (patterns[i].exclude && matches)
			return false;
		includes |= !patterns[i].exclude;
		included |= !patterns[i].exclude && matches;
	}
	return !includes || included;
}

/* Whether "/python3.11/" or "/python3/" below lib or lib64 begins at `at`. */
static inline bool filter_is_library(const char *file, const char *at)
{
	int major, minor, length = 0;
	bool below = (at - file >= 4 && strncmp(at - 4, "/lib", 4) == 0) ||
		     (at - file >= 6 && strncmp(at - 6, "/lib64", 6) == 0);

	if (!below)
		return false;
	return strncmp(at, "/python3/", 9) == 0 ||
	       (sscanf(at, "/python%d.%d%n", &major, &minor, &length) == 2 && length && at[length] == '/');
}

/* The Python modules of the standard library, in all versions. */
static const char filter_library_modules[] =
    " "
    "__future__ __hello__ _aix_support _android_support _apple_support _ast_unparse _bootlocale "
    "_bootsubprocess _collections_abc _colorize _compat_pickle _compression "
    "_dummy_thread _ios_support _markupbase _missing_stdlib_info _opcode_metadata _osx_support "
    "_py_abc _py_warnings _pydatetime _pydecimal _pyio _pylong _pyrepl _sitebuiltins _strptime "
    "_threading_local _weakrefset abc aifc annotationlib antigravity argparse ast asynchat asyncio "
    "asyncore base64 bdb binhex bisect bz2 cProfile calendar cgi cgitb chunk cmd code codecs codeop "
    "collections colorsys compileall compression concurrent configparser contextlib contextvars copy "
    "copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest "
    "dummy_threading email encodings ensurepip enum filecmp fileinput fnmatch formatter fractions "
    "ftplib functools genericpath getopt getpass gettext glob graphlib gzip hashlib heapq hmac html "
    "http idlelib imaplib imghdr imp importlib inspect io ipaddress json keyword lib2to3 linecache "
    "locale logging lzma macpath macurl2path mailbox mailcap mimetypes modulefinder multiprocessing "
    "netrc nntplib ntpath nturl2path numbers opcode operator optparse os pathlib pdb pickle "
    "pickletools pipes pkgutil platform plistlib poplib posixpath pprint profile profiling pstats pty "
    "py_compile pyclbr pydoc pydoc_data queue quopri random re reprlib rlcompleter runpy sched "
    "secrets selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket "
    "socketserver sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep "
    "struct subprocess sunau symbol symtable sysconfig tabnanny tarfile telnetlib tempfile textwrap "
    "this threading timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle "
    "turtledemo types typing unittest urllib uu uuid venv warnings wave weakref webbrowser wsgiref "
    "xdrlib xml xmlrpc zipapp zipfile zipimport zoneinfo ";

/*
 * Frozen programs (PyInstaller) name a file by its path below sys.path: "json/decoder.py" for json.decoder. Scripts,
 * whose module is __main__, and files below a relative entry of sys.path do not match the name of their module.
 */
static inline bool filter_is_frozen_library(const char *file, const char *module)
{
	char first[64];
	size_t length = 0, package = strcspn(file, "/."), end = strlen(file);

	if (strncmp(file, "pyimod", 6) == 0 || strncmp(file, "pyiboot", 7) == 0 || strncmp(file, "pyi_rth_", 8) == 0)
		return true; /* added by PyInstaller */
	if (!package || end < 3 || strcmp(file + end - 3, ".py") != 0 ||
	    (size_t)snprintf(first, sizeof(first), " %.*s ", (int)package, file) >= sizeof(first))
		return false;
	end -= end > 12 && strcmp(file + end - 12, "/__init__.py") == 0 ? 12 : 3;
	while (length < end && module[length] == (file[length] == '/' ? '.' : file[length]))
		length++;
	return length == end && module[length] == '.' && strstr(filter_library_modules, first);
}

/*
 * Whether the file is in a place that Python itself puts on sys.path: standard library, frozen module or installed
 * package. module: its name, a dot, and any text.
 */
static inline bool filter_in_syspath(const char *file, const char *module)
{
	if (strncmp(file, "<frozen ", 8) == 0 || strstr(file, "/site-packages/") || strstr(file, "/dist-packages/"))
		return true;
	for (const char *at = file; (at = strstr(at, "/python")); at++)
		if (filter_is_library(file, at))
			return true;
	return (strstr(file, ".zip/") && strstr(file, "/python3")) || filter_is_frozen_library(file, module);
}

#endif
