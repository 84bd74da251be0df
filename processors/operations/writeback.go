package operations

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

// WriteBack writes records of dead-letter topics back to the topics that they came from, each once.
//
// A transaction has the record and a mark in the dead-letter topic that names the letter. So either both are there or none. All
// writers of an agent have one transactional ID: one that begins aborts the open transaction of one that was killed, and one
// that still runs cannot commit any more. What a program reads afterwards has all marks that there will be without it. One goroutine
// uses it.
type WriteBack struct {
	producer sarama.SyncProducer
	by       string
	writing  sync.WaitGroup // the transaction: Sarama cannot cancel it, and a producer that is closed meanwhile panics
}

var (
	// ErrNotWritten is wrapped by errors of Write after which the letter is as it was, and the next one can be written.
	ErrNotWritten = errors.New("it was not written")
	// ErrLast is wrapped by errors after which the writer cannot write any more.
	ErrLast = errors.New("whether it was written is not known; the next run finds out")
)

// transactionLimit is how long a killed writer keeps readers of committed records waiting, unless the next one ends it.
const transactionLimit = 10 * time.Second

// NewWriteBack returns a writer for an agent, which has ended the earlier ones. Read the letters and marks again after it returns.
// by is who asks for it. The caller closes it.
func NewWriteBack(
	ctx context.Context, brokers []string, catalog topics.Catalog, by string, opts ...processors.Option,
) (*WriteBack, error) {
	conf, _, err := processors.ClientConfig(brokers, opts...)
	if err != nil {
		return nil, err
	}
	conf.Producer.Transaction.ID = catalog.RequeueID()
	conf.Producer.Transaction.Timeout = transactionLimit
	conf.Producer.Return.Successes, conf.Producer.Return.Errors = true, true
	conf.Producer.Partitioner = partitioner(catalog, conf.Producer.Partitioner)
	p, err := within(ctx, func() (sarama.SyncProducer, error) { return sarama.NewSyncProducer(brokers, conf) })
	if err != nil {
		return nil, fmt.Errorf("the transactional ID %s: %w: the principal needs WRITE on it", conf.Producer.Transaction.ID, err)
	}
	return &WriteBack{producer: p, by: by}, nil
}

// partitioner writes marks to the partitions of their letters, also where a letter has no key: there, offsets say which came first.
func partitioner(catalog topics.Catalog, others sarama.PartitionerConstructor) sarama.PartitionerConstructor {
	letters := map[string]bool{}
	for _, g := range catalog.Groups() {
		letters[LetterTopic(g)] = true
	}
	return func(topic string) sarama.Partitioner {
		if letters[topic] {
			return sarama.NewManualPartitioner(topic)
		}
		return others(topic)
	}
}

// Close ends the writer. It waits a moment for a transaction that hangs.
func (w *WriteBack) Close() {
	closed, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = within(closed, func() (struct{}, error) {
		w.writing.Wait()
		return struct{}{}, w.producer.Close()
	})
}

// within returns what ask returns, or fails when ctx ends first: requests of Sarama cannot be canceled.
func within[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := ask()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("no answer of the brokers: %w", context.Cause(ctx))
	}
}

// Write writes the record of a letter back and returns its mark. from is the letter with its value. Errors wrap ErrNotWritten or
// ErrLast, unless ctx had ended before.
func (w *WriteBack) Write(ctx context.Context, l *Letter, from processors.Inbound) (mark processors.Inbound, err error) {
	if ctx.Err() != nil {
		return mark, fmt.Errorf("it was not tried: %w", context.Cause(ctx))
	}
	record, marking := l.original(from), l.mark(w.by)
	w.writing.Add(1)
	_, err = within(ctx, func() (struct{}, error) {
		defer w.writing.Done()
		return struct{}{}, w.transaction(record, marking)
	})
	switch {
	case err == nil:
	case fenced(err):
		return mark, fmt.Errorf("another requeue of this agent has begun: %w", ErrLast)
	case errors.Is(err, ErrLast) || errors.Is(err, ErrNotWritten):
		return mark, err
	default: // ctx has ended, and the transaction may still be committed
		return mark, fmt.Errorf("%w: %w", err, ErrLast)
	}
	mark = processors.Inbound{Partition: marking.Partition, Offset: marking.Offset, Timestamp: time.Now()}
	mark.Value, _ = marking.Value.Encode() // a text
	for _, h := range marking.Headers {
		mark.Headers = append(mark.Headers, processors.Header{Name: string(h.Key), Value: h.Value})
	}
	return mark, nil
}

// transaction writes a record and its mark, or none of them.
func (w *WriteBack) transaction(record, marking *sarama.ProducerMessage) error {
	if err := w.producer.BeginTxn(); err != nil {
		return fmt.Errorf("%w: %w", err, ErrLast)
	}
	partition, offset, err := w.producer.SendMessage(record)
	if err == nil {
		marking.Value = sarama.StringEncoder(Place{record.Topic, partition, offset}.String())
		_, _, err = w.producer.SendMessage(marking)
	}
	if err != nil {
		if failed := w.producer.AbortTxn(); failed != nil || fenced(err) {
			return fmt.Errorf("%w: %w", errors.Join(err, failed), ErrLast)
		}
		return fmt.Errorf("%w: %w", ErrNotWritten, err)
	}
	if err := w.producer.CommitTxn(); err != nil {
		return fmt.Errorf("%w: %w", err, ErrLast)
	}
	return nil
}

// fenced reports whether a newer writer has taken the transactional ID. Sarama reports it as one of three errors.
func fenced(err error) bool {
	return errors.Is(err, sarama.ErrInvalidProducerEpoch) || errors.Is(err, sarama.ErrProducerFenced) ||
		errors.Is(err, sarama.ErrTransactionCoordinatorFenced)
}

// original is the record as it was before it was dead-lettered.
func (l *Letter) original(from processors.Inbound) *sarama.ProducerMessage {
	m := &sarama.ProducerMessage{Topic: l.Source.Topic, Key: encoded(from.Key), Value: encoded(from.Value)}
	for _, h := range from.Headers {
		if !strings.HasPrefix(h.Name, "error.") {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Name), Value: h.Value})
		}
	}
	return m
}

// mark is the record that says that the letter was written back. Its value, which transaction sets, is where.
func (l *Letter) mark(by string) *sarama.ProducerMessage {
	m := &sarama.ProducerMessage{
		Topic: LetterTopic(goka.Group(l.Group)), Partition: l.Partition, Key: encoded(l.key),
		Headers: []sarama.RecordHeader{
			{Key: []byte(topics.HeaderErrorRequeued), Value: strconv.AppendInt(nil, time.Now().UnixMilli(), 10)},
			{Key: []byte(topics.HeaderBy), Value: []byte(by)},
		},
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
