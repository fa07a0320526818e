/* packages.c - finds the packages that some tests need; see packages.h. Used by the test files of this folder. */
#include "packages.h"

#include <stdlib.h>

char *package_folders(void)
{
	const char *given = getenv("TEST_PACKAGES"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (given && *given)
		return text("%s", given);
	return cache && *cache ? text("%s/evprof/packages", cache)
			       : text("%s/.cache/evprof/packages", home ? home : "");
}

char *package_folder(const struct python *python)
{
	return text("%s/%d.%d%s", package_folders(), python->major, python->minor,
		    python_is_free_threaded(python) ? "t" : "");
}

char *package_path(const struct python *python)
{
	return text("%s:%s-frontends", package_folder(python), package_folder(python));
}

/* Fails where one of the packages is missing. They are not imported: that takes a second of some. */
static const char finds_packages[] = "import sys, importlib.util as util\n"
				     "for name in sys.argv[1].split(', '):\n"
				     "    assert util.find_spec(name), name\n";

static const char *variable_of(const struct python *python, const char *package, const char *path)
{
	char *variable = text("PYTHONPATH=%s", path);
	struct outcome *outcome =
	    run(.python = python, .how = JOB_BARE, .args = {"-c", finds_packages, package}, .env = {variable});

	if (outcome->status)
		cr_skip_test("%s has no %s", python->name, package);
	return variable;
}

const char *package_variable(const struct python *python, const char *package)
{
	return variable_of(python, package, package_path(python));
}

const char *service_variable(const struct python *python, const char *package)
{
	const char *folder = package_folder(python);

	return variable_of(python, package, text("%s:%s-services:%s-tables", folder, folder, folder));
}

const char *fleet_variable(const struct python *python)
{
	return variable_of(python, "pyspark, pyarrow, pandas",
			   text("%s:%s/fleet", package_folder(python), package_folders()));
}

const char *store_variable(const struct python *python)
{
	return variable_of(python, "moto, boto3, flask_cors", text("%s-stores", package_folder(python)));
}

const char *fleet_store_variable(const struct python *python)
{
	const char *folder = package_folder(python);

	return variable_of(python, "pyspark, pyarrow, pandas, moto, boto3, flask_cors",
			   text("%s:%s/fleet:%s-stores", folder, package_folders(), folder));
}
