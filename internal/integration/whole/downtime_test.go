package whole

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/memoir"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// ahead is the system's clock, from which time passes ahead.
type ahead struct {
	clock.Clock
	by atomic.Int64
}

func (a *ahead) Now() time.Time       { return a.Clock.Now().Add(time.Duration(a.by.Load())) }
func (a *ahead) pass(d time.Duration) { a.by.Add(int64(d)) }

// turnWorld is a turn that is stopped and started again, while the group of memories, the model and the callers go on.
type turnWorld struct {
	*world
	clock *ahead
}

func newTurnWorld(t *testing.T, guarantee processors.Guarantee) turnWorld {
	return turnWorld{newWorld(t, guarantee, topics.WithMemoir()), &ahead{Clock: clock.System()}}
}

// turn runs the turn until it is stopped.
func (d turnWorld) turn(config turn.Config) *running {
	d.t.Helper()
	return d.run("turn", must(turn.Graph(d.agent, config)), processors.WithClock(d.clock))
}

func (d turnWorld) answers(out <-chan topics.Output) topics.Output {
	d.t.Helper()
	o, err := next(d.ctx, out, "the turn")
	require.NoError(d.t, err)
	return o
}

// The next message of a session has been on its topic for longer than the session may be idle, because the turn was down.
func TestSessionWhoseNextMessageWaitsDoesNotEndAfterADowntime(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		d := newTurnWorld(t, guarantee)
		const after = time.Minute
		config := turn.Config{Memoir: &turn.Memoir{After: after}}
		first := d.turn(config)
		d.run("memories", must(memoir.Graph(d.agent, memoir.Config{})))
		d.model(d.agent, func(_ context.Context, s think.Step) (think.Reply, error) {
			return think.Say(strconv.Itoa(len(s.Messages))), nil
		})
		d.followOutputs()
		say := func(session, text string) <-chan topics.Output {
			out := d.expect(session)
			require.NoError(t, d.write(d.ctx, session, "mira", text, ""))
			return out
		}
		require.Equal(t, "1", d.answers(say("s1", "one")).Content)
		require.Equal(t, "1", d.answers(say("s2", "one")).Content) // has no other message
		first.stop()
		two := say("s1", "two")
		d.clock.pass(after + 500*time.Millisecond)
		d.turn(config)
		require.Equal(t, "3", d.answers(two).Content, "the model is sent the conversation")
		// Each ends once, when it is idle: exactly once, the inputs end in the markers of transactions then.
		d.clock.pass(after)
		ends := map[string]int{}
		d.eventually(func() bool {
			clear(ends)
			for _, r := range d.all(d.catalog.SessionEnd.Name()) {
				ends[string(r.Key)]++
			}
			return len(ends) == 2
		})
		require.Equal(t, map[string]int{"s1": 1, "s2": 1}, ends)
	})
}

// The answer of the model was written while the turn was down, and the step timed out meanwhile.
func TestAnswerThatWasWrittenDuringADowntimeIsNotLateAfterIt(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		d := newTurnWorld(t, guarantee)
		const timeout = time.Minute
		first := d.turn(turn.Config{ThinkTimeout: timeout})
		out := d.expect("s1")
		require.NoError(t, d.write(d.ctx, "s1", "mira", "one", ""))
		d.eventually(func() bool { return len(d.all(d.catalog.EnrichedMessageInput.Name())) == 1 })
		first.stop()
		d.followOutputs()
		require.NoError(t, d.to.Publish(t.Context(), processors.Outbound{
			Topic: d.catalog.ThinkRequestResponse.Name(), Key: "s1",
			Value: []byte(`{"session_id":"s1","last_input_response":[{"role":"assistant","content":"1"}],"end_turn":true}`),
		}))
		d.clock.pass(timeout + 500*time.Millisecond)
		d.turn(turn.Config{ThinkTimeout: timeout})
		answer := d.answers(out)
		require.Nil(t, answer.Error, "%s", answer.Content)
	})
}

// The receipt of a delivery was written while the group was down, and the delivery expired meanwhile.
func TestReceiptThatWasWrittenDuringADowntimeEndsTheDelivery(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		d := &ahead{Clock: clock.System()}
		w := newWorld(t, guarantee, topics.WithDeliveries())
		config := delivery.Config{DefaultService: delivery.Service{Budget: time.Minute}}
		run := func() *running {
			return w.run("deliveries", must(delivery.Graph(w.agent, config)), processors.WithClock(d))
		}
		first := run()
		session, service := "s1", "harbor"
		reply := topics.Raw(fmt.Sprintf(`{"callbackService":%q,"route_id":%q}`, service, topics.RouteID(session, "route")))
		require.NoError(t, put(w.ctx, w, w.catalog.ReplyTo, session, topics.Route{CallbackService: &service}, "route"))
		require.NoError(t, put(w.ctx, w, w.catalog.MessageOutput, session, topics.Output{
			SessionID: &session, Content: "hello", SourceAgent: w.agent, ReplyTo: reply,
		}, "turn/0/output/0"))
		var asked topics.Delivery
		w.eventually(func() bool {
			for _, r := range w.all(w.catalog.Deliveries.Name()) {
				asked = w.catalog.Deliveries.Codec().Unmarshal(r.Value).Value
			}
			return asked.DeliveryID != ""
		})
		first.stop()
		require.NoError(t, put(w.ctx, w, w.catalog.DeliveryReceipts, session, topics.Receipt{
			DeliveryID: asked.DeliveryID, SessionID: session, Attempt: asked.Attempt, Outcome: topics.OutcomeDelivered, Route: asked.Route,
		}, ""))
		d.pass(time.Hour)
		run()
		var outcome topics.Outcome
		w.eventually(func() bool {
			for _, r := range w.all(w.catalog.DeliveryReceipts.Name()) {
				if v := w.catalog.DeliveryReceipts.Codec().Unmarshal(r.Value).Value; v.Final {
					outcome = v.Outcome
				}
			}
			return outcome != ""
		})
		require.Equal(t, topics.OutcomeDelivered, outcome)
		require.Empty(t, w.all(w.catalog.DeliveryDLQ.Name()))
	})
}
