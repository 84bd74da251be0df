package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// writeBack writes records of dead-letter topics back to the topics that they came from, each once.
//
// A transaction has the record and a mark in the dead-letter topic that names the letter. So either both are there or none. All
// runs of the command have one transactional ID: a run that begins aborts the open transaction of one that was killed, and one
// that still runs cannot commit any more. What a run reads afterwards has all marks that there will be without it.
type writeBack struct {
	producer sarama.SyncProducer
	writing  sync.WaitGroup // the transaction: Sarama cannot cancel it, and a producer that is closed meanwhile panics
}

var (
	// errNotWritten is wrapped by errors of write after which the letter is as it was, and the next one can be written.
	errNotWritten = errors.New("it was not written")
	// errLast is wrapped by errors after which this run cannot write any more.
	errLast = errors.New("whether it was written is not known; the next run finds out")
)

// transactionLimit is how long a killed run keeps readers of committed records waiting, unless the next run ends it.
const transactionLimit = 10 * time.Second

// writeBack returns the writer, which has ended the earlier ones. The caller closes it before it reads the letters again.
func (o *operator) writeBack(ctx context.Context) (*writeBack, error) {
	conf, _, err := processors.ClientConfig(o.brokers, o.options...)
	if err != nil {
		return nil, err
	}
	conf.Producer.Transaction.ID = o.agent + "-requeue"
	conf.Producer.Transaction.Timeout = transactionLimit
	conf.Producer.Return.Successes, conf.Producer.Return.Errors = true, true
	conf.Producer.Partitioner = o.partitioner(conf.Producer.Partitioner)
	p, err := within(ctx, "the transactional ID "+conf.Producer.Transaction.ID, func() (sarama.SyncProducer, error) {
		return sarama.NewSyncProducer(o.brokers, conf)
	})
	if err != nil {
		return nil, fmt.Errorf("%w: the principal needs WRITE on this transactional ID", err)
	}
	return &writeBack{producer: p}, nil
}

// partitioner writes marks to the partitions of their letters, also where a letter has no key: there, offsets say which came first.
func (o *operator) partitioner(others sarama.PartitionerConstructor) sarama.PartitionerConstructor {
	letters := map[string]bool{}
	for _, g := range o.cluster.catalog.Groups() {
		letters[letterTopic(g)] = true
	}
	return func(topic string) sarama.Partitioner {
		if letters[topic] {
			return sarama.NewManualPartitioner(topic)
		}
		return others(topic)
	}
}

func (w *writeBack) close() {
	briefly(func() {
		w.writing.Wait()
		_ = w.producer.Close()
	})
}

// write writes the record of a letter back and returns its mark.
func (w *writeBack) write(ctx context.Context, l *letter, from processors.Inbound) (mark processors.Inbound, err error) {
	if ctx.Err() != nil {
		return mark, fmt.Errorf("it was not tried: %w", context.Cause(ctx))
	}
	record, marking := l.original(from), l.mark()
	w.writing.Add(1)
	_, err = within(ctx, "the transaction", func() (struct{}, error) {
		defer w.writing.Done()
		if err := w.producer.BeginTxn(); err != nil {
			return struct{}{}, fmt.Errorf("%w: %w", err, errLast)
		}
		partition, offset, err := w.producer.SendMessage(record)
		if err == nil {
			marking.Value = sarama.StringEncoder(place{record.Topic, partition, offset}.String())
			_, _, err = w.producer.SendMessage(marking)
		}
		if err != nil {
			if failed := w.producer.AbortTxn(); failed != nil || fenced(err) {
				return struct{}{}, fmt.Errorf("%w: %w", errors.Join(err, failed), errLast)
			}
			return struct{}{}, fmt.Errorf("%w: %w", errNotWritten, err)
		}
		if err := w.producer.CommitTxn(); err != nil {
			return struct{}{}, fmt.Errorf("%w: %w", err, errLast)
		}
		return struct{}{}, nil
	})
	switch {
	case err == nil:
	case fenced(err):
		return mark, fmt.Errorf("another turntable requeue of this agent has begun: %w", errLast)
	case errors.Is(err, errLast) || errors.Is(err, errNotWritten):
		return mark, err
	default: // ctx has ended, and the transaction may still be committed
		return mark, fmt.Errorf("%w: %w", err, errLast)
	}
	mark = processors.Inbound{Partition: marking.Partition, Offset: marking.Offset, Timestamp: time.Now()}
	mark.Value, _ = marking.Value.Encode() // a text
	for _, h := range marking.Headers {
		mark.Headers = append(mark.Headers, processors.Header{Name: string(h.Key), Value: h.Value})
	}
	return mark, nil
}

// fenced reports whether a newer run has taken the transactional ID. Sarama reports it as one of three errors.
func fenced(err error) bool {
	return errors.Is(err, sarama.ErrInvalidProducerEpoch) || errors.Is(err, sarama.ErrProducerFenced) ||
		errors.Is(err, sarama.ErrTransactionCoordinatorFenced)
}

// original is the record as it was before it was dead-lettered. from is the letter with its value.
func (l *letter) original(from processors.Inbound) *sarama.ProducerMessage {
	m := &sarama.ProducerMessage{Topic: l.Source.Topic, Key: encoded(from.Key), Value: encoded(from.Value)}
	for _, h := range from.Headers {
		if !strings.HasPrefix(h.Name, "error.") {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Name), Value: h.Value})
		}
	}
	return m
}

// mark is the record that says that the letter was written back. Its value, which write sets, is where.
func (l *letter) mark() *sarama.ProducerMessage {
	m := &sarama.ProducerMessage{
		Topic: letterTopic(goka.Group(l.Group)), Partition: l.partition, Key: encoded(l.key),
		Headers: []sarama.RecordHeader{{
			Key: []byte(topics.HeaderErrorRequeued), Value: strconv.AppendInt(nil, time.Now().UnixMilli(), 10),
		}},
	}
	for _, h := range l.headers.Headers {
		m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Name), Value: h.Value})
	}
	return m
}

// encoded returns nil for a Kafka null.
func encoded(b []byte) sarama.Encoder {
	if b == nil {
		return nil
	}
	return sarama.ByteEncoder(b)
}

// isOf reports whether the ID of a letter is one of a group.
func isOf(g goka.Group) func(id string) bool {
	return func(id string) bool { return strings.HasPrefix(id, letterTopic(g)+"/") }
}

func isNamed(topic string) func(topics.Spec) bool {
	return func(s topics.Spec) bool { return s.Name == topic }
}
