package peer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// taskOf returns a receiver for another task of partner-b, whose run has begun. It shares the approvals of the first one.
func (p *receiver) taskOf(id string) *receiver {
	p.TB.Helper()
	next := &receiver{p.another(peerwire.SessionID("partner-b", id))}
	next.Handle(next.runOf(request(func(r *peerwire.Request) { r.TaskID = id }), "w1"))
	return next
}

// payGate returns the request of a gate of the turn for a call of pay.
func (p *receiver) payGate(id, args string) gateAsked {
	return p.gateRequest(id, "pay", "May the agent pay?", func(g *topics.GateRequest) {
		g.Args, g.ArgsSHA256 = topics.Raw(args), topics.ArgsSHA256(topics.Raw(args))
	})
}

// asks lets the run wait for the approval of a call until the group has acted, and returns what it did.
func (p *receiver) asks(id, args string) effects {
	p.TB.Helper()
	p.Handle(p.payGate(id, args))
	return p.advance(p.config.GateGrace)
}

// listed returns the only request that was listed.
func (p *receiver) listed(es effects) (list []topics.GateRequest) {
	for _, r := range machinetest.Values[topics.GateRequest](es) {
		if r.Withdrawn == "" {
			list = append(list, r)
		}
	}
	return list
}

// decided returns the outcome of a listed request.
func (p *receiver) decided(g topics.GateRequest, status topics.GateStatus) gateEnded {
	return p.gateOutcome(g.GateID, status, func(o *topics.GateOutcome) {
		o.Tool, o.InteractionID, o.EffectiveArgsSHA256, o.By = g.Tool, g.InteractionID, g.ArgsSHA256, "mara"
	})
}

const invoice = `{"amount":"12.50","to":"mira"}`

func TestApprovalOfARejectedCallIsUsedByTheNextTaskOnce(t *testing.T) {
	p := begun(t)
	es := p.asks("g1", invoice)
	require.Equal(t, peerwire.StatusRejected, replied(t, es).Status)
	require.Len(t, p.listed(es), 1)
	g := p.listed(es)[0]
	require.Equal(t, topics.GateRequest{
		GateID: listedID(p.key, p.Read().Run, "g1"), SessionID: p.key, Kind: topics.GateTool, Tool: "pay", InteractionID: "g1",
		Args: topics.Raw(invoice), ArgsSHA256: topics.ArgsSHA256(topics.Raw(invoice)), Message: "May the agent pay?\n\n" + listedNote,
		Allowed: []topics.GateVerdict{topics.VerdictApprove, topics.VerdictDeny},
		Origin:  topics.GateOrigin{Agent: "harbor", ParentGateID: "g1", Via: "peer"}, Effect: "ask",
		ExpiresMS: p.Now.Add(24 * time.Hour).UnixMilli(),
	}, g)

	es = p.settle(p.decided(g, topics.GateApproved))
	require.Len(t, es, 1, "nothing runs")
	grant := machinetest.Only[topics.PeerCommand](t, es)
	require.Equal(t, topics.PeerGrant, grant.Kind)
	require.Empty(t, p.settle(p.decided(g, topics.GateApproved)), "a repeat")
	require.Equal(t, topics.PeerDone, machinetest.Only[topics.PeerReply](t, p.settle(p.runCommand("w2"))).State, "the task itself is over")

	retry := p.taskOf("t-10")
	es = retry.asks("g2", invoice)
	require.Equal(t, topics.GateDecision{
		GateID: "g2", SessionID: retry.key, DecisionID: retry.Read().Run.RunId + "/approve/g2", Verdict: topics.VerdictApprove,
		ArgsSHA256: topics.ArgsSHA256(topics.Raw(invoice)), By: "mara", Via: "peer",
	}, machinetest.Only[topics.GateDecision](t, es))
	require.Equal(t, peerrow.Run_RUNNING, retry.Read().Run.Phase)
	require.Equal(t, topics.PeerDone, machinetest.Only[topics.PeerReply](t, retry.settle(retry.answer("paid"))).State)

	p.ofLabel(grant) // read again after a crash
	again := p.taskOf("t-11")
	es = again.asks("g3", invoice)
	require.Empty(t, machinetest.Values[topics.GateDecision](es), "an approval counts once")
	require.Len(t, again.listed(es), 1)
}

func TestApprovalIsForTheSameCallOnly(t *testing.T) {
	for name, try := range map[string]func(p *receiver) effects{
		"other arguments": func(p *receiver) effects { return p.asks("g2", `{"amount":"99.00","to":"mira"}`) },
		"other tool": func(p *receiver) effects {
			p.Handle(p.gateRequest("g2", "refund", "", func(g *topics.GateRequest) { g.Args = topics.Raw(invoice) }))
			return p.advance(p.config.GateGrace)
		},
		"a day later": func(p *receiver) effects {
			s := p.Read()
			s.Run.ExpiresMs += 1 << 40
			p.Set(s)
			p.Now = p.Now.Add(24 * time.Hour)
			return p.asks("g2", invoice)
		},
		"another agent": func(p *receiver) effects {
			e := p.payGate("g2", invoice)
			e.Agent = "pilot"
			p.Handle(e)
			return p.advance(p.config.GateGrace)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := begun(t)
			g := p.listed(p.asks("g1", invoice))[0]
			p.settle(p.decided(g, topics.GateApproved))
			es := try(p.taskOf("t-10"))
			require.Empty(t, machinetest.Values[topics.GateDecision](es))
			require.NotEmpty(t, machinetest.Values[topics.PeerReply](es), "rejected")
		})
	}
	p := newReceiver(t)
	require.Equal(t, reasonCommand, letter(t, p.Handle(p.about(topics.PeerGrant, "", func(c *topics.PeerCommand) {
		c.DeadlineMS, c.Gates = p.Now.Add(time.Hour).UnixMilli(), []topics.PeerGate{{GateID: "g9", Call: "x"}}
	}))), "a grant is read in the row of its label only")
}

func TestRunThatClaimsAgainAfterACrashDoesNotUseTheApprovalOfTheNext(t *testing.T) {
	p := begun(t)
	p.Handle(p.payGate("g1", invoice))
	p.Now = p.Now.Add(p.config.GateGrace)
	claim := machinetest.Only[topics.PeerCommand](t, p.Handle(deadlineCame{}))
	g := p.listed(p.settle(p.own("x", machinetest.Only[topics.PeerCommand](t, p.ofLabel(claim)))))[0]
	p.settle(p.decided(g, topics.GateApproved))
	answer := machinetest.Only[topics.PeerCommand](t, p.ofLabel(claim))
	require.False(t, answer.Approved)
	require.NotEmpty(t, machinetest.Values[topics.GateDecision](p.taskOf("t-10").asks("g2", invoice)))
	p.label.Now = p.Now.Add(25 * time.Hour)
	p.label.advance(0)
	require.Nil(t, p.label.Row, "nothing is kept for longer than a day")
}

func TestDeniedRequestGivesNothing(t *testing.T) {
	p := begun(t)
	g := p.listed(p.asks("g1", invoice))[0]
	for _, status := range []topics.GateStatus{topics.GateDenied, topics.GateTimedOut, topics.GateCancelled} {
		require.Empty(t, p.settle(p.decided(g, status)))
	}
	require.Empty(t, machinetest.Values[topics.GateDecision](p.taskOf("t-10").asks("g2", invoice)))
}

func TestCancelWithdrawsTheListedRequest(t *testing.T) {
	p := begun(t)
	g := p.listed(p.asks("g1", invoice))[0]
	es := p.settle(p.about(topics.PeerCancel, "w2"))
	require.Equal(t, topics.GateRequest{
		GateID: g.GateID, SessionID: p.key, Withdrawn: topics.CauseParentEnded, Origin: topics.GateOrigin{Agent: "harbor", Via: "peer"},
	}, machinetest.Only[topics.GateRequest](t, es))
	require.Empty(t, p.settle(p.about(topics.PeerCancel, "")))
	es = p.settle(p.decided(g, topics.GateApproved)) // a person was faster
	require.Empty(t, machinetest.Values[topics.PeerCommand](es))
	require.Empty(t, machinetest.Values[topics.GateDecision](p.taskOf("t-10").asks("g2", invoice)))
}

func TestCancelRevokesAnApprovalThatWasNotUsed(t *testing.T) {
	p := begun(t)
	g := p.listed(p.asks("g1", invoice))[0]
	grant := machinetest.Only[topics.PeerCommand](t, p.settle(p.decided(g, topics.GateApproved)))
	es := p.settle(p.about(topics.PeerCancel, ""))
	require.Equal(t, topics.PeerRevoke, machinetest.Only[topics.PeerCommand](t, es).Kind)
	p.ofLabel(grant) // read again after a crash
	require.Empty(t, machinetest.Values[topics.GateDecision](p.taskOf("t-10").asks("g2", invoice)))

	q := begun(t)
	q.ofLabel(topics.PeerCommand{Kind: topics.PeerRevoke, TaskID: "t-9", InboundID: "partner-b", Gates: []topics.PeerGate{{GateID: g.GateID}}})
	q.ofLabel(grant)
	require.Empty(t, machinetest.Values[topics.GateDecision](q.taskOf("t-10").asks("g2", invoice)), "also if it is read before")
}

func TestDecisionBeforeTheGateIsClosedCounts(t *testing.T) {
	p := begun(t)
	p.Handle(p.payGate("g1", invoice))
	p.Now = p.Now.Add(p.config.GateGrace)
	es := p.Handle(deadlineCame{})
	answer := machinetest.Only[topics.PeerCommand](t, p.ofLabel(machinetest.Only[topics.PeerCommand](t, es)))
	es = p.Handle(p.own("x", answer))
	require.Len(t, machinetest.Values[topics.GateRequest](es), 2)
	listed := p.listed(es)[0]
	r, v := read(p.harness, p.topics.GateRequests, "", listed)
	p.Handle(gateAsked{r, v})
	p.Handle(p.gateRequest("g1", "pay", "", func(g *topics.GateRequest) { g.Withdrawn = topics.CauseParentCannotAsk }))
	es = p.Handle(p.gateOutcome("g1", topics.GateApproved))
	withdrawn := machinetest.Only[topics.GateRequest](t, es)
	require.Equal(t, listed.GateID, withdrawn.GateID)
	require.NotEmpty(t, withdrawn.Withdrawn)
	require.Equal(t, "paid", replied(t, p.settle(p.answer("paid"))).Result)
	require.Empty(t, p.settle(p.decided(listed, topics.GateCancelled)))
}

func TestCallsOfOneStepAreApprovedTogether(t *testing.T) {
	ask := func(p *receiver, name string) effects {
		p.Handle(p.payGate(name+"1", `{"n":1}`))
		p.Now = p.Now.Add(time.Millisecond)
		p.Handle(p.payGate(name+"2", `{"n":2}`))
		return p.advance(p.config.GateGrace)
	}
	p := begun(t)
	listed := p.listed(ask(p, "g"))
	require.Len(t, listed, 2)
	p.settle(p.decided(listed[0], topics.GateApproved))

	half := p.taskOf("t-10")
	es := ask(half, "h")
	require.Empty(t, machinetest.Values[topics.GateDecision](es), "the approval of the first call is not used up")
	require.Len(t, half.listed(es), 1, "and a person is not asked for it again")
	require.Equal(t, "h2", half.listed(es)[0].InteractionID)
	half.settle(half.decided(half.listed(es)[0], topics.GateApproved))

	require.Len(t, machinetest.Values[topics.GateDecision](ask(p.taskOf("t-11"), "i")), 2)
	require.Empty(t, machinetest.Values[topics.GateDecision](ask(p.taskOf("t-12"), "k")))
}

func TestDetachedTaskWaitsForApproval(t *testing.T) {
	wait := func(c *Config) { c.WaitForApproval = true }
	p := newReceiver(t, wait)
	p.Handle(p.runCommand("w1", detached))
	es := p.asks("g1", invoice)
	require.Empty(t, machinetest.Values[topics.GateRequest](es))
	require.Empty(t, p.advance(2*time.Hour), "its time stops")
	require.Equal(t, topics.PeerRunning, machinetest.Only[topics.PeerReply](t, p.Handle(p.about(topics.PeerAsk, "w2"))).State)
	p.Handle(p.gateOutcome("g1", topics.GateApproved))
	require.Empty(t, p.advance(p.config.RunTime-2*p.config.GateGrace))
	require.Equal(t, "paid", replied(t, p.settle(p.answer("paid"))).Result)

	q := newReceiver(t, wait)
	q.Handle(q.runCommand("w1"))
	require.Equal(t, peerwire.StatusRejected, replied(t, q.asks("g1", invoice)).Status, "its caller waits in the request")

	r := newReceiver(t, wait)
	r.Handle(r.runCommand("w1", detached))
	r.Handle(r.gateRequest("g1", "pay", "", func(g *topics.GateRequest) { g.ExpiresMS = r.Now.Add(time.Hour).UnixMilli() }))
	require.Empty(t, machinetest.Values[topics.PeerReply](r.advance(time.Hour)))
	es = r.advance(time.Hour)
	require.Contains(t, replied(t, es).Error, "timed out", "a gate without an outcome is not waited for forever")
}

func TestGateOfAnotherRequesterIsClosedWithTheTurn(t *testing.T) {
	p := begun(t)
	p.Handle(p.gateRequest("g1", "pay", "May I?", func(g *topics.GateRequest) { g.Origin.Via = "fold" }))
	p.Now = p.Now.Add(p.config.GateGrace)
	es := p.settle(deadlineCame{})
	require.Equal(t, p.Read().Run.RunId, *machinetest.Only[topics.Control](t, es).RequestID)
	require.Equal(t, "pay: May I?", replied(t, es).PendingApprovalSummary)
}

func TestRunIsRejectedWithoutAnAnswerOfTheGates(t *testing.T) {
	closing := func(via string) *receiver {
		p := begun(t)
		p.Handle(p.gateRequest("g1", "pay", "May I?", func(g *topics.GateRequest) { g.Origin.Via = via }))
		p.Now = p.Now.Add(p.config.GateGrace)
		claim := machinetest.Only[topics.PeerCommand](t, p.Handle(deadlineCame{}))
		p.Handle(p.own("x", machinetest.Only[topics.PeerCommand](t, p.ofLabel(claim))))
		return p
	}
	p := closing("fold")
	p.Now = p.Now.Add(p.config.GateGrace)
	es := p.Handle(deadlineCame{})
	require.Len(t, machinetest.Values[topics.Control](es), 1)
	require.Equal(t, "pay: May I?", replied(t, p.Handle(p.own("x", machinetest.Only[topics.PeerCommand](t, es)))).PendingApprovalSummary)

	p = closing("turn")
	p.Now = p.Now.Add(writeAgain)
	es = p.Handle(deadlineCame{})
	require.Len(t, machinetest.Values[topics.Control](es), 1)
	require.Empty(t, machinetest.Values[topics.PeerCommand](es), "the turn may run a call until it has ended")
	es = p.settle(p.answer("", func(o *topics.Output) {
		o.Error = &topics.OutputError{Code: topics.CodeCancelled, Message: "cancelled"}
	}))
	require.Equal(t, "pay: May I?", replied(t, es).PendingApprovalSummary)
}

func TestQuestionsAndLargeCallsAreRejectedWithoutALaterApproval(t *testing.T) {
	for name, change := range map[string]func(*topics.GateRequest){
		"question":  func(g *topics.GateRequest) { g.Kind = topics.GateInput },
		"no choice": func(g *topics.GateRequest) { g.Allowed = []topics.GateVerdict{topics.VerdictDeny} },
		"too large": func(g *topics.GateRequest) { g.Args = topics.Raw(`"` + strings.Repeat("x", 60<<10) + `"`) },
	} {
		p := begun(t, narrow)
		p.Handle(p.gateRequest("g1", "pay", "", change))
		es := p.advance(p.config.GateGrace)
		require.Equal(t, peerwire.StatusRejected, replied(t, es).Status, name)
		require.Empty(t, p.listed(es), name)
	}
}

func TestClosedGateIsReadInAnyOrderAfterACrash(t *testing.T) {
	closed := func(p *receiver) gateEnded {
		return p.gateOutcome("g1", topics.GateCancelled, because(topics.CauseParentCannotAsk))
	}
	ended := func(p *receiver, id string) outputArrived {
		return p.output("turn-1/0/answer/0", "", func(o *topics.Output) {
			o.RequestID, o.Error = &id, &topics.OutputError{Code: topics.CodeParentCannotAsk, Message: "cannot ask"}
		})
	}
	for name, order := range map[string]func(p *receiver, command commanded, id string) effects{
		"gate last": func(p *receiver, command commanded, id string) (all effects) {
			for _, e := range []event{command, closed(p), p.payGate("g1", invoice), ended(p, id)} {
				all = append(all, p.settle(e)...)
			}
			return all
		},
		"command last": func(p *receiver, command commanded, id string) (all effects) {
			for _, e := range []event{closed(p), p.payGate("g1", invoice), ended(p, id), command} {
				all = append(all, p.settle(e)...)
			}
			return all
		},
		"outcome before it is due": func(p *receiver, command commanded, id string) (all effects) {
			for _, e := range []event{command, p.payGate("g1", invoice), closed(p), ended(p, id)} {
				all = append(all, p.settle(e)...)
			}
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, command, id := lost(t)
			es := order(p, command, id)
			require.Equal(t, peerwire.StatusRejected, replied(t, es).Status)
			require.Equal(t, "pay: May the agent pay?", replied(t, es).PendingApprovalSummary)
			require.Len(t, p.listed(es), 1)
			g := p.listed(es)[0]
			require.Equal(t, topics.PeerGrant, machinetest.Only[topics.PeerCommand](t, p.settle(p.decided(g, topics.GateApproved))).Kind)
		})
	}
	p, command, _ := lost(t) // the outcome of the listed request comes first
	g := topics.GateRequest{Tool: "pay", InteractionID: "g1", ArgsSHA256: topics.ArgsSHA256(topics.Raw(invoice))}
	probe := begun(t)
	g.GateID = listedID(probe.key, probe.Read().Run, "g1")
	p.Handle(p.decided(g, topics.GateApproved))
	p.Handle(command)
	require.True(t, slices.ContainsFunc(machinetest.Values[topics.PeerCommand](p.asks("g1", invoice)), func(c topics.PeerCommand) bool { return c.Kind == topics.PeerGrant }))
}
