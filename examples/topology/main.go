// Topology runs a whole multi-agent pipeline in one process: an orchestrator and a worker, each an agent with a scripted model
// and tools. The orchestrator delegates a task to the worker, whose answer is delivered as the result of the call. The program
// asks a question, prints every record, then the answer, and then asks the questions on standard input. With -approve, a person
// decides on standard input whether the orchestrator may delegate a task. With -memory, the orchestrator remembers its user across
// sessions.
//
//	topology [-once] [-approve] [-memory] [-brokers host:port,...] [-data DIR] [-session NAME]
//	topology -inspect SESSION (-brokers host:port,... | -data DIR)
//
// Begin to read in agents.go, which has the two agents; their models and tools follow in models.go, tools.go and delegate.go. All
// other files are the user and the screen.
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
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the drain
	os.Exit(command(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// command is main without the process: it returns the exit code.
func command(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	s, err := parse(args, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	if err := run(ctx, s, in, out, errs); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(errs, "topology:", err)
		return 1
	}
	return 0
}

// settings are what the command line says.
type settings struct {
	brokers  []string // empty: the embedded broker
	data     string   // empty: memory
	session  string
	instance string
	inspect  string // empty: run
	plain    bool   // no console; records are printed
	once     bool
	approve  bool
	memory   bool
	verbose  bool
}

// parse prints what is wrong, and the usage, to errs.
func parse(args []string, errs io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("topology", flag.ContinueOnError)
	flags.SetOutput(errs)
	brokers := flags.String("brokers", "", "bootstrap `addresses` of a Kafka cluster, comma-separated (default: an embedded broker)")
	flags.StringVar(&s.data, "data", "", "store the broker's log and the tables in this `directory`; the next run continues there")
	flags.StringVar(&s.session, "session", "demo", "`name` of the session the questions belong to")
	flags.StringVar(&s.instance, "instance", "topology", "`name` of this process in its consumer groups; one at a time has it")
	flags.StringVar(&s.inspect, "inspect", "", "print the state of a `session` of the orchestrator, and exit")
	flags.BoolVar(&s.plain, "plain", false, "print every record instead of serving the console, and exit at the end of standard input")
	flags.BoolVar(&s.once, "once", false, "exit after the first answer (implies -plain)")
	flags.BoolVar(&s.approve, "approve", false, "ask on standard input (y or n) before a task is delegated (implies -plain)")
	flags.BoolVar(&s.memory, "memory", false, "remember the user: tell a fact, end the session, and ask for it in a new one")
	flags.BoolVar(&s.verbose, "v", false, "log what the processors do")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	s.plain = s.plain || s.once || s.approve
	for address := range strings.SplitSeq(*brokers, ",") {
		if address = strings.TrimSpace(address); address != "" {
			s.brokers = append(s.brokers, address)
		}
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case strings.TrimSpace(s.session) == "":
		err = errors.New("-session is blank")
	case s.inspect != "" && s.brokers == nil && s.data == "":
		err = errors.New("-inspect needs -brokers or -data: a pipeline in memory ends with its process")
	}
	if err != nil {
		fmt.Fprintln(errs, "topology:", err)
	}
	return s, err
}
