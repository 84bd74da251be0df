package agenttest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// reasons says why a session has no answer.
func (s *Agent) reasons(session string) string {
	var b strings.Builder
	b.WriteString(s.waits(session))
	if sessions := s.turns.Keys(); !slices.Contains(sessions, session) {
		fmt.Fprintf(&b, ": no message was written to this session; sessions are %q", sessions)
	}
	for _, topic := range s.unexpected() {
		fmt.Fprintf(&b, ": topic %s has an output that the test did not read", topic)
	}
	return b.String()
}

// waits says what a session waits for; it is empty if the session waits for nothing.
func (s *Agent) waits(session string) string {
	var b strings.Builder
	running := map[string]bool{}
	for _, c := range s.open {
		if string(c.record.Key) != session {
			continue
		}
		b.WriteString(": " + s.reason(c))
		if c.wait.tool != nil {
			running[c.wait.tool.name] = true
		}
	}
	if s.gates != nil {
		for _, v := range s.gates.Open(session) {
			fmt.Fprintf(&b, ": a %s of %s waits for a person until %s (Approve, Deny, Expire)", v.Kind, v.Tool, v.ExpiresAt)
		}
	}
	row, _ := s.turns.Get(session)
	for _, c := range row.GetTurn().GetCalls() {
		if c.Result == nil && c.ResultLength == 0 && c.Gate == nil && !running[c.GetName()] {
			fmt.Fprintf(&b, ": a call of tool %s has no result (write it to topic %s with Driver, or Advance)", c.GetName(),
				s.catalog.ToolUseResult.Name())
		}
	}
	return b.String()
}

// reason says what a call waits for.
func (s *Agent) reason(c *call) string {
	switch {
	case c.wait.tool != nil:
		return fmt.Sprintf("the result of tool %s is held (Release)", c.wait.tool.name)
	case c.wait.ticker != nil && c.worker.Topic != s.catalog.EnrichedMessageInput.Name():
		return fmt.Sprintf("topic %s offset %d is handled again at %s (Advance)", c.worker.Topic, c.record.Offset,
			topics.Timestamp(c.wait.ticker.at))
	case c.wait.ticker != nil:
		return fmt.Sprintf("the model is asked again at %s (Advance)", topics.Timestamp(c.wait.ticker.at))
	default:
		return "the model was asked and has no scripted reply (Model)"
	}
}
