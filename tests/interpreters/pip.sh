# pip.sh - sourced by packages.sh and renew_pins.sh: a pip, and wheels of any version of Python on any machine.
#
# Wants $cache (evprof's folder in the user's cache) and tools/scripts/bound.sh.

pins=$here/pins

# Debian's python3 has no pip; an environment of its own has.
pip() { # SECONDS ARGUMENT...
	seconds=$1
	shift
	bounded "$seconds" "$cache/pip/bin/python" -m pip --disable-pip-version-check --no-input --quiet --retries 1 \
		--timeout 20 "$@"
}

# Where there is none, $no_pip says why.
have_pip() {
	[ -x "$cache/pip/bin/python" ] && "$cache/pip/bin/python" -c 'import pip' 2>/dev/null && return 0
	no_pip="cannot write to $cache; set XDG_CACHE_HOME"
	{ mkdir -p "$cache" && true >"$cache/pip.log"; } 2>/dev/null || return 1
	for python in /usr/bin/python3 python3; do
		no_pip="$EVPROF_SETUP_SECONDS s are over (EVPROF_SETUP_SECONDS)"
		setup_over && return 1
		rm -rf "$cache/pip"
		bounded 120 "$python" -m venv "$cache/pip" >>"$cache/pip.log" 2>&1 && rm -f "$cache/pip.log" && return 0
	done
	setup_over || no_pip="no Python here can make an environment with pip; see $cache/pip.log"
	return 1
}

# Sets $wheels to pip's options for the wheels of a version ("3.11", "3.13t") on a machine ("x86_64").
wheels_for() { # VERSION MACHINE
	digits=$(echo "$1" | tr -d .)
	wheels="--only-binary :all: --python-version ${1%t} --implementation cp"
	for abi in "cp$digits" "cp${digits}m" abi3 none; do
		wheels="$wheels --abi $abi"
	done
	for platform in _2_36 _2_35 _2_34 _2_31 _2_28 _2_27 _2_26 _2_24 _2_17 2014 _2_12 2010 _2_5 1; do
		wheels="$wheels --platform manylinux${platform}_$2"
	done
}
