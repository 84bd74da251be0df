package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// A program runs both groups with the same Config.
func ExampleGraph() {
	limit := 1000.0
	config := gate.Config{Policy: approval.Policy{
		TTL: 24 * time.Hour,
		Rules: []approval.Rule{
			{Tool: "pay", Effect: approval.Deny, Args: map[string]approval.Condition{"/cents": {AtLeast: &limit}}},
		},
	}}
	for _, build := range []func(string, gate.Config) (*goka.GroupGraph, error){gate.Graph, gate.GrantsGraph} {
		graph, err := build("quay", config)
		if err != nil {
			panic(err)
		}
		// Pass it to processors.New.
		fmt.Println(graph.Group(), "reads", strings.Join(graph.InputStreams().Topics(), ", "))
	}
	// Output:
	// quay-gate-streams reads quay-gate-requests, quay-gate-decisions, quay-session-control
	// quay-gate-grant-streams reads quay-gate-grants
}

// A door checks a decision before it writes it.
func ExampleView_Check() {
	args := topics.Raw(`{"cents":250}`)
	view := gate.View{
		GateID: "g1", SessionID: "s1", Kind: topics.GateTool, Tool: "pay", Args: args, ArgsSHA256: topics.ArgsSHA256(args),
		Allowed: []topics.GateVerdict{topics.VerdictApprove, topics.VerdictDeny},
	}
	err := view.Check(topics.GateDecision{Verdict: topics.VerdictApprove, ArgsSHA256: "00"})
	fmt.Println(errors.Is(err, gate.ErrDigest), err)
	err = view.Check(topics.GateDecision{Verdict: topics.VerdictApprove, EditedArgs: topics.Raw(`{"cents":1}`)})
	fmt.Println(errors.Is(err, gate.ErrDecision), err)
	fmt.Println(view.Check(topics.GateDecision{Verdict: topics.VerdictDeny, Reason: "not today"}))
	// Output:
	// true gate: the decision is about other arguments
	// true gate: invalid decision: its arguments cannot be edited
	// <nil>
}

type printer struct{}

func (printer) Publish(_ context.Context, records ...processors.Outbound) error {
	for _, r := range records {
		fmt.Println(r.Topic, r.Key, string(r.Value))
	}
	return nil
}

func ExampleDecide() {
	_ = gate.Decide(context.Background(), printer{}, "quay", topics.GateDecision{
		GateID: "g1", SessionID: "s1", DecisionID: "d1", Verdict: topics.VerdictApprove, By: "ines",
	})
	// Output: quay-gate-decisions s1 {"gate_id":"g1","session_id":"s1","decision_id":"d1","verdict":"approve","by":"ines"}
}

func ExampleRevokeForAgent() {
	_ = gate.RevokeForAgent(context.Background(), printer{}, "quay", "g1", "ines")
	// Output: quay-gate-grants quay {"action":"revoke","grant_id":"g1","agent":"quay","by":"ines"}
}

type tableOf map[string]any

func (t tableOf) Get(session string) (any, error) {
	if session == "" {
		return nil, errors.New("no such partition")
	}
	return t[session], nil
}

func ExampleDescribe() {
	var p *processors.Processor // runs gate.Graph
	row, err := p.Get("harbor-s19")
	if err != nil {
		panic(err)
	}
	text, err := gate.Describe(row)
	if err != nil {
		panic(err)
	}
	fmt.Print(text)
}

func ExampleInspect() {
	var p *processors.Processor // runs gate.Graph
	open, err := gate.Inspect(p, "harbor-s19")
	if err != nil {
		panic(err)
	}
	for _, v := range open {
		fmt.Println(v.GateID, v.Tool, v.ExpiresAt)
	}
}
