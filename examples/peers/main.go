// Peers runs three instances that delegate work to each other over HTTP: the headquarters "hq" and two clients, "acme" and
// "globex".
//
//	peers [-hold] [-timeout DURATION] [-v]
//
// starts the instances as separate processes, each with its own broker, configuration file and audit. It plays a delegation,
// a client that is offline and returns, a task that needs an approval, a revoked token and a loop. Then it verifies the
// audits, stitches them, and stops the instances. The exit code is 0 if every step went as expected. With -hold the
// instances then keep running, and the program prints the variables for the curl commands of README.md.
//
//	peers instance
//
// runs one instance. It is configured by environment variables, see environ.go.
//
// The models are scripts: see model.go for what they understand.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), signals()...)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the drain
	if isChild() {
		ctx = untilEOF(ctx, os.Stdin)
	}
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// signals returns the signals that stop the process. A child ignores Ctrl-C: its parent receives it too and stops its
// children in order.
func signals() []os.Signal {
	if isChild() {
		signal.Ignore(os.Interrupt)
		return []os.Signal{syscall.SIGTERM}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM}
}

// command runs the command line and returns the exit code.
func command(ctx context.Context, args []string, out, errs io.Writer) int {
	if len(args) > 0 && args[0] == instanceRole {
		return code(runInstance(ctx, args[1:], out, errs), "peers "+instanceRole, errs)
	}
	s, err := parse(args, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	return code(runExample(ctx, s, out, errs), "peers", errs)
}

func code(err error, name string, errs io.Writer) int {
	if err != nil {
		fmt.Fprintf(errs, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// settings are the values of the command line.
type settings struct {
	hold    bool
	timeout time.Duration
	verbose bool
}

// defaultTimeout is generous: the steps take a few seconds.
const defaultTimeout = 2 * time.Minute

// parse parses the command line. It prints errors and the usage to errs.
func parse(args []string, errs io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.BoolVar(&s.hold, "hold", false, "keep the instances running after the steps, until Ctrl+C")
	flags.DurationVar(&s.timeout, "timeout", defaultTimeout, "time limit for all steps")
	flags.BoolVar(&s.verbose, "v", false, "log the activity of the instances")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fmt.Fprintln(errs, "peers:", err)
		return s, err
	}
	return s, nil
}
