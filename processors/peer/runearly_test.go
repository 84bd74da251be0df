package peer

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// lost returns a receiver whose row was lost in a crash after its message was sent, and the ID of the run.
func lost(t machinetest.TB) (p *receiver, again commanded, id string) {
	p = begun(t)
	id = p.Read().Run.RunId
	again = p.runCommand("w1")
	p.Row = nil
	return p, again, id
}

func TestOutputThatIsReadBeforeItsCommandEndsTheRun(t *testing.T) {
	p, again, id := lost(t)
	require.Empty(t, p.Handle(p.toolCall("", "read", "{}")))
	require.Empty(t, p.Handle(p.output("turn-1/0/answer/0", "42 rows", func(o *topics.Output) { o.RequestID = &id })))
	es := p.settle(again)
	require.Equal(t, "42 rows", replied(t, es).Result)
	require.Equal(t, []string{"read"}, replied(t, es).ToolsUsed)
	require.Equal(t, "harbor", replied(t, es).AgentID)
	require.Nil(t, p.Read().Early)
}

func TestEarlyErrorIsKeptToo(t *testing.T) {
	p, again, id := lost(t)
	p.Handle(p.output("turn-1/0/answer/0", "", func(o *topics.Output) {
		o.RequestID, o.Error = &id, &topics.OutputError{Message: "the model failed"}
	}))
	require.Equal(t, "the model failed", replied(t, p.settle(again)).Error)
}

func TestGateThatIsReadBeforeItsCommandRejectsTheRun(t *testing.T) {
	p, again, _ := lost(t)
	p.Handle(p.gateRequest("g1", "pay", ""))
	p.Handle(p.gateOutcome("g2", topics.GateApproved))
	p.Handle(again)
	p.Handle(p.gateRequest("g2", "look", ""))
	require.Equal(t, "pay requires approval", replied(t, p.advance(p.config.GateGrace)).PendingApprovalSummary)
}

func TestEarlyOutputOfAnotherRunIsIgnored(t *testing.T) {
	for name, change := range map[string]func(*outputArrived){
		"another run":   func(e *outputArrived) { e.Output.RequestID = new("peer_1_00000000") },
		"another agent": func(e *outputArrived) { e.Agent = "pilot" },
		"no run":        func(e *outputArrived) { e.Output.RequestID = nil },
		"other request": func(e *outputArrived) { e.Output.RequestID = new("chat-1") },
		"large request": func(e *outputArrived) { e.Output.RequestID = new(runPrefix + strings.Repeat("x", maxWaiter)) },
	} {
		p, again, id := lost(t)
		e := p.output("turn-1/0/answer/0", "42 rows", func(o *topics.Output) { o.RequestID = &id })
		change(&e)
		p.Handle(e)
		require.Len(t, machinetest.Values[topics.Message](p.settle(again)), 1, name)
		require.Equal(t, peerrow.Run_RUNNING, p.Read().Run.Phase, name)
	}
}

func TestEarlyRecordsAreForgotten(t *testing.T) {
	p, _, id := lost(t)
	p.Handle(p.output("turn-1/0/answer/0", "42 rows", func(o *topics.Output) { o.RequestID = &id }))
	p.advance(p.config.RunTime - time.Millisecond)
	require.NotNil(t, p.Row)
	p.advance(time.Millisecond)
	require.Nil(t, p.Row)

	p.Handle(p.output("turn-1/0/answer/0", "42 rows", func(o *topics.Output) { o.RequestID = &id }))
	p.Handle(p.control(topics.ActionPurge))
	require.Nil(t, p.Read().GetEarly())
}

func TestOtherSessionsHaveNoRowsForTheirTurns(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.gateRequest("g1", "pay", ""))
	p.Handle(p.gateOutcome("g1", topics.GateApproved))
	p.Handle(p.toolCall("turn-1/0/tool-use/0", "read", "{}"))
	p.Handle(p.output("turn-1/0/answer/0", "42 rows", func(o *topics.Output) { o.RequestID = new("peer_1_00000000") }))
	require.Nil(t, p.Row)
}

func TestEarlyOutputThatDoesNotFitIsDropped(t *testing.T) {
	p, again, id := lost(t)
	p.config.RowLimit = 64 << 10
	p.Handle(p.output("turn-1/0/answer/0", strings.Repeat("x", 100<<10), func(o *topics.Output) { o.RequestID = &id }))
	p.settle(again)
	require.Equal(t, peerwire.Status("error"), replied(t, p.advance(p.config.RunTime)).Status)
}
