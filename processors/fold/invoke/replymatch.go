package invoke

import (
	"net/http"
	"slices"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/internal/seen"
	"github.com/turntable-streams/turntable/topics"
)

// gated is an interaction of a turn with what is known about its gate.
type gated struct {
	folder.Interaction
	gate    string // topics.GateID
	turn    string
	attempt int64
	after   int64 // seq of the last record of the pause at which the gate was opened
	open    bool  // neither an event nor an outcome has decided it
	outcome *topics.GateOutcome
}

// match is an answer and the index of the interaction that it decides.
type match struct {
	reply
	at int
}

// verdict is what the answer says to its interaction: {approved: true} approves a call, and answers a question.
func (m match) verdict(to gated) topics.GateVerdict {
	switch {
	case m.decides && !m.approved:
		return topics.VerdictDeny
	case m.decides && to.approves():
		return topics.VerdictApprove
	}
	return topics.VerdictAnswer
}

// answer returns the value of a VerdictAnswer: the member answer beside a token, or else the output without the token.
func (m match) answer() topics.Raw {
	if _, ok := field(m.value, "interactionToken"); !ok {
		return m.value
	}
	if answer, ok := field(m.value, "answer"); ok {
		return answer
	}
	rest := newObject()
	eachMember(m.value, func(name string, value topics.Raw) bool {
		if name != "interactionToken" {
			rest = rest.with(name, value)
		}
		return true
	})
	return rest.value()
}

// blind reports whether the interaction asks to approve arguments that its request was too long to show.
func (g gated) blind() bool { return string(member(g.Payload, "truncated")) == "true" }

// approves reports whether the interaction asks for approval, and not for a value.
func (g gated) approves() bool { return g.Kind != "user_input" && g.Kind != "client_tool" }

// matches is the result of matchReplies.
type matches struct {
	open    []match // of open interactions, each once
	decided []match // of interactions that are decided already
}

var (
	errNoInteraction = &Error{
		Status: http.StatusConflict, Type: TypeUnknown, Code: "unknown_interaction",
		Text: "no open interaction of the session has this token, tool call ID, or tool and arguments",
	}
	errAmbiguous = &Error{
		Status: http.StatusConflict, Type: TypeUnknown, Code: "ambiguous_answer",
		Text: "several open interactions match the answer; answer with the interactionToken",
	}
	errNotShown = &Error{
		Status: http.StatusConflict, Type: TypeUnknown, Code: "not_shown",
		Text: seen.Refusal + ": the request's url, or the gate door, has them, and argsSha256 beside approved repeats the digest",
	}
	errDigest = &Error{
		Status: http.StatusPreconditionFailed, Type: TypeUnknown, Code: "other_arguments",
		Text: "argsSha256 is not the digest of the arguments",
	}
	errNoDecision = &Error{
		Status: http.StatusUnprocessableEntity, Type: TypeUnknown, Code: "invalid_answer",
		Text: `the call waits for an approval: the answer's output must be {"approved": true} or {"approved": false}`,
	}
	errContradiction = &Error{
		Status: http.StatusUnprocessableEntity, Type: TypeUnknown, Code: "invalid_answer",
		Text: "the request approves and denies the same interaction",
	}
)

// matchReplies finds the interactions that answers decide: by token, or else by the ID of the tool call, or else by the
// tool's name and arguments. It fails if an approval or a denial matches no interaction or several, if a value answers an open
// approval, and if answers contradict each other. Another value that matches no open question is an ordinary result in the
// client's history and left out.
func matchReplies(replies []reply, all []gated) (m matches, err error) {
	for _, r := range replies {
		at, err := findGated(r, all)
		switch {
		case err != nil:
			return matches{}, err
		case at < 0 && r.decides:
			return matches{}, errNoInteraction
		case at < 0 && r.misses(all):
			return matches{}, errNoDecision
		case at < 0:
		case !all[at].open:
			if r.decides || !all[at].approves() {
				m.decided = append(m.decided, match{r, at})
			}
		default:
			if m.open, err = m.with(match{r, at}, all); err != nil {
				return matches{}, err
			}
		}
	}
	return m, nil
}

// with adds the answer to an open interaction, unless it is there.
func (m matches) with(one match, all []gated) ([]match, error) {
	for _, before := range m.open {
		if before.at != one.at {
			continue
		}
		to := all[one.at]
		if before.verdict(to) != one.verdict(to) || !one.decides && !topics.Equal(before.value, one.value) {
			return nil, errContradiction
		}
		return m.open, nil
	}
	return append(m.open, one), nil
}

// findGated returns the index of the interaction of an answer; -1 for none.
func findGated(r reply, all []gated) (int, error) {
	var token, call, named []int
	for i, g := range all {
		switch {
		case !r.decides && g.approves(): // a value never approves
		case r.token != "" && r.token == g.ID:
			token = append(token, i)
		case r.call != "" && r.call == g.ToolUseID:
			if !r.differs(g) {
				call = append(call, i)
			}
		case r.names(g):
			named = append(named, i)
		}
	}
	// A token of a decided interaction never decides another one: the client's history may repeat old approvals.
	for _, hits := range [][]int{token, call, named} {
		if len(hits) == 0 {
			continue
		}
		// A later request may have the IDs of a decided one, and the answer may repeat the decision.
		hits = preferred(hits, func(i int) bool { return r.call != "" && r.call == all[i].ToolUseID })
		hits = preferred(hits, func(i int) bool { return equalArgs(r.args, all[i].Args) })
		open := slices.DeleteFunc(slices.Clone(hits), func(i int) bool { return !all[i].open })
		switch len(open) {
		case 0:
			return hits[len(hits)-1], nil
		case 1:
			return open[0], nil
		default:
			return -1, errAmbiguous
		}
	}
	return -1, nil
}

// preferred returns those of the hits that also agree otherwise; all of them if none does.
func preferred(hits []int, agrees func(i int) bool) []int {
	if some := slices.DeleteFunc(slices.Clone(hits), func(i int) bool { return !agrees(i) }); len(some) > 0 {
		return some
	}
	return hits
}

// misses reports whether the answer is a value for an open approval: nothing but a decision ends that, and as a message of the
// user it would begin another turn beside the one that waits.
func (r reply) misses(all []gated) bool {
	return slices.ContainsFunc(all, func(g gated) bool {
		if !g.open || !g.approves() {
			return false
		}
		byCall := r.call != "" && r.call == g.ToolUseID && !r.differs(g)
		return byCall || r.token != "" && r.token == g.ID || r.names(g)
	})
}

// names reports whether the answer is about a call with the interaction's tool and arguments.
func (r reply) names(g gated) bool {
	return r.tool != "" && slices.Contains(g.Names, r.tool) && equalArgs(r.args, g.Args)
}

// differs reports whether the answer names another interaction about other arguments, although the ID of the call is the same:
// an agent may use the ID of a call again.
func (r reply) differs(from gated) bool {
	return r.token != "" && from.ID != "" && r.token != from.ID && len(r.args) > 0 && !equalArgs(r.args, from.Args)
}

// equalArgs compares arguments by value, without the envelopes of tool protocols.
func equalArgs(a, b topics.Raw) bool {
	if len(a) == 0 || b == nil {
		return false
	}
	return topics.Equal(a, b) || topics.Equal(unwrap(a), unwrap(b))
}
