package agenttest

import (
	"slices"

	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

// end fails the test if something has happened that it did not expect, and ends what is open.
func (s *Agent) end() {
	s.tb.Helper()
	if !s.tb.Failed() {
		s.work()
		s.check()
	}
	s.interrupt(func(*call) bool { return true })
	for _, topic := range s.views() {
		if slices.Contains(s.written, topic) {
			processortest.OutRaw(s.driver, topic).Drain()
		}
	}
}

func (s *Agent) check() {
	s.tb.Helper()
	for _, c := range s.open {
		if c.wait.model != nil {
			s.tb.Errorf("agenttest: session %s: %s", c.record.Key, s.reason(c))
		}
	}
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
