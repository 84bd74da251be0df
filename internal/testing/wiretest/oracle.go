package wiretest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// Oracle reads every topic of an agent from its start and judges the pipeline by the records. It is safe for concurrent
// use.
type Oracle struct {
	names       Names
	ledger      *Ledger
	exactlyOnce bool
	uncommitted bool
	waitLimit   time.Duration

	client *kgo.Client
	stop   context.CancelFunc
	group  *errgroup.Group

	mu      sync.Mutex
	facts   *facts
	next    map[string]map[int32]int64
	changed chan struct{}
}

// OracleOption configures an Oracle.
type OracleOption func(*Oracle)

// JudgeBy sets the ledger with what senders expect of their records. Without it every record is judged by the wire
// format alone.
func JudgeBy(l *Ledger) OracleOption { return func(o *Oracle) { o.ledger = l } }

// ReadUncommitted makes the oracle read records of open and aborted transactions too. Default: committed records only.
func ReadUncommitted() OracleOption { return func(o *Oracle) { o.uncommitted = true } }

// ExactlyOnce makes every repeat of a record that the pipeline wrote a violation. Default: repeats with the same id and
// bytes (but for times) are counted.
func ExactlyOnce() OracleOption { return func(o *Oracle) { o.exactlyOnce = true } }

// WaitLimit makes every wait end with an error when no record was read for d. Default 0: waits end with their context
// only.
func WaitLimit(d time.Duration) OracleOption { return func(o *Oracle) { o.waitLimit = d } }

// NewOracle starts reading. A topic that is created later is read from the next report on. The caller closes the oracle.
func NewOracle(ctx context.Context, bootstrap []string, agent string, opts ...OracleOption) (*Oracle, error) {
	o := &Oracle{names: NamesOf(agent), next: map[string]map[int32]int64{}, changed: make(chan struct{})}
	for _, opt := range opts {
		opt(o)
	}
	o.facts = newFacts(o.names, o.exactlyOnce)
	level := kgo.ReadCommitted()
	if o.uncommitted {
		level = kgo.ReadUncommitted()
	}
	// Transaction markers are read too: a partition can end with one, and the oracle must see that it is at the end.
	client, err := kgo.NewClient(append(readerOptions(bootstrap, nil, level), kgo.KeepControlRecords())...)
	if err != nil {
		return nil, fmt.Errorf("wiretest: oracle: %w", err)
	}
	o.client = client
	if err := o.readNewTopics(ctx); err != nil {
		client.Close()
		return nil, err
	}
	// The reader runs until Close, even if the context that opened it ends.
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	o.stop, o.group = stop, &errgroup.Group{}
	o.group.Go(func() error { o.read(reading); return nil })
	return o, nil
}

// Close stops reading and returns when the reader has stopped.
func (o *Oracle) Close() {
	o.stop()
	_ = o.group.Wait()
	o.client.Close()
}

// readNewTopics starts reading the topics that were created since the last call.
func (o *Oracle) readNewTopics(ctx context.Context) error {
	counts, err := partitionCounts(ctx, o.client, o.names.All())
	if err != nil {
		return err
	}
	o.mu.Lock()
	for t := range counts {
		if o.next[t] != nil {
			delete(counts, t)
			continue
		}
		o.next[t] = map[int32]int64{}
		o.facts.partitions[t] = counts[t]
	}
	o.mu.Unlock()
	if len(counts) > 0 {
		o.client.AddConsumePartitions(fromStart(counts))
	}
	return nil
}

func (o *Oracle) read(ctx context.Context) {
	for {
		fetches := o.client.PollRecords(ctx, 1000)
		if ctx.Err() != nil {
			return
		}
		if fetches.Empty() {
			continue
		}
		o.mu.Lock()
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			o.next[r.Topic][r.Partition] = r.Offset + 1
			if !r.Attrs.IsControl() {
				o.facts.observe(r)
			}
		}
		close(o.changed)
		o.changed = make(chan struct{})
		o.mu.Unlock()
	}
}

// waitUntil waits until reached returns true. It calls reached immediately and after every batch of records, with the lock
// held.
func (o *Oracle) waitUntil(ctx context.Context, reached func(*facts) bool) error {
	for {
		o.mu.Lock()
		ok, changed := reached(o.facts), o.changed
		o.mu.Unlock()
		if ok {
			return nil
		}
		if err := o.waitForRecords(ctx, changed); err != nil {
			return err
		}
	}
}

var errQuiet = errors.New("wiretest: no record was read")

// waitForRecords waits for the next batch of records.
func (o *Oracle) waitForRecords(ctx context.Context, changed <-chan struct{}) error {
	var quiet <-chan time.Time
	if o.waitLimit > 0 {
		timer := time.NewTimer(o.waitLimit)
		defer timer.Stop()
		quiet = timer.C
	}
	select {
	case <-changed:
		return nil
	case <-quiet:
		return errQuiet
	case <-ctx.Done():
		return fmt.Errorf("wiretest: still waiting: %w", context.Cause(ctx))
	}
}

// Progress counts the records that were read so far. They are not judged.
type Progress struct {
	// Messages are those on message-input that the pipeline did not write. Outputs and ToolMessages are distinct
	// records; Letters are dead letters, repeats included.
	Messages, Outputs, ToolMessages, Letters int
}

// Wait blocks until reached returns true, or until ctx ends. It calls reached immediately and after every batch of records.
func (o *Oracle) Wait(ctx context.Context, reached func(Progress) bool) error {
	return o.waitUntil(ctx, func(b *facts) bool {
		return reached(Progress{
			Messages: len(b.messages), Outputs: len(b.outputRecords), ToolMessages: len(b.toolMessages), Letters: len(b.deadLetters),
		})
	})
}

// WaitOutputs blocks until a session has n distinct outputs, or until ctx ends.
func (o *Oracle) WaitOutputs(ctx context.Context, session string, n int) error {
	return o.waitUntil(ctx, func(b *facts) bool { return b.outputsBySession[session] >= n })
}

// WaitLetters blocks until each of the inputs is on the dead-letter topic, or until ctx ends.
func (o *Oracle) WaitLetters(ctx context.Context, ats ...Coord) error {
	return o.waitUntil(ctx, func(b *facts) bool {
		for len(ats) > 0 && b.isDeadLettered(ats[0]) {
			ats = ats[1:]
		}
		return len(ats) == 0
	})
}

// Report reads to the current end of every topic and judges all records. It blocks until they are read or ctx ends.
func (o *Oracle) Report(ctx context.Context) (Report, error) {
	if err := o.catchUp(ctx); err != nil {
		return o.judge(), err
	}
	return o.judge(), nil
}

// Settle waits until every message has its output, every call its result and every input its effect, and then returns
// the report at the end of all topics. If ctx ends first, it returns the error and a report of what is missing.
func (o *Oracle) Settle(ctx context.Context) (Report, error) {
	for {
		if err := o.waitUntil(ctx, (*facts).mayBeComplete); err != nil {
			return o.judge(), err
		}
		o.mu.Lock()
		changed := o.changed
		o.mu.Unlock()
		if o.judge().Kept() {
			if r, err := o.Report(ctx); err != nil || r.Kept() {
				return r, err
			}
		}
		if err := o.waitForRecords(ctx, changed); err != nil {
			return o.judge(), err
		}
	}
}

func (o *Oracle) judge() Report {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.facts.judge(o.ledger.snapshot())
}

// catchUp waits until all topics have been read to their current end.
func (o *Oracle) catchUp(ctx context.Context) error {
	if err := o.readNewTopics(ctx); err != nil {
		return err
	}
	o.mu.Lock()
	topics := make([]string, 0, len(o.next))
	for t := range o.next {
		topics = append(topics, t)
	}
	o.mu.Unlock()
	if len(topics) == 0 {
		return errors.New("wiretest: the agent has no topics")
	}
	admin := kadm.NewClient(o.client)
	starts, err := admin.ListStartOffsets(ctx, topics...)
	if err != nil {
		return fmt.Errorf("wiretest: start offsets: %w", err)
	}
	list := admin.ListCommittedOffsets
	if o.uncommitted {
		list = admin.ListEndOffsets
	}
	ends, err := list(ctx, topics...)
	if err != nil {
		return fmt.Errorf("wiretest: end offsets: %w", err)
	}
	if err := ends.Error(); err != nil {
		return fmt.Errorf("wiretest: end offsets: %w", err)
	}
	return o.waitUntil(ctx, func(*facts) bool {
		lagging := false
		ends.Each(func(end kadm.ListedOffset) {
			next, read := o.next[end.Topic][end.Partition]
			if start, ok := starts.Lookup(end.Topic, end.Partition); !read && ok {
				next = start.Offset
			}
			lagging = lagging || next < end.Offset
		})
		return !lagging
	})
}

// waitForStep blocks until a step was opened for the message whose text is exactly the plan.
func (o *Oracle) waitForStep(ctx context.Context, session string, p Plan) error {
	said := digestOf([]byte(`"user"`), []byte(quote(p.Text())))
	return o.waitUntil(ctx, func(b *facts) bool {
		for i := len(b.steps) - 1; i >= 0; i-- {
			if b.steps[i].session == session && b.steps[i].input == said {
				return true
			}
		}
		return false
	})
}
