// Package codectest holds the suite that every codec of Turntable passes. Run it on your own codec: one that passes
// cannot stop a processor, whatever stands in a record.
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
//   - every sample comes back from its bytes as it went in, and has the same bytes each time,
//   - a Decoded encodes to what it was decoded from,
//   - nil, and only nil, is a tombstone, both ways,
//   - Decode neither fails nor panics, and gives a value with the raw bytes or poison with the raw bytes and the cause,
//   - Encode refuses a wrong type, and does not panic,
//   - Decode does not modify its input and later calls do not modify what earlier ones returned,
//   - the codec is safe for concurrent use,
//   - no error quotes the payload.
//
// Samples are compared with their Equal(T) bool method if they have one, with proto.Equal if they are messages, else
// with reflect.DeepEqual. At least one is needed, and none may encode to a tombstone.
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

// Copies tests that decoded values share no memory with the bytes they were decoded from. A codec need not be so: one
// that passes large parts on may alias them.
func Copies[T any](t *testing.T, c Codec, samples ...T) {
	t.Helper()
	suite[T]{codec: c, samples: samples}.copies(t)
}

// Recovers tests that a codec built by wrap passes panics of its format on as poison and as errors. It is for types
// that stand around a codec.Codec.
func Recovers[T any](t *testing.T, wrap func(codec.Format[T]) Codec) {
	t.Helper()
	suite[T]{codec: wrap(panicking[T]{})}.recovers(t)
}

// panicking quotes the payload in its panics, as code that builds messages from what it reads does.
type panicking[T any] struct{}

func (panicking[T]) Marshal(T) ([]byte, error)       { panic(secret) }
func (panicking[T]) Unmarshal(raw []byte) (T, error) { panic(string(raw)) }
