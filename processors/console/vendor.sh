#!/usr/bin/env bash
# Verifies the files in static/ that are copies of packages of npm. With -write, copies them again. Needs npm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
package=htmx.org@2.0.11
(cd "$work" && npm pack --silent "$package" >/dev/null && tar xzf ./*.tgz)
copies=(dist/htmx.min.js:static/htmx.min.js LICENSE:static/htmx.LICENSE.txt)
for copy in "${copies[@]}"; do
	if [[ ${1:-} == -write ]]; then
		cp "$work/package/${copy%%:*}" "${copy#*:}"
	fi
	cmp "$work/package/${copy%%:*}" "${copy#*:}"
done
echo "$package: ${#copies[@]} files are as published"
