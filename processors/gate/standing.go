package gate

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// grantChange is a record of gate-grants; nil is a deadline of the row.
type grantChange struct {
	*machine.Record
	topics.GateGrant
}

// applyGrant is the state machine of an agent's standing approvals: it applies a grant or a revocation to the agent's row. A
// nil record is a deadline of the row. A nil row is an agent without grants. applyGrant modifies the row that it is given, so
// the caller must not use it afterwards. It is deterministic.
//
// A grant that was revoked does not return if its record is repeated, and a revocation that precedes its grant counts.
func applyGrant(
	row *gaterow.Grants, agent string, record *grantChange, now time.Time, config Config,
) (out machine.Outcome[*gaterow.Grants]) {
	t := &grants{row: row, now: now, config: config}
	defer func() { out.Effects = t.List() }()
	if t.row == nil {
		t.row = &gaterow.Grants{Version: rowVersion}
	}
	switch {
	case record == nil:
		t.changed = row != nil
	case record.Tombstone():
		t.DeadLetter(reasonTombstone)
	case record.Agent != agent:
		t.DeadLetter(reasonAgent)
	case len(record.GrantID) > maxID || len(record.Tool) > maxID || len(record.By) > maxID || len(record.ArgsSHA256) > maxID ||
		len(agent) > maxID:
		t.DeadLetter(reasonLongID)
	case record.Action == topics.ActionRevoke:
		t.revoke(record.GrantID)
	default:
		t.add(record.GateGrant)
	}
	if !t.changed {
		return out
	}
	t.row.Grants = slices.DeleteFunc(t.row.Grants, func(a *gaterow.Grant) bool { return expired(a, now.UnixMilli()) })
	if record != nil {
		t.row.TouchedMs = now.UnixMilli()
	}
	idle := t.row.TouchedMs + config.RememberFor.Milliseconds()
	if len(t.row.Grants) == 0 && idle <= now.UnixMilli() {
		out.Changed = row != nil
		return out
	}
	t.row.DeadlineMs = t.deadline(idle)
	out.Changed, out.Row = true, t.row
	return out
}

// grants is an agent's row while one record is applied to it.
type grants struct {
	machine.Effects
	row     *gaterow.Grants
	now     time.Time
	config  Config
	changed bool
}

// add stores a grant, or dead-letters its record.
func (t *grants) add(g topics.GateGrant) {
	known := slices.ContainsFunc(t.row.Grants, func(a *gaterow.Grant) bool { return a.Id == g.GrantID })
	grant := &gaterow.Grant{Id: g.GrantID, Agent: g.Agent, Tool: g.Tool, ArgsSha256: g.ArgsSHA256, ExpiresMs: g.ExpiresMS, By: g.By}
	if known || expired(grant, t.now.UnixMilli()) || t.memory().Has(t.row.Revoked, digests.Of(ofRevoked, g.GrantID)) {
		return
	}
	t.row.Grants = append(t.row.Grants, grant)
	if len(t.row.Grants) > maxGrants || proto.Size(t.row) > t.config.RowLimit-rowReserve {
		t.DeadLetter(reasonGrantRoom)
		return
	}
	t.changed = true
}

// revoke ends a grant and remembers it.
func (t *grants) revoke(id string) {
	d := digests.Of(ofRevoked, id)
	if t.memory().Has(t.row.Revoked, d) {
		return
	}
	t.row.Grants = slices.DeleteFunc(t.row.Grants, func(a *gaterow.Grant) bool { return a.Id == id })
	t.row.Revoked = t.memory().Add(t.row.Revoked, d)
	t.changed = true
}

// deadline returns the earliest end of a grant, or when a row without grants is deleted: idle. It is 0 if there is neither.
func (t *grants) deadline(idle int64) int64 {
	if len(t.row.Grants) == 0 {
		return idle
	}
	earliest := int64(0)
	for _, a := range t.row.Grants {
		if a.ExpiresMs != 0 && (earliest == 0 || a.ExpiresMs < earliest) {
			earliest = a.ExpiresMs
		}
	}
	return earliest
}
