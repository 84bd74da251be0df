package topics

import (
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
)

// Topic is a typed topic: the one place where a name, a record type and its codec meet. It is a value.
type Topic[T any] struct {
	spec  Spec
	codec codec.Codec[T]
}

// New is a topic outside the catalog, of a user's own.
func New[T any](spec Spec, c codec.Codec[T]) Topic[T] { return Topic[T]{spec: spec, codec: c} }

// Name is the topic's name on the broker.
func (t Topic[T]) Name() string { return t.spec.Name }

// Stream is Name as Goka's type.
func (t Topic[T]) Stream() goka.Stream { return goka.Stream(t.spec.Name) }

// Codec is the topic's codec; it is a goka.Codec.
func (t Topic[T]) Codec() codec.Codec[T] { return t.codec }

// Spec is what the topic is on the broker.
func (t Topic[T]) Spec() Spec { return t.spec }

// Spec says what a topic is on the broker.
type Spec struct {
	Name string
	// Record names the type of its values, and Key what its records are keyed by, both for people.
	Record string
	Key    Key
	// Cleanup is what the topic is created with.
	Cleanup Cleanup
	// Retention is what the topic is created with; zero stands for the broker's default.
	Retention time.Duration
	// CoPartitioned topics have one number of partitions.
	CoPartitioned bool
	// Created topics are made by Ensure where they are missing; the others are names for readers.
	Created bool
}

// Key is what the records of a topic are keyed by.
type Key string

// The keys of the catalog's topics.
const (
	KeySession Key = "session_id"
	KeyUser    Key = "user_id"
	KeyTool    Key = "tool_name"
	KeyRoute   Key = "route"
	// KeySource is the key of the record that was dead-lettered.
	KeySource Key = "source key"
)

// Cleanup is a topic's cleanup.policy.
type Cleanup string

// The cleanup policies of the catalog's topics.
const (
	CleanupDelete        Cleanup = "delete"
	CleanupCompact       Cleanup = "compact"
	CleanupCompactDelete Cleanup = "compact,delete"
)
