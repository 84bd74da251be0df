package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/topics"
)

// Agent is an agent and everything that it needs. Its methods are safe for concurrent use.
type Agent struct {
	name    string
	config  Config
	brokers []string // nil: a broker in this process
	kafka   []processors.Option
	plan    plan

	begun atomic.Bool
	parts atomic.Pointer[assembly] // set when Run has made them
	ready chan struct{}            // closed when the doors answer
	ended chan struct{}            // closed when Run has returned
}

// New returns an agent. It checks the configuration and connects to nothing. An error wraps ErrConfig and names all mistakes.
func New(name string, c Config) (*Agent, error) {
	c.Parts = cmp.Or(c.Parts, allParts)
	if c.Logger == nil {
		c.Logger = warnings()
	}
	a := &Agent{name: name, config: c, brokers: c.Brokers, kafka: c.Kafka, ready: make(chan struct{}), ended: make(chan struct{})}
	var errs []error
	if strings.TrimSpace(os.Getenv("KAFKA_BOOTSTRAP_SERVERS")) != "" && len(c.Brokers) == 0 { // compose files set it to nothing
		env, err := processors.FromEnviron(os.Environ())
		a.brokers, a.kafka, errs = env.Brokers, append(env.Options, c.Kafka...), append(errs, err)
	}
	var err error
	if a.plan, err = c.plan(name); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, c.check(a.plan.names()))
	if errors.Join(errs...) == nil {
		errs = append(errs, a.try())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return a, nil
}

// try makes the parts, which check what concerns them, and runs none.
func (a *Agent) try() error {
	silent := &Agent{name: a.name, config: a.config, kafka: a.kafka}
	silent.config.Logger = zap.NewNop() // what the parts warn of, they say when they run
	brokers := a.brokers
	if brokers == nil {
		brokers = []string{"localhost:9092"}
	}
	parts, err := silent.assemble(brokers)
	if err == nil {
		parts.close()
	}
	return err
}

// warnings is the logger of an agent without one: silence would hide why nothing happens.
func warnings() *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), zap.WarnLevel))
}

// assemble makes the parts with a publisher of their own.
func (a *Agent) assemble(brokers []string) (*assembly, error) {
	to, err := processors.NewPublisher(brokers, append(a.kafka[:len(a.kafka):len(a.kafka)], processors.WithLogger(a.config.Logger))...)
	if err != nil {
		return nil, err
	}
	parts, err := assemble(a.name, &a.config, brokers, a.kafka, to)
	if err != nil {
		return nil, errors.Join(err, to.Close())
	}
	parts.closing = append(parts.closing, func() { _ = to.Close() })
	return parts, nil
}

// Topics returns the topics of the agent, for programs that read or create them.
func (a *Agent) Topics() topics.Catalog { return a.plan.catalog }

// Graphs returns the groups of the agent, for a service that runs Goka groups itself: with processors.New and
// processors.WithTopics(a.Topics()). Such an agent has Parts without Groups. A graph can be used once: each call of Graphs
// returns new ones.
func (a *Agent) Graphs() ([]*goka.GroupGraph, error) {
	p, err := a.config.plan(a.name)
	return p.graphs, err
}

// Describe describes the groups, programs and topics of the Parts that run in this process: as data, as a diagram, and with the ACLs
// that the process needs. Another process of the agent, with other Parts, has a description of its own.
func (a *Agent) Describe() processors.Topology {
	c := &a.config
	var graphs []*goka.GroupGraph
	if c.Parts.has(Groups) {
		graphs = a.plan.graphs
	}
	part := map[topics.ProgramKind]Part{topics.ProgramWorker: Workers, topics.ProgramSender: Senders, topics.ProgramDoor: Doors}
	// The topics of these can exist for other reasons.
	off := map[string]bool{
		"tool worker": len(c.Tools) == 0, "channel bridge": c.Channels == nil, "delegationhttp": len(c.Delegates) == 0,
	}
	programs := slices.DeleteFunc(a.plan.catalog.Programs(), func(p topics.Program) bool {
		return !c.Parts.has(part[p.Kind]) || off[p.Name]
	})
	return processors.Describe(graphs...).WithCatalog(a.plan.catalog, programs...)
}

// ErrStarted is returned by the second call of Run.
var ErrStarted = errors.New("agent: Run was called before")

// ErrStopped is returned by Ask and Stream when Run has returned.
var ErrStopped = errors.New("agent: Run has returned")

// Run runs the parts of the agent until ctx ends or one of them fails. It then stops them in order: no more requests are
// accepted, the open ones are answered, workers and groups end what they have begun. It returns nil if ctx ended. Call it once.
func (a *Agent) Run(ctx context.Context) error {
	if a.begun.Swap(true) {
		return ErrStarted
	}
	defer close(a.ended)
	return a.run(ctx)
}

func (a *Agent) run(ctx context.Context) (err error) {
	brokers := a.brokers
	if brokers == nil {
		c := embedded.Config{Logger: a.config.Logger}
		if a.config.StateDir != "" {
			c.Directory = filepath.Join(a.config.StateDir, "broker")
		}
		broker, failed := embedded.Start(c)
		if failed != nil {
			return fmt.Errorf("agent: %w", failed)
		}
		defer func() { err = errors.Join(err, broker.Close()) }()
		brokers = broker.Addrs()
		a.config.Logger.Warn("no brokers are configured: using one in this process, for development; set KAFKA_BOOTSTRAP_SERVERS",
			zap.Strings("brokers", brokers), zap.Bool("kept", a.config.StateDir != ""))
	}
	parts, err := a.assemble(brokers)
	if err != nil {
		return err
	}
	defer parts.close()
	a.parts.Store(parts)
	return parts.run(ctx, http.HandlerFunc(a.serve), func() { close(a.ready) })
}

// Ready returns a channel that is closed when all parts run and the doors answer.
func (a *Agent) Ready() <-chan struct{} { return a.ready }

// Handler serves the doors, for a server of the caller's: use package processors/httpserver, which bounds the connections.
// Until Ready it answers 503, and HealthPath says what the start waits for.
func (a *Agent) Handler() http.Handler {
	a.config.warnOpen("")
	return http.HandlerFunc(a.serve)
}

func (a *Agent) serve(w http.ResponseWriter, r *http.Request) {
	parts := a.parts.Load()
	select {
	case <-a.ready:
		parts.handler.ServeHTTP(w, r)
	default:
		if r.URL.Path == HealthPath && r.Method == http.MethodGet && parts != nil {
			parts.health(w, r, false)
			return
		}
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the agent is starting", http.StatusServiceUnavailable)
	}
}

// closing is longer than a request waits for the brokers.
const closing = 35 * time.Second
