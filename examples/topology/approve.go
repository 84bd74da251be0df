package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// gateRequest is a record of gate-requests, as far as a person needs it.
type gateRequest struct {
	GateID     string         `json:"gate_id"`
	SessionID  string         `json:"session_id"`
	Tool       string         `json:"tool"`
	Args       jsontext.Value `json:"args"`
	ArgsSHA256 string         `json:"args_sha256"`
	Message    string         `json:"message"`
	Withdrawn  string         `json:"withdrawn"`
}

// gateDecision is a record of gate-decisions.
type gateDecision struct {
	GateID     string `json:"gate_id"`
	SessionID  string `json:"session_id"`
	DecisionID string `json:"decision_id"`
	Verdict    string `json:"verdict"`
	Reason     string `json:"reason,omitzero"`
	ArgsSHA256 string `json:"args_sha256"`
	By         string `json:"by"`
	Via        string `json:"via"`
}

// gateOutcome is a record of gate-outcomes, as far as the screen shows it.
type gateOutcome struct {
	GateID string `json:"gate_id"`
	Tool   string `json:"tool"`
	Status string `json:"status"`
	Cause  string `json:"cause"`
	Reason string `json:"reason"`
}

// decide asks about a gate on standard input and writes the decision. Only a y approves. The end of the input denies.
func (a *asker) decide(ctx context.Context, g gateRequest) error {
	a.screen.note(bold, "gate", "%s %s %s (y or n)", g.Message, g.Tool, oneLine(string(g.Args)))
	var line string
	var open bool
	select {
	case line, open = <-a.lines:
	case <-ctx.Done():
		return ctx.Err()
	}
	d := gateDecision{
		GateID: g.GateID, SessionID: g.SessionID, DecisionID: g.GateID + "/typed", Verdict: "deny", ArgsSHA256: g.ArgsSHA256,
		By: "user", Via: "topology",
	}
	switch line = strings.TrimSpace(line); {
	case strings.EqualFold(line, "y"), strings.EqualFold(line, "yes"):
		d.Verdict = "approve"
	case !open:
		d.Reason = "no one can answer"
	case !strings.EqualFold(line, "n") && !strings.EqualFold(line, "no"):
		d.Reason = line
	}
	record := &kgo.Record{Topic: topicOf(orchestrator, gateDecisions), Key: []byte(g.SessionID), Value: encode(d)}
	if err := a.recorder.client.ProduceSync(ctx, record).FirstErr(); err != nil {
		return fmt.Errorf("decide: %w", err)
	}
	return nil
}

// mostGates is how many open gates of a session the program keeps. The session of the example has one at a time.
const mostGates = 64

// openGates returns the gates of a session that earlier runs left open.
func openGates(ctx context.Context, brokers []string, starts, ends kadm.ListedOffsets, session string) (open []gateRequest, err error) {
	err = replay(ctx, brokers, starts, ends, topicOf(orchestrator, gateRequests), func(r *kgo.Record) {
		var g gateRequest
		if string(r.Key) == session && json.Unmarshal(r.Value, &g) == nil && g.Withdrawn == "" && len(open) < mostGates {
			open = append(open, g)
		}
	})
	if err != nil {
		return nil, err
	}
	err = replay(ctx, brokers, starts, ends, topicOf(orchestrator, gateOutcomes), func(r *kgo.Record) {
		ended := field[gateOutcome](r.Value)
		open = slices.DeleteFunc(open, func(g gateRequest) bool { return g.GateID == ended.GateID })
	})
	return open, err
}
