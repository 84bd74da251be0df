package turn

import (
	"cmp"
	"fmt"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

const statusError = "error"

// failure is the code and the text of an error output.
type failure struct {
	code topics.Code
	text string
}

func tooLarge(text string) failure { return failure{topics.CodeTooLarge, text} }

// withReason appends a reason from a foreign record, truncated to maxReason bytes.
func (f failure) withReason(reason *string) failure {
	if !blank(reason) {
		f.text += ": " + clipped(*reason)
	}
	return f
}

// address gives an output what it repeats of its message, so that its reader knows what it answers.
func address(o *topics.Output, session string, a *turnrow.Accepted) {
	o.SessionID, o.RequestID = &session, a.RequestId
}

// output ends a message with its only output, addressed to its origin or to the route of its request.
func (s *transition) output(a *turnrow.Accepted, o topics.Output) {
	address(&o, s.key, a)
	o.ReplyTo = s.routeOf(a)
	o.Timestamp = *s.timestamp()
	s.emit(a.TurnId, 0, answered(o), 0)
	s.rememberEnded(a)
	s.releaseEarly(a)
}

// reject ends a message that got no turn with an error output.
func (s *transition) reject(a *turnrow.Accepted, f failure) {
	s.changed = true
	s.output(a, s.errorOutput(a, f))
}

func (s *session) errorOutput(a *turnrow.Accepted, f failure) topics.Output {
	o := s.rules.errorOutput(f)
	o.UserID = s.user(a)
	o.Cost = s.row.Cost
	return o
}

func (r *rules) errorOutput(f failure) topics.Output {
	status := statusError
	return topics.Output{
		Content:     f.text,
		SourceAgent: r.sourceAgent(),
		Status:      &status,
		Error:       &topics.OutputError{Code: f.code, Message: f.text},
	}
}

// sourceAgent names the agent in an output whose model does not.
func (r *rules) sourceAgent() string { return cmp.Or(r.SourceAgent, r.Agent) }

func thinkTimeout(s *transition) failure {
	text := fmt.Sprintf("the model did not respond within %dms", s.rules.ThinkTimeout.Milliseconds())
	if s.row.Turn.DeadlineMs > s.nowMS() {
		text = fmt.Sprintf("the model did not respond within %dms, and another message waits",
			s.rules.SupersedeAfter.Milliseconds())
	}
	return failure{topics.CodeThinkTimeout, text}
}
