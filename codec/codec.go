// Package codec holds the typed codecs of Turntable. Each is a Goka codec too. Decoding never fails and never panics
// into Goka: it yields a Decoded, which is a value, a tombstone or a poison value that carries the raw bytes and the
// cause, so that no record can stop a processor.
package codec

import (
	"errors"
	"fmt"
)

// ErrType is returned by Encode for a value that is neither a T nor a Decoded[T].
var ErrType = errors.New("codec: wrong type")

// ErrPanic is the cause of a poison value whose format panicked, and what Encode returns where Marshal panicked.
var ErrPanic = errors.New("codec: format panicked")

// Format turns values into bytes and back. It may fail and need not recover. Unmarshal must not keep raw.
type Format[T any] interface {
	Marshal(v T) ([]byte, error)
	Unmarshal(raw []byte) (T, error)
}

// Decoded is what a Codec yields for a record's bytes: exactly one of a value, a tombstone and a poison value.
type Decoded[T any] struct {
	// Value is the decoded value; the zero T for a tombstone and for poison.
	Value T
	// Raw is the record's bytes as they came, nil for a tombstone. It aliases what Decode was given.
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
	switch v := value.(type) {
	case T:
		return c.Marshal(v)
	case Decoded[T]:
		if v.Err != nil || v.Raw == nil {
			return v.Raw, nil
		}
		return c.Marshal(v.Value)
	default:
		return nil, fmt.Errorf("%w: got %T, want %T", ErrType, value, *new(T))
	}
}

// Decode always returns a Decoded[T] and a nil error.
func (c Codec[T]) Decode(raw []byte) (any, error) { return c.Unmarshal(raw), nil }

// Marshal is Encode without the any.
func (c Codec[T]) Marshal(v T) (raw []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			raw, err = nil, fmt.Errorf("%w: encode %T: %v", ErrPanic, v, r)
		}
	}()
	return c.format.Marshal(v)
}

// Unmarshal is Decode without the any.
func (c Codec[T]) Unmarshal(raw []byte) (d Decoded[T]) {
	d.Raw = raw
	if raw == nil {
		return d
	}
	defer func() {
		if r := recover(); r != nil {
			// The panic's text may quote the payload, which is a prompt: it is not repeated.
			d = Decoded[T]{Raw: raw, Err: fmt.Errorf("%w: decode %T", ErrPanic, *new(T))}
		}
	}()
	v, err := c.format.Unmarshal(raw)
	if err != nil {
		return Decoded[T]{Raw: raw, Err: err}
	}
	d.Value = v
	return d
}
