package agenttest

import (
	"slices"

	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

// end fails the test if something has happened that it did not expect, and ends what is open.
func (s *Agent) end() {
	s.tb.Helper()
	defer s.close()
	if !s.tb.Failed() {
		s.work()
		s.check()
	}
}

// close ends what is open. The deferred calls also run if a handler does not return, which ends the goroutine.
func (s *Agent) close() {
	s.tb.Helper()
	s.ended = true
	defer func() {
		for _, c := range s.open {
			c.cancel()
		}
	}()
	defer s.interrupt(func(*call) bool { return true })
	for _, topic := range s.views() {
		if slices.Contains(s.written, topic) {
			processortest.OutRaw(s.driver, topic).Drain()
		}
	}
}

func (s *Agent) check() {
	s.tb.Helper()
	s.checkTurns()
	if n := len(s.script); n > 0 {
		s.tb.Errorf("agenttest: the model was not asked for the last %d scripted replies", n)
	}
	for _, o := range s.outputs {
		switch {
		case o.read:
		case o.value.Error != nil:
			s.tb.Errorf("agenttest: session %s has the error %s, which the test did not read: %s", o.session, o.value.Error.Code, o.value.Error.Message)
		default:
			s.tb.Errorf("agenttest: session %s has an answer that the test did not read", o.session)
		}
	}
	for _, topic := range s.unexpected() {
		for _, r := range processortest.OutRaw(s.driver, topic).Drain() {
			if reason := r.Headers[topics.HeaderErrorReason]; reason != nil {
				s.tb.Errorf("agenttest: topic %s has a dead letter of topic %s offset %s, key %q: %s", topic,
					r.Headers[topics.HeaderErrorSourceTopic], r.Headers[topics.HeaderErrorSourceOffset], r.Key, reason)
			} else {
				s.tb.Errorf("agenttest: topic %s has an output with key %q that the test did not read", topic, r.Key)
			}
		}
	}
}

// checkTurns reports the turns that have not ended, and other calls that are open. A turn may wait for people if the test has
// seen all its gates.
func (s *Agent) checkTurns() {
	s.tb.Helper()
	for _, session := range s.turns.Keys() {
		if row, _ := s.turns.Get(session); row.GetTurn() != nil && !s.waitsForPeople(session) {
			s.tb.Errorf("agenttest: session %s%s: the test ended before the turn", session, s.waits(session))
		}
	}
	for _, c := range s.open {
		if row, _ := s.turns.Get(string(c.record.Key)); row.GetTurn() == nil {
			s.tb.Errorf("agenttest: session %s: %s", c.record.Key, s.reason(c))
		}
	}
}

// waitsForPeople reports whether a session waits for decisions about gates that the test has seen, and for nothing else.
func (s *Agent) waitsForPeople(session string) bool {
	if s.gates == nil || slices.ContainsFunc(s.open, func(c *call) bool { return string(c.record.Key) == session }) {
		return false
	}
	open := s.gates.Open(session)
	return len(open) > 0 && !slices.ContainsFunc(open, func(v gate.View) bool { return !s.looked[v.GateID] })
}

// unexpected returns the topics with unread outputs that are no views.
func (s *Agent) unexpected() []string {
	views := s.views()
	return slices.DeleteFunc(s.driver.Unread(), func(topic string) bool { return slices.Contains(views, topic) })
}

// views returns the topics that tell readers outside of the agent what happens, and of which a test need not read all.
func (s *Agent) views() []string {
	c := s.catalog
	return []string{
		c.BatchMessages.Name(), c.ToolUseAllComplete.Name(), c.ToolUseLatency.Name(), c.GateOutcomes.Name(), c.SessionCost.Name(),
		c.Spending.Name(), c.DelegationStatus.Name(), c.PeerAudit.Name(), c.MemoirContext.Name(), c.SessionEnd.Name(),
	}
}
