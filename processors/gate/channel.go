package gate

import (
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/seen"
	"github.com/turntable-streams/turntable/topics"
)

// A person who was asked on a channel decides with a code, the beginning of the gate's ID, or with no code at all if one gate
// waits in that place. Which gate that is depends on the requests that were read before, and their order is not that of
// gate-decisions. So such a decision ends no gate: the group writes a second record to gate-decisions, with the ID of the gate,
// which counts when it is read. After a crash the same decision may be resolved again, to another gate. The first of these
// records counts, so that one decision never approves two gates.

// minCode is the shortest code that people can use, in bytes.
const minCode = 4

// decideOnChannel applies a decision that a person made on a channel.
func (t *transition) decideOnChannel(r *machine.Record, d topics.GateDecision) {
	origin, err := topics.DecodeOrigin(d.Channel)
	switch {
	case !t.config.Channels:
		t.deadLetter(reasonChannels)
	case err != nil:
		t.deadLetter(reasonChannel)
	case len(d.DecisionID) > maxID:
		t.deadLetter(reasonLongID)
	case origin.Proof == topics.ProofPlatform:
		t.decideProven(r, d, origin)
	case origin.Proof == topics.ProofCode && (!d.Pressed || d.Via == via):
		t.decideProven(r, d, origin)
	default:
		t.answer(r, d, textNoProof)
	}
}

// decideProven applies a decision of a person whom the channel has authenticated, or who knows the code of the gate.
func (t *transition) decideProven(r *machine.Record, d topics.GateDecision, origin topics.Origin) {
	switch {
	case d.Verdict != topics.VerdictApprove && d.Verdict != topics.VerdictDeny && d.Verdict != topics.VerdictAnswer:
		t.deadLetter(reasonVerdict)
	case !d.Pressed:
		t.resolve(r, d, origin)
	case d.Via != via:
		t.decide(r, d)
	case !t.resolved(d):
		t.row.Remembered = t.memory().Add(t.row.Remembered, digests.Of(ofCode, d.DecisionID))
		t.changed = true
		t.decide(r, d)
	}
}

// resolved reports whether a decision with a code was resolved before, and that record was read.
func (t *transition) resolved(d topics.GateDecision) bool {
	return t.memory().Has(t.row.Remembered, digests.Of(ofCode, d.DecisionID))
}

// resolve finds the gate of a decision with a code and writes the decision with the gate's ID.
func (t *transition) resolve(r *machine.Record, d topics.GateDecision, origin topics.Origin) {
	if t.resolved(d) {
		return
	}
	if origin.Proof == topics.ProofCode && d.GateID == "" {
		t.answer(r, d, textNeedsCode)
		return
	}
	var found []*gaterow.Gate
	for _, g := range t.row.Open {
		// Without a code, a request that is newer than the decision cannot be meant.
		if t.waits(g, origin) && t.names(g, d.GateID, origin) && (d.GateID != "" || g.OpenedMs <= t.timeOf(r)) {
			found = append(found, g)
		}
	}
	if i := slices.IndexFunc(found, func(g *gaterow.Gate) bool { return g.Id == d.GateID }); i >= 0 {
		found = found[i : i+1]
	}
	switch {
	case len(found) == 0 && d.GateID == "":
		t.answer(r, d, textNone)
	case len(found) == 0:
		t.answer(r, d, textUnknown)
	case len(found) > 1:
		t.answer(r, d, which(found))
	case refusal(found[0], d) != "":
		t.answer(r, d, refusal(found[0], d))
	default:
		d.GateID, d.Pressed, d.Via = found[0].Id, true, via
		machine.Emit(&t.Effects, t.topics.GateDecisions, t.key, d.DecisionID+"/resolved", d)
	}
}

// waits reports whether a gate was asked about in a place and can still be decided there.
func (t *transition) waits(g *gaterow.Gate, place topics.Origin) bool {
	closing := g.Closing != "" && g.Closing != string(topics.CauseGrant)
	return g.Asked && !g.NoRoom && !closing && g.ExpiresMs > t.nowMS() && askedIn(g, place)
}

// askedIn reports whether a gate came from a place.
func askedIn(g *gaterow.Gate, place topics.Origin) bool {
	origin, err := topics.DecodeOrigin(rawOf(g.Channel))
	return err == nil && origin.SamePlace(place)
}

// names reports whether a code names a gate. In a mail it must be the whole code of the question, and only a few codes are compared
// with it: the sender may be anyone of the domain.
func (t *transition) names(g *gaterow.Gate, code string, place topics.Origin) bool {
	if place.Proof != topics.ProofCode {
		return hasCode(g.Id, code)
	}
	if g.WrongCodes >= maxWrongCodes {
		return false
	}
	right := subtle.ConstantTimeCompare([]byte(strings.ToLower(code)), []byte(mailCode(g))) == 1
	if !right {
		g.WrongCodes++
		t.changed = true
	}
	return right
}

// maxWrongCodes is how many wrong codes are accepted for a gate.
const maxWrongCodes = 5

// mailCode is the code of a gate in a mail. The gate's ID alone can be derived from the mail that led to the gate, which its writer
// knows; the time of the request in milliseconds is known to the brokers and to those who may read gates.
func mailCode(g *gaterow.Gate) string {
	d := digests.Of("mail code", g.Id, strconv.FormatInt(g.OpenedMs, 10))
	return hex.EncodeToString(d[:codeSize/2])
}

// hasCode reports whether an ID begins with a code, regardless of case. Every ID has the empty code.
func hasCode(id, code string) bool {
	switch {
	case code == "":
		return true
	case len(code) > len(id) || len(code) < min(minCode, len(id)):
		return false
	default:
		return strings.EqualFold(id[:len(code)], code)
	}
}

// refusal returns why a person may not decide about a gate on a channel, empty if the person may: in the place that the request
// came from, the person whose message it was, and approvers. A gate that came from elsewhere is treated as unknown. A request that
// was not shown whole is not approved there.
func refusal(g *gaterow.Gate, d topics.GateDecision) string {
	asked, err := topics.DecodeOrigin(rawOf(g.Channel))
	by, err2 := topics.DecodeOrigin(d.Channel)
	switch {
	case err != nil || err2 != nil || !by.SamePlace(asked):
		return textUnknown
	case !d.Approver && (by.User == "" || by.User != asked.User):
		return textNotYours
	case d.Verdict == topics.VerdictApprove && d.ArgsSHA256 == "" && !seen.Whole(g.Args):
		return textNotShown
	default:
		return ""
	}
}

// refuseDecision answers a decision that an open gate does not accept, or dead-letters it if it is not from a channel.
func (t *transition) refuseDecision(r *machine.Record, d topics.GateDecision, reason string) {
	if d.Channel == nil {
		t.deadLetter(reason)
		return
	}
	t.answer(r, d, textNotAllowed)
}

// answerLate answers a decision of a channel about a gate that has ended, unless the decision ended it.
func (t *transition) answerLate(r *machine.Record, d topics.GateDecision) {
	if g := findIn(t.row.Closed, d.GateID); d.Channel != nil && g.GetOutcome().GetDecisionId() != d.DecisionID {
		t.answer(r, d, textUnknown)
	}
}

// answerEarly answers a pressed button of an unknown gate. The decision is held all the same: after a crash, it can be read
// again before its request.
func (t *transition) answerEarly(r *machine.Record, d topics.GateDecision) {
	if d.Channel != nil && d.Via != via {
		t.answer(r, d, textUnknown)
	}
}
