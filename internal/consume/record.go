package consume

import (
	"time"

	"github.com/IBM/sarama"
)

// Record is a record as it was read. Its bytes belong to whoever handles it.
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

// Header is the value of the first header of that name, nil where there is none.
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
