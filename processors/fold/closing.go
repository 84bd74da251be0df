package fold

import (
	"encoding/hex"
	"slices"
	"sort"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// ending is why a turn is closed.
type ending struct {
	end    End
	reason string // empty: as the batch's state says
	usage  topics.Raw
}

// The endings that say no more than this.
var (
	byEvents     = ending{}
	gap          = ending{end: End{State: Failed}, reason: topics.ReasonGap}
	tooLarge     = ending{end: End{State: Failed}, reason: topics.ReasonTooLarge}
	broken       = ending{end: End{State: Failed}, reason: topics.ReasonInternal}
	silence      = ending{end: End{State: Expired}, reason: topics.ReasonSilence}
	tooManyTurns = ending{end: End{State: Expired}, reason: topics.ReasonTooManyTurns}
	cancelled    = ending{end: End{State: Cancelled}, reason: topics.ReasonCancelled}
)

// stopCancelled is the stop reason of a run that was cancelled.
const stopCancelled = "cancelled"

// byResult is the ending that a terminal record says.
func byResult(r topics.AgentResult) ending { return ending{end: EndOf(r), usage: r.Usage} }

// EndOf is the end of a turn as its terminal record says: failed where the run was not ok, cancelled where that is its
// stop reason, else complete, whatever errors the events tell of.
func EndOf(r topics.AgentResult) End {
	e := End{State: Complete}
	if r.StopReason != nil {
		e.StopReason, _ = jsontext.AppendQuote(nil, *r.StopReason) // what is no UTF-8 is repaired
	}
	switch {
	case !r.OK:
		e.State = Failed
	case r.StopReason != nil && *r.StopReason == stopCancelled:
		e.State = Cancelled
	}
	if r.Error != nil {
		e.Error = *r.Error
	}
	return e
}

// close ends a turn: its batch goes out, its events go, and it is remembered.
func (s *session) close(t *Turn, e ending) {
	logs, whole := s.logs(t)
	if !whole {
		e = broken
	}
	b := s.fit(t, logs, e)
	s.effects = append(s.effects, Emit{Key: s.key, ID: recordID(s.key, t.Id, "batch"), Value: Folded(b)})
	if s.rules.ThinkResponses {
		s.answer(t, b)
	}
	s.dropEvents(t)
	if t.Request != 0 {
		s.drop(t.Request)
	}
	s.row.Open = slices.DeleteFunc(s.row.Open, func(o *Turn) bool { return o == t })
	s.changed, s.row.TouchedMs = true, s.nowMS()
	s.remember(digests.Of(ofTurn, t.Id), t.Attempt)
}

// recordID names a record that a turn brings about. Turn ids are unique in their session only.
func recordID(session, turn, kind string) string {
	d := digests.Of(ofRecord, session, turn)
	return hex.EncodeToString(d[:]) + "/0/" + kind + "/0"
}

// logs are the events of a turn; false where a part of them is missing, of which only what comes before it is left.
func (s *session) logs(t *Turn) (logs []Log, whole bool) {
	for _, x := range t.Parts {
		for i := range x.Count {
			part, ok := s.read(x.First + i)
			if !ok {
				return logs, false
			}
			logs = append(logs, part)
		}
	}
	return append(logs, t.Tail), true
}

// fit folds a turn. Where its batch does not fit into a record, it is that of as many of its events as do.
func (s *session) fit(t *Turn, logs []Log, e ending) topics.BatchMessage {
	b := s.foldAll(t, logs, e)
	if s.fits(b) {
		return b
	}
	cut := tooLarge
	cut.end.Error = e.end.Error
	n := sort.Search(len(logs), func(n int) bool { return !s.fits(s.foldAll(t, logs[:n+1], cut)) })
	return s.foldAll(t, logs[:n], cut)
}

// foldAll is the fold of a turn's events and what is said of it besides.
func (s *session) foldAll(t *Turn, logs []Log, e ending) topics.BatchMessage {
	f := NewFolder()
	for _, l := range logs {
		if err := f.AddLog(l); err != nil { // bytes that are no log: what came before them counts
			e = broken
			break
		}
	}
	if e.usage != nil {
		if usage, err := NewEvent("usage", []byte(e.usage)); err == nil {
			_ = f.Add(usage) // a tolerant folder does not fail
		}
	}
	batch, err := f.Batch(e.end)
	if err != nil { // a terminal stop reason that is no text, which the codec refuses
		e = broken
		batch, _ = f.Batch(e.end)
	}
	b := topics.BatchMessage{
		Messages: AppendMessages(nil, batch.Messages), StopReason: batch.StopReason,
		PendingInteraction: batch.PendingInteraction,
		SessionID:          s.key, TurnID: t.Id, Attempt: int64(t.Attempt), State: string(batch.State), Seq: int64(t.Seq),
		PendingInteractions: AppendMessages(nil, batch.Pending), ToolResults: appendResults(nil, batch.Results),
		Usage: batch.Usage, MalformedEvents: int64(batch.Malformed) + int64(t.Refused),
	}
	if batch.Failed {
		text := clipped(batch.Error)
		b.Error = &text
	}
	if reason := e.reasonOf(batch.State); reason != "" {
		b.Reason = &reason
	}
	return b
}

func (e ending) reasonOf(state State) string {
	switch {
	case e.reason != "":
		return e.reason
	case state == Failed:
		return topics.ReasonRunFailed
	case state == Cancelled:
		return topics.ReasonCancelled
	default:
		return ""
	}
}
