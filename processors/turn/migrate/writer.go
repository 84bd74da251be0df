package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/turntable-streams/turntable/internal/kafka"
)

// HeaderImport is the header of the rows that Import has written.
const HeaderImport = "turntable.import"

// The bounds of a transaction of the import.
const (
	transactionRecords = 1000
	transactionBytes   = 8 << 20
)

// writer writes records and the progress in transactions. A process that was paused while another has continued cannot
// write any more: the next writer has taken over its transactional ID.
type writer struct {
	producer sarama.SyncProducer
	source   string
	member   *sarama.ConsumerGroupMetadata
	records  []*sarama.ProducerMessage
	bytes    int
}

// writer returns a writer. It aborts what an earlier one has left open.
func (m *migration) writer(member *sarama.ConsumerGroupMetadata) (*writer, error) {
	conf := kafka.Copy(m.conf)
	conf.Producer.Transaction.ID = m.catalog.HistoryImportGroup()
	conf.Producer.Return.Successes, conf.Producer.Return.Errors = true, true
	producer, err := sarama.NewSyncProducer(m.brokers, conf)
	if err != nil {
		return nil, fmt.Errorf("migrate: transactional id %s: %w", conf.Producer.Transaction.ID, err)
	}
	return &writer{producer: producer, source: m.source(), member: member}, nil
}

func (w *writer) close() error {
	if err := w.producer.Close(); err != nil {
		return fmt.Errorf("migrate: close the producer: %w", err)
	}
	return nil
}

// add takes a record of the next transaction. A nil value is a tombstone, a zero time is now.
func (w *writer) add(topic, key string, value []byte, at time.Time, headers ...sarama.RecordHeader) {
	r := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(key), Timestamp: at, Headers: headers}
	if value != nil {
		r.Value = sarama.ByteEncoder(value)
	}
	w.records, w.bytes = append(w.records, r), w.bytes+len(key)+len(value)
}

// full reports whether commit should be called.
func (w *writer) full() bool {
	return len(w.records) >= transactionRecords || w.bytes >= transactionBytes
}

// commit writes the records and the progress. It blocks until the brokers have both.
func (w *writer) commit(ctx context.Context, p progress) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	offsets, err := p.offsets(w.source)
	if err != nil {
		return err
	}
	if err := w.producer.BeginTxn(); err != nil {
		return fmt.Errorf("migrate: begin a transaction: %w", err)
	}
	defer func() {
		if err != nil {
			if failed := w.producer.AbortTxn(); failed != nil {
				err = errors.Join(err, fmt.Errorf("migrate: abort the transaction: %w", failed))
			}
		}
	}()
	if len(w.records) > 0 {
		if err := w.producer.SendMessages(w.records); err != nil {
			var failed sarama.ProducerErrors
			if errors.As(err, &failed) && len(failed) > 0 {
				err = failed[0]
			}
			return fmt.Errorf("migrate: write: %w", err)
		}
	}
	if offsets != nil {
		if err := w.producer.AddOffsetsToTxnWithGroupMetadata(offsets, w.member); err != nil {
			return fmt.Errorf("migrate: progress of group %s: %w", w.member.GroupID, err)
		}
	}
	if err := w.producer.CommitTxn(); err != nil {
		return fmt.Errorf("migrate: commit: %w", err)
	}
	w.records, w.bytes = nil, 0
	return nil
}
