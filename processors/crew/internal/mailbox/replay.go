package mailbox

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Replay applies the inputs of one key, in the order of their offsets, to no row. It returns the row that they make, nil if there
// is none at the end, and the events of their steps. Inputs that cannot be decoded are skipped, as the group dead-letters them.
// The error is that of a row that cannot be encoded.
//
// What a deadline itself changes is not an input: the row's deadline, and the deadline that the mailbox has asked about, can
// differ from those of the table.
func (g Group[R]) Replay(key string, inputs []processors.Inbound) (row R, ok bool, events []topics.CrewEvent, err error) {
	row = g.New()
	for _, in := range inputs {
		d := Inputs(g.topics, g.kind).Codec().Unmarshal(in.Value)
		if d.Err != nil || in.Value == nil {
			continue
		}
		keep, changed, effects := g.Step(row, key, d.Value, in.Timestamp, in.Timestamp)
		if !changed {
			continue
		}
		for _, e := range effects {
			if event, is := e.(topics.CrewEvent); is {
				events = append(events, event)
			}
		}
		if ok = keep; !keep {
			row = g.New()
			continue
		}
		// A row is encoded and decoded between two inputs.
		raw, err := g.table.Marshal(row)
		if err != nil {
			return row, ok, events, err
		}
		if row, err = g.table.Unmarshal(raw); err != nil {
			return row, ok, events, fmt.Errorf("crew: replay: %w", err)
		}
	}
	return row, ok, events, nil
}

// Verify checks that the inputs of a key make its row in the table, nil for none, and returns the events that they make. The error
// names the fields that differ, without their values.
func (g Group[R]) Verify(key string, raw []byte, inputs []processors.Inbound) ([]topics.CrewEvent, error) {
	want, ok, events, err := g.Replay(key, inputs)
	switch {
	case err != nil:
		return events, err
	case ok != (raw != nil):
		return events, fmt.Errorf("%s %q: the inputs make a row: %t, the table has one: %t", g.Name, key, ok, raw != nil)
	case raw == nil:
		return events, nil
	}
	row, err := g.table.Unmarshal(raw)
	if err != nil {
		return events, err
	}
	if differ := g.differ(want, row); len(differ) > 0 {
		return events, fmt.Errorf("%s %q: the table and the inputs differ in %s", g.Name, key, strings.Join(differ, ", "))
	}
	return events, nil
}

// differ names the fields in which two rows differ, except what deadlines change themselves.
func (g Group[R]) differ(a, b R) (names []string) {
	a, b = g.comparable(a), g.comparable(b)
	fields := a.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !a.ProtoReflect().Get(f).Equal(b.ProtoReflect().Get(f)) {
			names = append(names, string(f.Name()))
		}
	}
	return names
}

func (g Group[R]) comparable(row R) R {
	c := proto.Clone(row).(R)
	g.set(c, 0)
	if box := c.GetMailbox(); box != nil {
		box.AskedMs = 0
	}
	return c
}
