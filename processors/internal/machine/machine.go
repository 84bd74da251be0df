// Package machine binds the pure transitions of capabilities to Goka: what every group does with its records, rows, outputs, dead
// letters and deadlines. A capability has its events, its row and its transition; everything else is here, once.
package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/timed"
	"github.com/turntable-streams/turntable/topics"
)

// Outcome is what an event does to a row.
type Outcome[R rows.Message] struct {
	// Changed reports whether the row must be written, or deleted if Row is nil. If it is false, the row stays as it is.
	Changed bool
	// Row is the new row. It is set only if Changed is true.
	Row R
	// Forgotten reports that nothing of the key may be left: all parts that the row does not name are deleted too, also those that
	// a crash has left.
	Forgotten bool
	// Effects are done in this order, before the row is written.
	Effects []Effect
}

// Machine is a group whose rows are of the type R and whose events are of the type E.
type Machine[R rows.Message, E any] struct {
	Table rows.Table[R]
	// Broken is the reason with which the record of an event is dead-lettered if the row cannot be decoded. Empty: such a row is
	// replaced, as if there were none.
	Broken string
	// Purges reports whether an event erases a row: it also deletes one that cannot be decoded. Nil: none does.
	Purges func(E) bool
	// PurgesAll says that a purge also deletes a row that decodes, if Apply panics or fails. It then ends what is open without an
	// output.
	PurgesAll bool
	// Named returns the numbers of the parts that a row names, nil for no row. When a row is purged, all others are deleted, also
	// those that a crash has left. Nil: rows have no parts.
	Named func(R) []uint32
	// Due is the event that the earliest deadline of a row has passed. All records that were written to the inputs before read have
	// been handled (processors.Timed): what is due later may be ended by one that is not read yet. Nil:
	// the event is the zero E.
	Due func(read time.Time) E
	// Apply applies an event to the row of c.Key, nil if there is none. It may change the row that it is given. Equal arguments,
	// looked up rows and times give equal outcomes. An error stops the processor, or dead-letters the record.
	Apply func(c *processors.Context, row R, e E) (Outcome[R], error)
}

// Graph returns the group: its inputs, its table, and the outputs and further edges.
func (m *Machine[R, E]) Graph(group goka.Group, inputs []processors.Source, more ...goka.Edge) *goka.GroupGraph {
	edges := append(processors.Edges(group, inputs...), goka.Persist(timed.Of(m.Table, func(c *processors.Context) error {
		var due E
		if m.Due != nil {
			due = m.Due(c.Timestamp())
		}
		return m.apply(c, due)
	})))
	return goka.DefineGroup(group, append(edges, more...)...)
}

// Input binds a topic whose records are events.
func Input[T any, R rows.Message, E any](
	m *Machine[R, E], t topics.Topic[T], event func(*Record, T) E, opts ...processors.EdgeOption[T],
) processors.Source {
	return processors.Input(t, func(c *processors.Context, in codec.Decoded[T]) error {
		return m.apply(c, event(RecordOf(c, in.Raw), in.Value))
	}, opts...)
}

// Output is the edge of a topic that effects are for.
func Output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

// Through returns what a deadline may end, in milliseconds since the epoch, if the inputs have been read through a time: all that
// was due then. The zero time is now.
func Through(read, now time.Time) int64 {
	if read.IsZero() || read.After(now) {
		read = now
	}
	return read.UnixMilli()
}

// apply applies an event to the row of its key. A row with a newer version stops the processor: a newer build wrote the row, and
// overwriting it would lose what this build cannot read. A row that cannot be decoded is left unchanged and the event's record is
// dead-lettered, unless the event purges the row.
func (m *Machine[R, E]) apply(c *processors.Context, e E) error {
	row, err := m.Table.Of(c.Value())
	if err != nil && m.Broken == "" && !errors.Is(err, rows.ErrVersion) {
		err = nil
	}
	purges := m.Purges != nil && m.Purges(e)
	var out Outcome[R]
	switch {
	case errors.Is(err, rows.ErrVersion):
		return err
	case err != nil && !purges:
		return c.DeadLetter(m.Broken)
	case err == nil && purges && m.PurgesAll:
		out, err = m.purge(c, row, e)
	case err == nil:
		if out, err = m.Apply(c, row, e); err != nil {
			return err
		}
	}
	if err != nil && purges && !errors.Is(err, rows.ErrVersion) {
		c.Logger().Error("the row of a purged key is damaged: it is deleted, and what was open in it ends without an output",
			zap.String("group", string(c.Group())), zap.String("key", c.Key()), zap.Error(err))
		out, err = Outcome[R]{Changed: true}, nil
	}
	if err == nil && out.Changed && (purges || out.Forgotten) {
		err = m.deleteUnnamed(c, &out)
	}
	if err != nil {
		return err
	}
	return out.perform(c)
}

// purge is Apply for a row that may be damaged: a panic is an error. Its value may quote the row.
func (m *Machine[R, E]) purge(c *processors.Context, row R, e E) (out Outcome[R], err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			out, err = Outcome[R]{}, fmt.Errorf("the event cannot be applied to the row: panic: %T", thrown)
		}
	}()
	return m.Apply(c, row, e)
}

// deleteUnnamed adds the deletion of all parts in the table that the row of an outcome does not name.
func (m *Machine[R, E]) deleteUnnamed(c *processors.Context, out *Outcome[R]) error {
	if m.Named == nil || !c.HasParts() {
		return nil
	}
	all, err := c.Parts()
	if err != nil {
		return fmt.Errorf("list the parts of the row of %q: %w", c.Key(), err)
	}
	kept := m.Named(out.Row)
	for _, e := range out.Effects {
		kept = append(kept, e.Part) // 0 for other effects: no part has it
	}
	slices.Sort(all) // in the same order after a restart
	var unnamed Effects
	for _, n := range all {
		if !slices.Contains(kept, n) {
			unnamed.DeletePart(n)
		}
	}
	out.Effects = append(out.Effects, unnamed.list...)
	return nil
}

func (out Outcome[R]) perform(c *processors.Context) error {
	for _, effect := range out.Effects {
		if err := effect.perform(c); err != nil {
			return err
		}
	}
	switch {
	case !out.Changed:
		return nil
	case !out.Row.ProtoReflect().IsValid(): // nil
		return c.Delete()
	default:
		return c.SetValue(out.Row)
	}
}
