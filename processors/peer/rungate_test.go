package peer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

func TestGateThatStaysOpenRejectsTheRun(t *testing.T) {
	p := begun(t)
	require.Empty(t, p.Handle(p.gateRequest("g1", "pay", "May the agent pay?")))
	require.Empty(t, p.Handle(p.gateRequest("g1", "pay", "again")))
	require.Empty(t, p.advance(p.config.GateGrace-time.Millisecond))
	es := p.advance(time.Millisecond)
	r := replied(t, es)
	require.Equal(t, peerwire.StatusRejected, r.Status)
	require.Equal(t, "pay: May the agent pay?", r.PendingApprovalSummary)
	require.Empty(t, machinetest.Values[topics.Control](es), "the turn continues")
	require.True(t, machinetest.Only[topics.PeerAudit](t, es).PendingApproval)
	require.Empty(t, p.settle(p.answer("paid")), "a later output changes nothing")
	require.Empty(t, p.Handle(p.gateOutcome("g1", topics.GateApproved)))
	require.Equal(t, peerwire.StatusRejected, replied(t, effects{{Value: topics.PeerReply{
		State: topics.PeerDone, Hash: p.Read().Run.Hash, Body: p.Read().Run.Reply,
	}}}).Status)
}

func TestGatesThatDoNotRejectTheRun(t *testing.T) {
	for name, play := range map[string]func(p *receiver) []event{
		"ended in time": func(p *receiver) []event {
			return []event{p.gateRequest("g1", "pay", ""), p.gateOutcome("g1", topics.GateApproved)}
		},
		"denied in time": func(p *receiver) []event {
			return []event{p.gateRequest("g1", "pay", ""), p.gateOutcome("g1", topics.GateDenied)}
		},
		"outcome first": func(p *receiver) []event {
			return []event{p.gateOutcome("g1", topics.GateApproved), p.gateRequest("g1", "pay", "")}
		},
		"request again": func(p *receiver) []event {
			return []event{
				p.gateRequest("g1", "pay", ""), p.gateOutcome("g1", topics.GateApproved), p.gateRequest("g1", "pay", ""),
			}
		},
		"shadow": func(p *receiver) []event {
			return []event{p.gateRequest("g1", "pay", "", func(g *topics.GateRequest) { g.Shadow = true })}
		},
		"withdrawn": func(p *receiver) []event {
			return []event{p.gateRequest("g1", "pay", ""), p.gateRequest("g1", "pay", "", func(g *topics.GateRequest) {
				g.Withdrawn = topics.CauseSuperseded
			})}
		},
		"long ID": func(p *receiver) []event { return []event{p.gateRequest(strings.Repeat("g", maxGateID+1), "pay", "")} },
	} {
		p := begun(t)
		for _, e := range play(p) {
			require.Empty(t, p.Handle(e), name)
		}
		require.Empty(t, p.advance(time.Minute), name)
		require.Equal(t, "paid", replied(t, p.settle(p.answer("paid"))).Result, name)
	}
}

func TestOldestOpenGateIsTold(t *testing.T) {
	p := begun(t)
	p.Handle(p.gateRequest("g0", "look", ""))
	p.Now = p.Now.Add(time.Millisecond)
	p.Handle(p.gateRequest("g1", strings.Repeat("p", 500), strings.Repeat("m", 5000)))
	p.Now = p.Now.Add(time.Millisecond)
	p.Handle(p.gateRequest("g2", "sail", ""))
	p.Handle(p.gateOutcome("g0", topics.GateApproved))
	r := replied(t, p.advance(time.Minute))
	require.Equal(t, strings.Repeat("p", maxToolName)+": "+strings.Repeat("m", maxGateMessage)+"…", r.PendingApprovalSummary)
}

func TestGateAndDeadlineThatAreBothDueCountInTheirOrder(t *testing.T) {
	late := func(gate, deadline time.Duration) peerwire.Reply {
		p := newReceiver(t)
		p.Handle(p.runCommand("w1", func(c *topics.PeerCommand) { c.DeadlineMS = p.Now.Add(deadline).UnixMilli() }))
		p.Now = p.Now.Add(gate - p.config.GateGrace)
		p.Handle(p.gateRequest("g1", "pay", ""))
		p.Now = p.Now.Add(time.Hour) // the group did not run
		return replied(t, p.settle(deadlineCame{}))
	}
	require.Equal(t, peerwire.StatusRejected, late(2*time.Second, 3*time.Second).Status)
	require.Equal(t, peerwire.StatusError, late(3*time.Second, 2500*time.Millisecond).Status)
}

func TestGatesAndToolsAreBounded(t *testing.T) {
	p := begun(t)
	for i := range 2 * maxGates {
		p.Handle(p.gateRequest(fmt.Sprint("g", i), "pay", ""))
		p.Handle(p.gateOutcome(fmt.Sprint("e", i), topics.GateApproved))
	}
	for i := range 2 * maxTools {
		p.Handle(p.toolCall("", fmt.Sprint("tool", i/2), "{}"))
	}
	p.Handle(p.toolCall("", "one too many", "{}"))
	run := p.Read().Run
	require.Len(t, run.Gates, maxGates)
	require.Len(t, run.EndedGates, maxGates)
	require.Equal(t, "e127", run.EndedGates[maxGates-1], "the newest are kept")
	require.Len(t, run.ToolsUsed, maxTools)
	require.Empty(t, p.Handle(p.toolCall("", "read", "{}", func(u *topics.ToolUseItem) { u.Name = nil })))
}
