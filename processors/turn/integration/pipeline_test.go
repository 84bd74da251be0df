package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// modes are the guarantees that every test runs under.
var modes = []processors.Guarantee{processors.AtLeastOnce, processors.ExactlyOnce}

var agents atomic.Int64

// newAgent is an agent name of its own.
func newAgent() string { return fmt.Sprintf("agent%d-%d", os.Getpid(), agents.Add(1)) }

// config is one instance of the pipeline.
type config struct {
	agent, instance, dir string
	brokers              []string
	guarantee            processors.Guarantee
	partitions           int32
	turn                 []turn.Option
	more                 []processors.Option
}

func (c config) processor(log *zap.Logger) (*processors.Processor, error) {
	graph, err := turn.Graph(c.agent, c.turn...)
	if err != nil {
		return nil, err
	}
	catalog, err := topics.For(c.agent)
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
	require.Eventually(t, func() bool { return p.Health().State == processors.Running }, 30*time.Second,
		10*time.Millisecond)
}

// The environment of a child process.
const (
	childAgent     = "TURNTABLE_CHILD_AGENT"
	childBrokers   = "TURNTABLE_CHILD_BROKERS"
	childDir       = "TURNTABLE_CHILD_DIR"
	childInstance  = "TURNTABLE_CHILD_INSTANCE"
	childGuarantee = "TURNTABLE_CHILD_GUARANTEE"
)

// child is the process that is killed: it runs the pipeline until its standard input ends.
func child() int {
	c := config{
		agent: os.Getenv(childAgent), instance: os.Getenv(childInstance), dir: os.Getenv(childDir),
		brokers: strings.Split(os.Getenv(childBrokers), ","), guarantee: processors.Guarantee(os.Getenv(childGuarantee)),
	}
	log, err := zap.NewProduction(zap.IncreaseLevel(zap.ErrorLevel))
	if err != nil {
		return fail(err)
	}
	p, err := c.processor(log)
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // ends with the parent, however that ends
		cancel()
	}()
	if err := p.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return fail(err)
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
