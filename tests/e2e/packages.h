/*
 * packages.h - packages of the Python index that tests run programs with, where they are there.
 *
 * They stand in folders for each version, FOLDER/3.N (3.Nt for a free-threaded one), FOLDER/3.N-frontends (pytest and
 * Jupyter), FOLDER/3.N-services (web frameworks and what traces them), FOLDER/3.N-tables (DuckDB) and FOLDER/3.N-stores
 * (a server of S3), and in FOLDER/fleet (Spark), where tests/interpreters/packages.sh puts them; FOLDER is
 * TEST_PACKAGES, or evprof/packages in the user's cache. An interpreter that has a package itself needs none.
 */
#ifndef EVPROF_E2E_PACKAGES_H
#define EVPROF_E2E_PACKAGES_H

#include "harness.h"

/* Where the folders of packages are. */
char *package_folders(void);
/* The folder of an interpreter's packages, which need not be there. */
char *package_folder(const struct python *python);
/* The first two folders, for PYTHONPATH. */
char *package_path(const struct python *python);
/*
 * The variable that lets the interpreter import a package ("PYTHONPATH=..."); skips the running test where it cannot.
 */
const char *package_variable(const struct python *python, const char *package);
/* The same with the packages of services and tables, which only those tests have in their path that need them. */
const char *service_variable(const struct python *python, const char *package);
/* The same with Spark, or a server of S3, or both. */
const char *fleet_variable(const struct python *python);
const char *store_variable(const struct python *python);
const char *fleet_store_variable(const struct python *python);

#endif
