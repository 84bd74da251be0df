package agenttest

import (
	"slices"

	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/topics"
)

// output is an answer, or an error in its place.
type output struct {
	id      string
	session string
	value   topics.Output
	crashes int // before it was last written
	read    bool
}

// observe takes an output. It may be a repeat only if the agent has crashed since.
func (s *Agent) observe(r processortest.Record[topics.Output]) {
	s.tb.Helper()
	i := slices.IndexFunc(s.outputs, func(o *output) bool { return o.id == r.ID() })
	if i < 0 {
		s.outputs = append(s.outputs, &output{id: r.ID(), session: r.Key, value: r.Value, crashes: s.crashes})
		return
	}
	o := s.outputs[i]
	if o.value.Content != r.Value.Content || codeOf(o.value) != codeOf(r.Value) {
		s.tb.Errorf("agenttest: session %s has two different outputs with ID %s", r.Key, r.ID())
	}
	if o.crashes == s.crashes {
		s.tb.Errorf("agenttest: session %s: output %s was written again without a crash", r.Key, r.ID())
	}
	o.crashes = s.crashes
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
		s.tb.Fatalf("agenttest: a turn of session %s has no answer but the error %s: %s (Failure reads it)", session, o.Error.Code,
			o.Error.Message)
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
