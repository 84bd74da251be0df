package turns

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// config is one instance of the pipeline.
type config struct {
	agent, instance, dir string
	brokers              []string
	guarantee            processors.Guarantee
	partitions           int32
	turn                 turn.Config
	more                 []processors.Option
	child                settings // of the process that spawn starts
}

func (c config) processor(log *zap.Logger) (*processors.Processor, error) {
	var with []topics.CatalogOption
	if c.child.Approval {
		c.turn.Approval = &approval.Policy{}
		with = append(with, topics.WithGates())
	}
	c.turn.OrderedOutputs = c.child.Ordered
	c.turn.SourceAgent = "agent-1" // what the oracle expects of replies that name no agent
	graph, err := turn.Graph(c.agent, c.turn)
	if err != nil {
		return nil, err
	}
	catalog, err := topics.For(c.agent, with...)
	if err != nil {
		return nil, err
	}
	storage := processors.Memory()
	if c.dir != "" {
		storage = processors.LevelDB(c.dir)
	}
	options := []processors.Option{
		processors.WithTopics(catalog), processors.WithStorage(storage), processors.WithLogger(log),
		processors.WithGuarantee(c.guarantee), processors.WithInstance(c.instance),
		processors.WithTick(50 * time.Millisecond),
	}
	if c.partitions > 0 {
		options = append(options, processors.WithPartitions(c.partitions))
	}
	return processors.New(c.brokers, graph, append(options, c.more...)...)
}

// start runs an instance until the test ends, and waits until it runs.
func start(t testing.TB, c config) {
	t.Helper()
	p, err := c.processor(zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	waitRunning(t, p)
}

func waitRunning(t testing.TB, p *processors.Processor) {
	t.Helper()
	require.Eventually(t, func() bool { return p.Health().State == processors.Running }, wait,
		10*time.Millisecond)
}
