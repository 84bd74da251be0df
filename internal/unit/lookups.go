package unit

import (
	"errors"
	"fmt"
	"sync"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"go.uber.org/zap"
)

// errLookupEnded says that Sarama no longer reads a lookup table, whose next record is gone.
var errLookupEnded = errors.New("unit: a lookup table is no longer read")

// looksUp reports whether topic is read as a lookup table.
func (r *run) looksUp(topic string) bool {
	for _, e := range r.unit.cfg.Graph.LookupTables() {
		if e.Topic() == topic {
			return true
		}
	}
	return false
}

// outlast stops the unit for a lookup table that cannot be read, and returns when no callback is left: Goka closes such
// a table at once, whoever looks something up in it.
func (r *run) outlast(err error) {
	g := r.currentGroup()
	if g == nil { // there were no callbacks yet
		r.failed(err)
		return
	}
	r.broken(err)
	<-g.Left()
}

// lookupTopics is Goka's topic manager, whose failures wait where they would close a lookup table.
type lookupTopics struct {
	goka.TopicManager
	run *run
}

func (t lookupTopics) GetOffset(topic string, partition int32, at int64) (int64, error) {
	offset, err := t.TopicManager.GetOffset(topic, partition, at)
	switch {
	case err == nil || !t.run.looksUp(topic):
	case t.run.life.Err() != nil:
		// A stop is no failure: Goka looks for the end of a table that it has read once more, and reads no further.
		return t.run.client.GetOffset(topic, partition, at)
	default:
		t.run.outlast(fmt.Errorf("unit: lookup table %s/%d: %w", topic, partition, err))
	}
	return offset, err
}

// lookupConsumer does the same for what reads the tables.
type lookupConsumer struct {
	sarama.Consumer
	run *run
}

func (c lookupConsumer) ConsumePartition(topic string, partition int32, at int64) (sarama.PartitionConsumer, error) {
	inner, err := c.Consumer.ConsumePartition(topic, partition, at)
	if !c.run.looksUp(topic) {
		return inner, err
	}
	if err != nil {
		c.run.outlast(fmt.Errorf("unit: lookup table %s/%d: %w", topic, partition, err))
		return nil, err
	}
	l := &lookup{
		PartitionConsumer: inner, run: c.run, topic: topic, partition: partition, asked: make(chan struct{}),
		messages: make(chan *sarama.ConsumerMessage, cap(inner.Messages())), errors: make(chan *sarama.ConsumerError, 1),
	}
	go l.pump()
	return l, nil
}

// lookup reads one partition of a lookup table. Most failures pass: Sarama reads on by itself, and what is looked up may
// be late by any time. Before the table is recovered they are Goka's.
type lookup struct {
	sarama.PartitionConsumer
	run       *run
	topic     string
	partition int32
	messages  chan *sarama.ConsumerMessage
	errors    chan *sarama.ConsumerError
	asked     chan struct{} // closed when it was told to close
	close     sync.Once
}

func (l *lookup) Messages() <-chan *sarama.ConsumerMessage { return l.messages }
func (l *lookup) Errors() <-chan *sarama.ConsumerError     { return l.errors }

func (l *lookup) AsyncClose() {
	l.close.Do(func() { close(l.asked) })
	l.PartitionConsumer.AsyncClose()
}

func (l *lookup) Close() error {
	l.close.Do(func() { close(l.asked) })
	return l.PartitionConsumer.Close()
}

// pump ends when Sarama has closed both channels, and closes its own. Goka reads them to their ends.
func (l *lookup) pump() {
	defer close(l.messages)
	defer close(l.errors)
	messages, failures := l.PartitionConsumer.Messages(), l.PartitionConsumer.Errors()
	last := errLookupEnded
	for messages != nil || failures != nil {
		select {
		case m, ok := <-messages:
			if !ok {
				messages = nil
				continue
			}
			l.messages <- m
		case e, ok := <-failures:
			switch {
			case !ok:
				failures = nil
			case l.run.currentGroup() == nil:
				l.errors <- e
			default:
				last = fmt.Errorf("%w: %w", errLookupEnded, e.Err)
				l.run.unit.cfg.Logger.Warn("a read of a lookup table failed", zap.String("topic", l.topic),
					zap.Int32("partition", l.partition), zap.Error(e.Err))
			}
		}
	}
	select {
	case <-l.asked:
	default:
		err := fmt.Errorf("unit: lookup table %s/%d: %w", l.topic, l.partition, last)
		l.run.outlast(err)
		l.errors <- &sarama.ConsumerError{Topic: l.topic, Partition: l.partition, Err: err}
	}
}
