package processors

import (
	"errors"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

var (
	// ErrReturned is returned by a Context whose callback has returned. Nothing happened.
	ErrReturned = errors.New("processors: callback has returned")
	// ErrRowWritten is returned by the second of two table writes in one callback. Only the first one happens.
	ErrRowWritten = errors.New("processors: table row is already written in this callback")
	// ErrNilRow is returned by SetValue of nil: Delete removes a row.
	ErrNilRow = errors.New("processors: nil is no table row")
	// ErrNoParts is returned by Context.Part, SetPart and DeletePart where Context.HasParts is false.
	ErrNoParts = errors.New("processors: rows have no parts under a plain goka.NewProcessor")
	// ErrPartAlone is why a callback failed that wrote or deleted a part without writing its row.
	ErrPartAlone = errors.New("processors: part of a table row is written without the row")
	// ErrTooLarge is returned by SetPart, and by Emit for a record that the broker would refuse. A handler that returns it, because it
	// knows no smaller answer, sends its own record to the dead-letter topic: a retry would come to the same.
	ErrTooLarge = errors.New("processors: record is too large")
)

// errEncoded marks bytes that are handed to a codec already encoded.
var errEncoded = errors.New("processors: already encoded")

// effects is what a callback wants done. Nothing of it reaches Goka before the handler has returned without an error,
// so that a handler which fails half way leaves no trace; and outputs go before the table row in whatever order they
// were asked for: a row that is found after a crash proves that its outputs are in Kafka.
type effects struct {
	outputs  []output
	few      [2]output // room for as many outputs as most callbacks have
	parts    []part
	row      any // nil: the row is removed
	written  bool
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

// perform hands the effects to Goka. Where Goka refuses one it panics and stops; that panic is left to it.
func (e *effects) perform(ctx goka.Context, s *settings) {
	for _, out := range e.outputs {
		out.perform(ctx, s)
	}
	runtime, _ := ctx.(runtimeapi.Runtime) // who has none has no parts
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
