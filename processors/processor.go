package processors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
	"github.com/turntable-streams/turntable/internal/kafka"
)

// What Run and Get return, by name.
var (
	// ErrFenced says that another process has taken the instance's identity. Restarting would fence that one.
	ErrFenced = cut.ErrFenced
	// ErrKilled says that Kill was called.
	ErrKilled = cut.ErrKilled
	// ErrGaveUp says that the restart limit is reached. It wraps the last failure.
	ErrGaveUp = instance.ErrGaveUp
	// ErrRan is returned by a second Run.
	ErrRan = instance.ErrRan
	// ErrNotRunning is returned by Get where the key's partition is not here, or not recovered yet.
	ErrNotRunning = instance.ErrNotRunning
)

// Processor runs a group graph under the runtime. Its methods are safe for concurrent use.
type Processor struct {
	unit    *instance.Unit
	prepare preparation

	state func(State) // hook
	now   func() time.Time

	mu   sync.Mutex
	ran  bool
	dead bool
	kill context.CancelFunc // of the preparation
	own  *Health            // before and instead of the unit's
}

// New checks a graph and the options for it; it contacts nobody. Its error joins all that is wrong and wraps ErrConfig.
// The graph is not changed and can be given to several processors.
func New(brokers []string, graph *goka.GroupGraph, opts ...Option) (*Processor, error) {
	o := newOptions(opts)
	if len(brokers) == 0 || slices.ContainsFunc(brokers, func(b string) bool { return strings.TrimSpace(b) == "" }) {
		o.refuse("brokers: none, or one without an address")
	}
	if o.deadLetters == "" && graph != nil {
		o.deadLetters = string(deadLetterStream(graph.Group()))
	}
	conf := o.sarama()
	o.checkGraph(graph)
	if len(o.errs) > 0 {
		return nil, errors.Join(o.errs...)
	}

	s := &settings{
		deadLetters:  goka.Stream(o.deadLetters),
		recordBytes:  conf.Producer.MaxMessageBytes,
		onDeadLetter: o.metrics.onDeadLetter(o.unit.Logger),
	}
	c := o.unit
	c.Brokers = slices.Clone(brokers)
	c.Graph = bindGraph(graph, s)
	c.DeadLetters = o.deadLetters
	c.Sarama = func() *sarama.Config { return kafka.Copy(conf) }
	c.Hooks = o.metrics.hooks()
	u, err := instance.New(c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	p := &Processor{unit: u, prepare: o.preparation(c), state: o.metrics.State, now: c.Clock.Now, kill: func() {}}
	return p, nil
}

// sarama makes the configuration of all clients.
func (o *options) sarama() *sarama.Config {
	conf := kafka.Config()
	ignored, err := kafka.Apply(conf, o.properties)
	if err != nil {
		o.refuse("properties: %w", err)
	}
	if len(ignored) > 0 {
		o.unit.Logger.Warn("properties without effect", zap.Strings("names", ignored))
	}
	for _, set := range o.secure {
		if err := set(conf); err != nil {
			o.refuse("%w", err)
		}
	}
	if o.recordBytes > 0 {
		conf.Producer.MaxMessageBytes = o.recordBytes
	}
	if o.unit.Instance != "" {
		conf.Consumer.Group.InstanceId = o.unit.Instance
	}
	o.unit.Instance = conf.Consumer.Group.InstanceId
	if o.guarantee == "" {
		o.guarantee = Guarantee(strings.ToLower(strings.TrimSpace(o.properties[kafka.ProcessingGuarantee])))
	}
	o.unit.Guarantee = guarantees[o.guarantee] // the zero value is at least once
	if err := conf.Validate(); err != nil && len(o.errs) == 0 {
		o.refuse("%w", err)
	}
	return conf
}

// Run joins the group and handles records until ctx ends. Then it stops: what is in flight is finished, the last
// offsets are committed, a static member leaves the group, and it returns nil. Stopping takes a few milliseconds where
// handlers do not wait, and at most some seconds.
//
// A failure stops the processor as a whole and starts it again, after a wait that grows. Run returns an error when the
// restart limit is reached (ErrGaveUp), when another process has the same instance id (ErrFenced), after Kill
// (ErrKilled), or where topics do not fit the group. A RecordError in it names the record that stopped it. Run can be
// called once.
func (p *Processor) Run(ctx context.Context) error {
	p.mu.Lock()
	ran := p.ran
	p.ran = true
	p.mu.Unlock()
	if ran {
		return ErrRan
	}
	if ready, err := p.prepared(ctx); !ready {
		return err
	}
	return p.unit.Run(ctx)
}

// Kill stops the processor as a crash would, for tests and emergencies: nothing is finished or committed, and what was
// in flight is handled again by whoever gets the partitions. To stop in order, end the context of Run.
func (p *Processor) Kill() {
	p.mu.Lock()
	p.dead = true
	p.kill()
	p.mu.Unlock()
	p.unit.Kill()
}

// Health tells how the processor is.
func (p *Processor) Health() Health {
	p.mu.Lock()
	own := p.own
	p.mu.Unlock()
	if own != nil {
		return *own
	}
	return healthOf(p.unit.Health())
}

// Get returns the table row of a key as the table's codec decodes it, nil where there is none. It sees what handlers
// have written up to now, and only partitions that this instance owns: ErrNotRunning for others. The bytes of the row, as
// codec.Decoded has them, are the store's and must not be changed.
func (p *Processor) Get(key string) (any, error) { return p.unit.Get(key) }
