package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// recorder reads every topic of the pipeline, prints and counts the records, and passes each output to the code that waits
// for it.
type recorder struct {
	client  *kgo.Client
	session string
	print   func(r *kgo.Record)

	mu      sync.Mutex
	count   tally
	next    kadm.Offsets      // of each partition, the offset it is at
	moved   chan struct{}     // closed and replaced when next moves
	waiting map[string]waiter // by request id

	remembered map[string]chan *kgo.Record // by user: gets the next memory of the user

	gates chan gateRequest // requests of the session that a person must decide
}

// tally counts the records of the session and of the sessions of its delegated tasks.
type tally struct{ turns, hops int }

func (t tally) since(before tally) tally { return tally{t.turns - before.turns, t.hops - before.hops} }

type waiter chan output // of one element

// newRecorder reads from the given offsets. The recorder also writes the questions.
func newRecorder(brokers []string, from kadm.Offsets, session string, print func(*kgo.Record)) (*recorder, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers...),
		kgo.ConsumePartitions(from.KOffsets()),
		kgo.KeepControlRecords(), // settle must see the last record, which may be a transaction marker
		kgo.ProducerLinger(0),
	)
	if err != nil {
		return nil, fmt.Errorf("recorder: %w", err)
	}
	return &recorder{
		client: client, session: session, print: print,
		next: from, moved: make(chan struct{}), waiting: make(map[string]waiter),
		remembered: make(map[string]chan *kgo.Record), gates: make(chan gateRequest, mostGates),
	}, nil
}

// run ends with ctx, and closes the recorder.
func (t *recorder) run(ctx context.Context) error {
	defer t.client.Close()
	for {
		fetches := t.client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		records := fetches.Records()
		// One fetch is many topics: causes go before what they cause.
		slices.SortStableFunc(records, func(a, b *kgo.Record) int {
			return cmp.Or(a.Timestamp.Compare(b.Timestamp), cmp.Compare(stage(a), stage(b)))
		})
		for _, r := range records {
			if !r.Attrs.IsControl() {
				t.print(r)
				t.take(r)
			}
		}
		t.advance(records)
	}
}

func (t *recorder) take(r *kgo.Record) {
	key := string(r.Key)
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, suffix := split(r.Topic); suffix == memoirContext && t.remembered[key] != nil {
		t.remembered[key] <- r
		delete(t.remembered, key)
	}
	if key != t.session && !strings.HasPrefix(key, t.session+subSession) {
		return
	}
	t.count.hops++
	switch _, suffix := split(r.Topic); suffix {
	case messageOutput:
	case gateRequests:
		var g gateRequest
		if json.Unmarshal(r.Value, &g) == nil && g.Withdrawn == "" {
			select {
			case t.gates <- g:
			default: // the gate stays open until its deadline
			}
		}
		return
	default:
		return
	}
	t.count.turns++
	var out output
	if key != t.session || json.Unmarshal(r.Value, &out) != nil {
		return
	}
	if w, ok := t.waiting[out.RequestID]; ok {
		delete(t.waiting, out.RequestID) // a repeat of the output is ignored
		w <- out
	}
}

func (t *recorder) advance(records []*kgo.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range records {
		t.next.Add(kadm.Offset{Topic: r.Topic, Partition: r.Partition, At: r.Offset + 1, LeaderEpoch: r.LeaderEpoch})
	}
	close(t.moved)
	t.moved = make(chan struct{})
}

// expect registers a wait for an output. It is called before the question is written.
func (t *recorder) expect(request string) waiter {
	w := make(waiter, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting[request] = w
	return w
}

// expectMemory registers a wait for the next memory of a user.
func (t *recorder) expectMemory(user string) <-chan *kgo.Record {
	updated := make(chan *kgo.Record, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remembered[user] = updated
	return updated
}

// follow makes another session that of the questions.
func (t *recorder) follow(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session = session
}

func (t *recorder) tally() tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// awaitHandled waits until a group has handled a record: what the group sends from now on knows of it.
func (t *recorder) awaitHandled(ctx context.Context, group string, r *kgo.Record) error {
	ctx, cancel := context.WithTimeout(ctx, memoryLimit)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		committed, err := kadm.NewClient(t.client).FetchOffsets(ctx, group)
		if err != nil {
			return fmt.Errorf("offsets of group %s: %w", group, err)
		}
		if at, ok := committed.Lookup(r.Topic, r.Partition); ok && at.At > r.Offset {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("group %s has not handled %s/%d offset %d: %w", group, r.Topic, r.Partition, r.Offset, ctx.Err())
		}
	}
}

// settleLimit bounds the wait for other records of a turn after its answer.
const settleLimit = 2 * time.Second

// settle waits until the recorder has read all topics to their current end.
func (t *recorder) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	t.mu.Lock()
	names := t.next.TopicsSet().Topics()
	t.mu.Unlock()
	ends, err := kadm.NewClient(t.client).ListEndOffsets(ctx, names...)
	if err != nil {
		return
	}
	for {
		t.mu.Lock()
		behind, moved := false, t.moved
		ends.Each(func(o kadm.ListedOffset) {
			at, _ := t.next.Lookup(o.Topic, o.Partition)
			behind = behind || at.At < o.Offset
		})
		t.mu.Unlock()
		if !behind {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}
