package gate

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/topics"
)

// grantResult is the result of applying a record to an agent's grants.
type grantResult struct {
	// Changed reports whether the row must be written, or deleted if Grants is nil. If it is false, the row stays as it is.
	Changed bool
	// Grants is the new row. It is set only if Changed is true.
	Grants *gaterow.Grants
	// Reason is why the record is dead-lettered, empty if it is not.
	Reason string
}

// applyGrant is the state machine of an agent's standing approvals: it applies a grant or a revocation to the agent's row. A
// nil record is a deadline of the row. A nil row is an agent without grants. applyGrant modifies the row that it is given, so
// the caller must not use it afterwards. It is deterministic.
//
// A grant that was revoked does not return if its record is repeated, and a revocation that precedes its grant counts.
func applyGrant(row *gaterow.Grants, agent string, record *topics.GateGrant, now time.Time, config Config) grantResult {
	t := &grants{row: row, now: now, config: config}
	if t.row == nil {
		t.row = &gaterow.Grants{Version: rowVersion}
	}
	switch {
	case record == nil:
		t.changed = row != nil
	case record.Agent != agent:
		return grantResult{Reason: reasonAgent}
	case len(record.GrantID) > maxID || len(record.Tool) > maxID || len(record.By) > maxID || len(record.ArgsSHA256) > maxID ||
		len(agent) > maxID:
		return grantResult{Reason: reasonLongID}
	case record.Action == topics.ActionRevoke:
		t.revoke(record.GrantID)
	default:
		if reason := t.add(*record); reason != "" {
			return grantResult{Reason: reason}
		}
	}
	if !t.changed {
		return grantResult{}
	}
	t.row.Grants = slices.DeleteFunc(t.row.Grants, func(a *gaterow.Grant) bool { return expired(a, now.UnixMilli()) })
	if record != nil {
		t.row.TouchedMs = now.UnixMilli()
	}
	idle := t.row.TouchedMs + config.RememberFor.Milliseconds()
	if len(t.row.Grants) == 0 && idle <= now.UnixMilli() {
		return grantResult{Changed: row != nil}
	}
	t.row.DeadlineMs = t.deadline(idle)
	return grantResult{Changed: true, Grants: t.row}
}

// grants is an agent's row while one record is applied to it.
type grants struct {
	row     *gaterow.Grants
	now     time.Time
	config  Config
	changed bool
}

// add stores a grant. It returns why it does not, if the record is to be dead-lettered.
func (t *grants) add(g topics.GateGrant) (reason string) {
	known := slices.ContainsFunc(t.row.Grants, func(a *gaterow.Grant) bool { return a.Id == g.GrantID })
	grant := &gaterow.Grant{Id: g.GrantID, Agent: g.Agent, Tool: g.Tool, ArgsSha256: g.ArgsSHA256, ExpiresMs: g.ExpiresMS, By: g.By}
	if known || expired(grant, t.now.UnixMilli()) || t.config.remembers(t.row.Revoked, digests.Of(ofRevoked, g.GrantID), t.now) {
		return ""
	}
	t.row.Grants = append(t.row.Grants, grant)
	if len(t.row.Grants) > maxGrants || proto.Size(t.row) > t.config.RowLimit-rowReserve {
		return reasonGrantRoom
	}
	t.changed = true
	return ""
}

// revoke ends a grant and remembers it.
func (t *grants) revoke(id string) {
	d := digests.Of(ofRevoked, id)
	if t.config.remembers(t.row.Revoked, d, t.now) {
		return
	}
	t.row.Grants = slices.DeleteFunc(t.row.Grants, func(a *gaterow.Grant) bool { return a.Id == id })
	t.row.Revoked = t.config.remember(t.row.Revoked, d, t.now)
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
