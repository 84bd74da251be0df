package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
type writeBack struct{ producer sarama.SyncProducer }

// transactionLimit is how long a killed run keeps readers of committed records waiting, unless the next run ends it.
const transactionLimit = 10 * time.Second

// writeBack returns the writer, which has ended the earlier ones. The caller closes it before it reads the letters anew.
func (o *operator) writeBack(ctx context.Context) (*writeBack, error) {
	conf, _, err := processors.ClientConfig(o.brokers, o.options...)
	if err != nil {
		return nil, err
	}
	conf.Producer.Transaction.ID = o.agent + "-requeue"
	conf.Producer.Transaction.Timeout = transactionLimit
	conf.Producer.Return.Successes, conf.Producer.Return.Errors = true, true
	p, err := within(ctx, "the transactional ID "+conf.Producer.Transaction.ID, func() (sarama.SyncProducer, error) {
		return sarama.NewSyncProducer(o.brokers, conf)
	})
	if err != nil {
		return nil, fmt.Errorf("%w: the principal needs WRITE on this transactional ID", err)
	}
	return &writeBack{p}, nil
}

func (w *writeBack) close() { briefly(func() { _ = w.producer.Close() }) }

// write writes the record of a letter back and returns its mark.
func (w *writeBack) write(ctx context.Context, l *letter) (mark processors.Inbound, err error) {
	if ctx.Err() != nil {
		return mark, context.Cause(ctx)
	}
	record, marking := l.original(), l.mark()
	_, err = within(ctx, "the transaction", func() (struct{}, error) {
		if err := w.producer.BeginTxn(); err != nil {
			return struct{}{}, err
		}
		partition, offset, err := w.producer.SendMessage(record)
		if err == nil {
			marking.Value = sarama.StringEncoder(place{record.Topic, partition, offset}.String())
			_, _, err = w.producer.SendMessage(marking)
		}
		if err != nil {
			return struct{}{}, errors.Join(err, w.producer.AbortTxn())
		}
		return struct{}{}, w.producer.CommitTxn()
	})
	if errors.Is(err, sarama.ErrInvalidProducerEpoch) || errors.Is(err, sarama.ErrProducerFenced) {
		err = fmt.Errorf("%w: another turntable requeue of this agent has begun", err)
	}
	if err != nil {
		return mark, err
	}
	mark = processors.Inbound{Partition: marking.Partition, Offset: marking.Offset, Timestamp: time.Now()}
	mark.Value, _ = marking.Value.Encode() // a text
	for _, h := range marking.Headers {
		mark.Headers = append(mark.Headers, processors.Header{Name: string(h.Key), Value: h.Value})
	}
	return mark, nil
}

// original is the record as it was before it was dead-lettered.
func (l *letter) original() *sarama.ProducerMessage {
	m := &sarama.ProducerMessage{Topic: l.Source.Topic, Key: encoded(l.record.Key), Value: encoded(l.record.Value)}
	for _, h := range l.record.Headers {
		if !strings.HasPrefix(h.Name, "error.") {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Name), Value: h.Value})
		}
	}
	return m
}

// mark is the record that says that the letter was written back. Its value, which write sets, is where.
func (l *letter) mark() *sarama.ProducerMessage {
	m := &sarama.ProducerMessage{
		Topic: letterTopic(goka.Group(l.Group)), Key: encoded(l.record.Key),
		Headers: []sarama.RecordHeader{{
			Key: []byte(topics.HeaderErrorRequeued), Value: strconv.AppendInt(nil, time.Now().UnixMilli(), 10),
		}},
	}
	for _, name := range []string{
		topics.HeaderID, topics.HeaderErrorSourceTopic, topics.HeaderErrorSourcePartition, topics.HeaderErrorSourceOffset,
		topics.HeaderErrorGroup,
	} {
		if v := l.record.Header(name); v != nil {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(name), Value: slices.Clone(v)})
		}
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
