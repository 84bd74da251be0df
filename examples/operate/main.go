// Operate is turntable, the command for operators of an agent: it shows the sessions, gates, deliveries and dead letters that are
// in Kafka, and changes them by writing the records that the agent's groups read. It also saves, restores and repartitions a stopped
// agent. It joins no group and needs no running agent to
// show something.
//
//	go build -o bin/turntable ./examples/operate
//	turntable --agent support sessions
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // refused or failed
	exitUsage  = 2 // nothing was tried
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs a command line and returns its exit code.
func run(ctx context.Context, args, environ []string, in io.Reader, out, errs io.Writer) int {
	var line commandLine
	done := -1 // the exit code of -h
	parser, err := kong.New(&line, kong.Name("turntable"), kong.Writers(out, errs), kong.Exit(func(code int) { done = code }),
		kong.Description("Shows and changes the sessions, gates, deliveries and dead letters of an agent."),
		kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		return failed(errs, err)
	}
	parsed, err := parser.Parse(args)
	switch {
	case done >= 0:
		return done
	case err != nil:
		_, _ = fmt.Fprintf(errs, "turntable: %v; see turntable --help\n", err)
		return exitUsage
	}
	o, err := line.operator(environ, in, out, errs)
	if err != nil {
		_, _ = fmt.Fprintf(errs, "turntable: %v\n", oneLine(err))
		return exitUsage
	}
	defer o.close()
	ctx, stop := o.limit(ctx)
	defer stop()
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := parsed.Run(o); err != nil {
		return failed(errs, err)
	}
	return exitDone
}

func failed(errs io.Writer, err error) int {
	_, _ = fmt.Fprintf(errs, "turntable: %v\n", oneLine(err))
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// usageError is an error of the command line that its parser cannot see.
type usageError struct{ error }
