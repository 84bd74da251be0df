package turn

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// openCall returns the open call with this tool_use_id, or nil if there is none.
func (s *session) openCall(id string) *turnrow.Call {
	if s.row.Turn == nil {
		return nil
	}
	for _, c := range s.row.Turn.Calls {
		if !ended(c) && c.GetToolUseId() == id {
			return c
		}
	}
	return nil
}

func countOpenCalls(t *turnrow.OpenTurn) (open int) {
	for _, c := range t.Calls {
		if !ended(c) {
			open++
		}
	}
	return open
}

// endCall ends a call that was handed out with its result.
func (s *transition) endCall(c *turnrow.Call, r *turnrow.Result) {
	s.measure(c, r)
	s.keepEnd(c, r)
}

// keepEnd ends a call with its result and remembers its tool_use_id, so that later results for it are recognised as late.
func (s *transition) keepEnd(c *turnrow.Call, r *turnrow.Result) {
	s.changed = true
	if c.Edited {
		r.Result = markEdited(r.Result)
	}
	s.streamResult(slices.Index(s.row.Turn.Calls, c), r)
	keepResult(s.row.Turn, c, r)
	s.rememberCall(digests.Of(ofCall, c.GetToolUseId()))
}

// measure writes how long a call took that was handed out and ends with r. A result that does not say it counts from the time
// at which the call was handed out; so does an error in place of a result.
func (s *transition) measure(c *turnrow.Call, r *turnrow.Result) {
	if !s.rules.Latencies || blank(c.Name) {
		return
	}
	turn := s.row.Turn
	took := r.LatencyMs
	if took <= 0 {
		took = max(0, s.nowMS()-(callDeadline(turn, c)-s.rules.ToolTimeout.Milliseconds()))
	}
	v := toolTook{ToolName: c.Name, LatencyMS: took, SessionID: &s.key, Timestamp: s.timestamp()}
	if r.GetStatus() == statusError {
		v.Status = statusError
	}
	id := outputID(turn.Message.TurnId, turn.Step, v, slices.Index(turn.Calls, c))
	s.effects = append(s.effects, emit{Key: *c.Name, ID: id, Value: v})
}

// synthesise returns an error result for a call that has no result from its tool.
func (s *session) synthesise(id, name *string, total int, latency int64, text, reason string) *turnrow.Result {
	session, status := s.key, statusError
	return &turnrow.Result{
		SessionId: &session,
		ToolUseId: id,
		Name:      name,
		Result:    errorResult(text, reason),
		LatencyMs: latency,
		Status:    &status,
		// For information only: completion does not depend on this count.
		TotalTools: int64(total),
		Timestamp:  s.timestamp(),
	}
}

// The encoded results of a step's calls are appended to one field in order of arrival. They are therefore written once,
// and a new result does not need the earlier ones loaded. They are decoded when the step ends. A few small results are
// stored in their calls instead.

// callsInline is the maximum size in bytes of the results that are stored in the calls.
const callsInline = 1 << 10

// keepResult ends a call with its result. The result of the last open call is not encoded, because the step ends.
func keepResult(t *turnrow.OpenTurn, c *turnrow.Call, r *turnrow.Result) {
	inline := proto.Size(r)
	for _, c := range t.Calls {
		inline += proto.Size(c.Result)
	}
	if countOpenCalls(t) == 1 || inline <= callsInline {
		c.Result = r
		return
	}
	before := len(t.Results)
	raw, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(t.Results, r)
	if err != nil {
		panic(fmt.Errorf("%w: encode a result", errBroken))
	}
	t.Results = raw
	c.ResultAt, c.ResultLength = uint32(lengthOf(t.ResultsParts)+before), uint32(len(raw)-before)
}

// dropLastResult opens c again, which must be the call that ended last.
func dropLastResult(t *turnrow.OpenTurn, c *turnrow.Call) {
	t.Results = t.Results[:len(t.Results)-int(c.ResultLength)]
	c.Result, c.ResultAt, c.ResultLength = nil, 0, 0
}

// collectResults decodes the results into their calls at the end of the step. It reports false if they cannot
// be read.
func (s *transition) collectResults() bool {
	t := s.row.Turn
	if s.load(results); s.err != nil {
		return false
	}
	for _, c := range t.Calls {
		if c.Result = resultOfCall(t, c); c.Result == nil {
			panic(fmt.Errorf("%w: a result cannot be read", errBroken))
		}
		c.ResultAt, c.ResultLength = 0, 0
	}
	t.Results = nil
	return true
}

// resultOfCall returns the result of a call, or nil if it is not loaded.
func resultOfCall(t *turnrow.OpenTurn, c *turnrow.Call) *turnrow.Result {
	if c.Result != nil {
		return c.Result
	}
	at := int(c.ResultAt) - lengthOf(t.ResultsParts)
	end := at + int(c.ResultLength)
	r := &turnrow.Result{}
	if at < 0 || end > len(t.Results) || proto.Unmarshal(t.Results[at:end], r) != nil {
		return nil
	}
	return r
}
