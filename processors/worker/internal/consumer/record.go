package consumer

import (
	"slices"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/processors"
)

func recordOf(m *sarama.ConsumerMessage) processors.Inbound {
	r := processors.Inbound{
		Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Timestamp: m.Timestamp, Key: m.Key, Value: m.Value,
	}
	r.Headers = slices.Grow(r.Headers, len(m.Headers))[:len(m.Headers)]
	for i, h := range m.Headers {
		r.Headers[i].Name, r.Headers[i].Value = string(h.Key), h.Value
	}
	return r
}
