package agenttest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

// output is an answer, or an error in its place.
type output struct {
	id      string
	session string
	value   topics.Output
	read    bool
}

// observe takes an output. After a crash it may be a repeat.
func (s *Agent) observe(r processortest.Record[topics.Output]) {
	s.tb.Helper()
	i := slices.IndexFunc(s.outputs, func(o *output) bool { return o.id == r.ID() })
	if i < 0 {
		s.outputs = append(s.outputs, &output{id: r.ID(), session: r.Key, value: r.Value})
		return
	}
	if was := s.outputs[i].value; was.Content != r.Value.Content || codeOf(was) != codeOf(r.Value) {
		s.tb.Errorf("agenttest: session %s has two different outputs with ID %s", r.Key, r.ID())
	}
}

func codeOf(o topics.Output) topics.Code {
	if o.Error == nil {
		return ""
	}
	return o.Error.Code
}

// Answer returns the next answer in a session. It fails the test if there is none, and says what the session waits for, or if
// the turn ended with an error.
func (s *Agent) Answer(session string) topics.Output {
	s.tb.Helper()
	o := s.output(session)
	if o.Error != nil {
		s.tb.Fatalf("agenttest: a turn of session %s has no answer but the error %s: %s (Failure reads it)", session, o.Error.Code, o.Error.Message)
	}
	return o
}

// Failure returns the error with which the next turn in a session has ended. It fails the test if there is none, or an answer.
func (s *Agent) Failure(session string) topics.OutputError {
	s.tb.Helper()
	o := s.output(session)
	if o.Error == nil {
		s.tb.Fatalf("agenttest: a turn of session %s has an answer and no error", session)
		return topics.OutputError{}
	}
	return *o.Error
}

func (s *Agent) output(session string) topics.Output {
	s.tb.Helper()
	s.work()
	for _, o := range s.outputs {
		if o.session == session && !o.read {
			o.read = true
			return o.value
		}
	}
	s.tb.Fatalf("agenttest: session %s has no answer%s", session, s.reasons(session))
	return topics.Output{}
}

// reasons says what a session waits for.
func (s *Agent) reasons(session string) string {
	var b strings.Builder
	for _, c := range s.open {
		if string(c.record.Key) == session {
			b.WriteString(": " + s.reason(c))
		}
	}
	if s.gates != nil {
		for _, v := range s.gates.Open(session) {
			fmt.Fprintf(&b, ": a %s of %s waits for a person until %s (Approve, Deny, Expire)", v.Kind, v.Tool, v.ExpiresAt)
		}
	}
	for _, topic := range s.unexpected() {
		fmt.Fprintf(&b, ": topic %s has an output that the test did not read", topic)
	}
	return b.String()
}

// reason says what a call waits for.
func (s *Agent) reason(c *call) string {
	switch {
	case c.wait.tool != nil:
		return fmt.Sprintf("the result of tool %s is held (Release)", c.wait.tool.name)
	case c.wait.ticker != nil:
		return fmt.Sprintf("the model is asked again at %s (Advance)", topics.Timestamp(c.wait.ticker.at))
	default:
		return "the model was asked and has no scripted reply (Model)"
	}
}
