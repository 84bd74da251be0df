package main

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/embedded"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/processors/fold/group"
	model "github.com/turntable-streams/turntable/processors/turn/think"
	workers "github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// streams is a broker with the fold of an agent's events and a worker whose model streams.
type streams struct {
	t      *testing.T
	topics topics.Catalog
	to     processors.Publisher
	acked  atomic.Int64 // events
	clock  *clock.Fake
	addrs  []string

	mu        sync.Mutex
	batches   []topics.BatchMessage
	responses []topics.ThinkResponse
	letters   int
}

func newStreams(t *testing.T) *streams {
	t.Helper()
	broker, err := embedded.Start(embedded.WithPartitions(2))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	s := &streams{t: t, addrs: broker.Addrs(), clock: clock.NewFake(time.Now())}
	s.topics, err = topics.For("pilot", topics.WithEvents())
	require.NoError(t, err)
	graph, err := group.Graph("pilot")
	require.NoError(t, err)
	p, err := processors.New(s.addrs, graph, processors.WithTopics(s.topics), processors.WithInstance("fold"))
	require.NoError(t, err)
	s.run(p.Run)
	require.Eventually(t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
	to, err := processors.NewPublisher(s.addrs)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, to.Close()) })
	s.to = to
	s.run(func(ctx context.Context) error {
		w, err := workers.New("watchers", []string{
			s.topics.BatchMessages.Name(), s.topics.ThinkRequestResponse.Name(), string(s.topics.FoldGroup()) + "-dlq",
		}, s.see, workers.WithConcurrency(1), workers.WithOrdered(), workers.WithDrop())
		if err != nil {
			return err
		}
		return w.Run(ctx, s.addrs)
	})
	return s
}

// run runs a function until the test ends.
func (s *streams) run(f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- f(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		require.NoError(s.t, <-ran)
	})
}

func (s *streams) see(_ context.Context, r workers.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Topic {
	case s.topics.BatchMessages.Name():
		s.batches = append(s.batches, s.topics.BatchMessages.Codec().Unmarshal(r.Value).Value)
	case s.topics.ThinkRequestResponse.Name():
		s.responses = append(s.responses, s.topics.ThinkRequestResponse.Codec().Unmarshal(r.Value).Value)
	default:
		s.letters++
	}
	return nil
}

// Publish counts the events that the brokers have acknowledged.
func (s *streams) Publish(ctx context.Context, records ...processors.Outbound) error {
	err := s.to.Publish(ctx, records...)
	if err == nil {
		s.acked.Add(int64(len(records)))
	}
	return err
}

// batch waits for the n-th batch and returns it.
func (s *streams) batch(n int) topics.BatchMessage {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.batches) >= n
	}, waitLimit, 5*time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Len(s.t, s.batches, n)
	return s.batches[n-1]
}

// streaming returns a model that streams what f yields.
func (s *streams) streaming(f func(ctx context.Context, yield func(model.Delta) bool) error) model.Model {
	s.t.Helper()
	m, err := model.Stream("pilot", s, model.StreamFunc(
		func(ctx context.Context, _ model.Step) iter.Seq2[model.Delta, error] {
			return func(yield func(model.Delta, error) bool) {
				if err := f(ctx, func(d model.Delta) bool { return yield(d, nil) }); err != nil {
					yield(model.Delta{}, err)
				}
			}
		}), model.WithStreamClock(s.clock))
	require.NoError(s.t, err)
	return m
}

// words yields some words, then a call if there is one.
func words(yield func(model.Delta) bool, call *model.Call, all ...string) {
	for _, w := range all {
		yield(model.Delta{Text: w})
	}
	if call != nil {
		yield(model.Delta{Call: call})
	}
	yield(model.Delta{Usage: &model.Usage{InputTokens: 10, OutputTokens: 3}})
}

func TestStreamedStepIsABatchThatEqualsItsResponse(t *testing.T) {
	s := newStreams(t)
	m := s.streaming(func(_ context.Context, yield func(model.Delta) bool) error {
		words(yield, &model.Call{ID: "c1", Name: "clock", Input: topics.Raw(`{"n":1.50}`)}, "Let ", "me ", "lóok.")
		return nil
	})
	w, err := model.New("pilot", s.to, m)
	require.NoError(t, err)
	s.run(func(ctx context.Context) error { return w.Run(ctx, s.addrs) })
	session := "s"
	out, err := processors.OutboundOf(s.topics.EnrichedMessageInput, session, topics.EnrichedMessage{
		SessionID: &session, LatestInput: topics.Raw(`{"role":"user","content":"?"}`),
	}, "turn/1/enriched/0")
	require.NoError(t, err)
	require.NoError(t, s.to.Publish(t.Context(), out))

	b := s.batch(1)
	require.Equal(t, []string{topics.BatchComplete, "turn/1/enriched/0", `"tool_use"`},
		[]string{b.State, b.TurnID, b.StopReason.String()})
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.responses) == 1
	}, waitLimit, 5*time.Millisecond)
	// The bridge of think-responses makes the same batch of the response as the fold made of the events.
	var translation bridge.Think
	events, err := translation.Response(s.responses[0])
	require.NoError(t, err)
	want, err := fold.Fold(events)
	require.NoError(t, err)
	require.Equal(t, string(fold.AppendMessages(nil, want.Messages)), b.Messages.String())
	require.JSONEq(t, `{"input":10,"output":3,"total":13}`, string(b.Usage))
	require.Zero(t, s.letters)
}

func TestEveryEndOfAStepIsABatch(t *testing.T) {
	s := newStreams(t)
	failed := errors.New("anthropic: status 529 (overloaded_error)")
	half := func(err error) model.Model {
		return s.streaming(func(_ context.Context, yield func(model.Delta) bool) error {
			yield(model.Delta{Text: "Half"})
			return err
		})
	}
	_, err := half(failed).Think(t.Context(), model.Step{SessionID: "s", Key: "fails"})
	require.ErrorIs(t, err, failed)
	b := s.batch(1)
	require.Equal(t, []string{"fails", topics.BatchFailed, topics.ReasonRunFailed, failed.Error()},
		[]string{b.TurnID, b.State, *b.Reason, *b.Error})

	ctx, end := context.WithCancelCause(t.Context())
	end(model.ErrTurnEnded)
	_, err = half(ctx.Err()).Think(ctx, model.Step{SessionID: "s", Key: "cancelled"})
	require.ErrorIs(t, err, context.Canceled)
	b = s.batch(2)
	require.Equal(t, []string{"cancelled", topics.BatchCancelled}, []string{b.TurnID, b.State})
	require.Contains(t, b.Messages.String(), "Half")
}

// The events of an interrupted call and those of the next one never mix, and the step has one batch.
func TestRepeatedStepReplacesTheEventsOfTheInterruptedCall(t *testing.T) {
	s := newStreams(t)
	step := model.Step{SessionID: "s", Key: "step"}
	ctx, stop := context.WithCancel(t.Context())
	_, err := s.streaming(func(ctx context.Context, yield func(model.Delta) bool) error {
		words(yield, nil, "The ", "first ", "answer ", "is ", "longer.")
		require.Eventually(t, func() bool { return s.acked.Load() >= 2 }, waitLimit, time.Millisecond)
		stop() // as a worker does that stops
		return ctx.Err()
	}).Think(ctx, step)
	require.ErrorIs(t, err, context.Canceled)
	s.clock.Advance(time.Second)
	again := s.streaming(func(_ context.Context, yield func(model.Delta) bool) error {
		words(yield, nil, "Second.")
		return nil
	})
	_, err = again.Think(t.Context(), step)
	require.NoError(t, err)
	b := s.batch(1)
	require.Equal(t, topics.BatchComplete, b.State)
	require.JSONEq(t, `[{"role":"assistant","content":"Second."}]`, b.Messages.String())
	require.Equal(t, s.clock.Now().UnixMilli(), b.Attempt)
	require.Zero(t, s.letters)

	// A call after the terminal record, as after a crash before the response: its events change nothing.
	s.clock.Advance(time.Second)
	_, err = again.Think(t.Context(), step)
	require.NoError(t, err)
	_, err = again.Think(t.Context(), model.Step{SessionID: "s", Key: "next"})
	require.NoError(t, err)
	require.Equal(t, "next", s.batch(2).TurnID)
}
