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

// flow reads the topics of both agents and prints the records of a session, and of those it delegates to, as they pass.
type flow struct {
	client  *kgo.Client
	session string
	screen  *screen
	shown   []shown
	topics  []string
	next    kadm.Offsets // where it is in each partition
}

// newFlow reads what is written from now on.
func newFlow(ctx context.Context, brokers []string, session string, p *screen) (*flow, error) {
	f := &flow{session: session, screen: p}
	for _, agent := range []string{orchestrator, worker} {
		catalog, err := topics.For(agent)
		if err != nil {
			return nil, err
		}
		f.shown = append(f.shown, shownOf(catalog)...)
	}
	for _, s := range f.shown {
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

// ends are where the topics end now.
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

// answer prints until the request's output has come, and what else was written until then.
func (f *flow) answer(ctx context.Context, request string) (topics.Output, error) {
	catalog, err := topics.For(orchestrator)
	if err != nil {
		return topics.Output{}, err
	}
	var found *topics.Output
	for found == nil {
		records, err := f.read(ctx)
		if err != nil {
			return topics.Output{}, err
		}
		for _, r := range records {
			if r.Topic != catalog.MessageOutput.Name() || string(r.Key) != f.session {
				continue
			}
			out := catalog.MessageOutput.Codec().Unmarshal(r.Value).Value
			if found == nil && out.RequestID != nil && *out.RequestID == request {
				found = &out
			}
		}
	}
	f.settle(ctx)
	return *found, nil
}

// settleFor bounds the wait for what was written before the answer, in topics that are read later.
const settleFor = 2 * time.Second

func (f *flow) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	ends, err := kadm.NewClient(f.client).ListEndOffsets(ctx, f.topics...)
	if err != nil {
		return
	}
	behind := func() (left bool) {
		ends.Each(func(o kadm.ListedOffset) {
			at, _ := f.next.Lookup(o.Topic, o.Partition)
			left = left || at.At < o.Offset
		})
		return left
	}
	for behind() {
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
	// One fetch is many topics: causes go before what they cause.
	slices.SortStableFunc(records, func(a, b *kgo.Record) int {
		return cmp.Or(a.Timestamp.Compare(b.Timestamp), cmp.Compare(f.stage(a), f.stage(b)))
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
	f.screen.line("%s  %-*s %-*s %s", r.Timestamp.Format("15:04:05.000"), topicWidth, f.shown[i].indent+r.Topic,
		keyWidth, oneLine(string(r.Key)), oneLine(f.shown[i].summary(r.Value)))
}

// stage says how far a turn has come with a record, to order those of one millisecond. The worker's turn lies inside
// the orchestrator's, between a tool call and its result.
func (f *flow) stage(r *kgo.Record) int {
	i := slices.Index(f.topics, r.Topic)
	if f.shown[i].again(r.Value) {
		return f.shown[i].stage + 2*stages + stages/2
	}
	return f.shown[i].stage
}

const lineLimit = 100

// oneLine keeps a text from breaking the line or the terminal.
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
