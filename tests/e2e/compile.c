/* compile.c - see compile.h. */
#include "compile.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

/* FNV-1a, 64 bits. */
static uint64_t hash_of(const char *words, uint64_t hash)
{
	for (; *words; words++)
		hash = (hash ^ (unsigned char)*words) * UINT64_C(0x100000001b3);
	return hash;
}

/*
 * $1: the library, $2: the source, $3: flags. Under another name first: another scenario may compile the same. The
 * first one's stays, because its program may have mapped it already, and symbols are read from the file that was
 * mapped.
 */
static const char script[] =
    "mkdir -p \"${1%/*}\" && cc -shared -fPIC -w $3 -o \"${1##*/}\" \"$2\" -lpthread -ldl && "
    "cp \"${1##*/}\" \"$1.$$\" && { ln \"$1.$$\" \"$1\" 2>/dev/null; rm \"$1.$$\"; test -r \"$1\"; }";

/* A folder for each text of the source and flags: what is there is never out of date. */
const char *compile(const char *source, const char *name, const char *flags)
{
	char *words = file_read(program_path(source), NULL), *folder, *library;
	struct outcome *built;

	cr_assert(words, "programs/%s is there", source);
	folder = text("%s/%016" PRIx64, build_path("tests/e2e/libraries"),
		      hash_of(words, hash_of(flags, UINT64_C(0xcbf29ce484222325))));
	library = text("%s/%s", folder, name);
	free(words);
	if (access(library, R_OK) == 0)
		return library;
	built = run(.how = JOB_BARE, .args = {"sh", "-c", script, "sh", library, program_path(source), flags});
	cr_assert_eq(built->status, 0, "%s", built->err);
	return library;
}
