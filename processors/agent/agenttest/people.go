package agenttest

import (
	"time"

	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/processortest/gates"
	"github.com/turntable-streams/turntable/topics"
)

// Gate returns the only open gate of a session, and fails the test if there is none or more than one.
func (s *Agent) Gate(session string) gate.View {
	s.tb.Helper()
	open := s.Gates(session)
	switch len(open) {
	case 1:
	case 0:
		s.tb.Fatalf("agenttest: session %s has 0 open gates, want 1%s", session, s.reasons(session))
	default:
		s.tb.Fatalf("agenttest: session %s has %d open gates, want 1: choose one of Gates, and decide about it with Decide", session,
			len(open))
	}
	return open[0]
}

// Gates returns the open gates of a session, in the order in which they were opened.
func (s *Agent) Gates(session string) []gate.View {
	s.tb.Helper()
	open := s.doors().Open(session)
	for _, v := range open {
		s.looked[v.GateID] = true
	}
	return open
}

// Approve approves the only open gate of a session, as a person does who has seen it: the call runs.
func (s *Agent) Approve(session string) {
	s.tb.Helper()
	s.Decide(s.Gate(session), topics.GateDecision{Verdict: topics.VerdictApprove})
}

// Edit approves the only open gate of a session with other arguments, a JSON object. The rule of the policy must permit it.
func (s *Agent) Edit(session, args string) {
	s.tb.Helper()
	s.Decide(s.Gate(session), topics.GateDecision{Verdict: topics.VerdictApprove, EditedArgs: topics.Raw(args)})
}

// Deny denies the only open gate of a session, with a reason for the model: the call does not run.
func (s *Agent) Deny(session, reason string) {
	s.tb.Helper()
	s.Decide(s.Gate(session), topics.GateDecision{Verdict: topics.VerdictDeny, Reason: reason})
}

// Decide writes any decision about a gate, for example a topics.VerdictAnswer, or one about one of several Gates. What the
// decision leaves empty is filled in as by gates.Gates.Decide. It fails the test if the gate does not accept it.
func (s *Agent) Decide(v gate.View, d topics.GateDecision) {
	s.tb.Helper()
	s.doors().Decide(v, d)
	s.work()
}

// Expire moves the clock to the time at which the only open gate of a session expires: the call does not run.
func (s *Agent) Expire(session string) {
	s.tb.Helper()
	v := s.Gate(session)
	at, err := time.Parse(time.RFC3339, v.ExpiresAt)
	if err != nil {
		s.tb.Fatalf("agenttest: gate %s of session %s: %v", v.GateID, session, err)
	}
	s.Advance(max(at.Sub(s.Now()), 0))
}

// doors returns the gates, if the agent has approvals.
func (s *Agent) doors() *gates.Gates {
	s.tb.Helper()
	if s.gates == nil {
		s.tb.Fatalf("agenttest: agent %s has no gates: its Config.Approval is nil", s.catalog.Agent)
	}
	s.work()
	return s.gates
}
