package processors

import (
	"errors"
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/topics"
)

var (
	// ErrReturned is returned by the methods of a Context after its callback has returned. The call had no effect.
	ErrReturned = errors.New("processors: callback has returned")
	// ErrRowWritten is returned by the second of two table writes in one callback. Only the first one is carried out.
	ErrRowWritten = errors.New("processors: table row is already written in this callback")
	// ErrNilRow is returned by Context.SetValue and SetPart for nil. Use Delete or DeletePart to remove a row or a part.
	ErrNilRow = errors.New("processors: table row is nil, use Delete to remove a row")
	// ErrNoParts is returned by Context.Part, SetPart and DeletePart if Context.HasParts is false.
	ErrNoParts = errors.New("processors: rows have no parts under a plain goka.NewProcessor")
	// ErrPartAlone is the cause of the failure of a callback that wrote or deleted a part without writing its row.
	ErrPartAlone = errors.New("processors: part of a table row is written without the row")
	// ErrTooLarge is returned for a record, or a part of a row, that is larger than Context.MaxRecordBytes or the
	// publisher's limit. A handler that has no smaller answer returns it: its record is then dead-lettered, because a
	// retry would fail in the same way.
	ErrTooLarge = errors.New("processors: record is too large")
)

// effects collects the effects of a callback. They are passed to Goka after the handler has returned nil, so a handler
// that fails half way has none. Outputs are passed before the table row, whatever the order of the calls: a row that is
// found after a crash proves that its outputs are in Kafka.
type effects struct {
	outputs  []output
	few      [2]output // backing array of outputs: most callbacks have no more
	parts    []part
	row      any // nil: the row is removed
	written  bool
	sequence bool // the outputs are acknowledged one topic after the other
	rejected bool // the record itself is among the outputs, as a dead letter
}

// part is a part of the row that is written, or deleted where value is nil.
type part struct {
	number uint32
	value  []byte
}

type output struct {
	stream   goka.Stream
	key      string
	value    any
	id       string       // the only header, where it is not empty
	headers  goka.Headers // where there is no id
	rejected *RecordError // of a dead letter
}

func (e *effects) emit(out output) {
	if e.outputs == nil {
		e.outputs = e.few[:0]
	}
	e.outputs = append(e.outputs, out)
}

func (e *effects) writeRow(row any) error {
	if e.written {
		return ErrRowWritten
	}
	e.row, e.written = row, true
	return nil
}

// fit returns an error that wraps ErrTooLarge if a topic does not accept an output or the row.
func (e *effects) fit(ctx goka.Context, key string, s *settings) error {
	encoder, ok := unbound(ctx).(runtimeapi.Encoder)
	if !ok {
		return nil
	}
	for _, out := range e.outputs {
		headers := headersBytes(out.headers)
		if out.id != "" {
			headers = headerBytes(topics.HeaderID, len(out.id))
		}
		raw, err := encoder.EncodeOutput(out.stream, out.value)
		if size, limit := recordOverhead+len(out.key)+len(raw)+headers, s.limitOf(string(out.stream)); err == nil && size > limit {
			return fmt.Errorf("%w: %d bytes for %s, limit %d", ErrTooLarge, size, out.stream, limit)
		}
	}
	if e.row == nil {
		return nil
	}
	raw, err := encoder.EncodeRow(e.row)
	if size, limit := recordBytes(key, raw, nil), s.limitOf(s.table()); err == nil && size > limit {
		return fmt.Errorf("%w: %d bytes for the table row, limit %d", ErrTooLarge, size, limit)
	}
	return nil
}

// perform passes the effects to Goka. If Goka rejects one, it panics and stops; that panic is not recovered here.
func (e *effects) perform(ctx goka.Context, s *settings) {
	if sequencer, ok := unbound(ctx).(runtimeapi.Sequencer); ok && e.sequence && e.hasTopics() {
		sequencer.Sequence()
	}
	for _, out := range e.outputs {
		out.perform(ctx, s)
	}
	runtime, _ := ctx.(runtimeapi.Runtime) // nil only if there are no parts
	for _, p := range e.parts {
		if p.value != nil {
			runtime.SetPart(p.number, p.value)
		}
	}
	switch {
	case !e.written:
	case e.row == nil:
		ctx.Delete()
	default:
		ctx.SetValue(e.row)
	}
	for _, p := range e.parts {
		if p.value == nil {
			runtime.SetPart(p.number, nil)
		}
	}
}

func (o output) perform(ctx goka.Context, s *settings) {
	if o.rejected != nil {
		s.onDeadLetter(o.rejected)
	}
	runtime, ok := ctx.(runtimeapi.Runtime)
	switch {
	case o.id != "" && ok:
		runtime.EmitWithID(o.stream, o.key, o.value, o.id)
	case o.id != "":
		ctx.Emit(o.stream, o.key, o.value, goka.WithCtxEmitHeaders(runtimeapi.IDHeaders(o.id)))
	case len(o.headers) == 0:
		ctx.Emit(o.stream, o.key, o.value)
	case ok:
		runtime.EmitWithHeaders(o.stream, o.key, o.value, o.headers)
	default:
		ctx.Emit(o.stream, o.key, o.value, goka.WithCtxEmitHeaders(o.headers))
	}
}

// hasTopics reports whether the outputs have more than one topic: otherwise none waits for another.
func (e *effects) hasTopics() bool {
	for _, out := range e.outputs {
		if out.stream != e.outputs[0].stream {
			return true
		}
	}
	return false
}
