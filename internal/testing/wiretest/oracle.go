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
	once        bool
	uncommitted bool
	patience    time.Duration

	client *kgo.Client
	stop   context.CancelFunc
	group  *errgroup.Group

	mu      sync.Mutex
	book    *book
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
func ExactlyOnce() OracleOption { return func(o *Oracle) { o.once = true } }

// Patience makes every wait end with an error when no record was read for d. Default 0: waits end with their context
// only.
func Patience(d time.Duration) OracleOption { return func(o *Oracle) { o.patience = d } }

// NewOracle starts reading. A topic that is created later is read from the next report on. The caller closes the oracle.
func NewOracle(ctx context.Context, bootstrap []string, agent string, opts ...OracleOption) (*Oracle, error) {
	o := &Oracle{names: NamesOf(agent), next: map[string]map[int32]int64{}, changed: make(chan struct{})}
	for _, opt := range opts {
		opt(o)
	}
	o.book = newBook(o.names, o.once)
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
	if err := o.cover(ctx); err != nil {
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

// cover starts reading topics that were created since.
func (o *Oracle) cover(ctx context.Context) error {
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
		o.book.partitions[t] = counts[t]
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
				o.book.observe(r)
			}
		}
		close(o.changed)
		o.changed = make(chan struct{})
		o.mu.Unlock()
	}
}

// until waits until done returns true. done is called at once and after every batch of records, under the lock.
func (o *Oracle) until(ctx context.Context, done func(*book) bool) error {
	for {
		o.mu.Lock()
		ok, changed := done(o.book), o.changed
		o.mu.Unlock()
		if ok {
			return nil
		}
		if err := o.news(ctx, changed); err != nil {
			return err
		}
	}
}

var errQuiet = errors.New("wiretest: no record was read")

// news waits for the next batch of records.
func (o *Oracle) news(ctx context.Context, changed <-chan struct{}) error {
	var quiet <-chan time.Time
	if o.patience > 0 {
		timer := time.NewTimer(o.patience)
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

// Wait blocks until done returns true, or until ctx ends. done is called at once and after every batch of records.
func (o *Oracle) Wait(ctx context.Context, done func(Progress) bool) error {
	return o.until(ctx, func(b *book) bool {
		return done(Progress{
			Messages: len(b.messages), Outputs: len(b.endings), ToolMessages: len(b.tools), Letters: len(b.letters),
		})
	})
}

// WaitOutputs blocks until a session has n distinct outputs, or until ctx ends.
func (o *Oracle) WaitOutputs(ctx context.Context, session string, n int) error {
	return o.until(ctx, func(b *book) bool { return b.outputs[session] >= n })
}

// WaitLetters blocks until each of the inputs is on the dead-letter topic, or until ctx ends.
func (o *Oracle) WaitLetters(ctx context.Context, ats ...Coord) error {
	return o.until(ctx, func(b *book) bool {
		for len(ats) > 0 && b.dead(ats[0]) {
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
		if err := o.until(ctx, (*book).plausible); err != nil {
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
		if err := o.news(ctx, changed); err != nil {
			return o.judge(), err
		}
	}
}

func (o *Oracle) judge() Report {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.book.judge(o.ledger.snapshot())
}

// catchUp waits until all topics have been read to their current end.
func (o *Oracle) catchUp(ctx context.Context) error {
	if err := o.cover(ctx); err != nil {
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
	return o.until(ctx, func(*book) bool {
		behind := false
		ends.Each(func(end kadm.ListedOffset) {
			next, read := o.next[end.Topic][end.Partition]
			if start, ok := starts.Lookup(end.Topic, end.Partition); !read && ok {
				next = start.Offset
			}
			behind = behind || next < end.Offset
		})
		return !behind
	})
}

// waitAsked blocks until a step was opened for a message whose text is exactly the plan.
func (o *Oracle) waitAsked(ctx context.Context, session string, p Plan) error {
	said := digestOf([]byte(`"user"`), []byte(quote(p.Text())))
	return o.until(ctx, func(b *book) bool {
		for i := len(b.steps) - 1; i >= 0; i-- {
			if b.steps[i].session == session && b.steps[i].input == said {
				return true
			}
		}
		return false
	})
}
