package invoke

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/rows/invokerow"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// tableRules are the rules of the table of turns. A row has the same turns as the index has of its session, found by the same
// code. It is not written for every record: the last offset and the last time of a turn that has not ended are behind by less
// than spread and refresh.
type tableRules struct {
	kept  time.Duration // how long a turn stays in the row after its last record
	limit int           // maximum size of a row in bytes
}

const (
	// spread is how many records a partition can have between the last offset in a row and the true one.
	spread = 4096
	// maxRefresh is the longest time between the last time in a row and the true one.
	maxRefresh = time.Minute
	// maxTurnRow is the maximum size of a row in bytes.
	maxTurnRow = 512 << 10
)

// refreshOf returns how far the last time of a turn in a row can be behind, for rows with that kept.
func refreshOf(kept time.Duration) time.Duration { return min(maxRefresh, kept/8) }

// apply adds what a record states to its session's row; a nil row is an empty one. If changed is false, the row need not be
// written. apply does not modify row. It is deterministic, and adding a record again changes nothing.
func (r tableRules) apply(row *invokerow.Row, s sighting, now time.Time) (next *invokerow.Row, changed bool) {
	if s.at.After(now) {
		s.at = now
	}
	if r.has(row, s) {
		return row, false
	}
	x := r.indexOf(s.session, row)
	x.add(s, now)
	return r.changed(row, r.rowOf(x, s.session, row))
}

// expire removes the turns whose time has come. A deadline can fire too early; the row is then written again, so that it
// fires again. A nil result is an empty row.
func (r tableRules) expire(session string, row *invokerow.Row, now time.Time) *invokerow.Row {
	x := r.indexOf(session, row)
	x.expire(now)
	return r.rowOf(x, session, row)
}

func (r tableRules) changed(row, next *invokerow.Row) (*invokerow.Row, bool) {
	if row == nil && next == nil || row != nil && next != nil && proto.Equal(row, next) {
		return row, false
	}
	return next, true
}

// has reports whether the row is as exact as it must be about a record of a turn. It is called for every event.
func (r tableRules) has(row *invokerow.Row, s sighting) bool {
	if s.turn == "" {
		return false
	}
	for _, t := range slices.Backward(row.GetTurns()) {
		if string(t.Id) != s.turn {
			continue
		}
		at := s.at.UnixMilli()
		switch {
		case s.end != nil:
			return t.End != nil && t.End.Offset <= s.end.offset
		case !t.Begun, s.request != "" && len(t.Request) == 0,
			at < t.BeganMs, at >= t.TouchedMs+refreshOf(r.kept).Milliseconds():
			return false
		case t.Partition != s.partition:
			return true
		case s.ended, t.Ended:
			return t.First <= s.offset && s.offset < t.Last || s.offset == t.Last && s.ended == t.Ended
		}
		return t.First <= s.offset && s.offset <= t.Last+spread
	}
	return false
}

// indexOf returns an index of the turns of a row.
func (r tableRules) indexOf(session string, row *invokerow.Row) *turnIndex {
	x := newTurnIndex(r.kept+refreshOf(r.kept), sessionTurns, sessionTurns)
	for _, t := range row.GetTurns() {
		x.sessions[session] = append(x.sessions[session], turnOf(session, t))
	}
	byTime := slices.Clone(x.sessions[session])
	slices.SortStableFunc(byTime, func(a, b *indexedTurn) int { return a.touched.Compare(b.touched) })
	for _, t := range byTime {
		t.place = x.recent.PushBack(t)
	}
	return x
}

func turnOf(session string, t *invokerow.Turn) *indexedTurn {
	known := &indexedTurn{
		session: session, turn: string(t.Id), request: string(t.Request), partition: -1, first: -1, last: -1,
		began: time.UnixMilli(t.BeganMs), touched: time.UnixMilli(t.TouchedMs),
	}
	if t.Begun {
		known.partition, known.first, known.last, known.ended = t.Partition, t.First, t.Last, t.Ended
	}
	if e := t.End; e != nil {
		known.end = &turnEnd{
			turn: known.turn, offset: e.Offset, attempt: e.Attempt, seq: e.Seq, state: folder.State(e.State), reason: string(e.Reason),
			stop: topics.Raw(e.Stop), text: string(e.Text),
		}
	}
	if t.Failed {
		known.failed = &topics.Output{
			Error: &topics.OutputError{Code: topics.Code(t.Code), Message: string(t.Text)},
		}
		id := known.request
		if id == "" {
			id = known.turn
		}
		known.failed.RequestID = &id
	}
	return known
}

// rowOf returns the row of the turns in an index, nil if there are none. A row that is too large loses its first turns. Fields
// of old that this build does not know are kept.
func (r tableRules) rowOf(x *turnIndex, session string, old *invokerow.Row) *invokerow.Row {
	next := &invokerow.Row{Version: invokerow.Version, KeptMs: r.kept.Milliseconds()}
	size := 0
	for _, known := range slices.Backward(x.sessions[session]) {
		t := rowTurn(known)
		for _, o := range old.GetTurns() {
			if string(o.Id) == known.turn && (known.turn != "" || string(o.Request) == known.request) {
				t.ProtoReflect().SetUnknown(o.ProtoReflect().GetUnknown())
			}
		}
		if size += proto.Size(t) + 4; size > r.limit && len(next.Turns) > 0 {
			break
		}
		next.Turns = append(next.Turns, t)
		leaves := t.TouchedMs + (r.kept + refreshOf(r.kept)).Milliseconds()
		if next.DeadlineMs == 0 || leaves < next.DeadlineMs {
			next.DeadlineMs = leaves
		}
	}
	if len(next.Turns) == 0 {
		return nil
	}
	slices.Reverse(next.Turns)
	if old != nil {
		next.ProtoReflect().SetUnknown(old.ProtoReflect().GetUnknown())
	}
	return next
}

func rowTurn(known *indexedTurn) *invokerow.Turn {
	t := &invokerow.Turn{
		Id: []byte(known.turn), Request: []byte(known.request),
		BeganMs: known.began.UnixMilli(), TouchedMs: known.touched.UnixMilli(),
	}
	if known.first >= 0 {
		t.Begun, t.Partition, t.First, t.Last, t.Ended = true, known.partition, known.first, known.last, known.ended
	}
	if e := known.end; e != nil {
		t.End = &invokerow.End{
			Offset: e.offset, Attempt: e.attempt, Seq: e.seq, State: string(e.state), Reason: []byte(e.reason), Stop: []byte(e.stop),
			Text: []byte(e.text),
		}
	}
	if known.failed != nil {
		t.Failed, t.Code, t.Text = true, []byte(known.failed.Error.Code), []byte(known.failed.Error.Message)
	}
	return t
}
