package wiretest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// Driver plays the programs around the pipeline. Its writers (Say, Send, ...) are safe for concurrent use and may be
// called before Start. Its workers run from Start to Close and begin at the oldest record.
type Driver struct {
	names        Names
	ledger       *Ledger
	script       Script
	tool         ToolScript
	roles        Role
	backlogLimit int
	answered     *answeredIDs // nil: repeats are answered

	producer   *kgo.Client
	bootstrap  []string
	partitions map[string]int32
	backlog    *backlog
	responses  atomic.Int64
	results    atomic.Int64

	mu     sync.Mutex
	stop   context.CancelFunc
	group  *errgroup.Group
	closed bool
}

// Role is a worker that a driver runs.
type Role uint8

// The workers.
const (
	RoleModel Role = 1 << iota
	RoleTools
)

// DriverOption configures a Driver.
type DriverOption func(*Driver)

// WithLedger records the fate of every sent record in a ledger, for an oracle with the same ledger.
func WithLedger(l *Ledger) DriverOption { return func(d *Driver) { d.ledger = l } }

// WithScript replaces the model. Default: Planned.
func WithScript(s Script) DriverOption { return func(d *Driver) { d.script = s } }

// WithTools replaces the tools. Default: Dealt.
func WithTools(t ToolScript) DriverOption { return func(d *Driver) { d.tool = t } }

// WithRoles chooses the workers. Default: both.
func WithRoles(r Role) DriverOption { return func(d *Driver) { d.roles = r } }

// WithBacklog sets how many late records are delayed; beyond that the oldest is sent. Default 64, at least 1.
func WithBacklog(n int) DriverOption { return func(d *Driver) { d.backlogLimit = max(n, 1) } }

// NewDriver connects to a cluster. It returns an error if a topic of the agent does not exist. The caller closes the
// driver.
func NewDriver(ctx context.Context, bootstrap []string, agent string, opts ...DriverOption) (*Driver, error) {
	d := &Driver{
		names: NamesOf(agent), script: Planned, tool: Dealt, roles: RoleModel | RoleTools, backlogLimit: 64, bootstrap: bootstrap,
	}
	for _, o := range opts {
		o(d)
	}
	producer, err := kgo.NewClient(append(
		failFastOptions(bootstrap),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.MaxBufferedRecords(10_000),
	)...)
	if err != nil {
		return nil, fmt.Errorf("wiretest: producer: %w", err)
	}
	topics := append(d.names.Inputs(), d.names.Enriched, d.names.ToolUse)
	counts, err := partitionCounts(ctx, producer, topics)
	if err != nil {
		producer.Close()
		return nil, err
	}
	for _, t := range topics {
		if counts[t] == 0 {
			producer.Close()
			return nil, fmt.Errorf("wiretest: topic %s does not exist", t)
		}
	}
	d.producer, d.partitions, d.backlog = producer, counts, newBacklog(d.backlogLimit)
	return d, nil
}

// Names returns the topics of the driver's agent.
func (d *Driver) Names() Names { return d.names }

// Partitions returns the partition count of message-input.
func (d *Driver) Partitions() int32 { return d.partitions[d.names.MessageInput] }

// Start starts the workers. They run until ctx ends or until Close. A second call returns an error.
func (d *Driver) Start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.group != nil || d.closed {
		return errors.New("wiretest: driver was started before")
	}
	ctx, stop := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	d.stop, d.group = stop, group
	if d.roles&RoleModel != 0 {
		group.Go(func() error { return d.consume(ctx, d.names.Enriched, d.answerStep) })
	}
	if d.roles&RoleTools != 0 {
		group.Go(func() error { return d.consume(ctx, d.names.ToolUse, d.answerCall) })
	}
	return nil
}

// Close stops the workers, waits for them and returns the first error of a worker. Delayed records are dropped.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	var err error
	if d.group != nil {
		d.stop()
		err = d.group.Wait()
	}
	d.producer.Close()
	return err
}

// consume calls do for every record of a topic, in order per partition, until ctx ends.
func (d *Driver) consume(ctx context.Context, topic string, do func(context.Context, *kgo.Record) error) error {
	counts := map[string]int32{topic: d.partitions[topic]}
	client, err := kgo.NewClient(readerOptions(d.bootstrap, counts, kgo.ReadCommitted())...)
	if err != nil {
		return fmt.Errorf("wiretest: consumer: %w", err)
	}
	defer client.Close()
	for {
		fetches := client.PollRecords(ctx, 500)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // workers stop when ctx ends
		}
		// The client retries fetch errors of a broker that restarts, until the caller's deadline.
		for it := fetches.RecordIter(); !it.Done(); {
			if err := do(ctx, it.Next()); err != nil {
				if ctx.Err() != nil {
					return nil //nolint:nilerr // as above
				}
				return err
			}
		}
	}
}

// readerOptions read all partitions of the topics from their start.
func readerOptions(bootstrap []string, counts map[string]int32, level kgo.IsolationLevel) []kgo.Opt {
	return append(
		failFastOptions(bootstrap),
		kgo.ConsumePartitions(fromStart(counts)),
		kgo.FetchIsolationLevel(level),
		kgo.FetchMaxWait(250*time.Millisecond),
		kgo.FetchMaxBytes(16<<20),
	)
}

// failFastOptions returns client options with short timeouts and backoffs, so that the client detects quickly that a broker
// is down, unresponsive or back, and measured latencies are those of the pipeline.
func failFastOptions(bootstrap []string) []kgo.Opt {
	const timeout = 2 * time.Second
	return []kgo.Opt{
		kgo.SeedBrokers(bootstrap...), kgo.DialTimeout(timeout), kgo.RequestTimeoutOverhead(timeout),
		kgo.ProduceRequestTimeout(timeout), kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(time.Duration(tries)*20*time.Millisecond, timeout/10)
		}),
	}
}

func fromStart(counts map[string]int32) map[string]map[int32]kgo.Offset {
	out := make(map[string]map[int32]kgo.Offset, len(counts))
	for t, n := range counts {
		ps := make(map[int32]kgo.Offset, n)
		for p := range n {
			ps[p] = kgo.NewOffset().AtStart()
		}
		out[t] = ps
	}
	return out
}
