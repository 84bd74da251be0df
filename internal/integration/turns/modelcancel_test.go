package turns

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/worker"
)

// blocked is a model that answers nothing: its calls end with their context.
type blocked struct {
	began chan string // sessions

	mu    sync.Mutex
	ended map[string]end // by session
}

// end is how a call ended.
type end struct {
	at, deadline time.Time
	cause        error
}

// block starts a model worker in this process whose calls end with their context.
func (a *agent) block(c worker.Config) *blocked {
	a.Helper()
	c.Lock = modelLock
	m := &blocked{began: make(chan string, 1000), ended: map[string]end{}}
	to, err := processors.NewPublisher(a.brokers)
	require.NoError(a, err)
	a.Cleanup(func() { require.NoError(a, to.Close()) })
	w, err := think.New(a.name, to, think.Func(func(ctx context.Context, s think.Step) (think.Reply, error) {
		m.began <- s.SessionID
		<-ctx.Done()
		now := time.Now()
		deadline, _ := ctx.Deadline()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.ended[s.SessionID] = end{now, deadline, context.Cause(ctx)}
		return think.Reply{}, ctx.Err()
	}), think.Config{Config: c})
	require.NoError(a, err)
	a.background(func(ctx context.Context) error { return w.Run(ctx, a.brokers) })
	return m
}

// end waits until the call of a session has ended.
func (m *blocked) end(a *agent, session string) (e end) {
	a.Helper()
	a.eventually(func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		var ok bool
		e, ok = m.ended[session]
		return ok
	}, "the call goes on")
	return e
}

// ready waits until the model gets calls before the deadline of their turns.
func (m *blocked) ready(a *agent) {
	a.Helper()
	for n := 0; ; n++ {
		a.say(fmt.Sprintf("early-%d", n))
		a.settle()
		select {
		case <-m.began:
			return
		default:
		}
	}
}

func (a *agent) cancel(session string) {
	a.Helper()
	_, err := a.user.Control(a.Context(), session, "cancel", "")
	require.NoError(a, err)
}

func TestCancelReachesTheModel(t *testing.T) {
	a := newAgent(t, processors.AtLeastOnce, turn.Config{})
	model := a.block(worker.Config{})
	a.say("cancelled")
	a.say("other")
	require.ElementsMatch(t, []string{"cancelled", "other"}, []string{<-model.began, <-model.began})
	a.cancel("cancelled")
	require.ErrorIs(t, model.end(a, "cancelled").cause, think.ErrTurnEnded)
	model.mu.Lock()
	require.NotContains(t, model.ended, "other")
	model.mu.Unlock()
	a.cancel("other")
	require.Equal(t, map[string]int{"cancelled": 2}, a.judge(processors.AtLeastOnce).Counts.Codes)
}

func TestDeadlineOfTheTurnReachesTheModel(t *testing.T) {
	const timeout = time.Second
	a := newAgent(t, processors.AtLeastOnce, turn.Config{ThinkTimeout: timeout})
	model := a.block(worker.Config{})
	model.ready(a)
	sent := time.Now().Truncate(time.Millisecond)
	a.say("late")
	<-model.began
	latest := time.Now().Add(timeout)
	e := model.end(a, "late")
	require.WithinRange(t, e.deadline, sent.Add(timeout), latest)
	require.False(t, e.at.Before(e.deadline))
	// The turn's own timer or the worker's failure ends the turn, whichever is first.
	require.Equal(t, map[string]int{"think_timeout": len(a.sent)}, a.judge(processors.AtLeastOnce).Counts.Codes)
}

// BenchmarkCancel reports the time from the request to cancel a turn until the context of its model call ends, with other
// calls running meanwhile. For the percentiles, run it with -benchtime 300x or more.
func BenchmarkCancel(b *testing.B) {
	for _, guarantee := range guarantees {
		for _, calls := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/%d-calls", guarantee, calls), func(b *testing.B) {
				a := newAgent(b, guarantee, turn.Config{})
				model := a.block(worker.Config{Concurrency: calls})
				var running []string
				next := 0
				begin := func() {
					a.say(fmt.Sprintf("s-%05d", next))
					next++
					running = append(running, <-model.began)
				}
				for range calls {
					begin()
				}
				var took []time.Duration
				for b.Loop() {
					session := running[0]
					running = running[1:]
					asked := time.Now()
					a.cancel(session)
					took = append(took, model.end(a, session).at.Sub(asked))
					begin()
				}
				reportPercentiles(b, took)
				for _, session := range running {
					a.cancel(session)
				}
			})
		}
	}
}

// BenchmarkDeadline reports how long after the deadline of its turn the context of a model call ends, and how long after it
// the test reads the output of the turn. The turn checks deadlines every 50 ms.
func BenchmarkDeadline(b *testing.B) {
	for _, guarantee := range guarantees {
		b.Run(string(guarantee), func(b *testing.B) {
			const calls = 16
			a := newAgent(b, guarantee, turn.Config{ThinkTimeout: time.Second})
			model := a.block(worker.Config{Concurrency: calls})
			model.ready(a)
			var contexts, outputs []time.Duration
			next := 0
			for b.Loop() {
				for range calls {
					a.say(fmt.Sprintf("s-%05d", next))
					next++
				}
				a.settle()
				for len(model.began) > 0 { // a step that the worker has read too late has no call
					session := <-model.began
					e := model.end(a, session)
					contexts, outputs = append(contexts, e.at.Sub(e.deadline)), append(outputs, a.outputs[session].Sub(e.deadline))
				}
			}
			reportPercentiles(b, outputs)
			slices.Sort(contexts)
			b.ReportMetric(milliseconds(contexts[len(contexts)*99/100]), "context-p99-ms")
		})
	}
}

func reportPercentiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(milliseconds(took[len(took)/2]), "p50-ms")
	b.ReportMetric(milliseconds(took[len(took)*99/100]), "p99-ms")
	b.ReportMetric(milliseconds(took[len(took)-1]), "max-ms")
	b.ReportMetric(0, "ns/op")
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
