// Package merge orders the records of a turn whose steps have writers of their own: see package fold. The fold group and
// the door of /invoke merge by these rules, and each keeps the records in its own way. It does no I/O.
package merge

import "github.com/turntable-streams/turntable/topics"

// Place is where a turn is.
type Place struct {
	Step    int64 // that has begun; 0 for none
	Shown   int64 // the attempt at it whose events are part of the turn; 0 for none
	Settled bool  // that attempt is the one that counts: no other events of the step follow
}

// Turn is a turn whose records are merged. A method that returns false ends the merge: the turn is closed, or is read again.
type Turn interface {
	At() Place
	// Move is called before anything is done at the new place. The turn's records of another step are then forgotten.
	Move(to Place)
	// Received returns the number of the last event of an attempt that has all events before it.
	Received(step, attempt int64) int64
	// Greatest returns the greatest attempt at the step that has events; 0 for none.
	Greatest() int64
	// Show makes the events of an attempt those of the step, in place of those of At().Shown. settles is what a record of the turn
	// says about the attempt; nil if another one may still be shown.
	Show(attempt int64, settles *topics.AgentAttempt) bool
	// Settle makes the events of the shown attempt those of the turn, and drops all attempts at the step.
	Settle()
	// Add adds a record of the turn itself. One with a result ends the turn.
	Add(e topics.AgentEvent) bool

	// Wait keeps a record of the turn after the Queued ones. Next removes the first one if it is ready.
	Wait(e topics.AgentEvent)
	Queued() int
	Next(ready func(topics.AgentEvent) bool) (e topics.AgentEvent, ok bool)
}

// SeqStepStart is the number of the turn's record that begins a step.
const SeqStepStart = 1

// firstStepStart is the event that begins the first step.
const firstStepStart = `{"type":"step_start","data":{"type":"step_start","step":1}}`

// Begin begins the first step with a worker's record of it: the turn says so with the first response.
func Begin(t Turn, e topics.AgentEvent) bool {
	if t.At().Step > 0 || e.Step != 1 || e.Author != "" {
		return true
	}
	e.Author, e.Seq, e.Request, e.Event = topics.AuthorTurn, SeqStepStart, nil, topics.Raw(firstStepStart)
	t.Move(Place{Step: 1})
	return t.Add(e)
}

// Receive applies a new record of the turn, or keeps it until it can be applied.
func Receive(t Turn, e topics.AgentEvent) {
	switch {
	case t.Queued() > 0 || !ready(t, e):
		t.Wait(e)
	case apply(t, e):
		Continue(t)
	}
}

// Continue shows the events of the open step, and applies the turn's records that have waited for events.
func Continue(t Turn) {
	for more := show(t); more; {
		e, ok := t.Next(func(e topics.AgentEvent) bool { return ready(t, e) })
		more = ok && apply(t, e)
	}
}

// show chooses the attempt whose events are part of the turn while the open step is not settled: the greatest.
func show(t Turn) bool {
	p := t.At()
	return p.Step == 0 || p.Settled || replace(t, max(p.Shown, t.Greatest()), nil)
}

func replace(t Turn, attempt int64, settles *topics.AgentAttempt) bool {
	p := t.At()
	if !t.Show(attempt, settles) {
		return false
	}
	p.Shown = attempt
	t.Move(p)
	return true
}

// ready reports whether a record of the turn can be applied: its step has begun, and the events before it were received.
func ready(t Turn, e topics.AgentEvent) bool {
	switch p := t.At(); {
	case e.Settles != nil && (e.Step != p.Step || !p.Settled):
		return e.Settles.Seq == 0 || t.Received(e.Step, e.Settles.Attempt) >= e.Settles.Seq
	case e.Result != nil:
		return true
	case e.Seq == SeqStepStart:
		return e.Step == p.Step+1
	default:
		return e.Step == p.Step && p.Settled
	}
}

func apply(t Turn, e topics.AgentEvent) bool {
	if p := t.At(); e.Settles != nil && !p.Settled {
		if p.Step != e.Step { // the record that began the step is missing
			t.Move(Place{Step: e.Step})
		}
		if !replace(t, e.Settles.Attempt, e.Settles) {
			return false
		}
		Settle(t)
	}
	if e.Result == nil && e.Seq == SeqStepStart {
		Settle(t)
		t.Move(Place{Step: e.Step})
	}
	return t.Add(e) && show(t)
}

// Settle settles the open step.
func Settle(t Turn) {
	if p := t.At(); !p.Settled {
		p.Settled = true
		t.Move(p)
		t.Settle()
	}
}
