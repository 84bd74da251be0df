package topics

import (
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
)

// Topic is a typed topic: the one place where a name, a record type and its codec meet.
type Topic[T any] struct {
	name  string
	codec codec.Codec[T]
}

// Name is the topic's name on the broker.
func (t Topic[T]) Name() string { return t.name }

// Stream is Name as Goka's type.
func (t Topic[T]) Stream() goka.Stream { return goka.Stream(t.name) }

// Codec is the topic's codec; it is a goka.Codec.
func (t Topic[T]) Codec() codec.Codec[T] { return t.codec }
