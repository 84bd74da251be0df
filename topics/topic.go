package topics

import (
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
)

// Topic is a typed topic: a topic's specification and the codec of its values. It is immutable and can be copied.
type Topic[T any] struct {
	spec  Spec
	codec codec.Codec[T]
}

// New returns a topic that is not in the catalog.
func New[T any](spec Spec, c codec.Codec[T]) Topic[T] { return Topic[T]{spec: spec, codec: c} }

// Name returns the topic's name on the broker.
func (t Topic[T]) Name() string { return t.spec.Name }

// Stream returns Name as a goka.Stream.
func (t Topic[T]) Stream() goka.Stream { return goka.Stream(t.spec.Name) }

// Codec returns the topic's codec, which is a goka.Codec.
func (t Topic[T]) Codec() codec.Codec[T] { return t.codec }

// Spec returns the topic's specification.
func (t Topic[T]) Spec() Spec { return t.spec }

// Spec is the specification of a topic: how Ensure creates it, and a description for readers.
type Spec struct {
	Name string
	// Record is the type of the values and Key the key of the records. They are descriptions and have no effect.
	Record string
	Key    Key
	// Cleanup is the cleanup.policy that the topic is created with. Empty is the broker's default.
	Cleanup Cleanup
	// Retention is the retention.ms that the topic is created with. Zero is the broker's default.
	Retention time.Duration
	// CompactionLag is the min.compaction.lag.ms that the topic is created with. Zero is the broker's default.
	CompactionLag time.Duration
	// CoPartitioned topics must all have the same number of partitions.
	CoPartitioned bool
	// Created says whether Ensure creates the topic if it does not exist.
	Created bool
}

// Key describes the key of a topic's records.
type Key string

// The keys of the catalog's topics.
const (
	KeySession Key = "session_id"
	KeyUser    Key = "user_id"
	KeyTool    Key = "tool_name"
	KeyRoute   Key = "route"
	KeyScope   Key = "scope"
	KeyAgent   Key = "agent"
	KeyTask    Key = "task_id"
	KeyCrew    Key = "crew_id"
	// KeyRepository: the name of a repository that crews work on.
	KeyRepository Key = "repository"
	// KeySubject: "agent/", "crew/" or "repository/" and an ID.
	KeySubject Key = "subject"
	// KeyInstance: the ID of the instance.
	KeyInstance Key = "instance_id"
	// KeySource: a dead letter has the key of the record that was dead-lettered.
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
