package cut

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/IBM/sarama"
)

// Limits are the sizes of the largest records that topics accept. Those of topics that accept less than the client's limit come
// from their configuration (Describe), or from what the brokers refuse (Refused). They are safe for concurrent use.
type Limits struct {
	most int

	narrow atomic.Bool // a topic accepts less: only then is the map read
	mu     sync.Mutex
	less   map[string]int // the largest size that is not known to be refused
	alone  map[string]bool
}

// NewLimits returns limits of topics that accept the client's limit, in bytes.
func NewLimits(most int) *Limits {
	return &Limits{most: most, less: map[string]int{}, alone: map[string]bool{}}
}

const (
	// The size of a record as this package counts it is what Sarama counts, and so much more for the record and for each of
	// its headers. A batch with the record alone is then larger by batchOverhead at most.
	recordMargin = 28
	headerMargin = 6
	// batchOverhead is by how much a topic's max.message.bytes exceeds a size in Kafka's own defaults.
	batchOverhead = 12
	// minLimit is what every topic is assumed to accept, so that no error that is not the record's own closes a topic.
	minLimit = 4 << 10
)

// sizeOf returns the size of a record, in bytes with key and headers.
func sizeOf(m *sarama.ProducerMessage) int {
	size := m.ByteSize(2) + recordMargin + headerMargin*len(m.Headers)
	if p := paddingOf(m); p != nil {
		size -= p.by
	}
	return size
}

// Of returns the size of the largest record that a topic accepts, in bytes.
func (l *Limits) Of(topic string) int {
	if !l.narrow.Load() {
		return l.most
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if less, ok := l.less[topic]; ok {
		return less
	}
	return l.most
}

// Narrow reports whether a topic accepts less than the client's limit.
func (l *Limits) Narrow() bool { return l.narrow.Load() }

// Describe sets the limits of topics from their max.message.bytes, and returns those below the client's.
func (l *Limits) Describe(maxMessageBytes map[string]int) (less map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	less = map[string]int{}
	for topic, most := range maxMessageBytes {
		delete(l.less, topic)
		delete(l.alone, topic)
		if most-batchOverhead < l.most {
			less[topic] = max(most-batchOverhead, 0)
		}
	}
	maps.Copy(l.less, less)
	l.narrow.Store(len(l.less)+len(l.alone) > 0)
	return less
}

// Fit makes Sarama put the record into a batch that its topic accepts, and refuse a record that is too large for its topic. Sarama
// knows one limit for all topics: a record of a topic that accepts less is shown to it as larger.
func (l *Limits) Fit(m *sarama.ProducerMessage) {
	if !l.narrow.Load() {
		return
	}
	unpad(m)
	l.mu.Lock()
	less, known := l.less[m.Topic]
	alone := l.alone[m.Topic]
	l.mu.Unlock()
	switch {
	case alone: // as large as the limit: no other record fits into its batch
		pad(m, l.most-m.ByteSize(2), true)
	case known:
		pad(m, l.most-less+recordMargin, false)
	}
}

// Refused learns from the error of a record, and reports whether the record was refused as too large. A broker refuses a batch.
// Unless the record was alone in it, only that is known: from now on, records of the topic are sent alone.
func (l *Limits) Refused(m *sarama.ProducerMessage, err error) bool {
	var local sarama.ConfigurationError
	ours := errors.As(err, &local)
	if !ours && !errors.Is(err, sarama.ErrMessageSizeTooLarge) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := paddingOf(m); ours || p != nil && p.alone {
		less, known := l.less[m.Topic]
		if !known {
			less = l.most
		}
		l.less[m.Topic] = min(less, max(sizeOf(m), minLimit)-1)
	} else {
		l.alone[m.Topic] = true
	}
	l.narrow.Store(true)
	return true
}

// Over reports whether a record is larger than its topic accepts.
func (l *Limits) Over(m *sarama.ProducerMessage) (size, limit int, over bool) {
	limit = l.Of(m.Topic)
	if limit == l.most {
		size = m.ByteSize(2)
	} else {
		size = sizeOf(m)
	}
	return size, limit, size > limit
}

// padding is an encoder that seems larger than it is.
type padding struct {
	sarama.Encoder
	by    int
	alone bool
}

func (p *padding) Length() int { return p.Encoder.Length() + p.by }

func pad(m *sarama.ProducerMessage, by int, alone bool) {
	switch {
	case by <= 0:
	case m.Value != nil:
		m.Value = &padding{m.Value, by, alone}
	case m.Key != nil:
		m.Key = &padding{m.Key, by, alone}
	}
}

func unpad(m *sarama.ProducerMessage) {
	if p, ok := m.Value.(*padding); ok {
		m.Value = p.Encoder
	}
	if p, ok := m.Key.(*padding); ok {
		m.Key = p.Encoder
	}
}

func paddingOf(m *sarama.ProducerMessage) *padding {
	if p, ok := m.Value.(*padding); ok {
		return p
	}
	p, _ := m.Key.(*padding)
	return p
}
