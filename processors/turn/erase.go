package turn

import (
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// A purge always succeeds, also if the row is damaged: the user has a right to it, and no other record repairs the row.

// purges reports whether an event purges its session.
func purges(e event) bool {
	c, ok := e.(controlled)
	return ok && !c.tombstone() && c.Control.Action == topics.ActionPurge
}

// erase purges a session to whose row the purge cannot be applied because of cause. It never fails: what cannot be read is
// deleted.
func (b *binding) erase(c *processors.Context, purge *record, cause error) outcome {
	c.Logger().Error("turn: the row of a purged session is damaged: its messages that cannot be read end without an output",
		zap.String("key", c.Key()), zap.Error(cause))
	return b.erased(c.Value(), purge, c.Now())
}

func (b *binding) erased(row any, purge *record, now time.Time) (out outcome) {
	nothing := outcome{Changed: true} // no row and no outputs
	defer func() {
		if recover() != nil {
			out = nothing
		}
	}()
	state, err := stateOf(row)
	if err != nil {
		return nothing
	}
	out = eraseState(state, purge, now, b.rules)
	if err := b.encode(&out); err != nil {
		return nothing
	}
	return out
}

// eraseState is the purge of a row to which the transition cannot be applied: accepted messages get their error outputs,
// without routes, and held records are given up. Of the memories, those that the row itself contains stay.
func eraseState(state *turnrow.State, purge *record, now time.Time, rules rules) outcome {
	memories := func(list []byte, entry int) []byte { return list[:len(list)-len(list)%entry] }
	left := &turnrow.State{
		Version: rowVersion, TouchedMs: now.UnixMilli(), NextPart: state.NextPart,
		Causes: memories(state.Causes, memorySize), Requests: memories(state.Requests, memorySize),
		Calls: memories(state.Calls, memorySize), Steps: memories(state.Steps, stepSize),
	}
	failed := failure{topics.CodeCancelled, "cancelled"}
	out := abandon(state, purge.Session, failed, now, rules)
	s := &transition{session: session{row: left, key: purge.Session, now: now, rules: rules}}
	s.rememberCause(digests.Of(ofCause, purge.Topic, purge.Cause))
	s.row.DeadlineMs = s.deadline()
	return outcome{Changed: true, State: left, Effects: out.Effects}
}

// unnamedParts returns the numbers of the parts in the table that the row of an outcome does not name. They are all deleted
// with a purge: parts that a crash left, and those of a row that cannot be read, contain text of the session too.
func unnamedParts(c *processors.Context, out outcome) (unnamed []uint32, err error) {
	all, err := c.Parts()
	if err != nil {
		return nil, fmt.Errorf("turn: purge: list the parts of the row: %w", err)
	}
	var named []uint32
	if out.State != nil {
		for _, f := range stateLargeFields(out.State) {
			if f.hasParts() {
				named = append(named, numbersOf(*f.parts)...)
			}
		}
	}
	slices.Sort(all) // in the same order after a restart
	return slices.DeleteFunc(all, func(n uint32) bool { return slices.Contains(named, n) }), nil
}
