#!/bin/sh
# Builds bin/processing twice as the container image does, compares the results, and runs one of them as the image would:
# with the image's environment, as user 65532, in a directory that cannot be written to. It posts a message, asks the
# health check, and sends SIGTERM, after which the program must exit with 0. Any failure ends it with another code than 0.
#
#   examples/processing/smoke.sh          with a Docker daemon: builds and runs the image; otherwise: the same binary
#   examples/processing/smoke.sh -quick   without Docker, and with the build cache, which both builds then share
#
# It starts a broker on a loopback port, or uses KAFKA_BOOTSTRAP_SERVERS. It needs Go and curl.
set -eu
cd "$(dirname "$0")/../.."
quick=false docker=false
[ "${1:-}" = -quick ] && quick=true
$quick || ! docker info >/dev/null 2>&1 || docker=true

work=$(mktemp -d)
broker= program= container=
finish() {
	code=$?
	[ -z "$program" ] || kill -KILL "$program" 2>/dev/null || true
	[ -z "$container" ] || docker rm -f "$container" >/dev/null 2>&1 || true
	[ -z "$broker" ] || kill "$broker" 2>/dev/null || true
	[ $code = 0 ] || ! [ -f "$work/log" ] || cat "$work/log" >&2
	chmod -R u+w "$work" 2>/dev/null || true # the module cache cannot be written to
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM
fail() {
	echo "smoke: $*" >&2
	exit 1
}

# eventually runs a command until it succeeds, for 60 s.
eventually() {
	tries=600
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || fail "60 s are over: $*"
		sleep 0.1
	done
}

# The instructions of the Dockerfile, so that there is one build command and one environment.
instruction() { sed -n "s/^$1 //p" Dockerfile; }

if $docker; then
	epoch=$(git log -1 --format=%ct 2>/dev/null || echo 0)
	for n in 1 2; do
		docker build -q --no-cache --build-arg SOURCE_DATE_EPOCH="$epoch" -t "turntable-smoke:$n" . >/dev/null
		id=$(docker create "turntable-smoke:$n")
		docker cp -q "$id:/processing" "$work/processing-$n"
		docker rm "$id" >/dev/null
	done
else
	command=$(instruction RUN | grep 'go build')
	[ -n "$command" ] || fail "the Dockerfile has no build command"
	image=$(sed -n 's/^ARG GO_IMAGE=golang:\([0-9.]*\).*/go\1/p' Dockerfile)
	[ "$(go env GOVERSION)" = "$image" ] || echo "the image is built with $image, this binary with $(go env GOVERSION): they differ"
	for n in 1 2; do
		# Another directory each time, so that no path of the machine can be in the binary.
		mkdir "$work/source-$n"
		tar -cf - --exclude ./.git --exclude ./bin --exclude ./data --exclude node_modules . | tar -xf - -C "$work/source-$n"
		(
			cd "$work/source-$n"
			$quick || export GOCACHE="$work/cache-$n"
			TARGETOS= TARGETARCH= OUT="$work/processing-$n" GOTOOLCHAIN=local GOFLAGS=-mod=readonly sh -euc "$command"
		)
		rm -rf "$work/source-$n" "$work/cache-$n"
	done
fi
cmp "$work/processing-1" "$work/processing-2" || fail "two builds of the same sources differ"
echo "two builds are equal: $(sha256sum "$work/processing-1" 2>/dev/null || shasum -a 256 "$work/processing-1")" | sed "s|  $work/.*||"

brokers=${KAFKA_BOOTSTRAP_SERVERS:-}
if [ -z "$brokers" ]; then
	go build -o "$work/multiagent" ./examples/multiagent
	"$work/multiagent" broker >"$work/broker" 2>"$work/broker.err" &
	broker=$!
	eventually grep -q '^ready' "$work/broker"
	brokers=$(sed -n 's/^address //p' "$work/broker")
fi

# Ports that are free: the program logs their numbers.
set -- AGENT_NAME="smoke-$$" KAFKA_BOOTSTRAP_SERVERS="$brokers" PORT=127.0.0.1:0 WS_PORT=127.0.0.1:0 HEALTH_ADDR=127.0.0.1:0
mkdir "$work/state" "$work/empty"
if $docker; then
	flags=
	for v; do flags="$flags -e $v"; done
	# shellcheck disable=SC2086 # the values have no spaces
	container=$(docker run -d --network host --read-only $flags turntable-smoke:1)
	collect() { docker logs "$container" >"$work/log" 2>&1; }
	check() { docker exec -e HEALTH_ADDR="$1" "$container" /processing -healthcheck; }
else
	as=
	if [ "$(id -u)" = 0 ]; then
		command -v setpriv >/dev/null || fail "run this as another user than root, or install setpriv"
		as="setpriv --reuid=65532 --regid=65532 --clear-groups --no-new-privs"
		chown 65532:65532 "$work/state"
		chmod 755 "$work"
	fi
	chmod 555 "$work/empty"
	chmod 755 "$work/processing-1"
	# shellcheck disable=SC2046,SC2086 # they are lists of words; the last value of a variable wins
	(cd "$work/empty" && exec $as env -i $(instruction ENV | grep KAFKA_STATE_DIR) KAFKA_STATE_DIR="$work/state" "$@" \
		"$work/processing-1") >"$work/log" 2>&1 &
	program=$!
	collect() { :; }
	check() { env -i HEALTH_ADDR="$1" "$work/processing-1" -healthcheck; }
fi

# logged reads the address of a listener from the log.
logged() {
	collect
	sed -n 's/.*"msg":"'"$1"'","addr":"\([^"]*\)".*/\1/p' "$work/log" | grep .
}
eventually logged health
health=$(logged health) doors=$(logged doors)
eventually check "$health"
[ "$(curl -sS --noproxy '*' "http://$doors/api/chat" -H 'Content-Type: application/json' -d '{"session_id":"s","content":"Which berth?"}')" = \
	'{"status":"ok","session_id":"s"}' ] || fail "the message was not accepted"
check "$health" || fail "not healthy after a message"

code=0
if $docker; then
	docker stop -t 60 "$container" >/dev/null
	code=$(docker inspect -f '{{.State.ExitCode}}' "$container")
	[ "$(docker inspect -f '{{.Config.User}}' "$container")" = 65532:65532 ] || fail "the image runs as another user"
else
	[ -n "$(ls -A "$work/state")" ] || fail "the state directory is empty"
	kill -TERM "$program"
	wait "$program" || code=$?
	program=
fi
[ "$code" = 0 ] || fail "exit code $code after SIGTERM"
echo "passed: built, accepted a message, healthy, ended by SIGTERM with 0"
