package processors

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/kafka"
)

// Errors of Run and Get, for errors.Is.
var (
	// ErrFenced is returned by Run when another process uses the same instance ID (WithInstance). Do not restart: that
	// would fence the other process.
	ErrFenced = cut.ErrFenced
	// ErrKilled is returned by Run after Kill.
	ErrKilled = cut.ErrKilled
	// ErrGaveUp is returned by Run when the restart limit is reached. It wraps the last failure.
	ErrGaveUp = instance.ErrGaveUp
	// ErrRan is returned by the second call of Run.
	ErrRan = instance.ErrRan
	// ErrNotRunning is returned by Get if this instance does not own the key's partition, or has not recovered it yet.
	ErrNotRunning = instance.ErrNotRunning
)

// Processor runs a group graph under the runtime. Its methods are safe for concurrent use.
type Processor struct{ instance *instance.Instance }

// New returns a processor for a graph. It validates the graph and the options and does not connect to the brokers. Its
// error wraps ErrConfig and joins all problems that it found. The graph is not modified; several processors may share it.
func New(brokers []string, graph *goka.GroupGraph, opts ...Option) (*Processor, error) {
	o := newOptions(opts)
	o.checkBrokers(brokers)
	if o.deadLetters == "" && graph != nil {
		o.deadLetters = string(deadLetterStream(graph.Group()))
	}
	conf := o.sarama()
	o.checkGraph(graph)
	if len(o.errs) > 0 {
		return nil, errors.Join(o.errs...)
	}

	s := &settings{
		group:        graph.Group(),
		deadLetters:  goka.Stream(o.deadLetters),
		recordBytes:  conf.Producer.MaxMessageBytes,
		limits:       cut.NewLimits(conf.Producer.MaxMessageBytes),
		written:      writtenBy(graph, o.deadLetters),
		onDeadLetter: o.metrics.onDeadLetter(o.instance.Logger),
		logger:       o.instance.Logger,
	}
	c := o.instance
	c.Brokers, c.Limits = slices.Clone(brokers), s.limits
	if loop := graph.LoopStream(); loop != nil {
		s.loop = loop.Topic()
	}
	c.Graph = bindGraph(graph, s)
	c.Repartitioned = repartitioned(sourcesOf(graph), s)
	c.DeadLetters = o.deadLetters
	c.Sarama = func() *sarama.Config { return kafka.Copy(conf) }
	c.Hooks = o.metrics.hooks()
	c.Prepare = o.preparation(c)
	inst, err := instance.New(c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return &Processor{instance: inst}, nil
}

// Run joins the group, handles records and blocks until ctx ends. Then it finishes the records in flight, commits the
// last offsets, leaves the group (also as a static member, unless WithKeepMembership is set) and returns nil. Stopping
// takes a few milliseconds if handlers do not block, and otherwise some seconds: records in flight get 5 s.
//
// A failed handler is called again (WithHandlerAttempts). Any other failure stops the processor as a whole; Run restarts it
// with backoff. Run returns an error when the restart limit is
// reached (ErrGaveUp), when another process has the same instance ID (ErrFenced), after Kill (ErrKilled), or when topics
// do not fit the group. If one record caused the failure, the error wraps a RecordError that names it. Run can be called
// once; a second call returns ErrRan.
func (p *Processor) Run(ctx context.Context) error { return p.instance.Run(ctx) }

// Kill stops the processor like a crash, for tests and emergencies: records in flight are not finished, offsets are not
// committed, and the next owner of the partitions handles these records again. For a graceful stop, cancel the context
// of Run.
func (p *Processor) Kill() { p.instance.Kill() }

// Get returns the table row of a key as the table's codec decodes it, or nil if the key has no row. The row includes what
// handlers have written up to now, committed or not. Get returns ErrNotRunning for a key whose partition this instance
// does not own. If the codec yields a codec.Decoded, its Raw bytes belong to the store and must not be modified.
func (p *Processor) Get(key string) (any, error) { return p.instance.Get(key) }
