package fold

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

func TestGatesAreWithdrawnWhenTheirTurnEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		end   func(p *play)
		state string
		cause topics.GateCause
	}{
		"cancel": {func(p *play) {
			p.handle(controlReceived{record("c"), topics.Control{Action: topics.ActionCancel}})
		}, "cancelled cancelled", topics.CauseParentEnded},
		"purge": {func(p *play) {
			p.handle(controlReceived{record("c"), topics.Control{Action: topics.ActionPurge}})
		}, "cancelled cancelled", topics.CausePurged},
		"no outcome": {func(p *play) { p.until(mostGateTimeout + gateMargin) }, "expired silence", topics.CauseParentEnded},
		"failed run": {func(p *play) { p.handle(terminalRecord(p.tb, "t", 4, topics.AgentResult{})) }, "failed run_failed", topics.CauseParentEnded},
		"too many turns": {func(p *play) {
			for i := range p.config.OpenTurns {
				p.send(fmt.Sprint("u", i), 1, startEvent("m"))
			}
		}, "expired too_many_turns", topics.CauseParentEnded},
		"gap": {func(p *play) {
			p.send("t", 9, startEvent("m"))
			p.until(time.Minute)
		}, "failed gap", topics.CauseParentEnded},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, gating)
			p.send("t", 1, asks("r1", "c1"), asks("r2", "c2"), doneWith("paused"))
			tt.end(p)
			require.Equal(t, tt.state, outcomeOf(p.only("t")))
			require.Len(t, p.withdrawn, 2)
			for _, cause := range p.withdrawn {
				require.Equal(t, tt.cause, cause)
			}
			row := p.row
			p.handle(outcomeRecord(t, "t", 1, 0, topics.GateCancelled))
			require.Equal(t, row, p.row, "the outcome of a withdrawn gate is ignored")
			p.settle()
		})
	}
}

func TestNewerAttemptWithdrawsTheGatesOfTheOlderOne(t *testing.T) {
	p := newPlay(t, gating)
	second := func(seq int64, event string) input {
		return streamRecord(t, topics.AgentEvent{TurnID: "t", Attempt: 2, Seq: seq, Event: topics.Raw(event)})
	}
	p.send("t", 1, asks("r1", "c1"), doneWith("paused"))
	p.handle(second(1, asks("r1", "c1")))
	require.Equal(t, topics.CauseParentEnded, p.withdrawn[gateID("t", 1, 0)])
	p.handle(second(2, doneWith("paused")))
	require.Equal(t, []string{gateID("t", 2, 0)}, p.opened(), "the newer attempt has gates of its own")
	p.handle(outcomeRecord(t, "t", 1, 0, topics.GateApproved))
	require.Len(t, p.state().Open[0].Gates, 1, "an outcome of the older attempt decides nothing")
	p.handle(outcomeRecord(t, "t", 2, 0, topics.GateApproved))
	require.Empty(t, p.state().Open[0].Gates)
	p.settle()
}

// After a crash an outcome can arrive before the records that open its gate arrive again.
func TestOutcomeBeforeItsGateIsHeld(t *testing.T) {
	p := newPlay(t, gating)
	p.handle(outcomeRecord(t, "t", 1, 0, topics.GateApproved))
	p.handle(outcomeRecord(t, "t", 1, 0, topics.GateApproved))
	p.send("t", 1, asks("r1", "c1"))
	p.handle(outcomeRecord(t, "t", 1, 1, topics.GateApproved))
	require.Len(t, p.state().Early, 2)
	require.Len(t, p.send("t", 2, doneWith("paused")).gates(), 1, "the request is written again")
	require.Empty(t, p.state().Open[0].Gates)
	require.Len(t, p.state().Early, 1)
	p.until(p.config.Silence)
	require.Equal(t, "expired silence", outcomeOf(p.only("t")), "the runner did not continue")
	require.Empty(t, p.withdrawn)
	p.settle()
}

func TestEarlyOutcomesAreBounded(t *testing.T) {
	p := newPlay(t, gating)
	for i := range maxGates + 10 {
		p.handle(outcomeRecord(t, "t", 1, i, topics.GateApproved))
	}
	require.Len(t, p.state().Early, maxGates)
	require.Equal(t, gateID("t", 1, 10), p.state().Early[0].Gate, "the oldest are dropped")
	p.until(p.config.RememberFor)
	require.Nil(t, p.row, "and all of them are forgotten")
}

func TestOutcomesOfOtherGatesAreIgnored(t *testing.T) {
	p := newPlay(t, gating)
	p.send("t", 1, asks("r1", "c1"), doneWith("paused"))
	row := p.row
	for name, o := range map[string]topics.GateOutcome{
		"call of a turn":  {GateID: gateID("t", 1, 0), TurnID: "t", CallID: "t/0/tool-use/0", Status: topics.GateApproved},
		"another gate":    {GateID: "x", TurnID: "t", CallID: "t/1/interaction/0", Status: topics.GateApproved},
		"shadow":          {GateID: gateID("t", 1, 0), CallID: "t/1/interaction/0", Status: topics.GateApproved, Shadow: true},
		"no call":         {GateID: gateID("t", 1, 0), Status: topics.GateApproved},
		"another session": {GateID: topics.GateID("s2", "t", "t/1/interaction/0"), CallID: "t/1/interaction/0", Status: topics.GateApproved},
	} {
		require.Empty(t, p.handle(outcomeReceived{record(""), o}), name)
		require.Equal(t, row, p.row, name)
	}
	require.Equal(t, []string{reasonTombstone}, p.handle(outcomeReceived{Record: &machine.Record{}}).letters())
}

func TestMoreGatesThanATurnMayHave(t *testing.T) {
	p := newPlay(t, gating)
	for i := range maxGates {
		p.send("t", int64(i+1), asks(fmt.Sprint("r", i), fmt.Sprint("c", i)))
	}
	p.send("t", maxGates+1, doneWith("paused"))
	require.Len(t, p.opened(), maxGates)
	p.send("t", maxGates+2, asks("more", "c"), doneWith("paused"))
	require.Equal(t, "failed too_large", outcomeOf(p.only("t")))
	require.Empty(t, p.opened())
	p.settle()
}

// The think-response contains the whole turn, and there is one.
func TestPausedTurnIsAnsweredOnceAtItsEnd(t *testing.T) {
	p := newPlay(t, thinking, gating)
	p.handle(streamRecord(t, topics.AgentEvent{
		TurnID: "t", Seq: 1, Request: topics.Raw(askedRequest), Event: topics.Raw(`{"type":"message","data":{"text":"Paying."}}`),
	}))
	es := p.send("t", 2, asks("r1", "c1"), doneWith("paused"))
	es = append(es, p.handle(terminalRecord(t, "t", 4, okResult("paused")))...)
	responses, failures := es.answers()
	require.Empty(t, responses)
	require.Empty(t, failures)
	p.handle(outcomeRecord(t, "t", 1, 0, topics.GateApproved))
	p.send("t", 5, answersTo("r1"), `{"type":"message","data":{"text":"Paid."}}`)
	responses, _ = p.handle(terminalRecord(t, "t", 7, okResult("end_turn"))).answers()
	require.Len(t, responses, 1)
	require.Contains(t, responses[0].LastInputResponse.String(), `{"type":"text","text":"Paying."},{"type":"text","text":"Paid."}`)
	require.Equal(t, `{"role":"user","content":"now"}`, responses[0].LastInputMessage.String())
}

// The stop reason of a pause is not that of the turn.
func TestResumedRunWithoutAStopReasonIsComplete(t *testing.T) {
	p := newPlay(t, thinking, gating)
	p.send("t", 1, asks("r1", "c1"), doneWith("paused"))
	p.handle(terminalRecord(t, "t", 3, topics.AgentResult{OK: true}))
	p.handle(outcomeRecord(t, "t", 1, 0, topics.GateApproved))
	p.send("t", 4, `{"type":"message","data":{"text":"Paid."}}`)
	responses, _ := p.handle(terminalRecord(t, "t", 5, topics.AgentResult{OK: true})).answers()
	require.Len(t, responses, 1)
	b := p.only("t")
	require.Equal(t, "null null complete", b.StopReason.String()+" "+b.PendingInteraction.String()+" "+outcomeOf(b))
}
