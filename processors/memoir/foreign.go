package memoir

import "slices"

// applyForeign takes a memory of an updater that knows no versions for that of the open pass that was sent first. Such an updater
// answers in this order, but may leave out a pass. So the memory may be that of a later pass, but not of an earlier one, and if
// the pass has the current version, so has the later one.
func (t *transition) applyForeign(e MemoryWritten) {
	if t.isRepeat(e.Cause) {
		return
	}
	t.remember(ofRecord, e.Cause)
	if t.row.Abandoned > 0 {
		t.answerAbandoned(e)
		return
	}
	p := t.open()
	t.update(e, p.End, p, p.Base)
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
func (t *transition) keep(p *Pending) {
	t.remember(ofForeign, p.End)
	t.row.Pending = without(t.row.Pending, p)
	t.row.Settled, t.changed = append(t.row.Settled, p), true
}

// kept returns the session with an end that a memory without a version has ended, nil if its snapshot is not kept.
func (t *transition) kept(end string) *Pending {
	for _, p := range t.row.Settled {
		if p.End == end {
			return p
		}
	}
	return nil
}

// reopen returns a kept session to those that are pending, because the memory without a version was not its answer. The caller
// then ends its pass.
func (t *transition) reopen(p *Pending) {
	if t.kept(p.End) == p {
		t.row.Settled = without(t.row.Settled, p)
		t.row.Pending, t.changed = append(t.row.Pending, p), true
	}
}

// drop deletes a kept snapshot.
func (t *transition) drop(p *Pending) {
	t.row.Settled, t.changed = without(t.row.Settled, p), true
	if p.Part != 0 {
		t.out.Unused = append(t.out.Unused, p.Part)
	}
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

func without(list []*Pending, p *Pending) []*Pending {
	return slices.DeleteFunc(list, func(other *Pending) bool { return other == p })
}
