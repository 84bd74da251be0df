package memoir

import (
	"fmt"
	"strconv"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/rows/memoirrow"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// sendNext sends the passes that may be sent. A first pass does not wait long, because others read the snapshots too. A further
// pass needs the memory that the open ones bring, otherwise it conflicts. It waits only for those that are based on the current
// memory: the others cannot change it, and a user whose sessions overlap all the time would never get to the further ones.
func (t *transition) sendNext() {
	for t.err == nil {
		p := t.ready()
		if p == nil {
			return
		}
		t.send(p)
	}
}

// ready returns the first pending session whose next pass may be sent.
func (t *transition) ready() *memoirrow.Pending {
	open, current := t.load()
	for _, p := range t.row.Pending {
		if at, ok := nextPending(p, open, current); ok && at <= t.nowMS() {
			return p
		}
	}
	return nil
}

// load reports whether a pass is open, and whether one is that is based on the current memory.
func (t *transition) load() (open, current bool) {
	for _, p := range t.row.Pending {
		if isOpen(p) {
			open = true
			current = current || p.Base == t.row.MemoryVersion
		}
	}
	return open, current
}

// nextPending returns from when the next pass of a session may be sent, in milliseconds since the epoch. ok is false if an open pass must
// end before. See load for open and current.
func nextPending(p *memoirrow.Pending, open, current bool) (at int64, ok bool) {
	switch {
	case p.Sent, p.Pass > 0 && current:
		return 0, false
	case p.Pass == 0 && !open:
		return 0, true
	default:
		return p.DueMs, true
	}
}

// send sends the next pass of a session, with the memory as it is now.
func (t *transition) send(p *memoirrow.Pending) {
	raw := t.snapshotOf(p)
	if t.err != nil {
		return
	}
	d := t.topics.MemoirSessions.Codec().Unmarshal(raw)
	if raw == nil || d.Err != nil {
		t.giveUp(p, reasonLost)
		return
	}
	s := d.Value
	s.MemoirContext = t.row.Memory
	if !t.fit(&s) {
		t.giveUp(p, reasonTooLarge)
		return
	}
	t.changed = true
	p.Pass++
	p.Outgrown = false
	p.Sent, p.Base, p.DueMs = true, t.row.MemoryVersion, t.after(t.config.PassTimeout)
	t.row.Pending = append(without(t.row.Pending, p), p)
	machine.EmitWith(&t.Effects, t.topics.MemoirContextSessionEnd, t.key, passID(p.End, p.Pass), s, goka.Headers{
		topics.HeaderMemoirVersion: strconv.AppendUint(nil, p.Base, 10),
		topics.HeaderDeadline:      topics.AppendDeadline(nil, p.DueMs),
	})
}

// fit drops the oldest messages of the copy in Messages, which only FlightDeck's updater reads, until a snapshot fits
// into a record. It returns false if the snapshot is too large without the copy. Neither the memory nor the conversation itself is ever
// cut: what is cut would be forgotten.
func (t *transition) fit(s *topics.MemoirSnapshot) bool {
	excess := func() int {
		raw, err := t.topics.MemoirContextSessionEnd.Codec().Marshal(*s)
		if err != nil {
			return 1
		}
		return len(raw) - (t.config.RecordLimit - len(t.key) - envelope)
	}
	over := excess()
	if over > 0 && len(s.Messages) > 0 && s.ThinkResponse != nil && s.ThinkResponse.PreviousMessages != nil {
		s.Messages = newest(s.Messages, over)
		over = excess()
	}
	return over <= 0
}

// newest returns a conversation without its oldest messages: a message that says how many they are takes their place, and the
// array is shorter by at least drop bytes, or empty.
func newest(conversation topics.Raw, drop int) topics.Raw {
	list, err := topics.Elements(conversation)
	if err != nil {
		return topics.Raw("[]")
	}
	for i, m := range list {
		drop -= len(m) + len(",")
		note := fmt.Sprintf(`{"role":"user","content":"(the first %d messages are left out)"}`, i+1)
		if drop+len(note) <= 0 {
			return topics.Splice(append([]topics.Raw{topics.Raw(note)}, list[i+1:]...)...)
		}
	}
	return topics.Raw("[]")
}
