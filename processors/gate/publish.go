package gate

import (
	"context"
	"fmt"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Decide writes a decision and returns when the record is acknowledged. The decision need not count: another one may precede
// it, or the gate may not accept it, which View.Check tells before. The record's turntable.id is the decision's ID. Decide
// does not check whether d.By may decide.
func Decide(ctx context.Context, to processors.Publisher, agent string, d topics.GateDecision) error {
	catalog, err := topics.For(agent)
	if err != nil {
		return fmt.Errorf("gate: %w", err)
	}
	out, err := processors.OutboundOf(catalog.GateDecisions, d.SessionID, d, d.DecisionID)
	if err != nil {
		return err
	}
	return to.Publish(ctx, out)
}

// RevokeForSession ends a standing approval of a session and returns when the record is acknowledged. The grant's ID is that
// of the gate whose approval gave it. If there is no such grant, nothing happens.
func RevokeForSession(ctx context.Context, to processors.Publisher, agent, session, grantID, by string) error {
	return Decide(ctx, to, agent, topics.GateDecision{
		GateID: grantID, SessionID: session, DecisionID: grantID + "/revoke", Verdict: topics.VerdictRevoke, By: by,
	})
}

// RevokeForAgent ends a standing approval of an agent in all sessions and returns when the record is acknowledged. A request
// that is handled within the next milliseconds may still be approved by the grant. If there is no such grant, nothing
// happens.
func RevokeForAgent(ctx context.Context, to processors.Publisher, agent, grantID, by string) error {
	catalog, err := topics.For(agent)
	if err != nil {
		return fmt.Errorf("gate: %w", err)
	}
	out, err := processors.OutboundOf(catalog.GateGrants, agent, topics.GateGrant{
		Action: topics.ActionRevoke, GrantID: grantID, Agent: agent, By: by,
	}, grantID+"/revoke")
	if err != nil {
		return err
	}
	return to.Publish(ctx, out)
}
