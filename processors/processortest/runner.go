package processortest

import (
	"context"
	"fmt"
	"hash"
	"slices"
	"sync"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	gokacodec "github.com/lovoo/goka/codec"
	"github.com/lovoo/goka/storage"

	"github.com/turntable-streams/turntable/internal/store"
)

// runner runs one graph with the tester's builders. It passes them to Goka one by one, because goka.WithTester would
// replace the wrapped ones.
type runner struct {
	driver *Driver
	graph  *goka.GroupGraph // with the timer edge
	timed  store.Timed      // nil if rows have no deadlines
	rows   *rows            // nil if the graph has no table
	fired  map[string]firing
	claims map[string]chan *sarama.ConsumerMessage // by input topic
	tables map[string]bool                         // joined and looked-up tables
	proc   *goka.Processor

	started    context.Context // done when all inputs and tables of the graph are being read
	setStarted context.CancelFunc

	mu      sync.Mutex
	waiting map[string]bool // topics that are not being read yet
	current *delivery       // the delivery that Goka is processing, or nil
	pumps   sync.WaitGroup
}

func newRunner(d *Driver, graph *goka.GroupGraph) (*runner, error) {
	if graph == nil {
		return nil, fmt.Errorf("%w: it is nil", errGraph)
	}
	if err := graph.Validate(); err != nil {
		return nil, fmt.Errorf("%w: group %q: %w", errGraph, graph.Group(), err)
	}
	r := &runner{
		driver: d, fired: make(map[string]firing), claims: make(map[string]chan *sarama.ConsumerMessage),
		tables: make(map[string]bool), waiting: make(map[string]bool),
	}
	r.graph, r.timed = store.WithTimerEdge(graph)
	r.started, r.setStarted = context.WithCancel(context.Background())
	for _, topic := range inputs(r.graph) {
		r.claims[topic], r.waiting[topic] = make(chan *sarama.ConsumerMessage), true
	}
	for _, e := range slices.Concat(r.graph.JointTables(), r.graph.LookupTables()) {
		r.tables[e.Topic()], r.waiting[e.Topic()] = true, true
	}
	if err := r.build(); err != nil {
		return nil, fmt.Errorf("%w: group %q: %w", errGraph, graph.Group(), err)
	}
	return r, nil
}

func (r *runner) build() error {
	broker := r.driver.broker
	if table := r.graph.GroupTable(); table != nil {
		st, err := broker.StorageBuilder()(table.Topic(), 0)
		if err != nil {
			return err
		}
		r.rows = &rows{Storage: st, writes: make(map[string]int)}
	}
	var err error
	r.proc, err = goka.NewProcessor(nil, r.graph,
		goka.WithClientID(broker.RegisterGroupGraph(inBytes(r.graph))),
		goka.WithPartitionChannelSize(0),
		goka.WithNilHandling(goka.NilDecode),
		goka.WithLogger(silence{}),
		goka.WithContextWrapper(func(ctx goka.Context) goka.Context { return &runtimeContext{ctx, r} }),
		goka.WithTopicManagerBuilder(broker.TopicManagerBuilder()),
		goka.WithStorageBuilder(r.buildStorage),
		goka.WithConsumerGroupBuilder(r.buildConsumerGroup),
		goka.WithConsumerSaramaBuilder(r.buildConsumer),
		goka.WithProducerBuilder(r.buildProducer),
	)
	return err
}

func (r *runner) run(ctx context.Context) {
	err := r.proc.Run(ctx)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		err = errNoCause
	}
	r.driver.processorStopped(fmt.Errorf("%w: group %s: %w", errStopped, r.graph.Group(), err))
}

// reading records that a topic is being read.
func (r *runner) reading(topic string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, topic)
	if len(r.waiting) == 0 {
		r.setStarted()
	}
}

func (r *runner) buildStorage(topic string, partition int32) (storage.Storage, error) {
	if table := r.graph.GroupTable(); table != nil && table.Topic() == topic {
		return r.rows, nil
	}
	return r.driver.broker.StorageBuilder()(topic, partition)
}

func (r *runner) buildConsumerGroup(brokers []string, group, clientID string) (sarama.ConsumerGroup, error) {
	inner, err := r.driver.broker.ConsumerGroupBuilder()(brokers, group, clientID)
	if err != nil {
		return nil, err
	}
	return &consumerGroup{ConsumerGroup: inner, runner: r}, nil
}

func (r *runner) buildConsumer(brokers []string, clientID string) (sarama.Consumer, error) {
	inner, err := r.driver.broker.ConsumerBuilder()(brokers, clientID)
	if err != nil {
		return nil, err
	}
	return &consumer{Consumer: inner, runner: r}, nil
}

func (r *runner) buildProducer([]string, string, func() hash.Hash32) (goka.Producer, error) {
	return &producer{runner: r}, nil
}

// inputs returns the input topics of a graph, including its loop topic.
func inputs(graph *goka.GroupGraph) []string {
	topics := graph.InputStreams().Topics()
	if loop := graph.LoopStream(); loop != nil {
		topics = append(topics, loop.Topic())
	}
	return topics
}

// inBytes returns a graph with the same topics and byte codecs, which is registered with the tester. The tester panics if
// two graphs have different codecs for a topic, as a reader and a writer may. It needs no codecs, because it only gets
// bytes.
func inBytes(graph *goka.GroupGraph) *goka.GroupGraph {
	c, none := new(gokacodec.Bytes), func(goka.Context, any) {}
	var edges []goka.Edge
	for _, e := range graph.InputStreams() {
		edges = append(edges, goka.Input(goka.Stream(e.Topic()), c, none))
	}
	for _, e := range graph.OutputStreams() {
		edges = append(edges, goka.Output(goka.Stream(e.Topic()), c))
	}
	for _, e := range graph.JointTables() {
		edges = append(edges, goka.Join(goka.Table(e.Topic()), c))
	}
	for _, e := range graph.LookupTables() {
		edges = append(edges, goka.Lookup(goka.Table(e.Topic()), c))
	}
	if graph.LoopStream() != nil {
		edges = append(edges, goka.Loop(c, none))
	}
	if graph.GroupTable() != nil {
		edges = append(edges, goka.Persist(c))
	}
	return goka.DefineGroup(graph.Group(), edges...)
}

// silence is a goka.Logger that discards everything. The cause of a failure is in the processor's error.
type silence struct{}

func (silence) Print(...any)          {}
func (silence) Println(...any)        {}
func (silence) Printf(string, ...any) {}
