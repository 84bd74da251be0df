package consumer

import (
	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/processors"
)

func recordOf(m *sarama.ConsumerMessage) processors.Inbound {
	r := processors.Inbound{
		Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Timestamp: m.Timestamp, Key: m.Key, Value: m.Value,
	}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, processors.Header{Name: string(h.Key), Value: h.Value})
	}
	return r
}
