package cut

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// Transactions is what a Transactional closer needs of Sarama's transactional producer.
type Transactions interface {
	BeginTxn() error
	AddOffsetsToTxnWithGroupMetadata(map[string][]*sarama.PartitionOffsetMetadata, *sarama.ConsumerGroupMetadata) error
	CommitTxn() error
	AbortTxn() error
}

// Transactional is the closer of exactly-once: one Kafka transaction per cut over outputs, table rows and offsets.
type Transactional struct {
	producer Transactions
	table    string // of the group
	listing  *Listing
}

// NewTransactional returns the closer over a producer whose transactional id names group and instance. table is the group's
// table topic. listing may be nil.
func NewTransactional(producer Transactions, table string, listing *Listing) *Transactional {
	return &Transactional{producer: producer, table: table, listing: listing}
}

// Background implements Closer: the records of the next cut must not get into this transaction.
func (*Transactional) Background() bool { return false }

// Begin implements Closer.
func (t *Transactional) Begin() error { return final(t.producer.BeginTxn()) }

// Close implements Closer. After any error the outcome is unknown: the instance stops without writing its local store, and
// the producer of its next start decides the outcome before offsets are read.
//
// The offsets carry generation and member id, so that the coordinator rejects a member whose partitions have moved. A
// transaction of timers alone has no offsets and would not be checked: it commits offset 0 of the group's own
// table, which no consumer uses.
func (t *Transactional) Close(_ context.Context, offsets map[Partition]int64, m Member) error {
	at := func(p Partition, offset int64) *sarama.PartitionOffsetMetadata {
		metadata := t.listing.Metadata(p, offset)
		return &sarama.PartitionOffsetMetadata{Partition: p.ID, Offset: offset, LeaderEpoch: -1, Metadata: &metadata}
	}
	add := make(map[string][]*sarama.PartitionOffsetMetadata, len(offsets))
	for p, offset := range offsets {
		add[p.Topic] = append(add[p.Topic], at(p, offset))
	}
	if len(add) == 0 {
		add[t.table] = []*sarama.PartitionOffsetMetadata{at(Partition{Topic: t.table}, 0)}
	}
	meta := &sarama.ConsumerGroupMetadata{GroupID: m.Group, GenerationID: m.Generation, MemberID: m.ID}
	if m.InstanceID != "" {
		meta.GroupInstanceID = &m.InstanceID
	}
	if err := t.producer.AddOffsetsToTxnWithGroupMetadata(add, meta); err != nil {
		return fmt.Errorf("offsets of group %s: %w", m.Group, final(err))
	}
	if err := t.producer.CommitTxn(); err != nil {
		if errors.Is(err, sarama.ErrOffsetMetadataTooLarge) {
			t.listing.refuse() // after the restart offsets are committed without it
		}
		return fmt.Errorf("commit of group %s, generation %d: %w", m.Group, m.Generation, final(err))
	}
	return nil
}

// Abort implements Closer.
func (t *Transactional) Abort() error { return final(t.producer.AbortTxn()) }

// final wraps the coordinator's error for an instance id that another process has joined with in ErrFenced. A fenced
// producer is not enough: a transaction that timed out is fenced too, and so is one that a new owner of a partition found
// open.
func final(err error) error {
	switch {
	case errors.Is(err, sarama.ErrFencedInstancedId):
		return fmt.Errorf("%w: %w", ErrFenced, err)
	case errors.Is(err, sarama.ErrProducerFenced): // Sarama has no text for it
		return fmt.Errorf("the transaction has timed out, or its id was taken over: %w", err)
	}
	return err
}
