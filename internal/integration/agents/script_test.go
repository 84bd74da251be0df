package agents

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/topics"
)

// script is the agent of an instance: it does what a message says. The turn is not the subject of these tests.
//
//	say TEXT   answers TEXT
//	use TOOL   calls a tool, and answers
//	fail TEXT  ends with an error
//	ask TEXT   opens a gate for the tool pay
//	wait       answers when it is cancelled
//	pass PEER  delegates further: "say hello" to a peer, and answers with the tool's result
type script struct {
	i *instance

	mu       sync.Mutex
	messages []topics.Message
	waiting  map[string]string // session of request
	passed   map[string]string // request of tool use
	stopped  []string          // requests that were cancelled
}

func (s *script) init(i *instance) {
	s.i, s.waiting, s.passed = i, map[string]string{}, map[string]string{}
}

func requestOf(m topics.Message) string {
	var metadata struct {
		RequestID string `json:"request_id"`
	}
	_ = json.Unmarshal(m.Metadata, &metadata)
	return metadata.RequestID
}

func (s *script) message(m topics.Message) {
	request, session := requestOf(m), *m.SessionID
	s.mu.Lock()
	if slices.ContainsFunc(s.messages, func(old topics.Message) bool { return requestOf(old) == request }) {
		s.mu.Unlock()
		return // a turn ignores a repeated message
	}
	s.messages = append(s.messages, m)
	s.mu.Unlock()
	verb, rest, _ := strings.Cut(*topics.TextOf(m.Content), " ")
	switch verb {
	case "say":
		s.answer(session, request, rest)
	case "use":
		s.call(session, request, rest, `{}`)
		s.answer(session, request, "used "+rest)
	case "fail":
		s.fail(session, request, rest)
	case "ask":
		s.wait(session, request)
		publish(s.i, s.i.catalog.GateRequests, session, topics.GateRequest{
			GateID: "gate-" + request, SessionID: session, Kind: topics.GateTool, Tool: "pay", Message: rest,
			Origin: topics.GateOrigin{Agent: s.i.agent, Via: "test"},
		}, "")
	case "pass":
		s.mu.Lock()
		s.passed["use-"+request] = request
		s.mu.Unlock()
		input, _ := jsontext.AppendQuote(nil, rest)
		s.call(session, request, peer.ToolName, `{"peerId":`+string(input)+`,"content":"say hello"}`)
	default:
		s.wait(session, request)
	}
}

func (s *script) wait(session, request string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[request] = session
}

// control cancels a turn, as package turn does.
func (s *script) control(session string, c topics.Control) {
	if c.Action != topics.ActionCancel || c.RequestID == nil {
		return
	}
	s.mu.Lock()
	_, ok := s.waiting[*c.RequestID]
	delete(s.waiting, *c.RequestID)
	s.stopped = append(s.stopped, *c.RequestID)
	s.mu.Unlock()
	if ok {
		s.fail(session, *c.RequestID, "cancelled")
	}
}

// toolResult ends a turn that has delegated further.
func (s *script) toolResult(r topics.ToolUseResult) {
	s.mu.Lock()
	request, ok := s.passed[*r.ToolUseID]
	delete(s.passed, *r.ToolUseID)
	s.mu.Unlock()
	if ok {
		s.answer(*r.SessionID, request, string(r.Result))
	}
}

func (s *script) call(session, request, tool, input string) {
	use := "use-" + request
	publish(s.i, s.i.catalog.ToolUse, session, topics.ToolUseItem{
		SessionID: &session, ToolUseID: &use, Name: &tool, Input: topics.Raw(input), TotalTools: 1,
	}, "turn-"+request+"/1/tool-use/0")
}

func (s *script) answer(session, request, text string) {
	s.output(topics.Output{SessionID: &session, RequestID: &request, Content: text})
}

func (s *script) fail(session, request, text string) {
	status := "error"
	s.output(topics.Output{
		SessionID: &session, RequestID: &request, Content: text, Status: &status, Error: &topics.OutputError{Code: "cancelled", Message: text},
	})
}

func (s *script) output(o topics.Output) {
	o.SourceAgent, o.Timestamp = s.i.agent, topics.Timestamp(time.Now())
	publish(s.i, s.i.catalog.MessageOutput, *o.SessionID, o, "turn-"+*o.RequestID+"/2/answer/0")
}

// ran returns the messages of a session.
func (s *script) ran(session string) (list []topics.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if *m.SessionID == session {
			list = append(list, m)
		}
	}
	return list
}

// cancelled returns how many turns were cancelled.
func (s *script) cancelled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.stopped)
}
