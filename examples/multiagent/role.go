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

	"github.com/turntable-streams/turntable/internal/embedded"
)

// roles are the processes. Each runs until ctx ends, and then ends without an error. What it says on out is for its
// parent: where it listens, and that it is ready.
var roles = map[string]func(ctx context.Context, args []string, out, errs io.Writer) error{
	"broker": runBroker, "agent": runAgent, "dispatcher": runDispatcher, "model": runModel,
}

// What a role says.
const (
	sayAddress = "address "
	sayReady   = "ready"
)

// roleLogger reads the flags of a role.
func roleLogger(args []string, errs io.Writer) (*zap.Logger, error) {
	flags := flag.NewFlagSet("multiagent", flag.ContinueOnError)
	flags.SetOutput(errs)
	verbose := flags.Bool("v", false, "log what the process does")
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
	broker, err := embedded.Start(embedded.WithLogger(logger))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s%s\n%s\n", sayAddress, strings.Join(broker.Addrs(), ","), sayReady)
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
	fmt.Fprintf(out, "%s%s\n", sayAddress, listener.Addr())
	return a.run(ctx, listener, func() { fmt.Fprintln(out, sayReady) })
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
	fmt.Fprintln(out, sayReady)
	return d.run(ctx)
}

func runModel(ctx context.Context, args []string, out, errs io.Writer) error {
	logger, err := roleLogger(args, errs)
	if err != nil {
		return err
	}
	m, done, err := thinkerFrom(logger)
	if err != nil {
		return err
	}
	defer done()
	fmt.Fprintln(out, sayReady)
	return m.run(ctx)
}

// childVariable makes a process a child: it ends with its standard input, so that none is left behind by a parent that
// was killed.
const childVariable = "TURNTABLE_MULTIAGENT_CHILD"

func isChild() bool { return os.Getenv(childVariable) != "" }

// untilEOF ends with in.
func untilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in)
	}()
	return ctx
}
