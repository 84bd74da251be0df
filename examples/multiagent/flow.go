package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/topics"
)

// flow reads the topics of both agents and prints the records of a session and of the sessions that it delegates to.
type flow struct {
	client  *kgo.Client
	session string
	screen  *screen
	views   []topicView
	topics  []string
	next    kadm.Offsets // the next offset of each partition
}

// newFlow returns a flow that starts at the current ends of the topics.
func newFlow(ctx context.Context, brokers []string, session string, p *screen) (*flow, error) {
	f := &flow{session: session, screen: p}
	for _, agent := range []string{orchestrator, worker} {
		catalog, err := topics.For(agent)
		if err != nil {
			return nil, err
		}
		f.views = append(f.views, viewsOf(catalog)...)
	}
	for _, s := range f.views {
		f.topics = append(f.topics, s.topic)
	}
	ends, err := f.ends(ctx, brokers)
	if err != nil {
		return nil, err
	}
	f.next = ends
	f.client, err = kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumePartitions(ends.KOffsets()))
	if err != nil {
		return nil, fmt.Errorf("flow: %w", err)
	}
	return f, nil
}

// ends returns the end offsets of the topics.
func (f *flow) ends(ctx context.Context, brokers []string) (kadm.Offsets, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return nil, fmt.Errorf("flow: %w", err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, f.topics...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("flow: ends of the topics: %w", err)
	}
	return ends.Offsets(), nil
}

func (f *flow) close() { f.client.Close() }

// answer prints records until it has read the output of the request, and those that were written before it.
func (f *flow) answer(ctx context.Context, request string) (topics.Output, error) {
	catalog, err := topics.For(orchestrator)
	if err != nil {
		return topics.Output{}, err
	}
	var answer *topics.Output
	for answer == nil {
		records, err := f.read(ctx)
		if err != nil {
			return topics.Output{}, err
		}
		for _, r := range records {
			if r.Topic != catalog.MessageOutput.Name() || string(r.Key) != f.session {
				continue
			}
			out := catalog.MessageOutput.Codec().Unmarshal(r.Value).Value
			if answer == nil && out.RequestID != nil && *out.RequestID == request {
				answer = &out
			}
		}
	}
	f.catchUp(ctx)
	return *answer, nil
}

// catchUpTimeout bounds catchUp.
const catchUpTimeout = 2 * time.Second

// catchUp prints the records up to the current ends of the topics: those before the answer that were not read yet.
func (f *flow) catchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	ends, err := kadm.NewClient(f.client).ListEndOffsets(ctx, f.topics...)
	if err != nil {
		return
	}
	lagging := func() (left bool) {
		ends.Each(func(o kadm.ListedOffset) {
			at, _ := f.next.Lookup(o.Topic, o.Partition)
			left = left || at.At < o.Offset
		})
		return left
	}
	for lagging() {
		if _, err := f.read(ctx); err != nil {
			return
		}
	}
}

// read prints the next records and returns them.
func (f *flow) read(ctx context.Context) ([]*kgo.Record, error) {
	fetches := f.client.PollFetches(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	records := fetches.Records()
	// A fetch contains records of several topics. Print causes before their effects.
	slices.SortStableFunc(records, func(a, b *kgo.Record) int {
		return cmp.Or(a.Timestamp.Compare(b.Timestamp), cmp.Compare(f.stageOf(a), f.stageOf(b)))
	})
	for _, r := range records {
		f.next.Add(kadm.Offset{Topic: r.Topic, Partition: r.Partition, At: r.Offset + 1, LeaderEpoch: r.LeaderEpoch})
		if key := string(r.Key); key == f.session || strings.HasPrefix(key, f.session+subSession) {
			f.print(r)
		}
	}
	return records, nil
}

// The widths of the columns of a record.
const (
	topicWidth = 38
	keyWidth   = 32
)

func (f *flow) print(r *kgo.Record) {
	i := slices.Index(f.topics, r.Topic)
	f.screen.line("%s  %-*s %-*s %s", r.Timestamp.Format("15:04:05.000"), topicWidth, f.views[i].indent+r.Topic,
		keyWidth, oneLine(string(r.Key)), oneLine(f.views[i].summary(r.Value)))
}

// stageOf returns how far the turn is with a record. It orders the records of one millisecond. The worker's turn is within
// the orchestrator's, between a tool call and its result.
func (f *flow) stageOf(r *kgo.Record) int {
	i := slices.Index(f.topics, r.Topic)
	if f.views[i].again(r.Value) {
		return f.views[i].stage + 2*stages + stages/2
	}
	return f.views[i].stage
}

const lineLimit = 100

// oneLine returns a text without line breaks and control characters, with at most lineLimit characters.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f:
			return -1
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > lineLimit {
		return string(runes[:lineLimit-1]) + "…"
	}
	return s
}
