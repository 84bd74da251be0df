package cut

import (
	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/callback"
)

// emitted is a message in flight, with what is to be done when it is acknowledged. It is the metadata of its message.
type emitted struct {
	msg    sarama.ProducerMessage
	key    string
	bytes  encoded // of the key
	value  encoded
	done   func(error) // nil for rows and parts
	call   *call       // counts it: of what a row waits for, or of a row, for the deletions behind it
	rows   *rows
	batch  *batch // of rows and parts
	leaves bool   // a deletion of a row or a part
}

// newEmitted makes a message that keeps value and the values of headers. Private headers stay behind.
func newEmitted(topic, key string, value []byte, headers goka.Headers) *emitted {
	e := &emitted{key: key, bytes: []byte(key), value: value}
	e.msg = sarama.ProducerMessage{Topic: topic, Key: &e.bytes, Metadata: e}
	if value != nil {
		e.msg.Value = &e.value
	}
	if len(headers) > 0 {
		e.msg.Headers = make([]sarama.RecordHeader, 0, len(headers))
	}
	for name, value := range headers {
		switch name {
		case callback.HeaderNullKey:
			e.msg.Key = nil
		case callback.HeaderPartition:
		default:
			e.msg.Headers = append(e.msg.Headers, sarama.RecordHeader{Key: []byte(name), Value: value})
		}
	}
	return e
}

// encoded is a sarama.Encoder. Sarama asks for a key's bytes twice, and would copy those of a string each time.
type encoded []byte

func (e *encoded) Encode() ([]byte, error) { return *e, nil }
func (e *encoded) Length() int             { return len(*e) }
