package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// person writes what the door writes for a person: see processors/crew/door for the HTTP requests and the WebSocket.
type person struct {
	catalog topics.Catalog
	to      processors.Publisher
	crew    string
}

// tell writes an input of the crew.
func (p person) tell(ctx context.Context, body topics.CrewBody) error {
	in := topics.CrewInput{InputID: "ana-" + newID(), Kind: body.CrewKind(), Body: topics.EncodeCrewBody(body)}
	out, err := processors.OutboundOf(p.catalog.CrewInputs, p.crew, in, in.InputID)
	if err != nil {
		return err
	}
	return p.to.Publish(ctx, out)
}

// decide answers a permission request of an agent.
func (p person) decide(ctx context.Context, agentID, requestID string, allow bool) error {
	verdict := topics.VerdictDeny
	if allow {
		verdict = topics.VerdictApprove
	}
	return gate.Decide(ctx, p.to, p.catalog.Agent, topics.GateDecision{
		GateID: requestID, SessionID: agentID, DecisionID: newID(), Verdict: verdict, By: "ana", Via: "example",
	})
}

// newID returns an ID that agents can have.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
