package memoir

import (
	"slices"
	"strconv"
	"strings"

	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
	"github.com/turntable-streams/turntable/topics"
)

// apply applies a memory that a worker, FlightDeck's updater or a person wrote.
func (e memoryWritten) apply(t *transition) {
	foreign := e.Version == ""
	switch {
	case e.Tombstone():
		t.forget(e.ID)
	case e.Version == topics.MemoirEdit, foreign && t.open() == nil && t.row.Abandoned == 0:
		t.edit(e, foreign)
	case foreign:
		t.applyForeign(e)
	default:
		t.applyVersioned(e)
	}
}

// edit replaces the memory. The sessions that wait stay: the memory of an open pass is based on an old version then.
func (t *transition) edit(e memoryWritten, keepBlank bool) {
	switch {
	case t.isRepeat(e.ID):
	case len(e.Text) > t.config.Limit:
		t.DeadLetter(reasonMemorySize)
	case keepBlank && blank(e.Text):
	default:
		t.replace(e.Text, e.ID)
		t.remember(ofRecord, e.ID)
	}
}

// applyVersioned applies the memory of a worker that says what it is based on. It may be of a session that this row does not
// have, because after a crash a memory can be read before its session, and of one that was given up.
func (t *transition) applyVersioned(e memoryWritten) {
	base, err := strconv.ParseUint(e.Version, 10, 64)
	if err != nil {
		t.DeadLetter(reasonVersion)
		return
	}
	end, pass, ok := passOf(e.ID)
	if !ok {
		t.DeadLetter(reasonUnknown)
		return
	}
	if t.isMerged(end) {
		return
	}
	p := t.find(end)
	if p == nil {
		p = t.kept(end)
	}
	if p == nil && base != t.row.MemoryVersion {
		t.deadLetterAnswer(end)
		return
	}
	if p != nil && !p.Forgotten && base != t.row.MemoryVersion && (pass < p.Pass || !p.Sent) {
		if pass > p.Pass { // a crash has taken the row back: the next pass must have a new ID
			p.Pass, t.changed = pass, true
		}
		return // a repeat: a later pass is open, or will be
	}
	if p != nil && pass > p.Pass {
		p.Pass, t.changed = pass, true
	}
	if p != nil {
		t.reopen(p)
	}
	t.update(e, end, pass, p, base)
}

// deadLetterAnswer dead-letters the event, an answer for a session that is neither pending nor kept, unless the session itself is
// dead-lettered already.
func (t *transition) deadLetterAnswer(end string) {
	switch {
	case t.remembers(ofGivenUp, end):
	case t.endedByForeign(end):
		t.DeadLetter(reasonForeign)
	default:
		t.DeadLetter(reasonUnknown)
	}
}

// update applies the memory of a pass. p is nil if the row does not have the session.
func (t *transition) update(e memoryWritten, end string, pass uint32, p *memoirrow.Pending, base uint64) {
	switch {
	case p.GetForgotten():
		t.finish(end)
	case len(e.Text) > t.config.Limit:
		t.DeadLetter(reasonMemorySize)
		if p != nil && p.Sent && p.Pass == pass { // a repeat does not fail a later pass
			t.fail(p, failedSize)
		}
	case base != t.row.MemoryVersion:
		t.conflict(p)
	default:
		if !blank(e.Text) {
			t.replace(e.Text, e.ID)
		}
		if e.Version == "" {
			p.Answered, t.changed = true, true // settle ends it
			return
		}
		t.finish(end)
	}
}

// conflict sends a session back for another pass, because the memory has changed since its last one began, or because it is not
// known whether that one was answered.
func (t *transition) conflict(p *memoirrow.Pending) {
	t.changed = true
	p.Conflicts++
	p.Sent, p.Answered, p.DueMs = false, false, t.nowMS()
	if p.Conflicts >= maxConflicts {
		t.giveUp(p, reasonConflicts)
	}
}

// replace replaces the memory.
func (t *transition) replace(text, cause string) {
	t.outgrow(text)
	t.row.Memory = strings.ToValidUTF8(text, "?")
	t.row.MemoryVersion = versionAfter(t.row.MemoryVersion, cause)
	t.changed = true
}

// forget removes everything that is known of the user. Memories of sessions that have ended before are ignored from now on. An
// open pass stays open until its memory comes, because that memory may not say what it is about.
func (t *transition) forget(cause string) {
	if t.isRepeat(cause) || t.row.GetVersion() == 0 {
		return // there is no row
	}
	t.row.AbandonedForgotten = t.row.Abandoned
	for _, p := range slices.Clone(t.row.Pending) {
		if !isOpen(p) {
			t.finish(p.End)
			continue
		}
		t.deletePart(p)
		p.Forgotten, p.Part, p.Snapshot = true, 0, nil
	}
	for _, p := range slices.Clone(t.row.Settled) {
		t.finish(p.End)
	}
	t.replace("", cause)
	t.remember(ofRecord, cause)
}

func (t *transition) isRepeat(cause string) bool { return t.remembers(ofRecord, cause) }

// blank reports whether a text has nothing to remember.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

// apply ends the open pass of a session early.
func (e passFailed) apply(t *transition) {
	end, pass, ok := passOf(e.ID)
	p := t.find(end)
	if p == nil {
		p = t.kept(end)
	}
	switch {
	case e.Tombstone():
		t.DeadLetter(reasonTombstone)
	case !ok:
		t.DeadLetter(reasonUnknown)
	case p != nil && p.Sent && p.Pass <= pass:
		t.reopen(p)
		p.Pass, t.changed = pass, true
		t.unanswered(p, failedWorker)
	case p == nil && t.endedByForeign(end) && !t.remembers(ofGivenUp, end):
		t.DeadLetter(reasonForeign)
	}
}
