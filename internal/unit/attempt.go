package unit

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/recovery"
	"github.com/turntable-streams/turntable/internal/timer"
)

// run is one attempt: everything in it is made anew by the next.
type run struct {
	unit       *Unit
	client     sarama.Client
	topics     *recovery.TopicManager
	tables     *tables
	lease      *cut.Lease
	group      *cut.Group
	producer   *cut.Producer
	processor  *goka.Processor
	partitions atomic.Int32
	visiting   sync.Mutex
	life       context.Context // of the processor: Goka's

	mu        sync.Mutex
	cause     error // of the first failed callback: Goka flattens it to text
	doomed    error // why the group is not joined any more
	async     sarama.AsyncProducer
	consumers []sarama.Consumer
}

// leaseMargin is the part of the session timeout that a lease gives up, for the time between a send and its arrival.
const leaseMargin = 5

// transactionLimit bounds the wait for a foreign transaction at the end of a table: the broker's default transaction
// timeout and its scan.
const transactionLimit = 75 * time.Second

// recoveryPoll bounds how long a table's consumer takes to end after the last record.
const recoveryPoll = 10 * time.Millisecond

// sarama is the configuration of Goka's clients. A broker that hangs is given up while there is time to do its work with
// another: when the others have taken its partitions and groups.
func (u *Unit) sarama() *sarama.Config {
	c := u.cfg.Sarama()
	u.silence.Limit(c)
	return c
}

// attempt runs the unit until ctx ends (nil) or something fails.
func (u *Unit) attempt(ctx context.Context) (err error) {
	conf := u.cfg.Sarama()
	session := conf.Consumer.Group.Session.Timeout
	// One connection that hangs must not cost the lease: there is time for a heartbeat on another.
	conf.Net.ReadTimeout = min(conf.Net.ReadTimeout, session/2)
	conf.Net.DialTimeout = min(conf.Net.DialTimeout, session/2)
	conf.Admin.Timeout = min(conf.Admin.Timeout, conf.Net.ReadTimeout)
	kafka.NewSilence(conf.Net.ReadTimeout, 0).Limit(conf)
	client, err := sarama.NewClient(u.cfg.Brokers, conf)
	if err != nil {
		return fmt.Errorf("unit: group %s: %w: %w", u.group, errUnreachable, err)
	}
	defer func() { err = errors.Join(err, ignoreClosed(client.Close())) }()

	// Before anything that fences whoever took this one's place. What failed may not tell: a producer is fenced by a
	// transaction's timeout too, and an answer to a heartbeat may have been lost in the failure.
	if err := cut.Replaced(client, u.last); err != nil {
		return fmt.Errorf("unit: %w", err)
	}

	r := &run{unit: u, client: client}
	if u.cfg.Guarantee == AtLeastOnce { // transactions are fenced by the broker
		r.lease = cut.NewLease(session-session/leaseMargin, cut.Now)
	}
	r.topics = &recovery.TopicManager{
		Client: client, Replication: u.cfg.Replication, LoopConfig: u.cfg.LoopConfig,
		Limit: transactionLimit, Context: r.needed, Ended: r.ended,
	}
	r.tables = newTables(u.cfg, u.timed, r.topics.TopicID, newAges(u.cfg.Clock, u.cfg.Logger, r.topics.Tombstones))
	r.topics.Stored = r.tables.stored
	if u.cfg.Guarantee == ExactlyOnce {
		if err := recovery.CheckTransactions(client); err != nil {
			return fmt.Errorf("unit: group %s: %w", u.group, err)
		}
		r.topics.Fence = r.fence
	}
	if u.timed != nil {
		r.topics.Virtual, r.topics.Like = timer.Topic(u.group), u.firstInput()
	}
	if err := r.prepare(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.closeConsumers()) }()
	r.processor, err = goka.NewProcessor(u.cfg.Brokers, u.cfg.Graph, r.options()...)
	if err != nil {
		return fmt.Errorf("unit: group %s: %w", u.group, err)
	}
	return r.serve(ctx)
}

// serve runs Goka's processor; Kill ends it too.
func (r *run) serve(ctx context.Context) error {
	u := r.unit
	u.mu.Lock()
	u.cur = r
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		u.cur = nil
		u.mu.Unlock()
		if g := r.currentGroup(); g != nil {
			// Zero where the answer to a join may have been lost: the coordinator has replaced the member that it was before
			// by one whose ID it does not know, and would report that member as another process.
			u.last = g.Member()
		}
	}()

	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r.life = running
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-u.kill:
			if g := r.currentGroup(); g != nil {
				g.Fail(cut.ErrKilled)
			}
		case <-ended:
		}
	})
	watch.Go(func() {
		defer cancel()
		select {
		case <-u.kill:
		case <-ctx.Done():
		case <-ended:
		}
		if g := r.currentGroup(); g != nil {
			g.Stop(ended)
		}
	})
	watch.Go(func() { r.watchRecovery(running, watchEvery) })
	watch.Go(func() { r.checkAges(running, ageEvery) })
	err := r.processor.Run(running)
	close(ended)
	cancel()
	watch.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil || ctx.Err() != nil && r.group == nil && !u.wasKilled() {
		return nil // Goka calls it an error to be stopped before it has joined
	}
	if r.cause != nil {
		return fmt.Errorf("unit: group %s: %w", u.group, errors.Join(r.cause, err))
	}
	return fmt.Errorf("unit: group %s: %w", u.group, err)
}

// firstInput is an input that is on the broker.
func (u *Unit) firstInput() string {
	for _, in := range u.cfg.Graph.InputStreams() {
		if in.Topic() != timer.Topic(u.group) {
			return in.Topic()
		}
	}
	return ""
}

func (r *run) session() context.Context {
	if g := r.currentGroup(); g != nil {
		if s := g.Current(); s != nil {
			return s.Context()
		}
	}
	return context.Background()
}

// ended keeps where a recovery ends, or why it cannot begin, which Goka flattens to text.
func (r *run) ended(topic string, partition int32, end int64, err error) {
	switch {
	case err == nil:
		r.tables.ended(topic, partition, end)
	case errors.Is(err, context.Canceled):
	case isTable(r.unit.cfg.Graph.JointTables(), topic) && r.unit.health.get().State == Running:
		// Goka reads on by itself.
	default:
		r.failed(err)
	}
}

func (r *run) currentGroup() *cut.Group {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.group
}

func (r *run) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// What belongs to a transaction in error is refused for it, maybe before Sarama returns the error itself.
	if r.cause == nil || errors.Is(r.cause, sarama.ErrTransactionNotReady) && !errors.Is(err, sarama.ErrTransactionNotReady) {
		r.cause = err
	}
}

// broken stops the unit for what no callback waits for.
func (r *run) broken(err error) {
	r.failed(err)
	if g := r.currentGroup(); g != nil {
		g.Fail(err)
	}
}

func (r *run) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause
}

// options are Goka's builders: all that it shares with the broker is ours.
func (r *run) options() []goka.ProcessorOption {
	u := r.unit
	table := string(goka.GroupTable(goka.Group(u.group)))
	return []goka.ProcessorOption{
		goka.WithLogger(gokaLogger{u.cfg.Logger}),
		goka.WithClientID(u.cfg.Sarama().ClientID),
		goka.WithHasher(codec.KeyHasher()),
		goka.WithNilHandling(goka.NilDecode),
		goka.WithStorageBuilder(r.build),
		goka.WithTopicManagerBuilder(func([]string) (goka.TopicManager, error) {
			if r.makingViews() {
				return lookupTopics{TopicManager: r.topics, run: r}, nil
			}
			return r.topics, nil
		}),
		goka.WithConsumerSaramaBuilder(func(brokers []string, _ string) (sarama.Consumer, error) {
			conf := u.sarama()
			if len(u.cfg.Graph.JointTables())+len(u.cfg.Graph.LookupTables()) == 0 {
				// Read by nobody but recovery, which a long poll would keep from ending.
				conf.Consumer.MaxWaitTime = recoveryPoll
			}
			if !r.makingViews() {
				return r.consumer(brokers, conf)
			}
			c, err := r.consumer(brokers, lookupConfig(conf))
			if err != nil {
				return nil, err
			}
			return lookupConsumer{Consumer: c, run: r}, nil
		}),
		goka.WithProducerBuilder(func(brokers []string, _ string, _ func() hash.Hash32) (goka.Producer, error) {
			async, err := sarama.NewAsyncProducer(brokers, r.sendingConfig())
			if err != nil {
				return nil, err
			}
			r.mu.Lock()
			r.async = async
			r.mu.Unlock()
			r.producer = cut.NewProducer(async, cut.ProducerOptions{
				Table: table, Lease: r.lease, Ordered: u.cfg.Guarantee == AtLeastOnce, Linger: u.cfg.Policy.Linger,
				Stored: r.tables.rowStored, Failed: r.failed, Broken: r.broken,
			})
			return r.producer, nil
		}),
		goka.WithConsumerGroupBuilder(r.buildGroup),
		func() goka.ProcessorOption {
			wrap := &cut.Wrap{
				Clock: u.cfg.Clock, Partitions: r.partitions.Load, Edges: cut.EdgesOf(u.cfg.Graph),
				Rows: r.tables.rows, Failed: r.failed,
			}
			return goka.WithContextWrapper(func(ctx goka.Context) goka.Context {
				return wrap.Context(ctx, r.producer)
			})
		}(),
	}
}

// build is Goka's storage builder; what it fails by is kept, since Goka flattens it to text.
func (r *run) build(topic string, partition int32) (storage.Storage, error) {
	s, err := r.tables.build(topic, partition)
	if err != nil {
		r.failed(err)
		return nil, err
	}
	return s, nil
}

func (r *run) buildGroup(brokers []string, group, _ string) (sarama.ConsumerGroup, error) {
	u := r.unit
	conf := u.sarama()
	conf.Consumer.Group.InstanceId = u.cfg.Instance
	var joins *cut.Joins
	if s := conf.Consumer.Group.Rebalance.Strategy; s != nil && u.cfg.Instance != "" {
		joins = cut.NewJoins(s)
		conf.Consumer.Group.Rebalance.Strategy = joins
	}
	inner, err := sarama.NewConsumerGroup(brokers, group, conf)
	if err != nil {
		return nil, err
	}
	options := cut.Options{
		Name: group, Instance: u.cfg.Instance,
		Closer: r.closer(), Policy: u.cfg.Policy, Layers: r.tables.layers,
		Table:  func() cut.Table { return r.producer },
		Client: r.client, Leaving: r.endProducer, Joins: joins, Lease: r.lease, Heartbeat: conf.Consumer.Group.Heartbeat.Interval,
		Events: cut.Events{
			Recovering: func(generation int32, partitions int) {
				u.cfg.Logger.Info("recovering", zap.Int32("generation", generation), zap.Int("partitions", partitions))
				u.health.enter(Recovering)
			},
			Running: func(generation int32) {
				r.tables.running()
				u.cfg.Logger.Info("running", zap.Int32("generation", generation))
				u.health.enter(Running)
			},
			Ended: func(generation int32, cuts int64) {
				u.cfg.Logger.Info("generation ended", zap.Int32("generation", generation), zap.Int64("cuts", cuts))
				u.health.enter(Recovering)
			},
			Made: u.cfg.Hooks.Cut,
		},
		Log: u.cfg.Logger,
	}
	if u.cfg.Guarantee == ExactlyOnce {
		options.Unstable = r.fenceOffsets
	}
	if u.timed != nil {
		options.Timers = &cut.Timers{
			Topic: timer.Topic(group), Tick: u.cfg.Tick, Clock: u.cfg.Clock, Due: r.tables.due,
		}
	}
	g := cut.NewGroup(inner, options)
	r.mu.Lock()
	doomed := r.doomed
	r.group = g
	r.mu.Unlock()
	if doomed != nil {
		g.Fail(doomed)
	}
	select {
	case <-u.kill: // it came before there was a group to fail
		g.Fail(cut.ErrKilled)
	default:
	}
	return g, nil
}

// visit runs a visitor as one unit of work: the cut waits for it. Goka's own lock-up with two visits at once, one of
// them cancelled, cannot happen behind the mutex. A visit that has begun is not cancelled either: Goka would return with
// its effects still on their way, and a cut could be made between them. The end of the session ends it.
func (r *run) visit(ctx context.Context, name string, meta any) error {
	r.visiting.Lock()
	defer r.visiting.Unlock()
	g := r.currentGroup()
	if g == nil || r.unit.cfg.Graph.GroupTable() == nil {
		return ErrNotRunning
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s := g.Current()
	if s == nil || !s.Acquire(cut.Partition{}, 0, 0) {
		return ErrNotRunning
	}
	defer s.Release()
	if !r.processor.Recovered() { // Goka has no tables yet, or dereferences nil
		return ErrNotRunning
	}
	err := r.processor.VisitAll(context.WithoutCancel(ctx), name, meta)
	// Goka takes a visit that failed for done. Nothing of it may get into a cut that Release makes.
	cause := r.failure()
	if cause != nil || errors.Is(err, goka.ErrVisitAborted) {
		err = errors.Join(cause, err)
		s.Fail(err)
	}
	if err != nil {
		return fmt.Errorf("unit: group %s: visit %s: %w", r.unit.group, name, err)
	}
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, sarama.ErrClosedClient) {
		return nil
	}
	return err
}
