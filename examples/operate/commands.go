package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// commandLine is what can be given on the command line. A new command is a struct with its flags and a method
// Run(context.Context, *operator) error, and one field here.
type commandLine struct {
	Brokers []string      `env:"KAFKA_BOOTSTRAP_SERVERS" placeholder:"HOST:PORT" help:"Addresses of Kafka (default localhost:9092). TLS and SASL are read from the KAFKA_ variables of the environment."`
	Agent   string        `env:"AGENT_NAME" required:"" help:"Name of the agent."`
	Timeout time.Duration `default:"30s" help:"How long the command may take."`
	Output  string        `short:"o" enum:"text,json" default:"text" help:"Format: text or json."`
	Verbose bool          `short:"v" help:"Log what the Kafka clients do."`

	Sessions   sessionsCommand   `cmd:"" help:"List the sessions."`
	Show       showCommand       `cmd:"" help:"Show what the tables have of a session."`
	Cancel     cancelCommand     `cmd:"" help:"End the open turn of a session, or the message of a request, with an error."`
	Purge      purgeCommand      `cmd:"" help:"End a session and delete its state."`
	End        endCommand        `cmd:"" help:"End an idle session now, so that it is remembered."`
	Gates      gatesCommand      `cmd:"" help:"List what waits for a person."`
	Decide     decideCommand     `cmd:"" help:"Decide a gate."`
	Deliveries deliveriesCommand `cmd:"" help:"List the deliveries without a receipt, and the dead ones."`
	Dead       deadCommand       `cmd:"" help:"List dead deliveries and dead letters."`
	Requeue    requeueCommand    `cmd:"" help:"Try dead deliveries again, and write dead letters back to their topics, each once."`
	Lag        lagCommand        `cmd:"" help:"Show how far the groups are behind."`
	Topics     topicsCommand     `cmd:"" help:"Compare the topics with the catalog."`
	Describe   describeCommand   `cmd:"" help:"Describe the groups: inputs, tables, outputs."`

	Backup      backupCommand      `cmd:"" help:"Save a stopped agent to a directory."`
	Restore     restoreCommand     `cmd:"" help:"Restore an agent from a directory."`
	Repartition repartitionCommand `cmd:"" help:"Move a stopped agent to another number of partitions."`
}

// operator is what the commands share: the agent, its brokers, and the terminal.
type operator struct {
	agent   string
	brokers []string
	options []processors.Option
	timeout time.Duration
	timer   *time.Timer // ends the command, see limit
	json    bool
	now     func() time.Time
	in      io.Reader
	out     io.Writer
	errs    io.Writer

	cluster *cluster // nil until connected
}

// operator returns the operator of a command line. It does not connect.
func (l *commandLine) operator(environ []string, in io.Reader, out, errs io.Writer) (*operator, error) {
	if l.Timeout <= 0 {
		return nil, fmt.Errorf("--timeout: %s: want a time above 0", l.Timeout)
	}
	if _, err := topics.For(l.Agent); err != nil {
		return nil, fmt.Errorf("--agent: %w", err)
	}
	if len(l.Brokers) > 0 { // also where they are from the environment
		environ = append(environ[:len(environ):len(environ)], "KAFKA_BOOTSTRAP_SERVERS="+strings.Join(l.Brokers, ","))
	}
	env, err := processors.FromEnviron(environ)
	if err != nil {
		return nil, err
	}
	logger := zap.NewNop()
	if l.Verbose {
		logger = zap.Must(zap.NewDevelopment())
	}
	return &operator{
		agent: l.Agent, brokers: env.Brokers, options: append(env.Options, processors.WithLogger(logger)),
		timeout: l.Timeout, json: l.Output == "json", now: time.Now, in: in, out: out, errs: errs,
	}, nil
}

func (o *operator) close() {
	if o.cluster != nil {
		o.cluster.close()
	}
}

// slow says what the command waits for if that takes longer than a moment. The caller calls stop when it has come.
func (o *operator) slow(format string, args ...any) (stop func()) {
	timer := time.AfterFunc(3*time.Second, func() { o.waiting("waiting for "+format, args...) })
	return func() { timer.Stop() }
}

// waiting says what the command waits for.
func (o *operator) waiting(format string, args ...any) {
	_, _ = fmt.Fprintln(o.errs, clean(fmt.Sprintf("turntable: "+format, args...)))
}
