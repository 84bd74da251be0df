// Package codectest is the test suite for codecs. Every codec of Turntable passes it. Run it on your own codec: a codec
// that passes does not stop a processor, whatever a record contains.
package codectest

import (
	"testing"

	"github.com/turntable-streams/turntable/codec"
)

// Codec is what the suite tests: a goka.Codec that takes T and codec.Decoded[T] and decodes to codec.Decoded[T], such
// as a codec.Codec[T] or a type that embeds one.
type Codec interface {
	Encode(value any) ([]byte, error)
	Decode(raw []byte) (any, error)
}

// Run tests, each as a subtest, that
//
//   - every sample is equal after encoding and decoding, and is encoded to the same bytes each time,
//   - a Decoded is encoded to the bytes that it was decoded from,
//   - nil, and only nil, is a tombstone, in both directions,
//   - Decode returns no error and does not panic; it returns the raw bytes with a value, or with the cause if it is poison,
//   - Encode returns an error for a wrong type, and does not panic,
//   - Decode does not modify its input, and later calls do not modify earlier results,
//   - the codec is safe for concurrent use,
//   - no error quotes the payload.
//
// Samples are compared by their Equal(T) bool method if they have one, by proto.Equal if they are messages, otherwise by
// reflect.DeepEqual. At least one sample is required, and none may be encoded to a tombstone.
func Run[T any](t *testing.T, c Codec, samples ...T) {
	t.Helper()
	if len(samples) == 0 {
		t.Fatal("codectest: no samples")
	}
	s := suite[T]{codec: c, samples: samples}
	for _, fact := range s.facts() {
		t.Run(fact.name, func(t *testing.T) { fact.check(t) })
	}
}

// Copies tests that decoded values share no memory with the bytes they were decoded from. This is not required of every
// codec.
func Copies[T any](t *testing.T, c Codec, samples ...T) {
	t.Helper()
	suite[T]{codec: c, samples: samples}.copies(t)
}

// Recovers tests that a codec built by wrap turns panics of its format into poison values and errors. Use it for types
// that embed a codec.Codec.
func Recovers[T any](t *testing.T, wrap func(codec.Format[T]) Codec) {
	t.Helper()
	suite[T]{codec: wrap(panicking[T]{})}.recovers(t)
}

// panicking quotes the payload in its panics, like code that builds messages from its input.
type panicking[T any] struct{}

func (panicking[T]) Marshal(T) ([]byte, error)       { panic(secret) }
func (panicking[T]) Unmarshal(raw []byte) (T, error) { panic(string(raw)) }
