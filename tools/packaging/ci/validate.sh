#!/bin/sh
# validate.sh - checks action.yml and gitlab.yml against the schemas of their forges, by check-jsonschema (pins/ci.txt). Prints the
# folder with that package and what it depends on.
set -u

here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tools/packaging/fetch.sh
. "$here/fetch.sh"
folder=$store/ci-$(key_of "$pins/ci.txt")
fetch_packages "$folder" "$pins/ci.txt"
for schema in github-actions:action.yml gitlab-ci:gitlab.yml; do
	PYTHONPATH=$folder "$python" -m check_jsonschema --builtin-schema "vendor.${schema%:*}" "$here/ci/${schema#*:}" >&2 ||
		fail "${schema#*:} is not what its schema wants"
done
echo "$folder"
