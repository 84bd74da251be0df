package memoir

import (
	"bytes"

	"google.golang.org/protobuf/proto"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// apply adds an ended session to those that wait for a worker.
func (e sessionEnded) apply(t *transition) {
	end := endOf(e.ID)
	switch {
	case e.Tombstone():
		t.DeadLetter(reasonTombstone)
		return
	case t.find(end) != nil || t.isDone(end) || t.remembers(ofGivenUp, end):
		return // a repeat, or a memory that was read before its session has it already
	}
	p := &memoirrow.Pending{End: end, DueMs: t.after(max(t.config.Patience, 0)), Partition: e.Partition, Offset: e.Offset}
	value := bytes.Clone(e.Value)
	if t.parts == nil {
		p.Snapshot = value
	}
	switch {
	case len(t.key)+len(value)+envelope > t.config.RecordLimit:
		t.sendOnce(p, value, reasonTooLarge)
		return
	case proto.Size(p) > t.config.pendingBytes():
		t.sendOnce(p, value, reasonNoRoom)
		return
	case t.parts != nil:
		p.Part = t.newPart(value)
	}
	t.row.Pending, t.changed = append(t.row.Pending, p), true
	t.makeRoom()
}

// newPart adds a part to the row. If a row was deleted and begins again, deletions of its old parts may still be in flight, so
// numbers begin with the time.
func (t *transition) newPart(value []byte) uint32 {
	if t.row.NextPart == 0 {
		t.row.NextPart = uint32(max(1, t.now.Unix()))
	}
	n := t.row.NextPart
	t.row.NextPart++
	t.SetPart(n, value)
	return n
}

// snapshotOf returns the snapshot of a pending session, nil if it is missing.
func (t *transition) snapshotOf(p *memoirrow.Pending) []byte {
	if p.Part == 0 {
		return p.Snapshot
	}
	for _, e := range t.List() {
		if value, ok := e.Value.([]byte); ok && e.Part == p.Part {
			return value
		}
	}
	if t.parts == nil {
		t.err = errNoParts
		return nil
	}
	value, err := t.parts(p.Part)
	if err != nil {
		t.err = err
	}
	return value
}

// remove removes a pending session from the row.
func (t *transition) remove(p *memoirrow.Pending) {
	t.changed = true
	t.row.Pending = without(t.row.Pending, p)
	t.deletePart(p)
}

// deletePart deletes the part of a session.
func (t *transition) deletePart(p *memoirrow.Pending) {
	if p.Part != 0 {
		t.DeletePart(p.Part)
	}
}

// finish ends a session whose content is in the memory, or must not get into it.
func (t *transition) finish(end string) {
	t.remember(ofEnd, end)
	if p := t.find(end); p != nil {
		t.remove(p)
	}
	if p := t.kept(end); p != nil {
		t.drop(p)
	}
}

// unanswered ends a pass of which no memory came. Another one may have been taken for it, or its memory for that of another one.
func (t *transition) unanswered(p *memoirrow.Pending, reason string) {
	t.row.Unsure = true
	t.fail(p, reason)
}

// fail ends a pass that brought no memory. The session's next pass begins after a wait, or the session is given up.
func (t *transition) fail(p *memoirrow.Pending, reason string) {
	if p.Forgotten {
		t.finish(p.End)
		return
	}
	p.Failures++
	p.Sent, p.Answered, p.Reason, p.DueMs = false, false, reason, t.after(t.config.backoff(p.Failures))
	t.changed = true
	if int(p.Failures) >= t.config.Passes {
		t.giveUp(p, reasonGivenUp+reason)
	}
}

// giveUp sends a session to the dead-letter topic. It is not done: a memory that comes late may still have it.
func (t *transition) giveUp(p *memoirrow.Pending, reason string) {
	t.DeadLetterHeld(processors.Letter{
		Topic: t.topics.MemoirSessions.Name(), Partition: p.Partition, Offset: p.Offset, Value: t.snapshotOf(p),
		Headers: goka.Headers{topics.HeaderID: []byte(passID(p.End, 1))}, Reason: reason,
	})
	t.remember(ofGivenUp, p.End)
	t.remove(p)
}
