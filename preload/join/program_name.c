/* program_name.c - see program_name.h. */
#include "join/program_name.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

/* The argument that names the program: a script, a module after -m, or NULL. */
static const char *find_program(const char *arguments, long size)
{
	for (const char *p = arguments + strlen(arguments) + 1; p < arguments + size; p += strlen(p) + 1) {
		if (p[0] != '-')
			return p;
		if (!strcmp(p, "-m"))
			return p + 3 < arguments + size ? p + 3 : NULL;
		if (!strncmp(p, "-m", 2) && p[2])
			return p + 2;
		if (p[1] == 'c' || !p[1])
			return NULL;
		if (!strcmp(p, "-W") || !strcmp(p, "-X"))
			p += 3; /* its value is the next argument */
	}
	return NULL;
}

void program_name(char *out, size_t size, char *scratch, size_t scratch_size)
{
	long n = text_read_file("/proc/self/cmdline", scratch, scratch_size);
	const char *program = n > 0 ? scratch : "python", *slash;
	size_t used = 0, length;

	slash = strrchr(program, '/');
	program = slash ? slash + 1 : program;
	if (n > 0 && !strncmp(program, "python", 6)) {
		const char *script = find_program(scratch, n);

		if (script) {
			slash = strrchr(script, '/');
			program = slash ? slash + 1 : script;
		}
	}
	length = strlen(program);
	if (length > 3 && !strcmp(program + length - 3, ".py"))
		length -= 3;
	for (size_t i = 0; i < length && used < size - 1 && used < 64; i++) {
		char c = program[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
			     c == '-' || (c == '.' && i > 0);

		out[used++] = plain ? c : '_';
	}
	if (!used)
		out[used++] = '_';
	out[used] = 0;
}
