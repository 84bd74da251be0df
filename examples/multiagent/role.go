package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/turntable-streams/turntable/processors/embedded"
)

// roles are the functions of the processes. Each runs until ctx ends and then returns nil. On out it tells its parent on
// which address it listens and when it is ready.
var roles = map[string]func(ctx context.Context, args []string, out, errs io.Writer) error{
	"broker": runBroker, "agent": runAgent, "dispatcher": runDispatcher, "model": runModel,
}

// The lines that a role prints on out.
const (
	addressPrefix = "address "
	readyLine     = "ready"
)

// roleLogger parses the flags of a role and returns its logger.
func roleLogger(args []string, errs io.Writer) (*zap.Logger, error) {
	flags := flag.NewFlagSet("multiagent", flag.ContinueOnError)
	flags.SetOutput(errs)
	verbose := flags.Bool("v", false, "log the activity of the process")
	quiet := flags.Bool("q", false, "log errors only")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	level := zap.WarnLevel
	switch {
	case *verbose:
		level = zap.InfoLevel
	case *quiet:
		level = zap.ErrorLevel
	}
	encoder := zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(errs)), level)), nil
}

func runBroker(ctx context.Context, args []string, out, errs io.Writer) error {
	logger, err := roleLogger(args, errs)
	if err != nil {
		return err
	}
	broker, err := embedded.Start(embedded.Config{Logger: logger})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s%s\n%s\n", addressPrefix, strings.Join(broker.Addrs(), ","), readyLine)
	<-ctx.Done()
	return broker.Close()
}

func runAgent(ctx context.Context, args []string, out, errs io.Writer) error {
	logger, err := roleLogger(args, errs)
	if err != nil {
		return err
	}
	a, listener, err := agentFrom(logger)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s%s\n", addressPrefix, listener.Addr())
	return a.run(ctx, listener, func() { fmt.Fprintln(out, readyLine) })
}

func runDispatcher(ctx context.Context, args []string, out, errs io.Writer) error {
	logger, err := roleLogger(args, errs)
	if err != nil {
		return err
	}
	d, err := dispatcherFrom(logger)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, readyLine)
	return d.run(ctx)
}

func runModel(ctx context.Context, args []string, out, errs io.Writer) error {
	logger, err := roleLogger(args, errs)
	if err != nil {
		return err
	}
	m, closeModel, err := modelWorkerFrom(logger)
	if err != nil {
		return err
	}
	defer closeModel()
	fmt.Fprintln(out, readyLine)
	return m.run(ctx)
}

// childVariable is the environment variable that makes a process a child. A child ends when its standard input ends, so
// that it does not outlive a parent that was killed.
const childVariable = "TURNTABLE_MULTIAGENT_CHILD"

func isChild() bool { return os.Getenv(childVariable) != "" }

// untilEOF returns a context that ends at the end of in.
func untilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in)
	}()
	return ctx
}
