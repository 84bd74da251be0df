// Package codec provides typed codecs that are also Goka codecs. Decoding returns no error and does not panic: it returns a
// Decoded, which is a value, a tombstone, or a poison value with the raw bytes and the cause. A bad record therefore cannot
// stop a processor.
//
// JSON, Proto, Bytes and String return the codecs of this package. Of returns the codec of any other Format; test it with
// the suite in codectest. For all codecs, a Kafka null is a tombstone. A zero-length value is poison for JSON and an
// ordinary value for the others.
//
// Errors of this package contain the cause and its position, and no byte of the payload, because payloads are prompts and
// answers, and errors appear in logs and headers.
//
// KeyHasher and PartitionOf select the same partition for a key as Kafka's Java producer.
package codec

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
)

var (
	// ErrType is returned by Encode for a value that is not a T, a Decoded[T] or an Encoded, and for a nil message.
	ErrType = errors.New("codec: wrong type")
	// ErrPanic is the cause of a poison value if Unmarshal of the format panicked. Encode returns it if Marshal panicked.
	ErrPanic = errors.New("codec: format panicked")
	// ErrEmpty is the cause of a poison value that is empty or white space.
	ErrEmpty = errors.New("codec: empty value")
	// ErrMalformed is the cause of a poison value that violates the syntax of the format.
	ErrMalformed = errors.New("codec: malformed value")
	// ErrMismatch is the cause of a poison value that is well formed but not a T. Encode returns it for a T that the
	// format cannot represent.
	ErrMismatch = errors.New("codec: value does not fit")
	// ErrDepth is the cause of a poison value that is nested deeper than MaxDepth. Encode returns it for such a value.
	ErrDepth = errors.New("codec: value nested too deep")
)

// Format encodes and decodes values of T. It must be safe for concurrent use. Both methods may panic: the Codec recovers.
//
// The result of Marshal must not share memory with v. It must be nil only if v means a tombstone. The argument of
// Unmarshal is never nil. Unmarshal must not modify it; only the returned value may alias it. Errors of both methods must
// not quote the payload.
type Format[T any] interface {
	Marshal(v T) ([]byte, error)
	Unmarshal(raw []byte) (T, error)
}

// Decoded is the result of decoding a record's value: either a value, a tombstone or a poison value.
type Decoded[T any] struct {
	// Value is the decoded value; the zero T for a tombstone and for poison.
	Value T
	// Raw is the bytes of the record's value, nil for a tombstone. It aliases the argument of Decode: do not modify it.
	Raw []byte
	// Err is the cause of a poison value, otherwise nil.
	Err error
}

// Tombstone reports whether the record had a Kafka null as its value.
func (d Decoded[T]) Tombstone() bool { return d.Raw == nil && d.Err == nil }

// Encoded is a record's value that is encoded already. Encode returns its bytes unchanged, without a copy and without a
// check that they are of the codec's format. Nil is a tombstone. The owner must not modify the bytes after the call.
type Encoded []byte

// Codec is a goka.Codec for values of T, made by Of. It is safe for concurrent use.
type Codec[T any] struct{ format Format[T] }

// Of returns the codec of a format.
func Of[T any](f Format[T]) Codec[T] { return Codec[T]{format: f} }

// Encode encodes a T, a Decoded[T] or an Encoded. A poison value is encoded to its raw bytes, a tombstone to nil. Other
// types, and a nil message, return an error that wraps ErrType. A panic of the format returns an error that wraps ErrPanic.
func (c Codec[T]) Encode(value any) (raw []byte, err error) {
	// Encoded and Decoded are the first cases: if T is any, they are a T too.
	switch v := value.(type) {
	case Encoded:
		return v, nil
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

// Decode returns a Decoded[T]. The error is always nil: failures are in Decoded.Err.
func (c Codec[T]) Decode(raw []byte) (any, error) { return c.Unmarshal(raw), nil }

// Marshal is Encode for a T.
func (c Codec[T]) Marshal(v T) (raw []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			raw, err = nil, panicked[T]("encode", r)
		}
	}()
	return c.format.Marshal(v)
}

// Unmarshal is Decode with a typed result.
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

// panicked returns an error with the type and, for a panic of the Go runtime (nil pointer, index), the reason. Other
// panic values may quote the payload and are not included.
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
