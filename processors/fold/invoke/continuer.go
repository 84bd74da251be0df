package invoke

import (
	"context"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// Continuer is an Agent whose turns can wait for a person. Wrap it with NewBuffered, which keeps a turn whose stop reason is
// "paused" while it has open interaction requests, and continues it when all of them are decided: see Approvals of embedded
// agents in the package documentation. Answers to turns of other agents are ordinary requests.
type Continuer interface {
	Agent
	// Continue continues a turn that has paused. r is the request that began the turn, so its messages are not those of the
	// client that answers. The events of the stream are added to the turn. If Continue returns an error, the turn stays
	// paused and the answers of the request are void: the client can send them again. ctx is as for Invoke, with the values
	// of the request that has the last answer.
	Continue(ctx context.Context, r Request, c Continuation) (Stream, error)
}

// Continuation is a turn that has paused, with the decisions about it. Do not change it.
type Continuation struct {
	TurnID string
	// Decisions are those since the pause, one for each open interaction, in the order of the requests.
	Decisions []Decision
	// Events are the events of the turn so far.
	Events []folder.Event
	// Answer is the request with the last answer. Its messages are the client's: use the arguments of Decisions.
	Answer Request
}

// Decision is an interaction and its outcome. The arguments that may run are Interaction.Args, as the turn has stored them.
type Decision struct {
	Interaction folder.Interaction
	// Outcome has the status GateApproved or GateDenied. An answered question is approved and has an Answer.
	Outcome topics.GateOutcome
}

// Approved reports whether the call may run, or the question is answered.
func (d Decision) Approved() bool { return d.Outcome.Status == topics.GateApproved }

// Events returns events that show the decision to clients and to the model: the response to the request and, for a denied
// call, its result. Agents can put them at the beginning of the stream.
func (d Decision) Events() []folder.Event {
	var list []folder.Event
	add := func(kind string, data object) {
		if e, err := folder.NewEvent(kind, data.value()); err == nil { // it fails for invalid or deep JSON, which this is not
			list = append(list, e)
		}
	}
	payload := newObject().with("approved", boolean(d.Approved())).nonEmpty("toolCallId", d.Interaction.ToolUseID).
		nonEmpty("reason", d.Outcome.Reason)
	add("interaction_response", newObject().nonEmpty("id", d.Interaction.ID).nonEmpty("kind", d.Interaction.Kind).
		with("payload", payload.value()))
	if call := d.Interaction.ToolUseID; call != "" && !d.Approved() {
		told := "The user denied the call."
		if d.Outcome.Reason != "" {
			told = "The user denied the call: " + d.Outcome.Reason
		}
		add("tool_result", newObject().text("id", call).text("output", told).with("isError", boolean(true)).
			with("denied", boolean(true)))
	}
	return list
}

func boolean(v bool) topics.Raw {
	if v {
		return topics.Raw("true")
	}
	return topics.Raw("false")
}
