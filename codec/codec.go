// Package codec holds the typed codecs of Turntable. Each is a Goka codec too. Decoding never fails and never panics
// into Goka: it yields a Decoded, which is a value, a tombstone or a poison value that carries the raw bytes and the
// cause, so that no record can stop a processor.
//
// JSON, Proto, Bytes and String are the codecs that come with the package; Of makes one of any Format, and codectest
// holds the suite that all of them pass. A Kafka null is a tombstone for all. A zero-length value is poison for JSON
// and an ordinary value for the others.
//
// Causes and errors of this package say what is wrong and where, and never repeat a byte of the payload: payloads are
// prompts and answers, errors end up in logs and headers.
//
// KeyHasher and PartitionOf place a key where Kafka's own Java producer places it.
package codec

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
)

var (
	// ErrType is returned by Encode for a value that is neither a T nor a Decoded[T], and for a nil message.
	ErrType = errors.New("codec: wrong type")
	// ErrPanic is the cause of a poison value whose format panicked, and what Encode returns where Marshal panicked.
	ErrPanic = errors.New("codec: format panicked")
	// ErrEmpty is the cause of a poison value without any bytes, or with nothing but white space.
	ErrEmpty = errors.New("codec: empty value")
	// ErrMalformed is the cause of a poison value whose bytes break the rules of the format.
	ErrMalformed = errors.New("codec: malformed value")
	// ErrMismatch is the cause of a poison value that is well formed but is no T, and what Encode returns for a T
	// that the format cannot express.
	ErrMismatch = errors.New("codec: value does not fit")
	// ErrDepth is the cause of a poison value that is nested deeper than MaxDepth, and what Encode returns for one.
	ErrDepth = errors.New("codec: value nested too deep")
)

// Format turns values into bytes and back. It may fail or panic: the Codec over it recovers. It must be safe for
// concurrent use.
//
// Marshal's result must share no memory with v, and is nil only where v stands for a tombstone. Unmarshal gets what
// came, never nil, and must not modify it; the value may alias it, nothing else may keep it. The errors of both must
// not quote the payload.
type Format[T any] interface {
	Marshal(v T) ([]byte, error)
	Unmarshal(raw []byte) (T, error)
}

// Decoded is what a Codec yields for a record's bytes: exactly one of a value, a tombstone and a poison value.
type Decoded[T any] struct {
	// Value is the decoded value; the zero T for a tombstone and for poison.
	Value T
	// Raw is the record's bytes as they came, nil for a tombstone. It aliases what Decode was given: read only.
	Raw []byte
	// Err is the cause of a poison value, else nil.
	Err error
}

// Tombstone reports whether the record had a Kafka null as its value.
func (d Decoded[T]) Tombstone() bool { return d.Raw == nil && d.Err == nil }

// Codec is a goka.Codec over a Format. It is safe for concurrent use if its format is.
type Codec[T any] struct{ format Format[T] }

// Of returns the codec over a format.
func Of[T any](f Format[T]) Codec[T] { return Codec[T]{format: f} }

// Encode encodes a T, or the value of a Decoded[T] (a poison value encodes to its raw bytes, a tombstone to nil).
// A panic of the format is returned as an error that wraps ErrPanic.
func (c Codec[T]) Encode(value any) (raw []byte, err error) {
	// Decoded stands first: where T is any, it is a T as well.
	switch v := value.(type) {
	case Decoded[T]:
		if v.Err != nil || v.Raw == nil {
			return v.Raw, nil
		}
		return c.Marshal(v.Value)
	case T:
		return c.Marshal(v)
	default:
		return nil, fmt.Errorf("%w: got %T, want %s", ErrType, value, typeName[T]())
	}
}

// Decode always returns a Decoded[T] and a nil error.
func (c Codec[T]) Decode(raw []byte) (any, error) { return c.Unmarshal(raw), nil }

// Marshal is Encode without the any.
func (c Codec[T]) Marshal(v T) (raw []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			raw, err = nil, panicked[T]("encode", r)
		}
	}()
	return c.format.Marshal(v)
}

// Unmarshal is Decode without the any.
func (c Codec[T]) Unmarshal(raw []byte) (d Decoded[T]) {
	if raw == nil {
		return d
	}
	defer func() {
		if r := recover(); r != nil {
			d = Decoded[T]{Raw: raw, Err: panicked[T]("decode", r)}
		}
	}()
	v, err := c.format.Unmarshal(raw)
	if err != nil {
		return Decoded[T]{Raw: raw, Err: err}
	}
	return Decoded[T]{Value: v, Raw: raw}
}

// panicked names the type and, for what the Go runtime itself raised (nil pointers, indices), the reason. What code
// raised may quote the payload and is not repeated.
func panicked[T any](action string, r any) error {
	if fault, ok := r.(runtime.Error); ok {
		return fmt.Errorf("%w: %s %s: %s", ErrPanic, action, typeName[T](), fault.Error())
	}
	return fmt.Errorf("%w: %s %s", ErrPanic, action, typeName[T]())
}

func typeName[T any]() string { return nameOf(reflect.TypeFor[T]()) }

// nameOf names a Go type briefly: an anonymous struct would print all its fields.
func nameOf(t reflect.Type) string {
	const longest = 100
	if name := t.String(); len(name) <= longest {
		return name
	}
	return t.Kind().String()
}
