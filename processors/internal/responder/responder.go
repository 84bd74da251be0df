// Package responder runs workers that answer the records of one topic with one record each: the steps of a session with the
// model's responses, the calls of tools with their results, long conversations with summaries, ended sessions with memories.
//
// A repeated record gets the same answer again. A record that may have been handled before a crash is handled only if its
// answer is not on its topic. Work ends at the deadline of its record, and with its turn.
package responder

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// Responder answers the records of a topic. K identifies a record among its repeats. It is safe for concurrent use.
type Responder[K comparable] struct {
	settings Settings
	output   string // message-output, on which turns end
	answers  *Results[K]
	ended    *EndedTurns
}

// New returns a responder of an agent. It does not connect to the brokers. It returns the errors of the settings.
func New[K comparable](agent topics.Catalog, to processors.Publisher, s Settings) (*Responder[K], error) {
	if to == nil {
		s.Wrong("the publisher", "is nil")
	}
	if err := s.Err(s.invalid); err != nil {
		return nil, err
	}
	return &Responder[K]{
		settings: s, output: agent.MessageOutput.Name(),
		answers: NewResults[K](to, s.Remembered, s.Clock, s.Logger), ended: NewEndedTurns(),
	}, nil
}

// Delivery is a record that is to be answered.
type Delivery struct {
	worker.Record
	earlier *Lookup // nil without brokers
}

// First returns the delivery of a record that was not handled before.
func First(r processors.Inbound) Delivery {
	return Delivery{Record: worker.Record{Inbound: r, Deliveries: 1}}
}

// Source is the topic of a responder and what is done with its records.
type Source struct {
	Topic string
	// Handle handles a record, see worker.Handler.
	Handle func(ctx context.Context, d Delivery) error
	// GiveUp answers a record that was interrupted as often as it is delivered, see worker.Config.DeadLetter.
	GiveUp func(ctx context.Context, r worker.Record, reason error) error
	// Config completes that of the settings.
	Config func(*worker.Config)
}

// Run handles the records of a source until ctx ends, and follows the ends of turns meanwhile. See worker.Worker.Run. An error
// about the configuration wraps that of the settings.
func (r *Responder[K]) Run(ctx context.Context, brokers []string, from Source, opts ...processors.Option) error {
	opts = append([]processors.Option{processors.WithLogger(r.settings.Logger)}, opts...)
	earlier, stop, err := StartLookup(brokers, r.output, r.ended.Observe, r.settings.Logger, opts...)
	if err != nil {
		return fmt.Errorf("%w: %w", r.settings.invalid, err)
	}
	defer stop()
	handle := func(ctx context.Context, record worker.Record) error {
		return from.Handle(ctx, Delivery{Record: record, earlier: earlier})
	}
	c := r.settings.Config
	c.DeadLetter = from.GiveUp
	if from.Config != nil {
		from.Config(&c)
	}
	w, err := worker.New([]string{from.Topic}, handle, c)
	if err == nil {
		err = w.Run(ctx, brokers, opts...)
	}
	if errors.Is(err, worker.ErrConfig) {
		return fmt.Errorf("%w: %w", r.settings.invalid, err)
	}
	return err
}

// Observe takes a record of message-output: it ends the running calls of its turn.
func (r *Responder[K]) Observe(output processors.Inbound) { r.ended.Observe(output) }

// Settle publishes the answer to a delivery, which call returns; see Results. It does not call if one of results, the
// answers that an earlier delivery can have published, is on its topic, or if the record's turn has its output.
func (r *Responder[K]) Settle(
	ctx context.Context, d Delivery, key K, results []Sought, shorten Shorten,
	call func() (processors.Outbound, error),
) error {
	return r.skipped(d.Inbound, r.answers.Settle(ctx, key, shorten, func() (processors.Outbound, error) {
		if out, found, err := d.earlier.Answer(ctx, d.Inbound, results...); found || err != nil {
			return out, err
		}
		if d.Repeated {
			if settled, err := d.earlier.Settled(ctx, d.Inbound, results...); settled || err != nil {
				return processors.Outbound{}, err
			}
		}
		return call()
	}))
}

// Publish publishes a record that answers another one, or what takes its place, and remembers nothing.
func (r *Responder[K]) Publish(
	ctx context.Context, of processors.Inbound, out processors.Outbound, shorten Shorten,
) error {
	return r.skipped(of, r.answers.Publish(ctx, out, shorten))
}

// skipped returns the error of answering a record, or nil if no answer is small enough: a retry would fail in the same way, and
// the record would be handled again forever. The record is logged and skipped.
func (r *Responder[K]) skipped(of processors.Inbound, err error) error {
	if !errors.Is(err, processors.ErrTooLarge) {
		return err
	}
	r.settings.Logger.Error("record is skipped: its answer does not fit into a record", zap.String("topic", of.Topic),
		zap.Int32("partition", of.Partition), zap.Int64("offset", of.Offset), zap.Error(err))
	return nil
}

// ErrorHeaders returns the headers of a record that is dead-lettered, or that reports a failure.
func (r *Responder[K]) ErrorHeaders(of processors.Inbound, reason string) goka.Headers {
	return goka.Headers{
		topics.HeaderErrorReason:          []byte(reason),
		topics.HeaderErrorSourceTopic:     []byte(of.Topic),
		topics.HeaderErrorSourcePartition: []byte(strconv.Itoa(int(of.Partition))),
		topics.HeaderErrorSourceOffset:    []byte(strconv.FormatInt(of.Offset, 10)),
		topics.HeaderErrorGroup:           []byte(r.settings.Group),
	}
}

// KeyOf returns the key of a record: its ID or, without one, its topic and where it was first written.
func KeyOf(r processors.Inbound) string {
	if id := r.Header(topics.HeaderID); len(id) > 0 {
		return string(id)
	}
	partition, offset := topics.FirstAt(r.Header(topics.HeaderFirstAt), r.Partition, r.Offset)
	return fmt.Sprintf("%s/%d/%d", r.Topic, partition, offset)
}
