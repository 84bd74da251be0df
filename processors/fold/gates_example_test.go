package fold_test

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// A runner whose turn has paused follows gate-outcomes. When its gates have outcomes, it continues the same turn and attempt
// with the next numbers.
func ExampleWithGates() {
	_, err := fold.Graph("harbor", fold.Config{Gates: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	catalog, err := topics.For("harbor", topics.WithEvents(), topics.WithGates())
	if err != nil {
		fmt.Println(err)
		return
	}
	run := pausedRun{session: "harbor-s19", turn: "t-7", attempt: 1, seq: 8, requests: map[string]string{}}
	// The run has raised one interaction request, r-1, and has paused.
	call := folder.GateCall(run.turn, run.attempt, 0)
	run.requests[topics.GateID(run.session, run.turn, call)] = "r-1"

	handle := func(in processors.Inbound) {
		if d := catalog.GateOutcomes.Codec().Unmarshal(in.Value); d.Err == nil {
			run.continueWith(d.Value, func(e topics.AgentEvent) { fmt.Println(e.TurnID, e.Attempt, e.Seq, e.Event) })
		}
	}
	if _, err := processors.NewFollower([]string{"localhost:9092"}, []string{catalog.GateOutcomes.Name()}, handle); err != nil {
		fmt.Println(err)
		return
	}
	// Run it with Follower.Run(ctx). Here is what it does with an outcome.
	outcome, err := processors.OutboundOf(catalog.GateOutcomes, run.session, topics.GateOutcome{
		GateID: topics.GateID(run.session, run.turn, call), SessionID: run.session, TurnID: run.turn, CallID: call,
		Status: topics.GateDenied, Cause: topics.CauseHuman, Reason: "too expensive",
	}, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	handle(processors.Inbound{Value: outcome.Value})
	// Output:
	// t-7 1 9 {"type":"interaction_response","data":{"id":"r-1","kind":"user_approval","payload":{"approved":false}}}
}

// pausedRun is a run whose last record was seq.
type pausedRun struct {
	session, turn string
	attempt, seq  int64
	requests      map[string]string // the IDs of the interaction requests by gate
}

// continueWith writes what an outcome means for the run.
func (r *pausedRun) continueWith(o topics.GateOutcome, write func(topics.AgentEvent)) {
	id, ok := r.requests[o.GateID]
	if !ok {
		return // another gate, or a repeated outcome
	}
	delete(r.requests, o.GateID)
	r.seq++
	write(topics.AgentEvent{
		SessionID: r.session, TurnID: r.turn, Attempt: r.attempt, Seq: r.seq,
		Event: topics.Raw(fmt.Sprintf(`{"type":"interaction_response","data":{"id":%q,"kind":"user_approval","payload":{"approved":%t}}}`,
			id, o.Status == topics.GateApproved)),
	})
}
