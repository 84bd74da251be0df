package instance

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

// run is one attempt to run the unit. The next attempt creates everything in it again.
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
	inputs     inputs
	listing    *cut.Listing
	epochs     *cut.Epochs
	committed  committed
	visiting   sync.Mutex
	life       context.Context // of the processor: Goka's

	mu        sync.Mutex
	cause     error // of the first failed callback, which Goka converts to text
	doomed    error // a failure before there was a group: the group is not joined
	async     sarama.AsyncProducer
	consumers []sarama.Consumer
}

// leaseMargin: a lease is shorter than the session timeout by a fifth, for the time between a send and its arrival.
const leaseMargin = 5

// transactionLimit bounds the wait for an open transaction at the end of a table: the broker's default transaction timeout
// and the interval of its scan for timeouts.
const transactionLimit = 75 * time.Second

// recoveryPoll bounds how long a table's consumer takes to stop after the last record.
const recoveryPoll = 10 * time.Millisecond

// sarama returns the configuration of Goka's clients. Their connections to a broker that hangs time out after the session
// timeout, when other brokers have taken over its partitions and groups.
func (u *Unit) sarama() *sarama.Config {
	c := u.cfg.Sarama()
	u.silence.Limit(c)
	return c
}

// attempt runs the unit until ctx ends (nil) or something fails.
func (u *Unit) attempt(ctx context.Context) (err error) {
	conf := u.cfg.Sarama()
	session := conf.Consumer.Group.Session.Timeout
	// One connection that hangs must not cost the lease: half the session timeout leaves time for a heartbeat on another.
	conf.Net.ReadTimeout = min(conf.Net.ReadTimeout, session/2)
	conf.Net.DialTimeout = min(conf.Net.DialTimeout, session/2)
	conf.Admin.Timeout = min(conf.Admin.Timeout, conf.Net.ReadTimeout)
	kafka.NewSilence(conf.Net.ReadTimeout, 0).Limit(conf)
	client, err := sarama.NewClient(u.cfg.Brokers, conf)
	if err != nil {
		return fmt.Errorf("unit: group %s: %w: %w", u.group, errUnreachable, err)
	}
	defer func() { err = errors.Join(err, ignoreClosed(client.Close())) }()

	// Check this before anything that would fence another process with the same instance id. The last failure may not show
	// that there is one: a transaction's timeout fences a producer too, and the answer to a heartbeat may have been lost.
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
			// It is zero if the answer to a join may have been lost: the coordinator may have replaced the former member ID by
			// one that this process does not know, and would report that ID as another process.
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
	watch.Go(func() { r.watchInputs(running, r.client.Config().Metadata.RefreshFrequency) })
	err := r.processor.Run(running)
	close(ended)
	cancel()
	watch.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil || ctx.Err() != nil && r.group == nil && !u.wasKilled() {
		return nil // Goka returns an error if it is stopped before it has joined
	}
	if r.cause != nil {
		return fmt.Errorf("unit: group %s: %w", u.group, errors.Join(r.cause, err))
	}
	return fmt.Errorf("unit: group %s: %w", u.group, err)
}

// firstInput returns the first input that is on the broker, or "".
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

// ended records the offset at which a recovery ends, or why it cannot begin, which Goka converts to text.
func (r *run) ended(topic string, partition int32, end int64, err error) {
	switch {
	case err == nil:
		r.tables.ended(topic, partition, end)
	case errors.Is(err, context.Canceled):
	case isTable(r.unit.cfg.Graph.JointTables(), topic) && r.unit.health.get().State == Running:
		// Goka continues by itself.
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
	// Sarama may fail the records of a failed transaction with ErrTransactionNotReady before it returns the transaction's own
	// error. That error replaces it.
	if r.cause == nil || errors.Is(r.cause, sarama.ErrTransactionNotReady) && !errors.Is(err, sarama.ErrTransactionNotReady) {
		r.cause = err
	}
}

// broken stops the attempt because of a failure that no callback waits for.
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

// options returns Goka's builders: everything that Goka shares with the broker is replaced.
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
				// Only recovery uses this consumer, and a long poll would delay its end.
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

// build is Goka's storage builder. It records its error, which Goka converts to text.
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
		Relist: u.relist, Epochs: r.epochs, Truncated: r.truncated, Listing: r.listing,
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
	case <-u.kill: // Kill was called before there was a group to fail
		g.Fail(cut.ErrKilled)
	default:
	}
	return g, nil
}

// visit runs a visitor as one unit of work: the cut waits for it. The mutex avoids a deadlock in Goka with two concurrent
// visits of which one is cancelled. A visit that has begun is not cancelled: Goka would return with its effects in flight,
// and a cut could be made between them. The end of the session ends the visit.
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
	// Goka treats a failed visit as done. None of its effects may get into a cut that Release makes.
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
