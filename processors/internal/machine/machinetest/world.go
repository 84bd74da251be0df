// Package machinetest plays events with one row of a capability and checks, at every event of every test, what each capability
// promises about crashes and repeats.
package machinetest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// TB is implemented by *testing.T and *rapid.T.
type TB interface {
	require.TestingT
	Helper()
}

// World applies events to one row. The row is encoded and decoded between two events, as in a broker, and so is every output.
//
// For every event it also plays what a crash makes of it, and requires that the outputs have the same IDs:
//   - the process dies after the outputs and before the row, so the event is applied a moment later to the same row
//   - the process dies after the row and before the offset, so the event is applied to the new row: nothing new may be written
type World[R rows.Message, E any] struct {
	TB    TB
	Table rows.Table[R]
	Due   E
	// Apply applies an event at the time of the world.
	Apply func(row R, e E) (machine.Outcome[R], error)
	// RowLimit and RecordLimit bound what is written, in bytes. 0: no limit.
	RowLimit, RecordLimit int
	// Endless reports that rows may have no deadline.
	Endless bool
	// Named returns the numbers of the parts that a row names, nil for no row. Nil: rows have no parts.
	Named func(R) []uint32
	// Repeats reports whether a repeated event may write this output although the first time it did not, or wrote other bytes. Nil:
	// no output may be so.
	Repeats func(machine.Effect) bool

	// Now is the time of the next event.
	Now time.Time
	// Row is the encoded row, nil if there is none.
	Row []byte
	// Parts are the parts of the row.
	Parts map[uint32][]byte
	// Offset is that of the last record.
	Offset int64

	written map[uint32][]byte // all parts that were ever written
}

// Effects are the effects of one or more events.
type Effects []machine.Effect

// Record returns a record of a topic as the group reads it, and its value.
func Record[T any, R rows.Message, E any](w *World[R, E], t topics.Topic[T], value T) (*machine.Record, T) {
	w.TB.Helper()
	raw, err := t.Codec().Marshal(value)
	require.NoError(w.TB, err)
	read := t.Codec().Unmarshal(raw)
	require.NoError(w.TB, read.Err)
	w.Offset++
	return &machine.Record{
		ID: fmt.Sprintf("%s/%d", t.Name(), w.Offset), At: w.Now, Topic: t.Name(), Offset: w.Offset, Value: raw,
	}, read.Value
}

// Read decodes the row, nil if there is none.
func (w *World[R, E]) Read() (row R) {
	w.TB.Helper()
	return w.read(w.Row)
}

func (w *World[R, E]) read(raw []byte) (row R) {
	w.TB.Helper()
	if raw == nil {
		return row
	}
	row, err := w.Table.Unmarshal(slices.Clone(raw))
	require.NoError(w.TB, err)
	return row
}

// Set replaces the row.
func (w *World[R, E]) Set(row R) {
	w.TB.Helper()
	var err error
	w.Row, err = w.Table.Marshal(row)
	require.NoError(w.TB, err)
}

// Handle applies an event, checks what it writes and plays its crashes.
func (w *World[R, E]) Handle(e E) Effects {
	w.TB.Helper()
	out := w.apply(w.Row, e)
	w.repeatBeforeRow(e, out)
	if out.Changed {
		w.Row = w.encode(out.Row, w.Row != nil, w.isDue(e))
		w.writeParts(out)
		w.repeatAfterRow(e, out)
	}
	return out.Effects
}

func (w *World[R, E]) apply(row []byte, e E) machine.Outcome[R] {
	w.TB.Helper()
	out, err := w.Apply(w.read(row), e)
	require.NoError(w.TB, err)
	for _, effect := range out.Effects {
		require.True(w.TB, out.Changed || effect.Part == 0, "a part is written with its row")
		w.checkEffect(effect)
	}
	return out
}

// checkEffect checks that an output can be written and is identified.
func (w *World[R, E]) checkEffect(e machine.Effect) {
	w.TB.Helper()
	if e.Topic == "" {
		return
	}
	require.NotEmpty(w.TB, e.ID, "an output on %s without an ID", e.Topic)
	require.NotEmpty(w.TB, e.Key, "an output on %s without a key", e.Topic)
	raw, err := e.Encode()
	require.NoError(w.TB, err)
	require.NoError(w.TB, e.Readable(raw), "%s: %s", e.Topic, raw)
	if w.RecordLimit > 0 {
		require.LessOrEqual(w.TB, len(raw)+1024, w.RecordLimit, "%s: with key and headers", e.Topic)
	}
}

// encode encodes a row that is written and checks it.
func (w *World[R, E]) encode(row R, had, due bool) []byte {
	w.TB.Helper()
	if !row.ProtoReflect().IsValid() {
		require.True(w.TB, had, "only an existing row is deleted")
		return nil
	}
	raw, err := w.Table.Marshal(row)
	require.NoError(w.TB, err)
	if w.RowLimit > 0 {
		require.LessOrEqual(w.TB, len(raw), w.RowLimit, "the row is too large")
	}
	at, ok := rows.Deadline(raw)
	require.True(w.TB, ok || w.Endless, "every row has a deadline")
	if due && ok {
		require.Greater(w.TB, at, w.Now.UnixMilli(), "the next deadline is in the future")
	}
	return raw
}

func (w *World[R, E]) isDue(e E) bool { return any(e) == any(w.Due) }

// Part returns a part of the row, nil if there is none.
func (w *World[R, E]) Part(n uint32) ([]byte, error) { return w.Parts[n], nil }

// Restore takes the row and its parts back to those of another world.
func (w *World[R, E]) Restore(from *World[R, E]) {
	w.Row, w.Parts, w.written = from.Row, maps.Clone(from.Parts), maps.Clone(from.written)
}

// writeParts writes and deletes the parts of an outcome, and checks that they are those that the row names.
func (w *World[R, E]) writeParts(out machine.Outcome[R]) {
	w.TB.Helper()
	if w.Named == nil {
		return
	}
	if w.Parts == nil {
		w.Parts, w.written = map[uint32][]byte{}, map[uint32][]byte{}
	}
	for _, e := range out.Effects {
		value, set := e.Value.([]byte)
		switch {
		case e.Part == 0:
		case set:
			require.True(w.TB, w.written[e.Part] == nil || bytes.Equal(w.written[e.Part], value), "a part is never replaced")
			w.Parts[e.Part], w.written[e.Part] = value, value
		default:
			delete(w.Parts, e.Part)
		}
	}
	require.ElementsMatch(w.TB, w.Named(out.Row), slices.Collect(maps.Keys(w.Parts)), "the row names its parts, and no part is left")
}

// repeatBeforeRow plays a crash before the row was written.
func (w *World[R, E]) repeatBeforeRow(e E, out machine.Outcome[R]) {
	w.TB.Helper()
	wrote := ids(out.Effects)
	same := w.apply(w.Row, e)
	require.Equal(w.TB, Effects(out.Effects).Records(), Effects(same.Effects).Records(), "equal arguments give equal outputs")
	if out.Changed && out.Row.ProtoReflect().IsValid() {
		require.True(w.TB, same.Changed && proto.Equal(out.Row, same.Row), "equal arguments give equal rows")
	}
	now := w.Now
	w.Now = now.Add(time.Millisecond)
	late := w.apply(w.Row, e)
	if len(ids(late.Effects)) > len(wrote) { // a deadline that has come meanwhile
		require.Subset(w.TB, ids(late.Effects), wrote, "the outputs have the same IDs after a crash before the row")
	} else {
		require.Equal(w.TB, wrote, ids(late.Effects), "the outputs have the same IDs after a crash before the row")
	}
	w.Now = now
}

// repeatAfterRow plays a crash after the row was written.
func (w *World[R, E]) repeatAfterRow(e E, out machine.Outcome[R]) {
	w.TB.Helper()
	wrote := ids(out.Effects)
	again := w.apply(w.Row, e)
	before := map[string][]byte{}
	for _, effect := range out.Effects {
		before[idOf(effect)] = contentOf(effect)
	}
	for _, effect := range again.Effects {
		if effect.Part != 0 || effect.Topic == "" && effect.Reason == "" || w.Repeats != nil && w.Repeats(effect) {
			continue
		}
		require.Contains(w.TB, wrote, idOf(effect), "an event that is read again after a crash writes nothing new")
		require.Equal(w.TB, string(before[idOf(effect)]), string(contentOf(effect)), "%s: a repeat is equal", idOf(effect))
	}
}

// contentOf returns the bytes of an output or a part.
func contentOf(e machine.Effect) []byte {
	if part, ok := e.Value.([]byte); ok && e.Part != 0 {
		return part
	}
	raw, _ := e.Encode() // checked when it was written
	return raw
}

// ids identifies effects. The number of a part may be another one if an event is repeated.
func ids(effects []machine.Effect) (all []string) {
	for _, e := range effects {
		if e.Part == 0 {
			all = append(all, idOf(e))
		}
	}
	return all
}

func idOf(e machine.Effect) string {
	return fmt.Sprintf("%s %s %s%s %d", e.Topic, e.Key, e.ID, e.Reason, e.Part)
}

// Deadline returns the earliest deadline of the row.
func (w *World[R, E]) Deadline() (at time.Time, ok bool) {
	if w.Row == nil {
		return at, false
	}
	ms, ok := rows.Deadline(w.Row)
	return time.UnixMilli(ms).UTC(), ok
}

// Advance moves the clock by d. play applies the deadlines in that time.
func (w *World[R, E]) Advance(d time.Duration, play func(E) Effects) (all Effects) {
	w.TB.Helper()
	end := w.Now.Add(d)
	for {
		at, ok := w.Deadline()
		if !ok || at.After(end) {
			w.Now = end
			return all
		}
		if at.After(w.Now) {
			w.Now = at
		}
		all = append(all, play(w.Due)...)
	}
}

// Values returns the values of outputs whose values are of a type.
func Values[T any](es Effects) (list []T) {
	for _, e := range es {
		if v, ok := e.Value.(T); ok {
			list = append(list, v)
		}
	}
	return list
}

// Only returns the value of the only output of a type.
func Only[T any](t TB, es Effects) T {
	t.Helper()
	list := Values[T](es)
	require.Len(t, list, 1, "%v", ids(es))
	return list[0]
}

// Records returns the effects in a form that can be compared.
func (es Effects) Records() (list []string) {
	for _, e := range es {
		list = append(list, fmt.Sprintf("%s %s %v %+v", idOf(e), contentOf(e), e.Headers, e.Held))
	}
	return list
}

// Reason returns the reason of the only effect, which is a dead letter.
func Reason(t TB, es Effects) string {
	t.Helper()
	require.Len(t, es, 1, "%v", ids(es))
	require.NotEmpty(t, es[0].Reason)
	return es[0].Reason
}
