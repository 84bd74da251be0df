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

// A program runs both groups with the same options.
func ExampleGraph() {
	limit := 1000.0
	opts := []gate.Option{gate.WithPolicy(approval.Policy{
		TTL: 24 * time.Hour,
		Rules: []approval.Rule{
			{Tool: "pay", Effect: approval.Deny, Args: map[string]approval.Condition{"/cents": {AtLeast: &limit}}},
		},
	})}
	for _, build := range []func(string, ...gate.Option) (*goka.GroupGraph, error){gate.Graph, gate.GrantsGraph} {
		graph, err := build("quay", opts...)
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

// One gate is approved with other arguments. No one decides the other one: at its deadline, the group writes a record that
// closes it.
func ExampleApply() {
	now := time.UnixMilli(1_790_000_000_000).UTC()
	rules := gate.DefaultRules()
	noGrants := func(string) *gate.Grants { return nil }
	var state *gate.State
	var apply func(e gate.Event)
	record := func() *gate.Record { return &gate.Record{Session: "s1", At: now, Value: []byte("{}")} }
	apply = func(e gate.Event) {
		out := gate.Apply(state, e, noGrants, now, rules)
		if out.Changed {
			state = out.State
		}
		for _, effect := range out.Effects {
			switch v := effect.(gate.Emit).Value.(type) {
			case gate.GateEnded:
				fmt.Println(v.GateID, v.Status, v.Cause, v.EffectiveArgs)
			case gate.CloseAsked: // comes back as a record of gate-decisions
				apply(gate.Decided{Record: record(), Decision: topics.GateDecision(v)})
			}
		}
	}

	for _, id := range []string{"g1", "g2"} {
		apply(gate.Requested{Record: record(), Request: topics.GateRequest{
			GateID: id, SessionID: "s1", Kind: topics.GateTool, Tool: "pay", Args: topics.Raw(`{"cents":250}`),
			Allowed: []topics.GateVerdict{topics.VerdictApprove, topics.VerdictDeny, topics.VerdictEdit},
		}})
	}
	apply(gate.Decided{Record: record(), Decision: topics.GateDecision{
		GateID: "g1", SessionID: "s1", DecisionID: "d1", Verdict: topics.VerdictApprove, EditedArgs: topics.Raw(`{"cents":100}`),
		By: "ines",
	}})
	fmt.Println("still open:", gate.Gates("s1", state)[0].GateID)
	now = time.UnixMilli(state.DeadlineMs)
	apply(gate.DeadlineCame{Session: "s1"})
	// Output:
	// g1 approved human {"cents":100}
	// still open: g2
	// g2 timed_out deadline null
}

// A revoked grant does not return, even if its record is repeated.
func ExampleApplyGrant() {
	now, rules := time.UnixMilli(1_790_000_000_000), gate.DefaultRules()
	grant := &topics.GateGrant{Action: topics.ActionGrant, GrantID: "g1", Agent: "quay", Tool: "pay", By: "ines"}
	revoke := &topics.GateGrant{Action: topics.ActionRevoke, GrantID: "g1", Agent: "quay"}
	var row *gate.Grants
	for _, record := range []*topics.GateGrant{grant, revoke, grant} {
		if out := gate.ApplyGrant(row, "quay", record, now, rules); out.Changed {
			row = out.Grants
		}
		fmt.Println(len(row.Grants))
	}
	// Output:
	// 1
	// 0
	// 0
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

// The table is that of a running processor of Graph, or a goka.View.
func ExampleInspect() {
	row := gate.TableCodec().Unmarshal(exampleRow())
	open, err := gate.Inspect(tableOf{"s1": row}, "s1")
	for _, v := range open {
		fmt.Println(v.GateID, v.Tool, v.Args, v.ExpiresAt, err)
	}
	// Output: g2 pay {"cents":250} 2026-09-21T14:23:20Z <nil>
}

func ExampleDescribe() {
	state, err := gate.DecodeState(exampleRow())
	if err != nil {
		panic(err)
	}
	fmt.Print(gate.Describe(state))
	// Output:
	// gate g2: tool "pay", 13 bytes, expires 2026-09-21T14:23:20Z
	// gate g1: tool "pay", denied (human) at 2026-09-21T14:13:20Z
	// remembered: 0
	// next deadline: 2026-09-21T14:23:20Z
}

// exampleRow is the row of a session with an open gate and one that has ended.
func exampleRow() []byte {
	const at, expires = 1_790_000_000_000, 1_790_000_600_000
	raw, err := gate.EncodeState(&gate.State{
		Version: 1, DeadlineMs: expires,
		Open: []*gate.Gate{{
			Id: "g2", Kind: "tool", Tool: "pay", Args: []byte(`{"cents":250}`), OpenedMs: at, ExpiresMs: expires, DueMs: expires,
		}},
		Closed: []*gate.Gate{{
			Id: "g1", Kind: "tool", Tool: "pay", OpenedMs: at, ExpiresMs: expires,
			Outcome: &gate.Outcome{Status: "denied", Cause: "human", AtMs: at},
		}},
	})
	if err != nil {
		panic(err)
	}
	return raw
}
