/* account.c - see account.h. */
#include "report/account.h"

#include "util/terminal.h"

void account_put_left_out(const struct trace_account *account, struct output *output)
{
	char text[TERMINAL_NUMBER_BYTES];

	if (account->longest_ms > 0)
		output_format(output, "; left out were functions of up to %s a call",
			      terminal_time(account->longest_ms * 1e6, text));
	if (account->exceptions_ms > 0)
		output_format(output, "; exceptions were left out in %s of CPU time",
			      terminal_time(account->exceptions_ms * 1e6, text));
}
