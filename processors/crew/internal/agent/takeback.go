package agent

import (
	"slices"

	"google.golang.org/protobuf/proto"
)

const (
	// sentKept is the size of the messages of an open turn that the row keeps once the process has said something.
	sentKept = 16 << 10
	// mostInterruptions is how many turns in succession may be interrupted by the loss of the host until the messages of the
	// turn are dropped: they may be why the host is lost.
	mostInterruptions = 3
)

const interruptedNote = "[System] Your last turn was interrupted: the host of your process was stopped. See what is done " +
	"already, then go on."

// begin notes that the process has said something about the turn.
func (t *Turn) begin() {
	if t == nil || t.Begun {
		return
	}
	t.Begun = true
	sent := t.Sent
	if sent == nil {
		return
	}
	if proto.Size(sent) <= sentKept {
		return
	}
	sent.Notes = nil
	for _, class := range [][]*Waiting{sent.Priority, sent.Normal} {
		for _, w := range class {
			w.Text, w.Blocks = "", nil
		}
	}
}

// takeBack keeps the prompt of a turn that the loss of the host has ended, for the next process. A process that has said nothing
// may not have got it: it is sent again. One that has may have done a part of it. Then an agent that continues its session is
// told that it was interrupted, and knows what it has done and was asked; another one is asked again. A message that cannot be
// sent again is reported as dropped.
func (a *agent) takeBack() {
	t := a.Turn
	if t == nil || t.Cancelled {
		return
	}
	const reason = "the host was stopped during the turn"
	if a.Interrupted++; a.Interrupted > mostInterruptions {
		if t.First {
			a.dropped(a.ParentId, reason)
		}
		for _, w := range t.Sent.waits() {
			a.dropped(w.FromId, reason)
		}
		return
	}
	a.FirstDue = a.FirstDue || t.First && !t.Begun
	if t.Begun && (a.CanLoad || !t.First) { // another session begins with the first prompt anyway
		defer a.addNote(interruptedNote)
	}
	sent := t.Sent
	if sent == nil || t.Begun && a.CanLoad {
		return
	}
	q := a.queue()
	again := func(class []*Waiting) (kept []*Waiting) {
		for _, w := range class {
			if w.Text != "" || len(w.Blocks) > 0 {
				kept = append(kept, w)
			} else {
				a.dropped(w.FromId, reason)
			}
		}
		return kept
	}
	q.Priority = append(again(sent.Priority), q.Priority...)
	q.Normal = append(again(sent.Normal), q.Normal...)
	notes := q.Notes
	q.Notes = nil
	for _, text := range append(sent.Notes, notes...) {
		a.addNote(text)
	}
}

// waits returns the messages of a queue.
func (q *Queue) waits() []*Waiting { return slices.Concat(q.GetPriority(), q.GetNormal()) }
