package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/testing/wiretest"
)

// player plays user, model and tools of all sessions: one goroutine reads, one answers, and those of the producer write.
type player struct {
	names      wiretest.Names
	book       *conversations
	out        *kgo.Client
	in         *kgo.Client
	stall      time.Duration
	onProgress func(done int) // progress

	fetches chan kgo.Fetches
	failed  chan error
	group   *errgroup.Group
	stop    context.CancelFunc
	queue   []*session // idle sessions; the first has been idle for the longest time
	open    int
	traffic traffic
	clock   timestampCache
}

// traffic is the number of bytes of keys and values that the player has read and written.
type traffic struct{ read, written int64 }

// newPlayer connects to a cluster on which the agent's topics exist. The caller closes the player.
func newPlayer(ctx context.Context, brokers []string, names wiretest.Names, b *conversations, o playerOptions) (*player, error) {
	p := &player{
		names: names, book: b, stall: o.stall, onProgress: o.onProgress,
		fetches: make(chan kgo.Fetches), failed: make(chan error, 1), group: &errgroup.Group{},
	}
	var err error
	if p.out, err = kgo.NewClient(producerOptions(brokers)...); err != nil {
		return nil, fmt.Errorf("bench: producer: %w", err)
	}
	p.in, err = kgo.NewClient(
		kgo.SeedBrokers(brokers...), kgo.ConsumePartitions(o.from), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(time.Second), kgo.FetchMaxBytes(16<<20), kgo.FetchMaxPartitionBytes(4<<20),
	)
	if err != nil {
		p.out.Close()
		return nil, fmt.Errorf("bench: consumer: %w", err)
	}
	for _, s := range b.all {
		s.partition = partitionOf(s.key, o.partitions)
	}
	p.queue = append(p.queue, b.all...)
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stop = stop
	p.group.Go(func() error {
		for {
			f := p.in.PollFetches(reading)
			if reading.Err() != nil {
				return nil
			}
			select {
			case p.fetches <- f:
			case <-reading.Done():
				return nil
			}
		}
	})
	return p, nil
}

// playing configures a player.
type playerOptions struct {
	partitions int32
	from       map[string]map[int32]kgo.Offset
	stall      time.Duration // a phase fails if no record arrives for this long
	onProgress func(done int)
}

// producerOptions returns the options of a producer with low CPU cost that loses no record.
func producerOptions(brokers []string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(brokers...), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(100_000), kgo.ProducerBatchMaxBytes(1 << 20),
	}
}

// partitionOf returns the partition that Java's default partitioner chooses.
func partitionOf(key []byte, partitions int32) int32 {
	p := kgo.StickyKeyPartitioner(nil).ForTopic("")
	return int32(p.Partition(&kgo.Record{Key: key}, int(partitions)))
}

// Close disconnects; open turns are dropped.
func (p *player) Close() {
	p.stop()
	_ = p.group.Wait()
	p.in.Close()
	p.out.Close()
}

// play starts the turns of a phase and returns when all of them have ended.
func (p *player) play(ctx context.Context, ph phase) (*tally, error) {
	t := newTally(ph, time.Now())
	stall := time.NewTimer(p.stall)
	defer stall.Stop()
	next := time.NewTimer(time.Hour)
	defer next.Stop()
	for {
		if wait := p.begin(t); wait > 0 {
			next.Reset(wait)
		}
		if p.open == 0 && t.over(time.Now()) {
			t.end()
			return t, nil
		}
		select {
		case f := <-p.fetches:
			if err := p.handle(ctx, f, t); err != nil {
				return nil, err
			}
			stall.Reset(p.stall)
		case <-next.C:
		case err := <-p.failed:
			return nil, err
		case <-stall.C:
			return nil, fmt.Errorf("%w: %d turns are open and no record has arrived for %v", errViolation, p.open, p.stall)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// begin starts the turns that are due. It returns the time until the next turn is due; 0 if the next turn begins when
// another one ends.
func (p *player) begin(t *tally) time.Duration {
	for len(p.queue) > 0 && p.open < t.concurrency {
		now := time.Now()
		due, ok := t.next(now)
		if !ok {
			return 0
		}
		if wait := due.Sub(now); wait > 0 {
			return wait
		}
		s := p.queue[0]
		p.queue = p.queue[1:]
		t.begun++
		p.open++
		p.send(p.names.MessageInput, s, p.book.message(s, t.tools, t.plain, due, p.clock.at(now)))
	}
	return 0
}

// take answers records. When a turn ends, the next one starts before the next record is processed.
func (p *player) handle(ctx context.Context, f kgo.Fetches, t *tally) error {
	var wrong error
	f.EachError(func(topic string, _ int32, err error) {
		if ctx.Err() == nil && wrong == nil && !errors.Is(err, context.Canceled) {
			wrong = fmt.Errorf("bench: read %s: %w", topic, err)
		}
	})
	if wrong != nil {
		return wrong
	}
	now := time.Now()
	text := p.clock.at(now)
	f.EachRecord(func(r *kgo.Record) {
		p.traffic.read += int64(len(r.Key) + len(r.Value))
		s := p.book.sessions[string(r.Key)]
		if s == nil {
			p.book.violations.add("key", &session{name: "?"}, "a record on "+r.Topic+" for an unknown session")
			return
		}
		if r.Partition != s.partition {
			p.book.violations.add("partition", s, "a record on "+r.Topic+" is not in the partition of its key")
		}
		switch r.Topic {
		case p.names.Enriched:
			if v := p.book.request(s, r.Value, text); v != nil {
				p.book.id(s, recordID(r))
				p.send(p.names.Think, s, v)
			}
		case p.names.ToolUse:
			if v := p.book.call(s, r.Value, text); v != nil {
				p.book.id(s, recordID(r))
				p.send(p.names.ToolUseResult, s, v)
			}
		default:
			if p.book.output(s, r.Value) {
				p.book.id(s, recordID(r))
				p.open--
				p.queue = append(p.queue, s)
				t.done(s, time.Now())
				p.onProgress(t.ended)
				p.begin(t)
			}
		}
	})
	return nil
}

func recordID(r *kgo.Record) []byte {
	for _, h := range r.Headers {
		if h.Key == "turntable.id" {
			return h.Value
		}
	}
	return nil
}

func (p *player) send(topic string, s *session, value []byte) {
	p.traffic.written += int64(len(s.key) + len(value))
	p.out.Produce(context.Background(), &kgo.Record{Topic: topic, Key: s.key, Value: value}, p.sent)
}

func (p *player) sent(r *kgo.Record, err error) {
	if err == nil {
		return
	}
	select {
	case p.failed <- fmt.Errorf("bench: write %s: %w", r.Topic, err):
	default:
	}
}

// drain reads for d, to detect records that no session waits for.
func (p *player) drain(ctx context.Context, d time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	t := newTally(phase{}, time.Now())
	for {
		select {
		case f := <-p.fetches:
			if err := p.handle(ctx, f, t); err != nil {
				return err
			}
		case err := <-p.failed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// timestampCache formats times as in the wire format. It formats a millisecond only once.
type timestampCache struct {
	ms   int64
	text string
}

func (s *timestampCache) at(t time.Time) string {
	if ms := t.UnixMilli(); ms != s.ms {
		s.ms, s.text = ms, t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return s.text
}
