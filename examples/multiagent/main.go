// Multiagent runs two agents in separate processes. One calls the other as an asynchronous tool over HTTP.
//
//	multiagent [-brokers host:port,...] [-question TEXT] [-expect REGEXP] [-timeout DURATION]
//
// starts a broker, the agents, a dispatcher and the model workers on free loopback ports, posts a question to the first
// agent, prints every record of the session, then the answer, and stops all processes. The exit code is 0 if the answer is
// the expected one.
//
//	multiagent broker | agent | dispatcher | model
//
// runs one of those processes. The last three are configured by environment variables, as FlightDeck's components are, and
// can run anywhere: see compose.yaml.
//
// The models are scripts, unless ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY is set. MODEL_PROVIDER chooses between
// anthropic, openai, gemini and script; ANTHROPIC_MODEL and ANTHROPIC_BASE_URL (and those of the others) choose the model
// and the address of its API. HISTORY_MAX_MESSAGES and HISTORY_MAX_BYTES of an agent limit its history: the model process
// summarizes the oldest exchanges of a longer session.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
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
	if len(args) > 0 {
		if role, ok := roles[args[0]]; ok {
			return code(role(ctx, args[1:], out, errs), "multiagent "+args[0], errs)
		}
	}
	s, err := parse(args, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	return code(runExample(ctx, s, out, errs), "multiagent", errs)
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
	brokers  []string // empty: start a broker process
	session  string
	question string
	expect   *regexp.Regexp
	timeout  time.Duration
	verbose  bool
}

// The default of -timeout. The scripted models answer immediately.
const (
	scriptTimeout = 30 * time.Second
	modelTimeout  = 3 * time.Minute
)

// parse parses the command line. It prints errors and the usage to errs.
func parse(args []string, errs io.Writer) (settings, error) {
	var s settings
	expect, timeout := scriptedAnswer, scriptTimeout
	p, err := chosenProvider(os.Getenv)
	if err != nil {
		fmt.Fprintln(errs, "multiagent:", err)
		return s, err
	}
	if p != nil {
		expect, timeout = anyAnswer, modelTimeout
	}
	flags := flag.NewFlagSet("multiagent", flag.ContinueOnError)
	flags.SetOutput(errs)
	brokers := flags.String("brokers", "", "bootstrap `addresses` of a Kafka cluster, comma-separated (default: start a broker)")
	flags.StringVar(&s.session, "session", "", "`name` of the session (default: a new one)")
	flags.StringVar(&s.question, "question", firstQuestion, "the question")
	pattern := flags.String("expect", "", "`regexp` that the answer must match (default: the answer of the default question; otherwise any)")
	flags.DurationVar(&s.timeout, "timeout", timeout, "time limit for the whole run")
	flags.BoolVar(&s.verbose, "v", false, "log the activity of the processes")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	for address := range strings.SplitSeq(*brokers, ",") {
		if address = strings.TrimSpace(address); address != "" {
			s.brokers = append(s.brokers, address)
		}
	}
	if *pattern == "" {
		*pattern = expect
		if s.question != firstQuestion {
			*pattern = `\S`
		}
	}
	if s.session == "" {
		// A new name, because Kafka may hold sessions of earlier runs.
		s.session = "demo-" + time.Now().UTC().Format("150405")
	}
	s.expect, err = regexp.Compile(*pattern)
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case strings.TrimSpace(s.question) == "":
		err = errors.New("-question is blank")
	}
	if err != nil {
		fmt.Fprintln(errs, "multiagent:", err)
	}
	return s, err
}
