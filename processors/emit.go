package processors

import (
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

// Emit encodes a value and sends it to a topic that is an output of the graph, after the handler has returned nil. It
// returns the codec's error, or ErrTooLarge for a record larger than Context.MaxRecordBytes; the record is not sent then.
// The value is encoded immediately and not kept.
func Emit[T any](c *Context, t topics.Topic[T], key string, value T, headers goka.Headers) error {
	encoded, err := encode(c, t, key, value, headersBytes(headers))
	if err != nil {
		return err
	}
	return c.Emit(t.Stream(), key, encoded, headers)
}

// EmitWithID is like Emit with the single header topics.HeaderID. With an empty ID the record has no headers.
func EmitWithID[T any](c *Context, t topics.Topic[T], key string, value T, id string) error {
	headers := 0
	if id != "" {
		headers = headerBytes(topics.HeaderID, len(id))
	}
	encoded, err := encode(c, t, key, value, headers)
	if err != nil {
		return err
	}
	return c.EmitWithID(t.Stream(), key, encoded, id)
}

// encode returns the encoded value. The codec of the output edge writes it unchanged, so the value is encoded once.
func encode[T any](c *Context, t topics.Topic[T], key string, value T, headers int) (codec.Encoded, error) {
	raw, err := t.Codec().Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("processors: encode for %s: %w", t.Name(), err)
	}
	if size, limit := recordOverhead+len(key)+len(raw)+headers, c.MaxRecordBytes(t.Stream()); limit > 0 && size > limit {
		return nil, fmt.Errorf("%w: %d bytes for %s, limit %d", ErrTooLarge, size, t.Name(), limit)
	}
	return raw, nil
}

// OrderOutputs makes the callback's outputs wait for one another: an output is sent when all outputs of other topics before it,
// in the order of the calls, are acknowledged. Readers of several topics then also receive them in that order. It costs a
// round trip to the brokers for each change of topic, during which later outputs of the same key wait, but no other keys do.
// The record is not done before. If an output fails, those after it are not sent. OrderOutputs has no effect under a plain
// goka.NewProcessor, nor in package processortest, where outputs have one order. Without OrderOutputs the timestamps of the
// outputs have the order of the calls.
func (c *Context) OrderOutputs() error {
	return c.locked(func(goka.Context) error {
		c.effects.sequence = true
		return nil
	})
}
