package turn

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

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
	v := ToolTook{ToolName: c.Name, LatencyMS: took, SessionID: &s.key, Timestamp: s.timestamp()}
	if r.GetStatus() == statusError {
		v.Status = statusError
	}
	id := outputID(turn.Message.TurnId, turn.Step, v, slices.Index(turn.Calls, c))
	s.effects = append(s.effects, Emit{Key: *c.Name, ID: id, Value: v})
}
