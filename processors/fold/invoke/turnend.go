package invoke

import (
	"strconv"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// turnEnd is how the fold group has ended a turn, as its batch message says. Only the fold group ends turns: the door sends the
// events up to that end, and reports it.
type turnEnd struct {
	turn    string
	offset  int64 // of the batch message; the first one of a turn counts
	attempt int64 // the batch has the events of this attempt up to seq
	seq     int64
	state   folder.State
	reason  string
	stop    topics.Raw // the stop reason, nil for none or one that is not a string
	text    string     // of the error, empty for none
}

// maxIndexedStop is the maximum length of a stop reason in the index, in bytes. Longer ones are left out.
const maxIndexedStop = 512

// endIn returns the end in a batch message.
func endIn(batch topics.Raw, offset int64) *turnEnd {
	fields := topics.LookupAll(batch, "turn_id", "attempt", "seq", "state", "reason", "stop_reason", "error")
	e := &turnEnd{turn: indexed(fields[0]), offset: offset, state: folder.State(indexed(fields[3])), reason: indexed(fields[4])}
	e.attempt, _ = strconv.ParseInt(string(fields[1]), 10, 64)
	e.seq, _ = strconv.ParseInt(string(fields[2]), 10, 64)
	// A reason that is not a string is that of an event, which the door reads too.
	if stop := fields[5]; kindOf(stop) == '"' && len(stop) <= maxIndexedStop {
		e.stop = append(topics.Raw(nil), stop...)
	}
	text := textOf(fields[6])
	e.text = text[:min(len(text), maxIndexedError)]
	return e
}

// passedBy reports whether a record of the turn came after its end.
func (e *turnEnd) passedBy(attempt, seq int64) bool {
	return e != nil && (attempt > e.attempt || attempt == e.attempt && seq > e.seq)
}

// end returns the end for the clients. An error event of a turn that did not fail is none of its end.
func (e *turnEnd) end() folder.End {
	end := folder.End{State: e.state, StopReason: e.stop}
	switch e.state {
	case folder.Complete:
	case folder.Cancelled:
		if end.StopReason == nil {
			end.StopReason = quote(string(folder.Cancelled))
		}
	default:
		if end.Error = e.text; end.Error == "" {
			end.Error = endTexts[e.reason]
		}
		if e.reason != topics.ReasonRunFailed {
			end.Code = e.reason
		}
	}
	return end
}

// endTexts are the texts of the ends that the fold group decides itself.
var endTexts = map[string]string{
	topics.ReasonGap:          errGap.Text,
	topics.ReasonTooLarge:     errTooLarge.Text,
	topics.ReasonInternal:     "the events of the turn cannot be read",
	topics.ReasonSilence:      "the agent has sent no event for too long",
	topics.ReasonTooManyTurns: "the session has too many open turns",
}
