package instance

import (
	"hash"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/internal/store"
)

// recoveryPoll bounds how long a table's consumer takes to stop after the last record.
const recoveryPoll = 10 * time.Millisecond

// builders returns the options with which Goka's processor builds on this package: everything that Goka shares with the
// broker is replaced.
func (r *run) builders() []goka.ProcessorOption {
	cfg := &r.instance.cfg
	return []goka.ProcessorOption{
		goka.WithLogger(gokaLogger{cfg.Logger}),
		goka.WithClientID(cfg.Sarama().ClientID),
		goka.WithHasher(codec.KeyHasher()),
		goka.WithNilHandling(goka.NilDecode),
		goka.WithStorageBuilder(r.buildStore),
		goka.WithTopicManagerBuilder(r.buildTopicManager),
		goka.WithConsumerSaramaBuilder(r.buildConsumer),
		goka.WithProducerBuilder(r.buildProducer),
		goka.WithConsumerGroupBuilder(r.buildGroup),
		goka.WithContextWrapper(r.contextWrapper()),
	}
}

// sarama returns the configuration of Goka's clients. Their connections to a broker that hangs time out after the session
// timeout, when other brokers have taken over its partitions and groups.
func (inst *Instance) sarama() *sarama.Config {
	c := inst.cfg.Sarama()
	inst.silence.Limit(c)
	return c
}

// buildStore opens the store of one partition of a table. It records its error, which Goka converts to text.
func (r *run) buildStore(topic string, partition int32) (storage.Storage, error) {
	s, err := r.tables.build(topic, partition)
	if err != nil {
		r.failed(err)
		return nil, err
	}
	return s, nil
}

func (r *run) buildTopicManager([]string) (goka.TopicManager, error) {
	if r.makingViews() {
		return lookupTopics{TopicManager: r.topics, run: r}, nil
	}
	return r.topics, nil
}

// buildConsumer makes the consumer of tables: for recovery and joins, or for lookup tables.
func (r *run) buildConsumer(brokers []string, _ string) (sarama.Consumer, error) {
	conf, graph := r.instance.sarama(), r.instance.cfg.Graph
	if len(graph.JointTables())+len(graph.LookupTables()) == 0 {
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
}

func (r *run) buildProducer(brokers []string, _ string, _ func() hash.Hash32) (goka.Producer, error) {
	sender, err := sarama.NewClient(brokers, r.sendingConfig())
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.sender = sender
	r.mu.Unlock()
	async, err := sarama.NewAsyncProducerFromClient(sender)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.async = async
	r.mu.Unlock()
	cfg := &r.instance.cfg
	r.producer = cut.NewProducer(async, cut.ProducerOptions{
		Table: string(goka.GroupTable(cfg.Graph.Group())), Lease: r.lease, Limits: cfg.Limits,
		Ordered: cfg.Guarantee == AtLeastOnce, Linger: cfg.Policy.Linger,
		Stored: r.tables.rowStored, Failed: r.failed, Broken: r.broken,
	})
	return r.producer, nil
}

// contextWrapper returns the function that replaces the context of each callback.
func (r *run) contextWrapper() func(goka.Context) goka.Context {
	group := sync.OnceValue(r.currentGroup) // it exists before the first callback
	wrap := &cut.Wrap{
		Clock: r.instance.cfg.Clock, Timer: store.TimerTopic(r.instance.group),
		Partitions: r.partitions.Load, Edges: cut.EdgesOf(r.instance.cfg.Graph), Rows: r.tables.rows, Failed: r.failed,
		Series: func() *cut.Series { return group().Current() }, Retries: r.retries(),
		Progress: func(partition int32, due time.Time) runtimeapi.Progress { return group().Progress(partition, due) },
		AnswersFrom: func(p cut.Partition, offset int64, answers string) (int64, bool) {
			return group().AnswersFrom(p, offset, answers)
		},
	}
	return func(ctx goka.Context) goka.Context { return wrap.Context(ctx, r.producer) }
}
