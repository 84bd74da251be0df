package invoke

import (
	"slices"
	"time"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// ask is an interaction of a recorded turn.
type ask struct {
	gated
	since time.Time // of the pause after which it was asked; zero before
}

// asks are the interactions of a recording. The recording's lock guards them.
type asks struct {
	began    Request // the request that began the turn; kept until the turn ends
	kept     int     // bytes of began and list
	list     []ask
	waits    bool // paused: an answer can continue the turn
	seq      uint64
	since    time.Time
	deadline time.Time
	version  int           // counts the changes
	settled  chan struct{} // closed when the run pauses or ends; replaced when it continues
}

// maxAsked is the maximum number of interaction requests of a turn that can wait for answers.
const maxAsked = 256

// askCost is the estimated memory of an interaction in addition to its texts, in bytes.
const askCost = 512

// askedIn returns the interactions of a turn that are in its events, with the outcomes of those that were asked before; ok is
// false if there are too many.
func askedIn(events []folder.Event, attempt int64, before []ask) (list []ask, ok bool) {
	requests := 0
	for _, e := range events {
		if e.Type == "interaction_request" {
			requests++
		}
	}
	switch {
	case requests == 0:
		return nil, true
	case requests > maxAsked:
		return nil, false
	}
	f := folder.NewFolder()
	for _, e := range events {
		_ = f.Add(e) // a tolerant folder does not fail
	}
	for _, i := range f.Interactions() {
		at := slices.IndexFunc(before, func(a ask) bool { return a.attempt == attempt && a.Index == i.Index })
		if at < 0 {
			list = append(list, ask{gated: gated{Interaction: i, attempt: attempt, open: !i.Answered}})
			continue
		}
		known := before[at]
		known.open = known.open && !i.Answered
		list = append(list, known)
	}
	return list, true
}

func sizeOfRequest(r Request) int { return len(r.Body) + len(r.Data) }

func sizeOfAsks(list []ask) (size int) {
	for _, a := range list {
		size += askCost + len(a.ID) + len(a.ToolUseID) + len(a.Args) + len(a.Payload)
	}
	return size
}

// decide sets the outcome of an open interaction.
func (a *asks) decide(at int, o topics.GateOutcome, key turnKey, now time.Time) {
	one := &a.list[at]
	o.SessionID, o.TurnID = key.session, key.turn
	o.CallID = folder.GateCall(key.turn, one.attempt, one.Index)
	o.GateID = topics.GateID(key.session, key.turn, o.CallID)
	o.Kind, o.Tool, o.ToolUseID, o.InteractionID = one.gateKind(), one.Tool, one.ToolUseID, one.ID
	o.WaitedMS = now.Sub(one.since).Milliseconds()
	if o.Status == topics.GateApproved && one.Args != nil {
		o.EffectiveArgsSHA256 = topics.ArgsSHA256(one.Args)
	}
	one.open, one.outcome = false, &o
	a.version++
}

// reopen withdraws outcomes.
func (a *asks) reopen(at []int) {
	for _, i := range at {
		a.list[i].open, a.list[i].outcome = true, nil
	}
	a.version++
}

// gateKind returns the kind of the interaction's gate.
func (g gated) gateKind() topics.GateKind {
	if g.approves() {
		return topics.GateTool
	}
	return topics.GateInput
}

// decided returns the indexes of an attempt's interactions that were decided: see fold.End.
func (a *asks) decided(attempt int64) []int {
	var list []int
	for _, one := range a.list {
		if one.attempt == attempt && one.outcome != nil {
			list = append(list, one.Index)
		}
	}
	return list
}

// pause makes a run that has ended wait for answers.
func (r *recording) pause(end folder.End, list []ask, kept int, now, deadline time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asks.seq = uint64(len(r.events))
	for i := range list {
		if a := &list[i]; a.since.IsZero() {
			a.after, a.since = int64(r.asks.seq), now
		}
	}
	old := slices.DeleteFunc(slices.Clone(r.asks.list), func(a ask) bool { return a.attempt == int64(r.attempt) })
	r.asks.list, r.asks.kept = append(old, list...), kept
	r.asks.waits, r.asks.since, r.asks.deadline = true, now, deadline
	r.settle(errEnd, end, now)
}

// settle ends the run. The caller holds the lock.
func (r *recording) settle(err error, end folder.End, now time.Time) {
	r.done, r.err, r.end, r.at = true, err, end, now
	r.asks.version++
	close(r.asks.settled)
	r.announce()
}

// resume lets a paused turn run again, and returns what its agent needs. The caller holds the lock.
func (r *recording) resume() (Request, Continuation) {
	c := Continuation{TurnID: r.key.turn, Events: slices.Clone(r.events)}
	for _, a := range r.asks.list {
		if a.attempt == int64(r.attempt) && a.after == int64(r.asks.seq) && a.outcome != nil {
			c.Decisions = append(c.Decisions, Decision{a.Interaction, *a.outcome})
		}
	}
	r.asks.waits, r.done, r.asks.settled = false, false, make(chan struct{})
	r.asks.version++
	r.announce()
	return r.asks.began, c
}

// suspend undoes resume and the decisions.
func (r *recording) suspend(decisions []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asks.reopen(decisions)
	r.asks.waits = true
	r.settle(errEnd, r.end, r.at)
}

// expire ends a paused turn whose deadline has been reached; false if there is none. freed is the size of what it kept.
func (r *recording) expire(now time.Time) (freed int, expired bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.asks.waits || now.Before(r.asks.deadline) {
		return 0, false
	}
	for i, a := range r.asks.list {
		if a.open {
			r.asks.decide(i, topics.GateOutcome{Status: topics.GateTimedOut, Cause: topics.CauseDeadline}, r.key, r.asks.deadline)
		}
	}
	r.asks.waits = false
	r.done, r.err, r.end, r.at = true, errEnd, folder.End{State: folder.Expired}, r.asks.deadline
	r.announce()
	return r.forgetRequest(), true
}

// forgetRequest drops the request that began the turn and returns its size. The caller holds the lock.
func (r *recording) forgetRequest() (freed int) {
	freed = r.asks.kept - sizeOfAsks(r.asks.list)
	r.asks.began, r.asks.kept = Request{}, r.asks.kept-freed
	return freed
}
