package machine

import (
	"slices"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Effect is one thing that a transition does besides changing the row: a record for an output topic, a dead letter, or a part of
// the row.
type Effect struct {
	// Topic is the name of the output topic; empty for a dead letter and a part.
	Topic string
	// Key is the key of the output.
	Key string
	// ID is the output's turntable.id. It is the same if the output is written again.
	ID string
	// Headers are the headers of the output besides its ID.
	Headers goka.Headers
	// Value is the value of the output or of the part; nil for a tombstone and for a part that is deleted.
	Value any
	// Reason is the reason of a dead letter.
	Reason string
	// Held is the record that is dead-lettered, if it is not that of the event.
	Held *processors.Letter
	// Part is the number of a part of the row, from 1.
	Part uint32

	perform func(*processors.Context) error
	encode  func() ([]byte, error)
	decode  func([]byte) error
}

// Readable reports why the topic's codec cannot read the bytes of a value.
func (e Effect) Readable(raw []byte) error {
	if e.decode == nil {
		return nil
	}
	return e.decode(raw)
}

// Encode returns the value as the topic's codec writes it.
func (e Effect) Encode() ([]byte, error) {
	if e.encode == nil {
		return nil, nil
	}
	return e.encode()
}

// Effects collects the effects of one application of an event, in the order in which they are done. Transitions embed it.
type Effects struct{ list []Effect }

// List returns what was collected.
func (es *Effects) List() []Effect { return es.list }

// Emit adds an output.
func Emit[T any](es *Effects, t topics.Topic[T], key, id string, value T) {
	EmitWith(es, t, key, id, value, nil)
}

// EmitWith adds an output with headers besides that of its ID.
func EmitWith[T any](es *Effects, t topics.Topic[T], key, id string, value T, headers goka.Headers) {
	es.list = append(es.list, Effect{
		Topic: t.Name(), Key: key, ID: id, Headers: headers, Value: value,
		perform: func(c *processors.Context) error {
			if headers == nil {
				return processors.EmitWithID(c, t, key, value, id)
			}
			return processors.Emit(c, t, key, value, headers.Merged(goka.Headers{topics.HeaderID: []byte(id)}))
		},
		encode: func() ([]byte, error) { return t.Codec().Marshal(value) },
		decode: func(raw []byte) error { return t.Codec().Unmarshal(raw).Err },
	})
}

// Tombstone adds an output without a value.
func Tombstone[T any](es *Effects, t topics.Topic[T], key, id string) {
	es.list = append(es.list, Effect{Topic: t.Name(), Key: key, ID: id, perform: func(c *processors.Context) error {
		return c.EmitWithID(t.Stream(), key, nil, id)
	}})
}

// DeadLetter sends the record of the event to the group's dead-letter topic.
func (es *Effects) DeadLetter(reason string) {
	es.list = append(es.list, Effect{Reason: reason, perform: func(c *processors.Context) error { return c.DeadLetter(reason) }})
}

// DeadLetterHeld sends a record that the row held to the group's dead-letter topic. An empty key stands for that of the row.
func (es *Effects) DeadLetterHeld(l processors.Letter) {
	es.list = append(es.list, Effect{Reason: l.Reason, Held: &l, perform: func(c *processors.Context) error {
		if l.Key == "" {
			l.Key = c.Key()
		}
		return c.DeadLetterOther(l)
	}})
}

// Warn logs a fixed text, which must not quote a record.
func (es *Effects) Warn(text string) {
	es.list = append(es.list, Effect{perform: func(c *processors.Context) error {
		c.Logger().Warn(text)
		return nil
	}})
}

// SetPart writes a part of the row, under a number that was not used before.
func (es *Effects) SetPart(n uint32, value []byte) {
	es.list = append(es.list, Effect{Part: n, Value: value, perform: func(c *processors.Context) error { return c.SetPart(n, value) }})
}

// DeletePart deletes a part that the row no longer names. A part of the same event is not written.
func (es *Effects) DeletePart(n uint32) {
	es.list = slices.DeleteFunc(es.list, func(e Effect) bool { return e.Part == n && n != 0 }) // other effects have the part 0
	es.list = append(es.list, Effect{Part: n, perform: func(c *processors.Context) error { return c.DeletePart(n) }})
}
