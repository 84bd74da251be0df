// Channels runs agents that people reach on Slack, by e-mail and by signed webhooks. The agent "concierge" talks to people and
// hands work off to the agent "workspace"; the results return to the channel, thread and person that asked.
//
//	channels [-hold] [-timeout DURATION] [-v]
//
// plays it: servers on loopback addresses are the platforms, and the agents run in a process that is killed while tasks are in
// flight. The exit code is 0 if every result arrived where it belongs, and nowhere else. With -hold the process then keeps
// running.
//
//	channels -adapters FILE -settings FILE [-addr HOST:PORT] [-brokers HOST:PORT,...] [-dir DIR] [-v]
//
// runs the agents on the accounts of the two files, see README.md. The models are scripts: see model.go for what they
// understand.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"strings"
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

// signals returns the signals that stop the process. A child ignores Ctrl-C: its parent receives it too, and stops it.
func signals() []os.Signal {
	if isChild() {
		signal.Ignore(os.Interrupt)
		return []os.Signal{syscall.SIGTERM}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM}
}

// command runs the command line and returns the exit code.
func command(ctx context.Context, args []string, out, errs io.Writer) int {
	f, err := parse(args, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case f.adapters != "":
		err = runApp(ctx, f, out, errs)
	default:
		err = runPlay(ctx, f, out, errs)
	}
	if err != nil {
		fmt.Fprintln(errs, "channels:", err)
		return 1
	}
	return 0
}

// flags are the values of the command line.
type flags struct {
	adapters, settings string // empty: the play
	addr, dir          string
	brokers            []string // empty: an embedded broker
	proxies            []netip.Prefix
	hold, verbose      bool
	timeout            time.Duration
}

// defaultTimeout is generous: the play takes some seconds.
const defaultTimeout = 3 * time.Minute

// parse parses the command line. It prints errors and the usage to errs.
func parse(args []string, errs io.Writer) (flags, error) {
	var f flags
	set := flag.NewFlagSet("channels", flag.ContinueOnError)
	set.SetOutput(errs)
	set.StringVar(&f.adapters, "adapters", "", "run on the accounts of this `file`")
	set.StringVar(&f.settings, "settings", "", "the `file` that says who is answered; it may change while the program runs")
	set.StringVar(&f.addr, "addr", "127.0.0.1:8080", "listen on this `address` for the platforms")
	set.Func("trusted-proxies", "`network` of reverse proxies that name the clients in X-Forwarded-For, such as 10.0.0.0/8; may be repeated", func(text string) error {
		network, err := netip.ParsePrefix(text)
		f.proxies = append(f.proxies, network)
		return err
	})
	set.StringVar(&f.dir, "dir", "", "`directory` of the tables (default: in memory)")
	brokers := set.String("brokers", "", "bootstrap `addresses` of a Kafka cluster, comma-separated (default: an embedded broker)")
	set.BoolVar(&f.hold, "hold", false, "keep running after the play, until Ctrl+C")
	set.DurationVar(&f.timeout, "timeout", defaultTimeout, "time limit of the play")
	set.BoolVar(&f.verbose, "v", false, "log what the processors do")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	for address := range strings.SplitSeq(*brokers, ",") {
		if address = strings.TrimSpace(address); address != "" {
			f.brokers = append(f.brokers, address)
		}
	}
	var err error
	switch {
	case set.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", set.Arg(0))
	case (f.adapters == "") != (f.settings == ""):
		err = errors.New("-adapters and -settings belong together")
	default:
		return f, nil
	}
	fmt.Fprintln(errs, "channels:", err)
	return f, err
}
