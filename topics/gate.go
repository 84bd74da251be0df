package topics

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// GateKind says what a gate waits for. Readers keep and show kinds that they do not know.
type GateKind string

// The kinds of gates.
const (
	// GateTool: a tool call waits for approval.
	GateTool GateKind = "tool"
	// GatePermission: an action outside a turn waits for permission.
	GatePermission GateKind = "permission"
	// GateInput: a person is asked a question.
	GateInput GateKind = "input"
	// GateDelegation: work for another agent waits for approval.
	GateDelegation GateKind = "delegation"
)

// GateVerdict is what a decision says, or may say.
type GateVerdict string

// The verdicts of people, VerdictApprove to VerdictAnswer. A request's Allowed may also contain VerdictEdit: an approval may
// then replace the arguments. VerdictClose and VerdictRevoke are never in Allowed.
const (
	VerdictApprove GateVerdict = "approve"
	VerdictDeny    GateVerdict = "deny"
	VerdictAnswer  GateVerdict = "answer"
	VerdictEdit    GateVerdict = "edit"
	// VerdictClose ends the gate without a person. The gate group writes it at the deadline and for a withdrawal, so that
	// one topic orders all that can end a gate. Doors must not accept it.
	VerdictClose GateVerdict = "close"
	// VerdictRevoke ends the standing approval of the session that was given with the gate's approval.
	VerdictRevoke GateVerdict = "revoke"
)

// GateStatus is how a gate ended.
type GateStatus string

// The statuses of an outcome.
const (
	GateApproved  GateStatus = "approved"
	GateDenied    GateStatus = "denied"
	GateTimedOut  GateStatus = "timed_out"
	GateCancelled GateStatus = "cancelled"
)

// GateCause says what ended a gate.
type GateCause string

// The causes of an outcome.
const (
	CauseHuman    GateCause = "human"
	CausePolicy   GateCause = "policy"
	CauseGrant    GateCause = "grant"    // a standing approval
	CauseDeadline GateCause = "deadline" // no decision in time
	// CauseNoRoom: the row of the session has no room for the gate.
	CauseNoRoom GateCause = "no_room"
	// CauseInvalid: the request cannot be decided, because of its size, its arguments or its schema.
	CauseInvalid GateCause = "invalid"

	// The causes that a requester names in GateRequest.Withdrawn. The outcome is GateCancelled.
	CauseSuperseded      GateCause = "superseded"        // a newer message took precedence
	CausePurged          GateCause = "purged"            // the session was purged
	CauseParentEnded     GateCause = "parent_ended"      // the turn ended
	CauseParentCannotAsk GateCause = "parent_cannot_ask" // the caller cannot ask a person
)

// GateScope says for which requests an approval counts.
type GateScope string

// The scopes of a decision.
const (
	// ScopeOnce: for this request only. It is the default.
	ScopeOnce GateScope = "once"
	// ScopeSession: also for later requests of the session for the same tool.
	ScopeSession GateScope = "session"
	// ScopeAgent: also for later requests of the agent for the same tool, in any session.
	ScopeAgent GateScope = "agent"
)

// GateID returns the ID of the gate of a call: a digest of session, turn and call. A requester that has no turn or call
// passes other texts that are unique in the session.
func GateID(session, turn, call string) string {
	h := sha256.New()
	var length [8]byte
	for _, part := range []string{"gate", session, turn, call} {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// ArgsSHA256 returns the digest of a call's arguments, in hexadecimal. It is computed over the exact bytes.
func ArgsSHA256(args Raw) string {
	d := sha256.Sum256(args)
	return hex.EncodeToString(d[:])
}

// instant reads an ISO 8601 time as milliseconds since the epoch; 0 for null and a blank string.
func (c *cursor) instant() (int64, error) {
	s, err := c.word()
	if err != nil || s == "" {
		return 0, err
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, fmt.Errorf("%w: got text that is not an ISO 8601 time", ErrType)
	}
	return t.UnixMilli(), nil
}

// some writes a text that may be absent: nothing if it is empty.
func (w *writer) some(name, v string) {
	if v != "" {
		w.word(name, v)
	}
}

// someRaw writes a value that may be absent: nothing if it is nil.
func (w *writer) someRaw(name string, v Raw) {
	if v != nil {
		w.raw(name, v)
	}
}
