package processors

import (
	"time"

	"github.com/IBM/sarama"
)

// Inbound is a record that a worker or a Follower read. The handler that receives it owns its bytes.
type Inbound struct {
	Topic     string
	Partition int32
	Offset    int64
	// Timestamp is the record's timestamp as its producer or the broker set it.
	Timestamp time.Time
	// Key and Value are nil for a Kafka null.
	Key, Value []byte
	// Headers are in the record's order. A name may occur several times.
	Headers []Header
}

// Header is one header of a record.
type Header struct {
	Name  string
	Value []byte
}

// Header returns the value of the first header with this name, or nil if there is none.
func (r Inbound) Header(name string) []byte {
	for _, h := range r.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return nil
}

func inboundOf(m *sarama.ConsumerMessage) Inbound {
	r := Inbound{
		Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Timestamp: m.Timestamp, Key: m.Key, Value: m.Value,
	}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, Header{string(h.Key), h.Value})
	}
	return r
}
