package turn

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func withGates(r *rules) { r.Gates = true }

// asking opens a turn with a request, and asking is a gate of its agent.
func asked(t tb, change ...func(*rules)) *play {
	p := newPlay(t, append([]func(*rules){withGates}, change...)...)
	p.send("message-input", requestMessage("hi", "r1"))
	return p
}

// foldGate is a request of package fold.
func foldGate(p *play, id, turn string, ttl time.Duration) gateRequested {
	g := gateRequested{
		GateID: id, SessionID: p.key, TurnID: turn, Kind: topics.GateTool, Tool: "rm", InteractionID: "i-" + id,
		Origin: topics.GateOrigin{Agent: agent, Via: "fold"},
	}
	if ttl > 0 {
		g.ExpiresMS = p.now.Add(ttl).UnixMilli()
	}
	return g
}

func (p *play) request(g gateRequested) effects {
	p.tb.Helper()
	raw, err := p.topics.GateRequests.Codec().Marshal(topics.GateRequest(g))
	require.NoError(p.tb, err)
	return p.send("gate-requests", string(raw))
}

func TestGateOfAnotherRequesterStopsTheClockOfItsStep(t *testing.T) {
	for name, named := range map[string]func(p *play) string{
		"by its ID":      func(p *play) string { return p.state().Turn.Message.TurnId },
		"by its request": func(*play) string { return "r1" },
	} {
		t.Run(name, func(t *testing.T) {
			p := asked(t)
			p.wait(9 * time.Minute)
			one, two := foldGate(p, "g1", named(p), time.Hour), foldGate(p, "g2", named(p), time.Hour)
			require.Empty(t, p.request(one))
			require.Equal(t, uint32(rowGates), p.stored().Version)
			p.wait(time.Minute)
			require.Empty(t, p.request(two))
			require.Empty(t, p.wait(30*time.Minute))
			require.Empty(t, p.send("gate-outcomes", gateEnd(one, topics.GateApproved)))
			require.Empty(t, p.wait(10*time.Minute), "one is still open")
			require.Empty(t, p.send("gate-outcomes", gateEnd(two, topics.GateDenied)))
			require.Less(t, p.stored().Version, uint32(rowGates))
			require.Empty(t, p.wait(time.Minute-time.Millisecond), "one minute of the timeout is left")
			require.Equal(t, topics.CodeThinkTimeout, the[answered](t, p.wait(time.Millisecond)).Error.Code)
		})
	}
}

func TestReadersOfTheStreamLearnHowLongAGateStopsTheClock(t *testing.T) {
	p := asked(t, withEvents)
	p.wait(9 * time.Minute)
	one := foldGate(p, "g1", "r1", time.Hour)
	told := the[streamed](t, p.request(one))
	require.Equal(t, []int64{1, seqStepStart}, []int64{told.Step, told.Seq}, "the readers know the event")
	require.Equal(t, one.ExpiresMS+(gateGrace+time.Minute).Milliseconds(), told.UntilMS)
	two := foldGate(p, "g2", "r1", 2*time.Hour)
	require.Equal(t, two.ExpiresMS+(gateGrace+time.Minute).Milliseconds(), the[streamed](t, p.request(two)).UntilMS)
	require.Empty(t, p.request(foldGate(p, "g3", "r-other", time.Hour)), "it names another turn")
	p.wait(30 * time.Minute)
	require.Empty(t, p.send("gate-outcomes", gateEnd(one, topics.GateApproved)), "one is still open")
	told = the[streamed](t, p.send("gate-outcomes", gateEnd(two, topics.GateDenied)))
	require.Equal(t, p.now.Add(time.Minute).UnixMilli(), told.UntilMS)

	three := foldGate(p, "g4", "r1", 20*time.Minute)
	p.request(three)
	told = the[streamed](t, p.wait(25*time.Minute))
	require.Equal(t, p.now.Add(time.Minute).UnixMilli(), told.UntilMS, "there was no outcome")
}

func TestClockRunsAgainWithoutAnOutcome(t *testing.T) {
	p := asked(t)
	require.Empty(t, p.request(foldGate(p, "g1", "r1", 20*time.Minute)))
	require.Empty(t, p.wait(25*time.Minute-time.Millisecond))
	require.Empty(t, p.wait(time.Millisecond))
	require.Empty(t, p.state().OtherGates)
	require.Empty(t, p.wait(10*time.Minute-time.Millisecond))
	require.NotEmpty(t, emitted[answered](p.wait(time.Millisecond)))
}

func TestGateWithoutADeadlineIsBounded(t *testing.T) {
	for name, c := range map[string]struct{ ttl, want time.Duration }{
		"none":      {0, 30*24*time.Hour + 5*time.Minute},
		"too large": {100 * 24 * time.Hour, 30*24*time.Hour + 5*time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			p := asked(t)
			p.request(foldGate(p, "g1", "r1", c.ttl))
			require.Equal(t, p.now.Add(c.want).UnixMilli(), p.stored().DeadlineMs)
		})
	}
}

func TestGatesThatDoNotConcernATurnStopNothing(t *testing.T) {
	p := asked(t, withPolicy(paying()))
	shadow, withdrawn := foldGate(p, "g1", "r1", time.Hour), foldGate(p, "g2", "r1", time.Hour)
	shadow.Shadow, withdrawn.Withdrawn = true, topics.CauseParentEnded
	own := foldGate(p, "g3", p.state().Turn.Message.TurnId, time.Hour)
	own.Origin.Via = "turn"
	before := p.row
	for _, g := range []gateRequested{shadow, withdrawn, own, foldGate(p, "g4", "", time.Hour)} {
		require.Empty(t, p.request(g))
		require.Equal(t, before, p.row)
	}
	require.Empty(t, p.tombstone("gate-requests"), "the gate's group dead-letters it")
	p.wait(p.rules.ThinkTimeout)
	before = p.row
	require.Empty(t, p.request(foldGate(p, "g5", "r1", time.Hour)), "the turn has ended")
	require.Empty(t, p.send("gate-outcomes", gateEnd(foldGate(p, "g5", "r1", time.Hour), topics.GateApproved)))
	require.Equal(t, before, p.row)
}

func TestRepeatedRequestsAndOutcomesChangeNothing(t *testing.T) {
	p := asked(t)
	g := foldGate(p, "g1", "r1", time.Hour)
	p.request(g)
	p.wait(time.Minute)
	row := p.row
	require.Empty(t, p.request(g))
	require.Equal(t, row, p.row)
	p.send("gate-outcomes", gateEnd(g, topics.GateApproved))
	row = p.row
	p.request(g)
	require.Equal(t, row, p.row, "it has its outcome")
}

// The topics have no common order, so after a crash the records of a gate can be read in any order.
func TestOrderOfAGateAndItsTurnDoesNotMatter(t *testing.T) {
	t.Run("the request before the message", func(t *testing.T) {
		p := newPlay(t, withGates)
		g := foldGate(p, "g1", "r1", time.Hour)
		require.Empty(t, p.request(g))
		p.wait(time.Minute)
		p.send("message-input", requestMessage("hi", "r1"))
		require.Empty(t, p.wait(30*time.Minute))
		p.send("gate-outcomes", gateEnd(g, topics.GateApproved))
		require.Empty(t, p.wait(10*time.Minute-time.Millisecond))
		require.NotEmpty(t, emitted[answered](p.wait(time.Millisecond)))
	})
	t.Run("the outcome before the request", func(t *testing.T) {
		p := asked(t)
		g := foldGate(p, "g1", "r1", time.Hour)
		require.Empty(t, p.send("gate-outcomes", gateEnd(g, topics.GateApproved)))
		require.Empty(t, p.request(g))
		require.NotEmpty(t, emitted[answered](p.wait(10*time.Minute)))
	})
	t.Run("a session without a row", func(t *testing.T) {
		p := newPlay(t, withGates)
		g := foldGate(p, "g1", "r1", time.Hour)
		require.Empty(t, p.send("gate-outcomes", gateEnd(g, topics.GateApproved)))
		require.Nil(t, p.row)
		p.request(g)
		require.NotNil(t, p.row)
		p.wait(time.Hour + 5*time.Minute)
		require.Empty(t, p.state().OtherGates)
		p.wait(24 * time.Hour)
		require.Nil(t, p.row)
	})
}

func TestEndOfATurnWithdrawsTheGatesThatNameIt(t *testing.T) {
	for name, c := range map[string]struct {
		end   string
		cause topics.GateCause
	}{
		"cancel": {`{"action":"cancel"}`, topics.CauseParentEnded},
		"purge":  {`{"action":"purge"}`, topics.CausePurged},
	} {
		t.Run(name, func(t *testing.T) {
			p := asked(t)
			g, other := foldGate(p, "g1", "r1", time.Hour), foldGate(p, "g2", "r2", time.Hour)
			p.request(g)
			p.request(other)
			es := p.send("session-control", c.end)
			require.Equal(t, gateRequested{GateID: "g1", SessionID: "s1", Withdrawn: c.cause}, the[gateRequested](t, es))
			require.Contains(t, fmt.Sprint(es.ids()), "/0/gate-withdrawal/g1")
			require.Empty(t, p.send("gate-outcomes", gateEnd(g, topics.GateCancelled)))
			require.Empty(t, p.request(g))
			if name == "cancel" {
				require.Len(t, p.state().OtherGates, 1, "the turn of the other one is still to come")
			}
		})
	}
}

func TestMessageSupersedesTheGatesOfAStep(t *testing.T) {
	p := asked(t, func(r *rules) { r.SupersedeGates = true })
	g := foldGate(p, "g1", "r1", time.Hour)
	p.request(g)
	p.wait(5 * time.Minute)
	es := p.send("message-input", message("never mind"))
	require.Equal(t, gateRequested{GateID: "g1", SessionID: "s1", Withdrawn: topics.CauseSuperseded}, the[gateRequested](t, es))
	require.Empty(t, emitted[gateRequested](p.send("message-input", message("hello?"))), "once")
	require.Empty(t, p.wait(10*time.Minute-time.Millisecond), "the step waits for its model")
	require.NotEmpty(t, emitted[answered](p.wait(time.Millisecond)))
}

// A step whose clock is stopped is not silent.
func TestWaitingMessageDoesNotEndAStepThatAsksAPerson(t *testing.T) {
	p := asked(t, func(r *rules) { r.Policy, r.SupersedeAfter = Supersede, time.Minute })
	g := foldGate(p, "g1", "r1", time.Hour)
	p.request(g)
	p.send("message-input", message("hello?"))
	require.Empty(t, p.wait(30*time.Minute))
	p.send("gate-outcomes", gateEnd(g, topics.GateApproved))
	require.Empty(t, p.wait(time.Minute-time.Millisecond))
	require.NotEmpty(t, emitted[answered](p.wait(time.Millisecond)))
}

func TestOpenGatesOfASessionAreBounded(t *testing.T) {
	p := asked(t)
	for i := range maxOtherGates {
		require.Empty(t, p.request(foldGate(p, fmt.Sprint("g", i), "r1", time.Hour)))
	}
	require.Equal(t, []string{reasonManyGates}, p.request(foldGate(p, "more", "r1", time.Hour)).letters())
	require.Len(t, p.state().OtherGates, maxOtherGates)
}

// The clock of tools does not stop: a worker that asks has an own gate for its call.
func TestGateOfAStepDoesNotStopItsTools(t *testing.T) {
	p := asked(t)
	turn := p.state().Turn.Message.TurnId
	p.request(foldGate(p, "g1", turn, time.Hour))
	p.send("think-request-response", `{`+calling("t1")+`}`)
	require.NotEmpty(t, emitted[completed](p.wait(5*time.Minute)))
	require.NotZero(t, p.state().Turn.StoppedMs, "the next step waits for the gate")
}
