// Invoke shows an agent whose batches and streams are made of the same events.
//
//	invoke [serve] [-addr host:port] [-brokers host:port,...] [-turns FILE] [-pace DURATION]
//	invoke fold [-strict] < turns > batches
//
// serve runs a scripted agent behind an HTTP door, with an embedded broker. POST /invoke answers with JSON, NDJSON,
// server-sent events or the Vercel UI message stream, and a client can resume after its connection dropped. The agent behind
// POST /desk/invoke, a runner with gates, asks for approval before it pays, and its turn continues with the answer. fold is
// a filter for shells and other languages.
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
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C stops the process immediately
	os.Exit(command(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// command runs the command line and returns the exit code.
func command(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	if len(args) > 0 && args[0] == "fold" {
		return runFold(in, out, args[1:])
	}
	if len(args) > 0 && args[0] == "serve" {
		args = args[1:]
	}
	s, err := parse(args, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	if err := serve(ctx, s, out); err != nil {
		fmt.Fprintln(errs, "invoke:", err)
		return 1
	}
	return 0
}

// settings are the command-line flags.
type settings struct {
	addr    string
	brokers []string // empty: the embedded broker
	turns   string   // empty: the built-in script
	pace    time.Duration
}

// parse parses the command line. It prints errors and the usage to errs.
func parse(args []string, errs io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("invoke", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprint(errs, "usage: invoke [serve] [flags], or invoke fold [-strict] < turns > batches\n")
		flags.PrintDefaults()
	}
	flags.StringVar(&s.addr, "addr", "127.0.0.1:8080", "listen on this `address`; the door is unauthenticated")
	brokers := flags.String("brokers", "",
		"bootstrap `addresses` of a Kafka cluster, comma-separated (default: an embedded broker)")
	flags.StringVar(&s.turns, "turns", "", "play the turns of this `file`, one per line; a message selects a turn by its id")
	flags.DurationVar(&s.pace, "pace", 20*time.Millisecond, "`time` between two events")
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
		fmt.Fprintln(errs, "invoke:", err)
		return s, err
	}
	return s, nil
}
