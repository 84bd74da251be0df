#!/usr/bin/env bash
# Runs the tests of the console in Chromium, with axe-core from npm, and installs both: Debian's package chromium (needs root, unless it
# is installed) and the package of npm in bin/browser. With -pictures, writes those of README.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
axe=axe-core@4.14.1
if ! command -v chromium >/dev/null; then
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core
fi
mkdir -p bin/browser
if [[ ! -e bin/browser/$axe ]]; then
	(cd bin/browser && npm pack --silent "$axe" >/dev/null && tar xzf axe-core-*.tgz package/axe.min.js && touch "$axe")
fi
export TURNTABLE_AXE=$PWD/bin/browser/package/axe.min.js
if [[ ${1:-} == -pictures ]]; then
	export TURNTABLE_SCREENSHOTS=$PWD/processors/console/pictures
	mkdir -p "$TURNTABLE_SCREENSHOTS"
fi
exec "${GO:-go}" test -vet=off -count 1 -timeout 20m -tags browser ./processors/console
