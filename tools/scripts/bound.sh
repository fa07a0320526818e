# bound.sh - sourced by what fetches: how long the whole set-up may take, so that no network makes it hang.
#
# EVPROF_SETUP_SECONDS (default 900) counts from the first script that sources this; the others inherit the end.
: "${EVPROF_SETUP_SECONDS:=900}"
: "${EVPROF_SETUP_END:=$(($(date +%s) + EVPROF_SETUP_SECONDS))}"
export EVPROF_SETUP_SECONDS EVPROF_SETUP_END

setup_over() {
	[ "$(date +%s)" -ge "$EVPROF_SETUP_END" ]
}

# Status 124 or 137: the command was ended. It gets no terminal, which in a process group of its own would stop it.
# $as_root stands before it: who is not root could not end what sudo starts. SIGINT, SIGTERM and SIGHUP end the command, then the
# script: the keyboard's do not reach that group, and the shell would wait for the end of a command in the foreground.
bounded() { # SECONDS COMMAND [ARGUMENT...]
	setup_over && return 124
	left=$((EVPROF_SETUP_END - $(date +%s)))
	[ "$left" -gt "$1" ] && left=$1
	shift
	# shellcheck disable=SC2086 # "sudo", or nothing
	${as_root:-} timeout -k 10 "$left" "$@" </dev/null &
	bounded_command=$!
	# shellcheck disable=SC2086 # the same
	trap '${as_root:-} kill "$bounded_command" 2>/dev/null; wait "$bounded_command"; exit 1' INT TERM HUP
	wait "$bounded_command"
	set -- "$?"
	trap 'exit 1' INT TERM HUP
	return "$1"
}
