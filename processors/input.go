package processors

import (
	"errors"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/topics"
)

// Handler handles one record: a value or a tombstone. Records that cannot be decoded are dead-lettered and do not reach it.
// It runs in the partition's goroutine, one record at a time, and must not block: other keys of the partition wait for it.
// After a crash it runs again with the same record, possibly with the same row, so it must be idempotent. in.Raw is valid
// only during the call.
//
// Return an error only for transient failures: the handler is called again after a wait, while the records behind it in the
// partition wait and other partitions continue. After 10 failed attempts (WithHandlerAttempts) the record is dead-lettered
// with the error's text as reason, which must not quote the record, and the partition continues. Use Context.DeadLetter for
// a bad record, and ErrKeepRecord for a record that must not be dead-lettered. A panic, or an error that wraps ErrTooLarge,
// dead-letters the record at once. A failed attempt has no effects.
//
// Attempts are counted across rebalances and restarts: the number is stored with the committed offset. A crash is not
// counted, and neither is a handler that ends the process (os.Exit, out of memory): such a record is redelivered without
// limit.
type Handler[T any] func(c *Context, in codec.Decoded[T]) error

// ErrType is the cause of a RecordError when Goka passes a value of another type than the topic's. Goka has one codec per
// topic, that of the later edge: the graph has two edges of the topic with different codecs.
var ErrType = errors.New("processors: value is not of the topic's type")

// Source is an input topic bound to its handler, made by Input. Edges turns sources into Goka edges.
type Source struct{ in source }

type source interface {
	name() string
	spec() topics.Spec
	confidential() bool
	screened() bool
	// repartition returns the function for the records of an input that may have any number of partitions, or nil.
	repartition(s *settings) cut.Repartition
	// edge is the input edge. If late, Goka does not decode the values.
	edge(s *settings, late bool) goka.Edge
	// rerouted handles a record that was sent through the loop topic.
	rerouted(ctx goka.Context, c *Context)
}

// EdgeOption configures an Input of T.
type EdgeOption[T any] func(*input[T])

// KeyedBy sets the function that returns the session ID of a value. A record whose key is not its session ID is sent
// through the group's loop topic under the right key. A value without a session ID (nil) is dead-lettered. Without this
// option, and for tombstones, the record's key is the session ID.
func KeyedBy[T any](session func(value T) *string) EdgeOption[T] {
	return func(in *input[T]) { in.session = session }
}

// Confidential keeps values and headers of a topic's records out of the dead-letter topic, which may have other readers.
// A dead letter then has only the key, the coordinates, the reason, and the size of the value in error.truncated; the reason
// does not contain the error of a handler. Use it
// for topics whose records hold secrets.
func Confidential[T any]() EdgeOption[T] {
	return func(in *input[T]) { in.secret = true }
}

type input[T any] struct {
	topic   topics.Topic[T]
	handler Handler[T]
	session func(T) *string // nil: the key
	secret  bool
	loose   bool                        // may have any number of partitions
	known   func(*Context, []byte) bool // nil: none is
}

func (in *input[T]) name() string       { return in.topic.Name() }
func (in *input[T]) spec() topics.Spec  { return in.topic.Spec() }
func (in *input[T]) confidential() bool { return in.secret }
func (in *input[T]) screened() bool     { return in.known != nil }

func (in *input[T]) sessionOf(r *record, d codec.Decoded[T]) string {
	if in.session == nil || d.Tombstone() {
		return r.key
	}
	if id := in.session(d.Value); id != nil {
		return *id
	}
	return ""
}

// undecoded is a value's bytes.
type undecoded []byte

// decoded converts the message that Goka passes to a callback. A bare nil is a tombstone of a processor with
// goka.NilProcess. If late, only d.Raw is set and the caller decodes it.
func decoded[T any](msg any) (d codec.Decoded[T], late, ok bool) {
	switch v := msg.(type) {
	case nil:
		return d, false, true
	case undecoded:
		return codec.Decoded[T]{Raw: v}, true, true
	default:
		d, ok = msg.(codec.Decoded[T])
		return d, false, ok
	}
}
