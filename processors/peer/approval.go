package peer

import (
	"bytes"
	"slices"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// The approvals that a peer may use are in one row for the label of its token, and peer-commands orders what gives, uses and revokes
// them. An approval that was used names the gate that used it, so the claim of a run that is read again after a crash has the same
// answer, and no other run gets the approval.

// maxApprovals is how many approvals of a label are kept, with those that were used.
const maxApprovals = 256

// ofLabel reports whether the row of a command is that of its label. A command of a foreign program under another key decides nothing.
func (t *transition) ofLabel(c topics.PeerCommand) bool {
	if c.InboundID == "" || t.key != labelKey(c.InboundID) {
		t.DeadLetter(reasonCommand)
		return false
	}
	return true
}

// granted keeps an approval. A repeat changes nothing, also after the approval was used or revoked.
func (t *transition) granted(e commanded) {
	if t.ofLabel(e.Command) {
		for _, g := range e.Command.Gates {
			t.keepApproval(&peerrow.Approval{Request: g.GateID, Call: g.Call, By: g.By, ExpiresMs: e.Command.DeadlineMS})
		}
	}
}

// revoked ends an approval that was not used. One that is not known was not given before, and will not be.
func (t *transition) revoked(e commanded) {
	if !t.ofLabel(e.Command) {
		return
	}
	for _, g := range e.Command.Gates {
		i := slices.IndexFunc(t.row.Approvals, func(a *peerrow.Approval) bool { return a.Request == g.GateID })
		switch {
		case i < 0:
			expires := t.timeOf(e.Record).Add(t.config.RememberFor).UnixMilli()
			t.keepApproval(&peerrow.Approval{Request: g.GateID, Revoked: true, ExpiresMs: expires})
		case isFree(t.row.Approvals[i]):
			t.row.Approvals[i].Revoked, t.changed = true, true
		}
	}
}

func (t *transition) keepApproval(a *peerrow.Approval) {
	known := slices.ContainsFunc(t.row.Approvals, func(o *peerrow.Approval) bool { return o.Request == a.Request })
	size := len(a.Request) + len(a.Call) + len(a.By) + 2*rowSlack + (len(t.row.Approvals)+1)*maxGateID // for UsedBy
	switch {
	case known || a.ExpiresMs <= t.nowMS():
	case len(t.row.Approvals) >= maxApprovals || len(a.By) > maxBy || len(a.Request)+len(a.Call) > 2*maxGateID || !t.room(size):
		t.DeadLetter(reasonApprovals)
	default:
		t.row.Approvals, t.changed = append(t.row.Approvals, a), true
	}
}

// claimed answers whether all calls that wait are approved. Only then the approvals are used. A gate that got none gets none later:
// after a crash its run claims again, when the gate may be closed already and a person may have approved the call for the next task.
func (t *transition) claimed(e commanded) {
	c := e.Command
	if !t.ofLabel(c) || len(c.Gates) == 0 || len(c.Gates) > maxGates {
		return
	}
	answer := topics.PeerCommand{Kind: topics.PeerClaimed, TaskID: c.TaskID, InboundID: c.InboundID, Approved: true}
	found := make([]*peerrow.Approval, 0, len(c.Gates))
	for _, g := range c.Gates {
		a := t.approvalFor(g, found, t.timeOf(e.Record).UnixMilli())
		if t.isRefused(g.GateID) {
			a = nil
		}
		reply := topics.PeerGate{GateID: g.GateID}
		if found = append(found, a); a != nil {
			reply.By, reply.Granted = a.By, true
		}
		answer.Approved = answer.Approved && a != nil
		answer.Gates = append(answer.Gates, reply)
	}
	if answer.Approved {
		for i, a := range found {
			t.changed = t.changed || isFree(a)
			a.UsedBy = c.Gates[i].GateID
		}
	} else {
		for _, g := range c.Gates {
			t.refuse(g.GateID)
		}
	}
	id := peerwire.TaskKey(c.InboundID, c.TaskID) + "/claimed/" + c.Gates[0].GateID
	machine.Emit(&t.Effects, t.own.PeerCommands, peerwire.SessionID(c.InboundID, c.TaskID), id, answer)
}

// maxRefused is how many gates that got no approval are remembered: more than a label has between two cuts.
const maxRefused = 256

func refusedGate(id string) []byte {
	d := digests.Of("peer refused", id)
	return d[:]
}

func (t *transition) isRefused(id string) bool {
	for d := range slices.Chunk(t.row.Refused, digests.Size) {
		if bytes.Equal(d, refusedGate(id)) {
			return true
		}
	}
	return false
}

func (t *transition) refuse(id string) {
	if t.isRefused(id) || !t.room(digests.Size) {
		return
	}
	t.row.Refused, t.changed = append(t.row.Refused, refusedGate(id)...), true
	if over := len(t.row.Refused) - maxRefused*digests.Size; over > 0 {
		t.row.Refused = t.row.Refused[over:]
	}
}

// approvalFor returns the approval that a gate has used, or the oldest one that it may use; nil if there is none.
func (t *transition) approvalFor(g topics.PeerGate, taken []*peerrow.Approval, at int64) (free *peerrow.Approval) {
	for _, a := range t.row.Approvals {
		switch {
		case a.UsedBy == g.GateID:
			return a
		case free == nil && isFree(a) && a.Call == g.Call && a.ExpiresMs > at && len(g.GateID) <= maxGateID && !slices.Contains(taken, a):
			free = a
		}
	}
	return free
}

func isFree(a *peerrow.Approval) bool { return a.UsedBy == "" && !a.Revoked }

// approvalDeadlines adds when approvals end.
func (t *transition) approvalDeadlines(add func(int64)) {
	for _, a := range t.row.Approvals {
		add(a.ExpiresMs)
	}
	if len(t.row.Refused) > 0 {
		add(t.row.TouchedMs + t.config.RememberFor.Milliseconds())
	}
}

func (t *transition) approvalsDue() {
	n := len(t.row.Approvals)
	t.row.Approvals = slices.DeleteFunc(t.row.Approvals, func(a *peerrow.Approval) bool { return a.ExpiresMs <= t.nowMS() })
	t.changed = t.changed || len(t.row.Approvals) != n
	if len(t.row.Refused) > 0 && t.row.TouchedMs+t.config.RememberFor.Milliseconds() <= t.nowMS() {
		t.row.Refused, t.changed = nil, true
	}
}
