// Bench plays the user, the model and the tools of many concurrent sessions against a turn processor, checks the records
// that the processor writes, and measures the cost of a turn. It uses only the wire format, so it can measure any program
// that implements it.
//
//	go run ./internal/bench                                     # this library, on an embedded broker
//	go run ./internal/bench -kafka -floor -history 10240        # on a real Kafka, and the floor
//	go run ./internal/bench -brokers localhost:9092 -agent support -pid 4711    # a program that is running
//	go run ./internal/bench -kafka -command 'java -jar processing.jar'          # a program to start
//	go run ./internal/bench -kafka -sweep table -json out.json  # the table of the README (make load)
//	go run ./internal/bench -kafka -history 102400 -pprof /tmp/p                # profiles of the processor
//
// A turn is a message, a think-request, a response with -tools calls, their results, a think-request, an answer: 4 + 2n
// records, without those for readers. With -steps there are several such responses. With -said, tool results are long, so
// that the conversation grows within the turn. Each session first gets a history of -history bytes. In its first response
// to a message, the model drops the previous turn from the history, so that the history has the same length in every turn.
//
// The closed loop (the default) always has -concurrency open turns. With -rate, turns begin at that rate regardless of
// open turns, and latency is measured from the scheduled begin of a turn. After the measured phase, turns run one at a time.
//
// # Checks
//
// Every message has exactly one output with the correct answer, every call exactly one result of its tool, and every
// think-request the complete history, byte for byte. Keys, partitions and IDs are correct, and no record is repeated. After
// a violation the program exits with 1. -repeats allows repeats, for runs during which a process is killed.
//
// # Measurements
//
// CPU time (user and system) and resident memory are those of the processor's process, which is separate from this one.
// They are missing on systems without /proc. The log is the growth of all topics of the agent, including the changelog, on
// the brokers' disks, compressed and without replicas.
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

// errViolation is wrapped by errors about failed checks.
var errViolation = errors.New("bench: violation")

func main() {
	if orders, ok := os.LookupEnv(childVariable); ok {
		exit(child(orders, os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program immediately
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
