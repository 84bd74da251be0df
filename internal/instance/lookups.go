package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"go.uber.org/zap"
)

// errLookupEnded says that Sarama has stopped reading a lookup table.
var errLookupEnded = errors.New("the lookup table is no longer read")

// lookupTimeout is how long Sarama retries a lookup table that cannot be read, the requests between retries not counted.
const lookupTimeout = 30 * time.Second

// lookupConfig changes a configuration to that of the consumers of lookup tables, and returns it.
func lookupConfig(conf *sarama.Config) *sarama.Config {
	if conf.Consumer.Retry.Max == 0 && conf.Consumer.Retry.Backoff > 0 {
		conf.Consumer.Retry.Max = max(1, int(lookupTimeout/conf.Consumer.Retry.Backoff))
	}
	return conf
}

// makingViews reports whether Goka is calling a builder for its lookup tables, which it creates with the processor.
func (r *run) makingViews() bool { return r.processor == nil }

// needed returns a context that lasts as long as a table is read. Goka reads lookup tables for the life of a processor,
// through all generations: with a session's context, the end of one generation would fail them all.
func (r *run) needed(topic string) context.Context {
	if isTable(r.instance.cfg.Graph.LookupTables(), topic) {
		return r.life
	}
	return r.session()
}

// outlast fails the run because a lookup table can no longer be read, and blocks until no callback runs: Goka closes
// such a table at once, even while callbacks look up in it. If no callback has run yet, none will.
func (r *run) outlast(topic string, partition int32, err error) {
	err = fmt.Errorf("instance: lookup table %s/%d: %w", topic, partition, err)
	r.failed(err)
	r.mu.Lock()
	g := r.group
	if g == nil && r.doomed == nil {
		r.doomed = err
	}
	r.mu.Unlock()
	if g != nil {
		g.Fail(err)
		<-g.Left()
	}
}

// lookupTopics is the topic manager of Goka's lookup tables. It returns an error that would close a table only after
// outlast.
type lookupTopics struct {
	goka.TopicManager
	run *run
}

func (t lookupTopics) GetOffset(topic string, partition int32, at int64) (int64, error) {
	offset, err := t.TopicManager.GetOffset(topic, partition, at)
	switch {
	case err == nil:
	case t.run.life.Err() != nil:
		// A stop is not a failure: Goka requests the end of the table once more and reads nothing after it.
		return t.run.client.GetOffset(topic, partition, at)
	default:
		t.run.outlast(topic, partition, err)
	}
	return offset, err
}

// lookupConsumer does the same for the consumers of the tables.
type lookupConsumer struct {
	sarama.Consumer
	run *run
}

func (c lookupConsumer) ConsumePartition(topic string, partition int32, at int64) (sarama.PartitionConsumer, error) {
	inner, err := c.Consumer.ConsumePartition(topic, partition, at)
	if err != nil {
		c.run.outlast(topic, partition, err)
		return nil, err
	}
	l := &lookup{
		PartitionConsumer: inner, run: c.run, topic: topic, partition: partition, closing: make(chan struct{}),
		messages: make(chan *sarama.ConsumerMessage, cap(inner.Messages())), errors: make(chan *sarama.ConsumerError, 1),
	}
	go l.pump()
	return l, nil
}

// lookup reads one partition of a lookup table. It hides transient failures from Goka: Sarama retries them by itself, and a
// lookup may return stale rows. Goka is notified only when the reading ends.
type lookup struct {
	sarama.PartitionConsumer
	run       *run
	topic     string
	partition int32
	messages  chan *sarama.ConsumerMessage
	errors    chan *sarama.ConsumerError
	closing   chan struct{} // closed by AsyncClose
	close     sync.Once
}

func (l *lookup) Messages() <-chan *sarama.ConsumerMessage { return l.messages }
func (l *lookup) Errors() <-chan *sarama.ConsumerError     { return l.errors }

func (l *lookup) AsyncClose() {
	l.close.Do(func() { close(l.closing) })
	l.PartitionConsumer.AsyncClose()
}

// Close implements sarama.PartitionConsumer, which requires that it reads both channels to their ends.
func (l *lookup) Close() error {
	l.AsyncClose()
	go func() {
		for range l.messages { //nolint:revive // drained
		}
	}()
	var errs []error
	for err := range l.errors {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// pump ends when Sarama has closed both channels, and closes its own. Goka reads them to their ends.
func (l *lookup) pump() {
	defer close(l.messages)
	defer close(l.errors)
	messages, failures := l.PartitionConsumer.Messages(), l.PartitionConsumer.Errors()
	end, failing := errLookupEnded, false
	for messages != nil || failures != nil {
		select {
		case m, ok := <-messages:
			if !ok {
				messages = nil
				continue
			}
			failing = false
			l.messages <- m
		case e, ok := <-failures:
			if !ok {
				failures = nil
				continue
			}
			end = fmt.Errorf("%w: %w", errLookupEnded, e.Err)
			if !failing {
				l.run.instance.cfg.Logger.Warn("a lookup table cannot be read", zap.String("topic", l.topic),
					zap.Int32("partition", l.partition), zap.Error(e.Err))
			}
			failing = true
			if topicMissing(e.Err) {
				l.PartitionConsumer.AsyncClose()
			}
		}
	}
	select {
	case <-l.closing:
	default:
		l.run.outlast(l.topic, l.partition, end)
		l.errors <- &sarama.ConsumerError{Topic: l.topic, Partition: l.partition, Err: end}
	}
}

// topicMissing reports whether a topic does not exist. If it is recreated, it has other records at the same offsets, and
// Sarama would continue there.
func topicMissing(err error) bool { return errors.Is(err, sarama.ErrUnknownTopicOrPartition) }

// isTable reports whether a topic is one of these tables.
func isTable(tables goka.Edges, topic string) bool {
	return slices.ContainsFunc(tables, func(e goka.Edge) bool { return e.Topic() == topic })
}
