package peer

import (
	"encoding/hex"
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// A peer cannot ask a person, so a call that needs approval rejects its run, and the turn ends: nothing of the task runs after the
// reply. Before the gate is closed, a request for the same approval is written, which outlives the run. If a person approves it,
// the label of the peer's token gets an approval (approval.go). A later run of the label whose call waits claims it, and the group
// decides the gate of that call with it:
//
//	gate is open for GateGrace -> claim -> approved:     approve the gate
//	                                    -> not approved: list the request, close the gate -> the turn ends -> rejected
//
// The gate group decides what ends a gate. A person who decides about the gate itself before it is closed is heard: the run
// continues, and the listed request is withdrawn.

// via is the name of this package in the records of gates.
const via = "peer"

// maxListed is how many requests a run lists.
const maxListed = maxGates

const listedNote = "The task of the peer was rejected because it cannot ask. An approval lets the peer's next task make this call once."

// listedID returns the ID of the request that is listed for a gate.
func listedID(session string, run *peerrow.Run, gate string) string {
	return topics.GateID(session, run.RunId, via+"/"+gate)
}

// callOf is the digest of what an approval is for.
func callOf(agent, tool, args string) string {
	d := digests.Of("peer call", agent, tool, args)
	return hex.EncodeToString(d[:])
}

// openClaim begins a claim for all gates that wait for nothing, also those that were opened a moment later: calls of one step are
// approved together or not at all, because a rejected run must not have used up an approval.
func (t *transition) openClaim(run *peerrow.Run) (id string) {
	for _, g := range run.Gates {
		if g.Phase != peerrow.Gate_OPEN {
			continue
		}
		if id == "" {
			id = g.Id
		}
		g.Phase, g.Claim = peerrow.Gate_CLAIMING, id
	}
	return id
}

// claim asks for the approvals of the label.
func (t *transition) claim(run *peerrow.Run, id string) {
	c := commandOf(run, topics.PeerClaim)
	for _, g := range run.Gates {
		if g.Phase == peerrow.Gate_CLAIMING && g.Claim == id {
			g.OpenMs = t.now.Add(writeAgain).UnixMilli()
			c.Gates = append(c.Gates, topics.PeerGate{GateID: g.Id, Call: callOf(g.Agent, g.Tool, g.ArgsSha256)})
		}
	}
	t.changed = true
	machine.Emit(&t.Effects, t.own.PeerCommands, labelKey(run.InboundId), run.RunId+"/claim/"+id, c)
}

func commandOf(r *peerrow.Run, kind topics.PeerCommandKind) topics.PeerCommand {
	return topics.PeerCommand{Kind: kind, TaskID: r.TaskId, InboundID: r.InboundId}
}

// claimAnswered approves the gates of a claim, or lets a person decide about them, or closes them.
func (t *transition) claimAnswered(e commanded) {
	c, run := e.Command, t.runOf(e.Command)
	if run == nil || run.Phase != peerrow.Run_RUNNING {
		return
	}
	for _, answer := range c.Gates {
		g := gateOf(run, answer.GateID)
		switch {
		case g == nil || g.Phase != peerrow.Gate_CLAIMING:
		case c.Approved:
			g.By = answer.By
			t.approve(run, g)
		case t.waits(run):
			t.waitFor(g)
		default:
			g.Unlisted = g.Unlisted || answer.Granted // a person need not approve it twice
			t.closeGate(run, g)
		}
	}
	t.setClock(run)
}

// approve decides a gate with the approval of its label.
func (t *transition) approve(run *peerrow.Run, g *peerrow.Gate) {
	g.Phase, g.OpenMs, t.changed = peerrow.Gate_APPROVING, t.now.Add(writeAgain).UnixMilli(), true
	if agent, ok := t.agent(g.Agent); ok {
		id := run.RunId + "/approve/" + g.Id
		machine.Emit(&t.Effects, agent.GateDecisions, t.key, id, topics.GateDecision{
			GateID: g.Id, SessionID: t.key, DecisionID: id, Verdict: topics.VerdictApprove, ArgsSHA256: g.ArgsSha256,
			By: g.By, Via: via,
		})
	}
}

// closeGate ends a gate without a decision, and lists its request before.
func (t *transition) closeGate(run *peerrow.Run, g *peerrow.Gate) {
	t.list(run, g)
	back := writeAgain
	if !g.OfTurn { // its requester may not end the turn
		back = t.config.GateGrace
	}
	g.Phase, g.OpenMs, t.changed = peerrow.Gate_CLOSING, t.now.Add(back).UnixMilli(), true
	t.withdraw(run.RunId, g.Agent, g.Id, topics.CauseParentCannotAsk)
}

// withdraw ends a gate for its requester.
func (t *transition) withdraw(runID, agent, gate string, cause topics.GateCause) {
	t.requestGate(agent, runID+"/withdraw/"+gate, topics.GateRequest{
		GateID: gate, SessionID: t.key, Withdrawn: cause, Origin: topics.GateOrigin{Agent: agent, Via: via},
	})
}

func (t *transition) requestGate(agent, id string, r topics.GateRequest) {
	if agent, ok := t.agent(agent); ok {
		machine.Emit(&t.Effects, agent.GateRequests, t.key, id, r)
	}
}

// list writes the request for the approval of a call, which outlives the run.
func (t *transition) list(run *peerrow.Run, g *peerrow.Gate) {
	if g.Unlisted {
		return
	}
	message := listedNote
	if g.Message != "" {
		message = g.Message + "\n\n" + listedNote
	}
	r := topics.GateRequest{
		GateID: listedID(t.key, run, g.Id), SessionID: t.key, Kind: topics.GateKind(g.Kind), Tool: g.Tool, InteractionID: g.Id,
		Args: rawOf(g.Args), ArgsSHA256: g.ArgsSha256, Message: message,
		Allowed:   []topics.GateVerdict{topics.VerdictApprove, topics.VerdictDeny},
		Dangerous: g.Dangerous, Origin: topics.GateOrigin{Agent: g.Agent, ParentGateID: g.Id, Via: via},
		Effect: "ask", ExpiresMS: t.now.Add(t.config.RememberFor).UnixMilli(),
	}
	t.requestGate(g.Agent, run.RunId+"/list/"+g.Id, r)
}

// listedOf returns the listed request for a gate, which is added if it is not known; nil if there is no room.
func (t *transition) listedOf(run *peerrow.Run, parent, agent string) *peerrow.Listed {
	if i := slices.IndexFunc(run.Listed, func(l *peerrow.Listed) bool { return l.Parent == parent }); i >= 0 {
		return run.Listed[i]
	}
	l := &peerrow.Listed{GateId: listedID(t.key, run, parent), Parent: parent, Agent: agent}
	if len(run.Listed) >= maxListed || len(parent) > maxGateID || !t.room(len(l.GateId)+len(parent)+len(agent)+maxBy+4*rowSlack) {
		return nil
	}
	run.Listed, t.changed = append(run.Listed, l), true
	return l
}

// maxBy is the longest name of a person that is kept, in bytes.
const maxBy = 256

// lister returns the run that listed requests belong to: also one that has ended.
func (t *transition) lister() *peerrow.Run {
	if t.row.Run != nil {
		return t.row.Run
	}
	return t.early()
}

// listedAsked keeps that a request was listed. It is read again after a crash, so none is forgotten.
func (t *transition) listedAsked(e gateAsked) {
	g, run := e.Request, t.lister()
	switch {
	case run == nil || g.Withdrawn != "":
	case run == t.row.Early || g.GateID == listedID(t.key, run, g.InteractionID):
		t.listedOf(run, g.InteractionID, e.Agent)
		t.settleListed(run)
	}
}

// listedEnded applies the outcome of a listed request. It returns false if the outcome is that of another gate.
func (t *transition) listedEnded(e gateEnded) bool {
	o, run := e.Outcome, t.lister()
	if run == nil || o.InteractionID == "" || o.TurnID != "" {
		return false
	}
	if run != t.row.Early && o.GateID != listedID(t.key, run, o.InteractionID) {
		return false
	}
	l := t.listedOf(run, o.InteractionID, e.Agent)
	if l == nil {
		return true
	}
	t.changed = true
	if o.Status == topics.GateApproved {
		l.Approved, l.Call, l.By = true, callOf(l.Agent, o.Tool, o.EffectiveArgsSHA256), truncate.Text(o.By, maxBy)
	} else {
		l.Withdrawn = true // it has ended
	}
	t.settleListed(run)
	return true
}

// unlist withdraws the request that is listed for a gate: a person has decided about the gate itself.
func (t *transition) unlist(run *peerrow.Run, g *peerrow.Gate) {
	if g.Unlisted {
		return
	}
	if l := t.listedOf(run, g.Id, g.Agent); l != nil {
		t.withdrawListed(run, l)
	}
}

// withdrawListed withdraws a request, or the approval that it has led to.
func (t *transition) withdrawListed(run *peerrow.Run, l *peerrow.Listed) {
	if l.Withdrawn {
		return
	}
	l.Withdrawn, t.changed = true, true
	if !l.Approved {
		t.withdraw(run.RunId, l.Agent, l.GateId, topics.CauseParentEnded)
		return
	}
	c := commandOf(run, topics.PeerRevoke)
	c.Gates = []topics.PeerGate{{GateID: l.GateId}}
	machine.Emit(&t.Effects, t.own.PeerCommands, labelKey(run.InboundId), run.RunId+"/revoke/"+l.GateId, c)
}

// settleListed gives the label the approvals of a run that was rejected. The requests of any other run that has ended are
// withdrawn, and those that the peer no longer wants.
func (t *transition) settleListed(run *peerrow.Run) {
	if run.Phase != peerrow.Run_ENDED {
		return
	}
	for _, l := range run.Listed {
		switch {
		case !run.Rejected || run.Withdrawn:
			t.withdrawListed(run, l)
		case l.Approved && !l.Granted && !l.Withdrawn:
			c := commandOf(run, topics.PeerGrant)
			c.DeadlineMS = t.now.Add(t.config.RememberFor).UnixMilli()
			c.Gates = []topics.PeerGate{{GateID: l.GateId, Call: l.Call, By: l.By}}
			machine.Emit(&t.Effects, t.own.PeerCommands, labelKey(run.InboundId), run.RunId+"/grant/"+l.GateId, c)
			l.Granted, t.changed = true, true
		}
	}
}

// withdrawAll withdraws what the run has listed, now or later.
func (t *transition) withdrawAll(run *peerrow.Run) {
	if !run.Withdrawn {
		run.Withdrawn, t.changed = true, true
		t.settleListed(run)
	}
}

// labelKey is the key under which the approvals of a token's label are kept.
func labelKey(inboundID string) string { return "peer-approvals:" + peerwire.TaskKey(inboundID, "") }
