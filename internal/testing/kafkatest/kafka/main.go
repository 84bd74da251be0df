// Command kafka starts and stops a real Apache Kafka on this machine, without Docker, for use by hand: make kafka and
// make kafka-stop. It needs Java 17 or newer and, the first time, Maven.
//
//	kafka start [-port N] [-nodes 1|3]   start it unless it is running, and print its bootstrap addresses
//	kafka stop                           stop it and delete its data
//	kafka fetch                          only fetch the jars, for later use without a network
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

	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
)

const usage = `usage: kafka start [-port N] [-nodes 1|3] | stop | fetch
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

// run writes results to out, for scripts, and messages for users to note.
func run(ctx context.Context, args []string, out, note io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("kafka: no command\n%s", usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(note)
	flags.Usage = func() { fmt.Fprint(note, usage) }
	var o kafkatest.Options
	if args[0] == "start" {
		flags.IntVar(&o.Port, "port", 0, "port of the first node; 0 chooses a free one")
		flags.IntVar(&o.Nodes, "nodes", 0, "1 or 3; 0 accepts a running cluster of any size, and otherwise starts 1")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() != 0 {
		return fmt.Errorf("kafka: unexpected %q\n%s", flags.Arg(0), usage)
	}
	switch args[0] {
	case "start":
		fmt.Fprintf(note, "starting Apache Kafka %s; the first time, Maven fetches it\n", kafkatest.Version())
		addrs, err := kafkatest.Detach(ctx, o)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, strings.Join(addrs, ","))
		return nil
	case "stop":
		return kafkatest.EndDetached(ctx)
	case "fetch":
		jars, err := kafkatest.Fetch(ctx, "")
		if err != nil {
			return err
		}
		fmt.Fprintln(out, jars)
		return nil
	}
	return fmt.Errorf("kafka: unknown command %q\n%s", args[0], usage)
}
