// Bench plays the user, the model and the tools of many sessions at once against a turn processor, judges what the
// processor writes, and measures the cost of a turn. It uses only the wire format, so it can measure any program that
// implements it.
//
//	go run ./examples/bench                                     # this library, on a broker that it starts too
//	go run ./examples/bench -kafka -floor -history 10240        # on a real Kafka, and the floor
//	go run ./examples/bench -brokers localhost:9092 -agent support -pid 4711    # a program that is running
//	go run ./examples/bench -kafka -command 'java -jar processing.jar'          # a program to start
//	go run ./examples/bench -kafka -sweep table -json out.json  # the table of the README (make load)
//	go run ./examples/bench -kafka -history 102400 -pprof /tmp/p                # profiles of the processor
//
// A turn is a message, a think-request, a response with -tools calls, their results, a think-request, an answer: 4 + 2n
// records besides those for readers. With -steps there are several such responses, and with -said the tools say a lot, so
// that the conversation grows within the turn. Each session first gets a history of -history bytes; the model forgets the turn
// before when it begins the next, so that a history has the same length throughout.
//
// The closed loop (the default) has -concurrency turns open at any time. With -rate turns begin at that rate, whether
// or not others end, and latency is measured from when a turn should have begun. After the measured phase, turns run one at a time.
//
// # What is judged
//
// Every message has one output, the correct one; every call one result, that of its tool; every think-request the
// complete history, byte for byte. Keys, partitions and ids are correct; nothing is written twice. After a broken promise
// the program exits with 1.
// -repeats allows repeats, for runs during which a process is killed.
//
// # What is measured
//
// CPU time (user and system) and resident memory are those of the processor's process alone, which is never this one,
// and are missing on systems without /proc. The log is how much all topics of the agent grow on the brokers' disks,
// the changelog included: each byte once, as it was compressed; an input is also read, which is not counted again.
//
// # The floor
//
// -floor also measures, on the same broker, a plain loop that answers the same records and stores only what it needs to
// answer (floor.go), and prints ratios to it: CPU time, turns per second, p50 of turns that run alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// errBroken is returned when the processor broke a promise.
var errBroken = errors.New("bench: a promise is broken")

func main() {
	if orders, ok := os.LookupEnv(childVariable); ok {
		exit(child(orders, os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal does not wait
	exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func exit(err error) {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
