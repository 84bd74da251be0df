package memoir

import (
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
)

// pendingBytes is how much of a row the sessions may take, in bytes.
func (c *Config) pendingBytes() int { return c.RecordLimit / 4 }

func (t *transition) pendingSize() (size int) {
	for _, list := range [][]*memoirrow.Pending{t.row.Pending, t.row.Settled} {
		for _, p := range list {
			size += proto.Size(p)
		}
	}
	return size
}

// full reports whether more sessions have their snapshots stored than the limits allow.
func (t *transition) full() bool {
	return len(t.row.Pending)+len(t.row.Settled) > t.config.PendingLimit || t.pendingSize() > t.config.pendingBytes()
}

// makeRoom deletes kept snapshots, and then gives up sessions, until the others are within the limits. A session that is given up
// has been sent at least once.
func (t *transition) makeRoom() {
	for t.err == nil && t.full() {
		if len(t.row.Settled) > 0 {
			t.drop(t.row.Settled[0])
			continue
		}
		p := t.leastWanted()
		if p.Pass == 0 {
			t.send(p)
			continue // it may be given up already
		}
		t.abandon(p, reasonTooMany)
	}
}

// leastWanted returns the session to give up first: one of a user that was forgotten, or the oldest one that waits for a further
// pass. A session with a worker comes after those, because its memory may be on the way, and one without a pass comes last. Of the
// sessions with a worker it is the one that was sent first.
func (t *transition) leastWanted() *memoirrow.Pending {
	rank := func(p *memoirrow.Pending) int {
		switch {
		case p.Forgotten:
			return 0
		case p.Pass > 0 && !isOpen(p):
			return 1
		case p.Pass > 0:
			return 2
		default:
			return 3
		}
	}
	first := t.row.Pending[0]
	for _, p := range t.row.Pending[1:] {
		if rank(p) < rank(first) {
			first = p
		}
	}
	return first
}

// abandon gives up a session that no room is left for. If its pass is with a worker, a memory of it without a version may still
// come, and must not be taken for that of another pass.
func (t *transition) abandon(p *memoirrow.Pending, reason string) {
	if isOpen(p) {
		t.row.Abandoned++
		t.row.AbandonedUntilMs = max(t.row.AbandonedUntilMs, p.DueMs)
		if p.Forgotten {
			t.row.AbandonedForgotten++
		}
	}
	if p.Forgotten {
		t.finish(p.End)
		return
	}
	t.giveUp(p, reason)
}

// answerAbandoned takes a memory without a version for that of the first abandoned pass. Its session is dead-lettered already, so
// the memory does not count, and it may be based on another version than that of the row.
func (t *transition) answerAbandoned(e memoryWritten) {
	t.row.Abandoned--
	if t.row.AbandonedForgotten > 0 {
		t.row.AbandonedForgotten--
	} else if !blank(e.Text) {
		t.DeadLetter(reasonAbandoned)
	}
	if t.row.Abandoned == 0 {
		t.row.AbandonedUntilMs = 0
	}
}

// endAbandoned ends the abandoned passes whose time is over. It is not known which of them was not answered, as with unanswered.
func (t *transition) endAbandoned() {
	if t.row.Abandoned > 0 && t.row.AbandonedUntilMs <= t.nowMS() {
		t.row.Unsure = true
		t.row.Abandoned, t.row.AbandonedForgotten, t.row.AbandonedUntilMs = 0, 0, 0
	}
}

// sendOnce sends the first pass of a session that cannot be kept for a further one, and gives it up. Memories without a version of
// passes that were sent earlier come before that of this one. Which of them is whose is not known then, so they are repeated.
func (t *transition) sendOnce(p *memoirrow.Pending, snapshot []byte, reason string) {
	others := t.open() != nil
	p.Snapshot = snapshot
	t.row.Pending = append(t.row.Pending, p)
	t.send(p)
	if t.err == nil && t.find(p.End) != nil {
		t.row.Unsure = t.row.Unsure || others
		t.abandon(p, reason)
	}
}
