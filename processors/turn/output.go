package turn

import (
	"fmt"
	"strings"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

const (
	statusError  = "error"
	defaultAgent = "agent-1"
	roleReplies  = "assistant"
)

// failure is the code and the text of an error output.
type failure struct {
	code topics.Code
	text string
}

func tooLarge(text string) failure  { return failure{topics.CodeTooLarge, text} }
func queueFull(text string) failure { return failure{topics.CodeQueueFull, text} }

// withReason appends a reason from a foreign record, truncated to maxReason bytes.
func (f failure) withReason(reason *string) failure {
	if !blank(reason) {
		f.text += ": " + clipped(*reason)
	}
	return f
}

// output ends a message with its only output, addressed to its origin or to the route of its request.
func (s *transition) output(a *turnrow.Accepted, o topics.Output) {
	o.SessionID = &s.key
	o.RequestID = a.RequestId
	o.ReplyTo = s.routeOf(a)
	o.Timestamp = *s.timestamp()
	s.emit(a.TurnId, 0, Answered(o), 0)
	s.rememberEnded(a)
	s.releaseEarly(a)
}

// reject ends a message that got no turn with an error output.
func (s *transition) reject(a *turnrow.Accepted, f failure) {
	s.changed = true
	s.output(a, s.errorOutput(a, f))
}

// fail ends the open turn in an error output. The history stays as it was before the turn, because it has no answer. The
// cost keeps its current value, because the turn's model requests were paid for.
func (s *transition) fail(f failure) {
	s.completeOpenCalls(f)
	s.close(s.errorOutput(s.row.Turn.Message, f))
}

func (s *transition) errorOutput(a *turnrow.Accepted, f failure) topics.Output {
	o := errorOutput(f)
	o.UserID = s.user(a)
	o.Cost = s.row.Cost
	return o
}

func errorOutput(f failure) topics.Output {
	status := statusError
	return topics.Output{
		Content:     f.text,
		SourceAgent: defaultAgent,
		Status:      &status,
		Error:       &topics.OutputError{Code: f.code, Message: f.text},
	}
}

// answer ends the open turn with the content of its last response, and stores the conversation as the history. A response
// without a text is no answer: it ends the turn with an error output. previous is the number of PreviousMessages in the response.
func (s *transition) answer(r topics.ThinkResponse, previous uint32) {
	o := topics.Output{
		UserID:       boundedID(r.UserID),
		InputTokens:  r.ThinkInputTokens,
		OutputTokens: r.ThinkOutputTokens,
		Cost:         r.TotalSessionCost,
	}
	var parts []string
	agent := ""
	elements, _ := topics.Elements(r.LastInputResponse)
	for _, raw := range elements {
		m, err := topics.DecodeMessage(raw)
		if err != nil {
			continue
		}
		if name, ok := topics.Lookup(m.Metadata, "agent"); ok && agent == "" {
			agent = agentName(name)
		}
		if text := topics.Text(m.Content); m.Role != nil && *m.Role == roleReplies && strings.TrimSpace(text) != "" {
			parts = append(parts, text)
		}
	}
	o.Content = strings.Join(parts, "\n\n")
	o.SourceAgent = agent
	if agent == "" {
		o.SourceAgent = defaultAgent
	}
	if o.Content == "" { // of a worker that does not ask the model once more
		empty := s.errorOutput(s.row.Turn.Message, failure{topics.CodeEmptyResponse, "the model's reply is empty"})
		empty.SourceAgent = o.SourceAgent
		s.close(empty)
		return
	}
	if s.sizeOfOutput(o, s.row.Turn.Message) > s.rules.limit(s.rules.accepted.output) {
		s.fail(tooLarge("the answer does not fit into a record"))
		return
	}
	s.turnTail() // requires the tail to be loaded, so that its parts are deleted
	own, _ := s.history()
	kept, keptLength, keptKey := s.storedHistory(), s.row.HistoryLength, s.row.MemoryKey
	s.joinMemory()
	s.row.History, s.row.HistoryLength = conversation(r, previous)
	s.row.Turn.Responded, s.row.Turn.Shared, s.row.Turn.Tail = false, 0, nil
	if !s.makeRoomInHistory(false) {
		s.row.History, s.row.HistoryLength, s.row.MemoryKey = kept, keptLength, keptKey
		s.fail(tooLarge("the conversation does not fit into the session's row"))
		return
	}
	s.hideReplaced(own, kept, s.row.History)
	s.close(o)
}

// agentName returns the text form of metadata.agent.
func agentName(v topics.Raw) string {
	if text := topics.TextOf(v); text != nil {
		return *text
	}
	return "null"
}

func thinkTimeout(s *transition) failure {
	text := fmt.Sprintf("the model did not respond within %dms", s.rules.ThinkTimeout.Milliseconds())
	if s.row.Turn.DeadlineMs > s.nowMS() {
		text = fmt.Sprintf("the model did not respond within %dms, and another message waits",
			s.rules.SupersedeAfter.Milliseconds())
	}
	return failure{topics.CodeThinkTimeout, text}
}
