package processors

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"golang.org/x/sync/singleflight"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/topics"
)

// ErrPublisherClosed is returned by KafkaPublisher.Publish after Close.
var ErrPublisherClosed = errors.New("processors: publisher is closed")

// Outbound is a record that a Publisher writes from outside a group, for example from an HTTP handler or a worker.
type Outbound struct {
	Topic string
	Key   string
	// Value is the encoded value; nil is a tombstone.
	Value   []byte
	Headers goka.Headers
}

// OutboundOf returns a record with the encoded value for its topic. id is the record's turntable.id header; empty means
// no header. Derive it from the cause of the record, so that a repeat has the same ID. The error is the codec's.
func OutboundOf[T any](t topics.Topic[T], key string, value T, id string) (Outbound, error) {
	raw, err := t.Codec().Marshal(value)
	if err != nil {
		return Outbound{}, fmt.Errorf("processors: encode %s: %w", t.Name(), err)
	}
	return Outbound{Topic: t.Name(), Key: key, Value: raw, Headers: runtimeapi.IDHeaders(id)}, nil
}

// Publisher writes records from outside a group. *KafkaPublisher implements it; a test can replace it. Its method must be
// safe for concurrent use.
type Publisher interface {
	// Publish writes records in order. It blocks until the brokers have acknowledged all of them and returns nil then.
	// After an error, the failed record may or may not be written; the ones after it are not. An error that wraps
	// ErrTooLarge means that the failed record was not written and that a retry fails in the same way.
	Publish(ctx context.Context, records ...Outbound) error
}

// KafkaPublisher is a Publisher that writes as a Processor does: records are acknowledged by all in-sync replicas, a retried
// request causes no duplicates, and keys are partitioned as by Java clients. One per process is enough; its methods are
// safe for concurrent use. Use NewPublisher.
type KafkaPublisher struct {
	brokers []string
	conf    *sarama.Config
	limits  *cut.Limits

	dial   singleflight.Group
	mu     sync.Mutex
	async  sarama.AsyncProducer // nil until the first Publish
	closed bool
	flying sync.WaitGroup // calls of Publish that may write
	acks   sync.WaitGroup
}

// NewPublisher returns a publisher. It validates the options; the first Publish connects. It accepts the options of New;
// those for groups, tables and topics have no effect. An error wraps ErrConfig. Call Close when it is no longer needed.
func NewPublisher(brokers []string, opts ...Option) (*KafkaPublisher, error) {
	conf, _, err := ClientConfig(brokers, opts...)
	if err != nil {
		return nil, err
	}
	return &KafkaPublisher{brokers: brokers, conf: conf, limits: cut.NewLimits(conf.Producer.MaxMessageBytes)}, nil
}

// Publish writes records in order: each is sent after the one before it is acknowledged. It blocks until all are
// acknowledged and returns nil then. It fails when ctx ends, or after some seconds if the brokers are unavailable; give ctx
// a deadline to bound the wait. After an error, the failed record may or may not be written; the ones after it are not. If
// the error wraps ErrTooLarge, the failed record was not written: it is larger than WithMaxRecordBytes or than its topic accepts.
func (p *KafkaPublisher) Publish(ctx context.Context, records ...Outbound) error {
	messages := make([]*sarama.ProducerMessage, len(records))
	for i, r := range records {
		messages[i] = message(r)
		if size, limit, over := p.limits.Over(messages[i]); over {
			return fmt.Errorf("%w: %d bytes for %s, limit %d", ErrTooLarge, size, r.Topic, limit)
		}
	}
	async, err := p.connected(ctx)
	if err != nil {
		return err
	}
	defer p.flying.Done()
	for _, m := range messages {
		if err := p.send(ctx, async, m); err != nil {
			return fmt.Errorf("processors: publish to %s: %w", m.Topic, err)
		}
	}
	return nil
}

// send sends a record. If brokers refuse it as too large, it may have been in a batch with others, and is sent again alone.
func (p *KafkaPublisher) send(ctx context.Context, async sarama.AsyncProducer, m *sarama.ProducerMessage) error {
	for again := false; ; again = true {
		p.limits.Fit(m)
		err := send(ctx, async, m)
		switch {
		case err == nil || !p.limits.Refused(m, err):
			return err
		case again:
			return fmt.Errorf("%w: %w", ErrTooLarge, err)
		}
	}
}

func message(r Outbound) *sarama.ProducerMessage {
	m := &sarama.ProducerMessage{
		Topic: r.Topic, Key: sarama.StringEncoder(r.Key), Metadata: make(chan error, 1),
	}
	if r.Value != nil {
		m.Value = sarama.ByteEncoder(r.Value)
	}
	for name, value := range r.Headers {
		m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(name), Value: value})
	}
	return m
}

func send(ctx context.Context, async sarama.AsyncProducer, m *sarama.ProducerMessage) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case async.Input() <- m:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-m.Metadata.(chan error):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connected returns the producer and adds the caller to those that Close waits for.
func (p *KafkaPublisher) connected(ctx context.Context) (sarama.AsyncProducer, error) {
	if async, err := p.take(); async != nil || err != nil {
		return async, err
	}
	// Dialling cannot be cancelled: it continues after ctx has ended, and the next call uses its connection.
	dialled := p.dial.DoChan("", func() (any, error) { return nil, p.connect() })
	select {
	case result := <-dialled:
		if result.Err != nil {
			return nil, result.Err
		}
	case <-ctx.Done():
		return nil, fmt.Errorf("processors: connect: %w", ctx.Err())
	}
	return p.take()
}

func (p *KafkaPublisher) take() (sarama.AsyncProducer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrPublisherClosed
	}
	if p.async != nil {
		p.flying.Add(1)
	}
	return p.async, nil
}

func (p *KafkaPublisher) connect() error {
	p.mu.Lock()
	done := p.closed || p.async != nil
	p.mu.Unlock()
	if done {
		return nil
	}
	conf := kafka.Copy(p.conf)
	conf.Producer.Return.Successes, conf.Producer.Return.Errors = true, true
	async, err := sarama.NewAsyncProducer(p.brokers, conf)
	if err != nil {
		return fmt.Errorf("processors: connect: %w", kafka.Explain(conf, err, p.brokers...))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.Join(ErrPublisherClosed, async.Close())
	}
	p.async = async
	p.acks.Go(func() {
		for m := range async.Successes() {
			m.Metadata.(chan error) <- nil
		}
	})
	p.acks.Go(func() {
		for failed := range async.Errors() {
			failed.Msg.Metadata.(chan error) <- failed.Err
		}
	})
	return nil
}

// Close waits until running calls of Publish have returned, then closes the connections. Later calls of Publish return
// ErrPublisherClosed.
func (p *KafkaPublisher) Close() error {
	p.mu.Lock()
	p.closed = true
	async := p.async
	p.async = nil
	p.mu.Unlock()
	p.flying.Wait()
	if async == nil {
		return nil
	}
	async.AsyncClose()
	p.acks.Wait()
	return nil
}
