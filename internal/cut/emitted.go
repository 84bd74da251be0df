package cut

import (
	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/topics"
)

// emitted is a message in flight with everything that its acknowledgement needs. It is the metadata of its message.
type emitted struct {
	msg      sarama.ProducerMessage
	key      string
	keyBytes encoded // of the key
	value    encoded
	id       [1]sarama.RecordHeader // the one header that nearly all outputs have
	waiter   waiter                 // nil for rows and parts
	barrier  *barrier               // counts it: of what a row waits for, or of a row, for the deletions behind it
	queues   *rowQueues
	batch    *batch // of rows and parts
	sequence *sequence
	deletes  bool // a deletion of a row or a part
}

// waiter is notified of the outcome of an output, once and from any goroutine.
type waiter interface {
	acknowledged(topic string, err error)
}

// headerID is only read.
var headerID = []byte(topics.HeaderID)

// newEmitted makes a message. It keeps value.
func newEmitted(topic, key string, value []byte) *emitted {
	return newIdentified(topic, key, value, "")
}

// newIdentified makes a message with an id as its header, or without a header if id is empty. It keeps value.
func newIdentified(topic, key string, value []byte, id string) *emitted {
	texts := append(append(make([]byte, 0, len(key)+len(id)), key...), id...)
	e := &emitted{key: key, keyBytes: texts[:len(key):len(key)], value: value}
	e.msg = sarama.ProducerMessage{Topic: topic, Key: &e.keyBytes, Metadata: e}
	if value != nil {
		e.msg.Value = &e.value
	}
	if id != "" {
		e.id[0] = sarama.RecordHeader{Key: headerID, Value: texts[len(key):]}
		e.msg.Headers = e.id[:]
	}
	return e
}

// with sets the headers, whose values it keeps. Private headers are not sent.
func (e *emitted) with(headers goka.Headers) *emitted {
	if len(headers) > 0 {
		e.msg.Headers = make([]sarama.RecordHeader, 0, len(headers))
	}
	for name, value := range headers {
		switch name {
		case runtimeapi.HeaderNullKey:
			e.msg.Key = nil
		case runtimeapi.HeaderPartition:
		case runtimeapi.HeaderTimestamp:
			e.msg.Timestamp = runtimeapi.Timestamp(value)
		default:
			e.msg.Headers = append(e.msg.Headers, sarama.RecordHeader{Key: []byte(name), Value: value})
		}
	}
	return e
}

// encoded is a sarama.Encoder. Sarama encodes a key twice, and would copy a string each time.
type encoded []byte

func (e *encoded) Encode() ([]byte, error) { return *e, nil }
func (e *encoded) Length() int             { return len(*e) }
