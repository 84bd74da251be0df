package memoir

import (
	"slices"
	"strings"
	"unicode"

	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
)

// applyForeign takes a memory of an updater that knows no versions for that of the open pass that was sent first. Such an updater
// answers in this order, but may leave out a pass. So the memory may be that of a later pass, but not of an earlier one, and if
// the pass has the current version, so has the later one. A memory with all words of the current one is based on that: passes before
// it whose memory had fewer words were left out, or their answers have been taken for those of others.
func (t *transition) applyForeign(e memoryWritten) {
	if t.isRepeat(e.ID) {
		return
	}
	t.remember(ofRecord, e.ID)
	if t.row.Abandoned > 0 {
		t.answerAbandoned(e)
		return
	}
	p := t.open()
	if current := t.openCurrent(); current != nil && containsWords(e.Text, t.row.Memory) {
		t.skipTo(current)
		p = current
	}
	t.update(e, p.End, p.Pass, p, p.Base)
}

// openCurrent returns the first open pass that is based on the current memory, nil if there is none, or if the memory of one before
// it may have had the same words.
func (t *transition) openCurrent() *memoirrow.Pending {
	for _, p := range t.row.Pending {
		switch {
		case !isOpen(p):
		case p.Base == t.row.MemoryVersion:
			return p
		case !p.Outgrown:
			return nil
		}
	}
	return nil
}

// outgrow marks the passes whose memory is replaced by one that has its words and more.
func (t *transition) outgrow(text string) {
	before := t.row.Memory
	grown := containsWords(text, before) && !containsWords(before, text) || len(wordsOf(before)) == 0 && len(wordsOf(text)) > 0
	for _, p := range t.row.Pending {
		p.Outgrown = grown && (p.Outgrown || p.Sent && p.Base == t.row.MemoryVersion)
	}
}

// skipTo ends the open passes that were sent before one that is answered. They are of older versions, so they need another pass
// whether they were answered or not.
func (t *transition) skipTo(answered *memoirrow.Pending) {
	for _, p := range slices.Clone(t.row.Pending) {
		switch {
		case p == answered:
			return
		case !isOpen(p):
		case p.Forgotten:
			t.finish(p.End)
		default:
			t.row.Unsure = true
			t.conflict(p)
		}
	}
}

// containsWords reports whether a text has all words of a memory. A memory without words is in no text.
func containsWords(text, memory string) bool {
	has := map[string]bool{}
	for _, word := range wordsOf(text) {
		has[word] = true
	}
	words := wordsOf(memory)
	return len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return !has[word] })
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// settle ends the passes that were open together, after the last of them. A memory without a version is taken for that of the
// pass that was sent first. If all have been answered, none was taken for the wrong one, and their sessions are done. Otherwise
// it is not known which pass was not answered, so all that were are repeated.
func (t *transition) settle() {
	if t.open() != nil || t.row.Abandoned > 0 {
		return
	}
	for _, p := range slices.Clone(t.row.Pending) {
		switch {
		case !p.Answered:
		case t.row.Unsure:
			t.conflict(p)
		default:
			t.keep(p)
		}
	}
	t.row.Unsure = false
}

// keep ends a session that a memory without a version is taken for, and keeps its snapshot until the deadline of its pass. If a
// worker with versions has the pass, its answer comes before that.
func (t *transition) keep(p *memoirrow.Pending) {
	t.remember(ofForeign, p.End)
	t.row.Pending = without(t.row.Pending, p)
	t.row.Settled, t.changed = append(t.row.Settled, p), true
}

// kept returns the session with an end that a memory without a version has ended, nil if its snapshot is not kept.
func (t *transition) kept(end string) *memoirrow.Pending {
	for _, p := range t.row.Settled {
		if p.End == end {
			return p
		}
	}
	return nil
}

// reopen returns a kept session to those that are pending, because the memory without a version was not its answer. The caller
// then ends its pass.
func (t *transition) reopen(p *memoirrow.Pending) {
	if t.kept(p.End) == p {
		t.row.Settled = without(t.row.Settled, p)
		t.row.Pending, t.changed = append(t.row.Pending, p), true
	}
}

// drop deletes a kept snapshot.
func (t *transition) drop(p *memoirrow.Pending) {
	t.row.Settled, t.changed = without(t.row.Settled, p), true
	t.deletePart(p)
}

// dropDue deletes the kept snapshots whose deadline has passed.
func (t *transition) dropDue() {
	for _, p := range slices.Clone(t.row.Settled) {
		if p.DueMs <= t.nowMS() {
			t.drop(p)
		}
	}
}

// endedByForeign reports whether a session was ended by a memory without a version, and not by one of a worker since.
func (t *transition) endedByForeign(end string) bool {
	return t.remembers(ofForeign, end) && !t.isMerged(end)
}

// isDone reports whether a session has ended: its content is in the memory, or a memory without a version was taken for it.
func (t *transition) isDone(end string) bool { return t.isMerged(end) || t.remembers(ofForeign, end) }

// isMerged reports whether finish has ended a session.
func (t *transition) isMerged(end string) bool { return t.remembers(ofEnd, end) }

func without(list []*memoirrow.Pending, p *memoirrow.Pending) []*memoirrow.Pending {
	return slices.DeleteFunc(list, func(other *memoirrow.Pending) bool { return other == p })
}
