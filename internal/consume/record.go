package consume

import (
	"time"

	"github.com/IBM/sarama"
)

// Record is a record read from Kafka. The handler owns its bytes.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Timestamp time.Time
	// Key and Value are nil for null.
	Key, Value []byte
	Headers    []Header
}

// Header is one header of a record.
type Header struct {
	Name  string
	Value []byte
}

// Header returns the value of the first header with this name, or nil if there is none.
func (r Record) Header(name string) []byte {
	for _, h := range r.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return nil
}

func recordOf(m *sarama.ConsumerMessage) Record {
	r := Record{
		Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Timestamp: m.Timestamp, Key: m.Key, Value: m.Value,
	}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, Header{string(h.Key), h.Value})
	}
	return r
}
