// Crew shows coding agents that work together over the Agent Client Protocol: a lead and two specialists on a scratch git
// repository.
//
//	crew [-agent COMMAND [-task TEXT]] [-addr ADDRESS] [-brokers host:port,...] [-timeout DURATION] [-v]
//
// It plays a delegation, a lock conflict, a permission that is allowed, one that is denied and one that expires, two commits at
// the same time, and kill -9 of the processors and of the agents' host. The agents do what scripts say; one of them is written
// in TypeScript if node is installed. The exit code is 0 if everything happened that the play promises.
//
// With -agent, agents run that command line instead, such as a real coding agent with its ACP adapter. A person answers their
// permission requests on the terminal.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/turntable-streams/turntable/processors/crew/crewtest"
)

func main() {
	crewtest.Main() // the binary is also the program of the scripted agents
	ctx, stop := signal.NotifyContext(context.Background(), signals()...)
	context.AfterFunc(ctx, stop) // a second Ctrl-C stops the process immediately
	if isChild() {
		os.Exit(runChild(untilEOF(ctx, os.Stdin), os.Stdout, os.Stderr))
	}
	os.Exit(command(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// signals returns the signals that stop the process. A child ignores Ctrl-C: its parent receives it too, and stops it.
func signals() []os.Signal {
	if isChild() {
		signal.Ignore(os.Interrupt)
		return []os.Signal{syscall.SIGTERM}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM}
}

// command runs the command line and returns the exit code.
func command(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	f, err := parse(args, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	if err := run(ctx, f, in, out, errs); err != nil {
		fmt.Fprintln(errs, "crew:", err)
		return 1
	}
	return 0
}

// flags are the values of the command line.
type flags struct {
	agent   []string // empty: scripted agents
	task    string
	brokers []string // empty: an embedded broker
	addr    string   // of the door
	timeout time.Duration
	verbose bool
}

const (
	// playTimeout is generous: the play takes some 20 seconds.
	playTimeout = 3 * time.Minute
	exampleTask = "Create a developer and a tester. The developer writes greet.sh, which prints a greeting; the tester writes " +
		"greet_test.sh, which tests it. Each commits its own file. Then tell the user what was done."
)

// parse parses the command line. It prints errors and the usage to errs.
func parse(args []string, errs io.Writer) (flags, error) {
	var f flags
	set := flag.NewFlagSet("crew", flag.ContinueOnError)
	set.SetOutput(errs)
	agent := set.String("agent", "", "the `command` line of a coding agent that speaks ACP (default: scripted agents)")
	set.StringVar(&f.task, "task", exampleTask, "what the lead has to do, with -agent")
	brokers := set.String("brokers", "", "bootstrap `addresses` of a Kafka cluster, comma-separated (default: an embedded broker)")
	set.StringVar(&f.addr, "addr", "127.0.0.1:0", "`address` of the door for people: WebSocket and REST")
	set.DurationVar(&f.timeout, "timeout", playTimeout, "time limit of the play")
	set.BoolVar(&f.verbose, "v", false, "log what the processors and the host do")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	var err error
	if f.agent, err = words(*agent); err != nil {
		return f, fmt.Errorf("-agent: %w", err)
	}
	f.brokers, err = addressesOf(*brokers)
	switch {
	case err != nil:
	case set.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", set.Arg(0))
	case len(f.agent) > 0:
		_, err = exec.LookPath(f.agent[0])
	case *agent != "":
		err = fmt.Errorf("-agent: %q is not a command line", *agent)
	}
	if err != nil {
		fmt.Fprintln(errs, "crew:", err)
	}
	return f, err
}
