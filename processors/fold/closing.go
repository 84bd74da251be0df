package fold

import (
	"encoding/hex"
	"slices"
	"sort"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/fold/internal/merge"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// ending says why a turn is closed.
type ending struct {
	end    folder.End
	reason string // empty: derived from the batch's state
	usage  topics.Raw
}

// The endings without details of their own.
var (
	byEvents      = ending{}
	gap           = ending{end: folder.End{State: folder.Failed}, reason: topics.ReasonGap}
	tooLarge      = ending{end: folder.End{State: folder.Failed}, reason: topics.ReasonTooLarge}
	internalError = ending{end: folder.End{State: folder.Failed}, reason: topics.ReasonInternal}
	silence       = ending{end: folder.End{State: folder.Expired}, reason: topics.ReasonSilence}
	tooManyTurns  = ending{end: folder.End{State: folder.Expired}, reason: topics.ReasonTooManyTurns}
	cancelled     = ending{end: folder.End{State: folder.Cancelled}, reason: topics.ReasonCancelled}
)

// byResult returns the ending of a terminal record.
func byResult(r topics.AgentResult) ending {
	e := ending{end: folder.EndOf(r), usage: r.Usage}
	if !r.OK {
		e.reason = string(r.Code)
	}
	return e
}

// close closes a turn: it emits the batch, deletes the turn's parts and remembers the turn.
func (s *transition) close(t *foldrow.Turn, e ending) {
	if t.Stepped {
		merge.Settle(merged{s, t})
	}
	logs, whole := s.logs(t)
	if !whole {
		e = internalError
	}
	b := s.fit(t, logs, e)
	machine.Emit(&s.Effects, s.topics.BatchMessages, s.key, recordID(s.key, t.Id, "batch"), b)
	if s.config.ThinkResponses && !t.Stepped { // the worker of the last step has answered
		s.answer(t, b)
	}
	s.withdrawGates(t)
	s.dropEvents(t)
	if t.Request != 0 {
		s.drop(t.Request)
	}
	s.row.Open = slices.DeleteFunc(s.row.Open, func(o *foldrow.Turn) bool { return o == t })
	s.changed, s.row.TouchedMs = true, s.nowMS()
	s.remember(digests.Of(ofTurn, t.Id), t.Attempt)
}

// recordID returns the turntable.id of a record that a turn causes. Turn ids are unique within their session only.
func recordID(session, turn, kind string) string {
	d := digests.Of(ofRecord, session, turn)
	return hex.EncodeToString(d[:]) + "/0/" + kind + "/0"
}

// logs returns the events of a turn. If a part is missing, it returns the events before that part and false.
func (s *transition) logs(t *foldrow.Turn) (logs []folder.Log, whole bool) {
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

// fit folds a turn. If the batch does not fit into a record, it folds as many of the turn's events as fit, with the ending
// tooLarge.
func (s *transition) fit(t *foldrow.Turn, logs []folder.Log, e ending) topics.BatchMessage {
	b := s.foldAll(t, logs, e)
	if s.fits(b) {
		return b
	}
	cut := tooLarge
	cut.end.Error = e.end.Error
	n := sort.Search(len(logs), func(n int) bool { return !s.fits(s.foldAll(t, logs[:n+1], cut)) })
	return s.foldAll(t, logs[:n], cut)
}

// folderOf folds logs; whole is false if one is damaged, and the folder then has the events before the damage.
func folderOf(logs []folder.Log) (f *folder.Folder, whole bool) {
	f = folder.NewFolder()
	for _, l := range logs {
		if err := f.AddLog(l); err != nil {
			return f, false
		}
	}
	return f, true
}

// foldAll returns the batch message of a turn's events and its ending.
func (s *transition) foldAll(t *foldrow.Turn, logs []folder.Log, e ending) topics.BatchMessage {
	f, whole := folderOf(logs)
	if !whole { // the batch has the events before the damage
		e = internalError
	}
	if e.usage != nil {
		if usage, err := folder.NewEvent("usage", []byte(e.usage)); err == nil {
			_ = f.Add(usage) // a tolerant folder does not fail
		}
	}
	if t.Asked > 0 && !t.Paused && !t.Done { // the last done event was that of a pause
		_ = f.Add(folder.Done(nil))
	}
	e.end.Decided = decided(t, f)
	batch, err := f.Batch(e.end)
	if err != nil { // a terminal stop reason that is not a string, which the codec does not produce
		decided := e.end.Decided
		e = internalError
		e.end.Decided = decided
		batch, _ = f.Batch(e.end)
	}
	b := topics.BatchMessage{
		Messages: folder.AppendMessages(nil, batch.Messages), StopReason: batch.StopReason,
		PendingInteraction: batch.PendingInteraction,
		SessionID:          s.key, TurnID: t.Id, Attempt: int64(t.Attempt), State: string(batch.State), Seq: int64(t.Seq),
		PendingInteractions: folder.AppendMessages(nil, batch.Pending), ToolResults: folder.AppendResults(nil, batch.Results),
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

func (e ending) reasonOf(state folder.State) string {
	switch {
	case e.reason != "":
		return e.reason
	case state == folder.Failed:
		return topics.ReasonRunFailed
	case state == folder.Cancelled:
		return topics.ReasonCancelled
	default:
		return ""
	}
}
