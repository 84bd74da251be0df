// Approval shows an agent that reads freely and asks a person before it pays.
//
//	approval [-serve] [-addr host:port] [-brokers host:port,...] [-v]
//
// It plays four payments on an embedded broker: one is approved, one is denied, one is approved with another amount, and one
// is not answered in time. It prints what the tool did and what the model was told each time. With -serve it then keeps
// running, and prints how to ask and decide with curl.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C stops the process immediately
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// command runs the command line and returns the exit code.
func command(ctx context.Context, args []string, out, errs io.Writer) int {
	s, err := parse(args, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	if err := run(ctx, s, out, errs); err != nil {
		fmt.Fprintln(errs, "approval:", err)
		return 1
	}
	return 0
}

// settings are the command-line flags.
type settings struct {
	addr    string
	brokers []string // empty: the embedded broker
	serve   bool
	verbose bool
}

// parse parses the command line. It prints errors and the usage to errs.
func parse(args []string, errs io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("approval", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.StringVar(&s.addr, "addr", "127.0.0.1:0", "listen on this `address`; the doors are unauthenticated")
	brokers := flags.String("brokers", "", "bootstrap `addresses` of a Kafka cluster, comma-separated (default: an embedded broker)")
	flags.BoolVar(&s.serve, "serve", false, "keep running after the four payments")
	flags.BoolVar(&s.verbose, "v", false, "log what the processors do")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	for address := range strings.SplitSeq(*brokers, ",") {
		if address = strings.TrimSpace(address); address != "" {
			s.brokers = append(s.brokers, address)
		}
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fmt.Fprintln(errs, "approval:", err)
		return s, err
	}
	return s, nil
}
