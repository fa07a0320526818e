# expect_output.sh - for the rules that run a script and look at what it prints. Sets folder, a temporary one, and status.
# Sourced by check_*.sh.
# shellcheck shell=sh
# shellcheck disable=SC2034 # status is of whoever sources this
status=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP

# Prints what does not hold, and $folder/output, if the command fails; status is 1 then.
expect() { # WHAT COMMAND...
	what=$1
	shift
	"$@" >/dev/null && return
	echo "$what; it said:"
	sed 's/^/  /' "$folder/output"
	status=1
}
