package invoke

import (
	"time"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// pauses follows the interaction requests of one attempt at a turn, and when its run pauses. It agrees with the fold group
// about which gates there are. It does no I/O.
type pauses struct {
	turn   string
	folder *folder.Folder // of the events that concern interactions
	asked  []int64        // by interaction: seq of the last record of the pause after it
	// at is the seq of the last record of the pause, and since when that was written; 0 while the run goes on. stopped means
	// that it is a terminal record.
	at      int64
	since   time.Time
	stopped bool
	stale   bool // the last done event is that of a pause after which the run went on
	steps   bool // the turn has steps: it names its gates, and does not pause at them
	ended   bool // the turn has ended, or the terminal record of a turn with steps was added
}

func newPauses(turn string) *pauses { return &pauses{turn: turn, folder: folder.NewFolder()} }

// event adds the next event of the attempt. paused reports whether the run has paused at it.
func (p *pauses) event(e folder.Event, seq int64, now time.Time) (paused bool) {
	switch e.Type {
	case "interaction_request", "interaction_response", "tool_call":
		_ = p.folder.Add(e) // does not fail without folder.Strict
	case "tool_result":
		id, _ := e.Field("id") // its output is not needed
		if short, err := folder.NewEvent(e.Type, newObject().with("id", id).value()); err == nil {
			_ = p.folder.Add(short)
		}
	case "done":
		reason, _ := e.Field("stopReason")
		stop, _ := text(reason)
		if p.at, p.stopped, p.stale = 0, false, false; stop == stopPaused {
			return p.pause(seq, now)
		}
		return false
	}
	if p.at != 0 {
		p.at, p.stopped, p.stale = 0, false, true
	}
	return false
}

// record adds the next record of the attempt.
func (p *pauses) record(e topics.AgentEvent, at time.Time) {
	switch event, ok := eventIn(e); {
	case e.Step > 0:
		p.recordOfStep(e, event, ok)
	case e.Result != nil:
		p.result(*e.Result, e.Seq, at)
	case ok:
		p.event(event, e.Seq, at)
	}
}

// recordOfStep adds a record of a turn with steps. Only the turn's own requests have gates, which wait from the request on; a
// worker could name any gate.
func (p *pauses) recordOfStep(e topics.AgentEvent, event folder.Event, ok bool) {
	p.steps, p.ended = true, p.ended || e.Result != nil
	if !ok || e.Author != topics.AuthorTurn {
		return
	}
	_ = p.folder.Add(event) // does not fail without folder.Strict
	for len(p.asked) < len(p.folder.Interactions()) {
		p.asked = append(p.asked, e.Seq)
	}
}

// stopPaused is the stop reason of a run that waits for decisions.
const stopPaused = "paused"

// result adds a terminal record. It returns false if that is the end of the turn. A terminal record without a stop reason has
// that of the done event before it.
func (p *pauses) result(r topics.AgentResult, seq int64, now time.Time) (paused bool) {
	switch {
	case !r.OK,
		r.StopReason != nil && *r.StopReason != stopPaused,
		r.StopReason == nil && (p.at == 0 || p.stopped):
		return false
	}
	p.stopped = p.pause(seq, now)
	return p.stopped
}

// pause pauses the run, if an interaction request has no answer.
func (p *pauses) pause(seq int64, now time.Time) bool {
	list, waits := p.folder.Interactions(), false
	for _, a := range list {
		waits = waits || !a.Answered && len(p.turn) <= folder.MaxGateTurn
	}
	if !waits {
		return false
	}
	for i := range p.asked {
		if p.at != 0 && p.asked[i] == p.at { // a terminal record after the done event of the pause
			p.asked[i] = seq
		}
	}
	for len(p.asked) < len(list) {
		p.asked = append(p.asked, seq)
	}
	p.at, p.since = seq, now
	return true
}

// gates returns the interactions before the last pause, or those of a turn with steps, with their gates. outcome returns the outcome of a gate, nil for none.
func (p *pauses) gates(session, turn string, attempt int64, outcome func(gate string) *topics.GateOutcome) []gated {
	var list []gated
	for i, a := range p.folder.Interactions() {
		if i >= len(p.asked) {
			break
		}
		g := gated{
			Interaction: a, turn: turn, attempt: attempt, after: p.asked[i],
			gate: topics.GateID(session, turn, folder.GateCall(turn, attempt, a.Index)),
		}
		if p.steps {
			g.gate = a.ID
		}
		g.outcome = outcome(g.gate)
		g.open = !a.Answered && g.outcome == nil && !p.ended
		list = append(list, g)
	}
	return list
}

// decided returns the indexes of the interactions that are not open.
func decided(list []gated) (indexes []int) {
	for _, g := range list {
		if !g.open {
			indexes = append(indexes, g.Index)
		}
	}
	return indexes
}

func anyOpen(list []gated) bool { return len(decided(list)) < len(list) }
