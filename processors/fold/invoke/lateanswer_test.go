package invoke

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/topics"
)

func TestLateAnswersGetTheOutcome(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	s := g.site()
	g.gated("t", true, asksOnce...)
	approve, deny := answerBody("t1", `{}`, `{"approved":true,"interactionToken":"r1"}`), answerBody("t1", `{}`, `{"approved":false,"interactionToken":"r1"}`)
	require.Equal(t, http.StatusOK, s.invoke(approve).status)
	repeated := s.invoke(approve)
	require.Equal(t, http.StatusOK, repeated.status, "the same decision")
	require.Contains(t, repeated.body, "It is approved.")
	late := s.invoke(deny)
	require.Equal(t, http.StatusConflict, late.status)
	require.Equal(t, "approved", textAt(t, late.body, "status", "outcome", "status"))
	require.Equal(t, gateOf("t", 0), textAt(t, late.body, "status", "outcome", "gate_id"))
	require.Len(t, g.written(), 1)

	g.gated("expired", true, askFor("r2", "t2", `{}`))
	g.outcome(gateOf("expired", 0), topics.GateOutcome{Status: topics.GateTimedOut, Cause: topics.CauseDeadline})
	for _, other := range []*site{s, g.site()} {
		late = other.invoke(answerBody("t2", `{}`, `{"approved":true}`), "Accept", "text/event-stream")
		require.Equal(t, http.StatusConflict, late.status, late.body)
		require.Equal(t, "timed_out deadline", textAt(t, late.body, "status", "outcome", "status")+" "+
			textAt(t, late.body, "status", "outcome", "cause"))
	}
	require.Zero(t, g.messagesWritten())
}

func TestAnswersThatMatchNothingAreRefused(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	s := g.site()
	require.Equal(t, http.StatusConflict, s.invoke(answerBody("t1", `{}`, `{"approved":true}`)).status, "no turn")
	g.gated("t", true, askFor("r1", "t1", `{"eur":1}`), askFor("r2", "t2", `{"eur":1}`))
	for body, want := range map[string]string{
		answerBody("t9", `{"eur":2}`, `{"approved":true}`):                                            errNoInteraction.Text,
		answerBody("t9", `{"eur":1}`, `{"approved":true}`):                                            errAmbiguous.Text,
		answerBody("t1", `{}`, `{"approved":"yes"}`):                                                  "data.inputs.messages: approved: want true or false",
		strings.Replace(answerBody("t1", `{}`, `{"approved":true}`), `"s-1"`, `"s-2"`, 1):             errNoInteraction.Text,
		answerBody("t1", `{}`, `{"approved":true,"interactionToken":"`+strings.Repeat("x", 300)+`"}`): "",
	} {
		if want == "" {
			continue
		}
		require.Equal(t, want, s.invoke(body).failure(t))
	}
	require.Empty(t, g.written())
	require.Zero(t, g.messagesWritten())
}

func TestDecidersRace(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	one, two := g.site(), g.site()
	g.gated("t", true, asksOnce...)
	var done sync.WaitGroup
	statuses := make([]got, 20)
	for i := range statuses {
		done.Go(func() {
			s := []*site{one, two}[i%2]
			statuses[i] = s.invoke(answerBody("t1", `{}`, fmt.Sprintf(`{"approved":%t}`, i%3 == 0)), "Idempotency-Key", fmt.Sprint("k", i))
		})
	}
	done.Wait()
	ok := 0
	for _, a := range statuses {
		switch a.status {
		case http.StatusOK:
			ok++
		case http.StatusConflict:
			require.NotEmpty(t, textAt(t, a.body, "status", "outcome", "decision_id"), a.body)
		default:
			require.Fail(t, "unexpected status", "%d: %s", a.status, a.body)
		}
	}
	require.Equal(t, 1, ok, "one decision counts")
}

// Without processors of gates the answer is kept, and no connection is held.
func TestAnswerWithoutAnOutcomeIsStillPaused(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	g.deaf = true
	g.gated("t", true, asksOnce...)
	now := clock.NewFake(time.Now())
	s := serve(t, must(New(g.pipeline(func(c *PipelineConfig) { c.Gates, c.Clock = true, now }), Config{Random: &counting{}})))
	answered := make(chan got, 1)
	go func() { answered <- s.invoke(answerBody("t1", `{}`, `{"approved":true}`)) }()
	require.Eventually(t, func() bool { return len(g.written()) == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, now.WaitTickers(t.Context(), 1))
	require.Empty(t, answered)
	now.Advance(answerTimeout)
	a := <-answered
	require.Equal(t, `"paused"`, string(at(t, a.body, "data", "outputs", "stop_reason")), a.body)
	g.deaf = false
	g.decide(g.written()[0])
	require.Contains(t, s.invoke(answerBody("t1", `{}`, `{"approved":true}`)).body, "It is approved.")
}

func TestRightsToAnswer(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	rights := auth.Rights(0)
	s := g.site(func(c *Config) {
		c.Authenticate = func(*http.Request) (auth.Caller, error) {
			return auth.Caller{Subject: "mira", Rights: rights}, nil
		}
	})
	g.starts(true, asksOnce...)
	g.gated("t", true, asksOnce...)
	answer := answerBody("t1", `{}`, `{"approved":true}`)
	for _, r := range []auth.Rights{auth.Read, auth.Read | auth.Control, auth.Answer, auth.Read | auth.Write} {
		rights = r
		require.Equal(t, http.StatusForbidden, s.invoke(answer).status, r)
	}
	rights = auth.Read | auth.Answer
	require.Equal(t, http.StatusForbidden, s.invoke(question).status, "an answer only")
	require.Contains(t, s.invoke(answer).body, "It is approved.")
	require.Equal(t, "mira", g.written()[0].By)
	rights = auth.Read | auth.Write
	require.Equal(t, http.StatusOK, s.invoke(question).status)
	g.gated("asked", true, `{"id":"q1","kind":"user_input","payload":{"toolCallId":"c1"}}`)
	require.Equal(t, http.StatusForbidden, s.invoke(answerBody("c1", `{}`, `"N4"`)).status, "a value")
}

// lagging counts the topics up to which a pipeline has caught up.
type lagging struct {
	follower
	mu     sync.Mutex
	caught []string
}

func (l *lagging) CatchUp(ctx context.Context, topic, key string) error {
	l.mu.Lock()
	l.caught = append(l.caught, topic)
	l.mu.Unlock()
	return l.follower.CatchUp(ctx, topic, key)
}

// unread counts the reads of the brokers.
type unread struct {
	follower
	reads atomic.Int32
}

func (u *unread) CatchUp(ctx context.Context, topic, key string) error {
	u.reads.Add(1)
	return u.follower.CatchUp(ctx, topic, key)
}

func (u *unread) ReplayRange(
	ctx context.Context, topic string, partition int32, begin, end int64, take func(context.Context, processors.Inbound) bool,
) (int64, error) {
	u.reads.Add(1)
	return u.follower.ReplayRange(ctx, topic, partition, begin, end, take)
}

// A caller without the right does not make the door read turns.
func TestRightToAnswerIsCheckedBeforeTheTurnsAreRead(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	g.gated("t", true, asksOnce...)
	p := g.pipeline(withGates)
	u := &unread{follower: p.follower}
	p.follower = u
	s := serve(t, must(New(p, Config{Door: auth.Door{Authenticate: func(*http.Request) (auth.Caller, error) {
		return auth.Caller{Subject: "mira", Rights: auth.Read | auth.Write}, nil
	}}, Random: &counting{}})))
	require.Equal(t, http.StatusForbidden, s.invoke(answerBody("t1", `{}`, `{"approved":true}`)).status)
	require.Zero(t, u.reads.Load())
}

// Another process may have read the outcome and the events after the pause before this one.
func TestResumedStreamCatchesUpBeforeItEndsPaused(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	g.gated("t", true, asksOnce...)
	p := g.pipeline(withGates)
	l := &lagging{follower: p.follower}
	p.follower = l
	s := serve(t, must(New(p, Config{Random: &counting{}})))
	require.Equal(t, http.StatusOK, s.invoke(`{"session_id":"s-1"}`, HeaderLastEvent, "t.1.3").status)
	require.Equal(t, []string{
		g.catalog.AgentEvents.Name(), g.catalog.MessageInput.Name(), g.catalog.BatchMessages.Name(), g.catalog.GateRequests.Name(),
		g.catalog.GateOutcomes.Name(),
	}, l.caught, "once")
}

func TestTooLargeAnswersAreRefused(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	s := g.site()
	g.gated("t", true, `{"id":"q1","kind":"user_input","payload":{"toolCallId":"c1"}}`)
	a := s.invoke(answerBody("c1", `{}`, `"`+strings.Repeat("x", maxAnswer)+`"`))
	require.Equal(t, http.StatusRequestEntityTooLarge, a.status)
	require.Empty(t, g.written())
}
