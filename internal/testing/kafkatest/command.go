package kafkatest

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
)

const usage = `usage: kafka start [-port N] [-nodes 1|3] | stop | fetch
`

// Command runs the arguments of the command kafka. It writes results to out, for scripts, and messages for users to note.
func Command(ctx context.Context, args []string, out, note io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("kafka: no command\n%s", usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(note)
	flags.Usage = func() { fmt.Fprint(note, usage) }
	var o Options
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
		fmt.Fprintf(note, "starting Apache Kafka %s; the first time, Maven fetches it\n", Version())
		addrs, err := Detach(ctx, o)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, strings.Join(addrs, ","))
		return nil
	case "stop":
		return EndDetached(ctx)
	case "fetch":
		jars, err := Fetch(ctx, "")
		if err != nil {
			return err
		}
		fmt.Fprintln(out, jars)
		return nil
	}
	return fmt.Errorf("kafka: unknown command %q\n%s", args[0], usage)
}
