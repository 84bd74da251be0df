package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// open returns the first gate of the session that the user must decide about, nil if there is none. An earlier run may have
// opened it.
func (u *user) open(s *seen) *topics.GateRequest {
	for _, g := range s.requests {
		if g.SessionID == u.session && !s.ended[g.GateID] && !u.decided[g.GateID] {
			return &g
		}
	}
	return nil
}

// toApprove is a question whose answer needs an approval in the console, and approvals the session that asks it.
const (
	toApprove = "What is 84 / 12?"
	approvals = "approval"
)

// waitForApproval leaves a session that waits for a person, who decides in the console.
func (u *user) waitForApproval(ctx context.Context) error {
	if err := publish(ctx, u.publisher, u.topics.MessageInput, approvals, question(approvals, &mira, requestID(1), toApprove)); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	u.screen.note(bold, "asked", "%s (session %s: decide it in the console)", toApprove, approvals)
	u.screen.note(grey, "now", "open the address above; type a question; Ctrl-C ends the program")
	return nil
}

// decide asks about a gate on standard input and writes the decision. Only a y approves. The end of the input denies.
func (u *user) decide(ctx context.Context, g topics.GateRequest) error {
	u.screen.note(bold, "gate", "%s %s %s (y or n)", g.Message, g.Tool, g.Args)
	var line string
	var open bool
	select {
	case line, open = <-u.lines:
	case <-ctx.Done():
		return ctx.Err()
	}
	u.decided[g.GateID] = true
	d := topics.GateDecision{
		GateID: g.GateID, SessionID: g.SessionID, DecisionID: g.GateID + "/typed", Verdict: topics.VerdictDeny,
		ArgsSHA256: g.ArgsSHA256, // what the person has seen, and nothing else, may run
		By:         mira, Via: "topology",
	}
	switch line = strings.TrimSpace(line); strings.ToLower(line) {
	case "y", "yes":
		d.Verdict = topics.VerdictApprove
	case "n", "no":
	default:
		d.Reason = line
	}
	if !open {
		d.Reason = "no one can answer"
	}
	if err := publish(ctx, u.publisher, u.topics.GateDecisions, g.SessionID, d); err != nil {
		return fmt.Errorf("decide: %w", err)
	}
	return nil
}
