package think_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// counted is a model that counts its calls.
func counted(asked *atomic.Int64, model think.Func) think.Func {
	return func(ctx context.Context, s think.Step) (think.Reply, error) {
		asked.Add(1)
		return model(ctx, s)
	}
}

// repeatOf is the record that a turn writes when it opens the step again: the same id at another offset.
func repeatOf(r processors.Inbound) processors.Inbound {
	r.Offset++
	r.Timestamp = r.Timestamp.Add(time.Second)
	return r
}

func TestRepeatOfASettledStepPublishesTheSameRecordAgain(t *testing.T) {
	for name, c := range map[string]struct {
		model  think.Func
		config think.Config
		limit  int // of a record's value, in bytes
		topic  string
		asked  int64
	}{
		"answer": {model: saying("N4."), topic: "pilot-think-request-response", asked: 1},
		"calls": {model: func(context.Context, think.Step) (think.Reply, error) {
			return think.Reply{Blocks: []think.Block{{Call: &think.Call{ID: "c1", Name: "clock"}}}}, nil
		}, topic: "pilot-think-request-response", asked: 1},
		"failure": {model: func(context.Context, think.Step) (think.Reply, error) {
			return think.Reply{}, errors.New("claude: status 529 (overloaded_error)")
		}, topic: "pilot-think-dlq", asked: 1},
		"panic": {
			model: func(context.Context, think.Step) (think.Reply, error) { panic("x") }, topic: "pilot-think-dlq", asked: 1,
		},
		"late":      {model: saying("N4."), config: think.Config{Timeout: time.Second}, topic: "pilot-think-dlq"},
		"too large": {model: saying(strings.Repeat("x", 100)), limit: 250, topic: "pilot-think-dlq", asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			b := newBench(t, counted(&asked, c.model), c.config)
			b.paper.refuse = func(r processors.Outbound) error {
				if c.limit > 0 && len(r.Value) > c.limit {
					return processors.ErrTooLarge
				}
				return nil
			}
			b.handle(record(question))
			b.clock.Advance(time.Minute)
			b.handle(repeatOf(record(question)))
			b.handle(repeatOf(repeatOf(record(question))))
			all := b.paper.all()
			require.Len(t, all, 3)
			require.Equal(t, c.topic, all[0].Topic)
			require.Equal(t, all[0], all[1])
			require.Equal(t, all[0], all[2])
			require.Equal(t, c.asked, asked.Load())
		})
	}
}

func TestRecordsWithoutIDsAreDifferentSteps(t *testing.T) {
	var asked atomic.Int64
	b := newBench(t, counted(&asked, saying("N4.")), think.Config{})
	r := record(question)
	r.Headers = nil
	b.handle(r)
	b.handle(repeatOf(r))
	require.Equal(t, int64(2), asked.Load())
}

func TestRepeatWaitsWhileTheModelIsWorking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		release := make(chan struct{})
		b := newBench(t, counted(&asked, func(context.Context, think.Step) (think.Reply, error) {
			<-release
			return think.Say("N4."), nil
		}), think.Config{})
		handled := make(chan error, 2)
		go func() { handled <- b.worker.Handle(t.Context(), record(question)) }()
		synctest.Wait()
		go func() { handled <- b.worker.Handle(t.Context(), repeatOf(record(question))) }()
		synctest.Wait()
		require.Empty(t, handled, "the repeat is not committed before it has an answer")
		close(release)
		require.NoError(t, errors.Join(<-handled, <-handled))
		require.Equal(t, int64(1), asked.Load())
		// The turn may have read the first response before it wrote the repeat, so a second one is published.
		all := b.paper.all()
		require.Len(t, all, 2)
		require.Equal(t, all[0], all[1])
	})
}

func TestRepeatCallsTheModelAfterAnInterruptedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		b := newBench(t, func(ctx context.Context, _ think.Step) (think.Reply, error) {
			if asked.Add(1) > 1 {
				return think.Say("N4."), nil
			}
			<-ctx.Done()
			return think.Reply{}, ctx.Err()
		}, think.Config{})
		lost, revoke := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- b.worker.Handle(lost, record(question)) }()
		synctest.Wait()
		go func() { second <- b.worker.Handle(t.Context(), repeatOf(record(question))) }()
		synctest.Wait()
		revoke()
		require.ErrorIs(t, <-first, context.Canceled)
		require.NoError(t, <-second)
		require.True(t, b.response().EndTurn)
	})
}

func TestEvictedStepCallsTheModelAgainUnderTheSameID(t *testing.T) {
	other := func(n int) processors.Inbound {
		r := record(question)
		r.Headers = []processors.Header{{Name: "turntable.id", Value: []byte{'o', byte('0' + n)}}}
		return r
	}
	for name, c := range map[string]struct {
		bounds think.Config
		others int
		wait   time.Duration
	}{
		"age":   {think.Config{RememberFor: time.Minute, RememberCount: 100, RememberBytes: 1 << 20}, 0, time.Minute},
		"count": {think.Config{RememberFor: time.Hour, RememberCount: 2, RememberBytes: 1 << 20}, 2, 0},
		"bytes": {think.Config{RememberFor: time.Hour, RememberCount: 100, RememberBytes: 4 << 10}, 4, 0},
		"size":  {think.Config{RememberFor: time.Hour, RememberCount: 100, RememberBytes: 1}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			b := newBench(t, counted(&asked, saying("N4.")), c.bounds)
			b.handle(record(question))
			for n := range c.others {
				b.handle(other(n))
			}
			b.clock.Advance(c.wait)
			b.handle(repeatOf(record(question)))
			require.Equal(t, int64(c.others+2), asked.Load())
			all := b.paper.all()
			require.Equal(t, all[0].Headers, all[len(all)-1].Headers)
		})
	}
}

func TestUnpublishedResponseDoesNotCallTheModelAgain(t *testing.T) {
	var asked atomic.Int64
	b := newBench(t, counted(&asked, saying("N4.")), think.Config{})
	b.paper.refuse = func(processors.Outbound) error { return processors.ErrPublisherClosed }
	require.ErrorIs(t, b.worker.Handle(t.Context(), record(question)), processors.ErrPublisherClosed)
	b.paper.refuse = nil
	b.handle(record(question))
	require.True(t, b.response().EndTurn)
	require.Equal(t, int64(1), asked.Load())
}

// The turn is killed after the brokers have acknowledged the step's record, but not the row. The worker answers. The
// restarted turn reads its two inputs in either order.
func TestTurnThatLostItsRowGetsTheFirstResponse(t *testing.T) {
	for name, responseFirst := range map[string]bool{"message first": false, "response first": true} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			b := newBench(t, counted(&asked, saying("N4.")), think.Config{})
			c, err := topics.For("pilot")
			require.NoError(t, err)
			graph, err := turn.Graph("pilot", turn.Config{})
			require.NoError(t, err)
			d := processortest.New(t, noon, graph)
			nothing, steps := d.Snapshot(), processortest.Out(d, c.EnrichedMessageInput)
			ask := func() {
				for _, r := range steps.Drain() {
					b.handle(processors.Inbound{
						Topic: r.Topic, Timestamp: r.Timestamp, Key: []byte(r.Key), Value: r.Raw,
						Headers: []processors.Header{{Name: topics.HeaderID, Value: []byte(r.ID())}},
					})
				}
			}
			read := 0 // number of the worker's records that were read
			readResponses := func() {
				for _, r := range b.paper.all()[read:] {
					read++
					processortest.InRaw(d, r.Topic).PipeRaw(r.Key, r.Value, processortest.WithHeaders(r.Headers))
				}
			}
			messages := processortest.InRaw(d, c.MessageInput.Name())
			message := messages.PipeRaw("s", []byte(`{"session_id":"s","role":"user","content":"Which berth?","timestamp":"t"}`))
			ask()
			d.Restore(nothing) // SIGKILL
			if responseFirst {
				readResponses()
			}
			messages.PipeAt(message)
			ask()
			readResponses()
			require.Equal(t, 1, processortest.Out(d, c.MessageOutput).Len())
			require.Equal(t, int64(1), asked.Load(), "the model is paid once")
			processortest.Out(d, c.MessageOutput).Drain()
		})
	}
}
