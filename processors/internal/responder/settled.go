package responder

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Lookup finds what an earlier delivery of a step or a call has published, and whether its turn has ended. It is safe for
// concurrent use.
type Lookup struct {
	follower       *processors.Follower
	results, turns *Published
	output         string
	logger         *zap.Logger
	mu             sync.Mutex
	warnings       map[string]*retry.Warning // by topic
}

// Sought is a record that settles a step or a call.
type Sought struct {
	Topic string
	ID    string // its turntable.id
}

// StartLookup follows output, an agent's message-output, and passes its new records to observe. It does not block. The caller must
// call stop, which waits until observe is no longer called. An error concerns the options.
func StartLookup(
	brokers []string, output string, observe func(processors.Inbound), logger *zap.Logger, opts ...processors.Option,
) (l *Lookup, stop func(), err error) {
	f, err := processors.NewFollower(brokers, []string{output}, observe, opts...)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = f.Run(ctx) }) // it returns an error only for a second call
	l = &Lookup{
		follower: f, output: output, logger: logger,
		warnings: map[string]*retry.Warning{},
		results:  NewPublished(f, func(id string) string { return id }), turns: NewPublished(f, TurnOf),
	}
	return l, func() {
		cancel()
		running.Wait()
	}, nil
}

// Settled reports whether a delivery that ended with its process has settled its record: one of results is on its topic, or
// the record's turn has its output. The turn has that record, or will read it. Without results, and with a nil Lookup, the
// record is new.
//
// Settled reads the partitions of the record's key from the time of the record on, and waits for brokers that are
// unavailable: a paid call is made again only if it is certain that nothing was published. Topics that do not exist have
// nothing. It returns an error only if ctx ends.
func (l *Lookup) Settled(ctx context.Context, r processors.Inbound, results ...Sought) (bool, error) {
	if l == nil || len(results) == 0 {
		return false, nil
	}
	settled, err := l.settled(ctx, r, results)
	if settled {
		l.logger.Info("record was settled before: it is not handled again", zap.String("topic", r.Topic),
			zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset))
	}
	return settled, err
}

func (l *Lookup) settled(ctx context.Context, r processors.Inbound, results []Sought) (settled bool, err error) {
	for _, result := range results {
		if settled, err = l.find(ctx, l.results, r, result.Topic, result.ID); settled || err != nil {
			return settled, err
		}
	}
	turn := TurnOf(string(r.Header(topics.HeaderID)))
	if turn == "" {
		return false, nil
	}
	return l.find(ctx, l.turns, r, l.output, turn)
}

func (l *Lookup) find(
	ctx context.Context, in *Published, r processors.Inbound, topic, name string,
) (found bool, err error) {
	err = l.look(ctx, topic, r.Key, func(partition int32) error {
		found, err = in.Contains(ctx, topic, partition, name, r.Timestamp)
		return err
	})
	return found, err
}

// Answer returns what answered a step or a call that its turn has written once more after a crash (topics.HeaderAnswersFrom), as a
// record to be published again: the turn may have read the first one too early. It finds what is on the first topic of
// results. Answer blocks and ends as Settled does.
func (l *Lookup) Answer(ctx context.Context, r processors.Inbound, results ...Sought) (out processors.Outbound, found bool, err error) {
	begin, err := strconv.ParseInt(string(r.Header(topics.HeaderAnswersFrom)), 10, 64)
	if l == nil || len(results) == 0 || err != nil || begin < 0 {
		return out, false, nil
	}
	var answer processors.Inbound
	topic := results[0].Topic
	err = l.look(ctx, topic, r.Key, func(partition int32) (err error) {
		answer, found, err = l.results.From(ctx, topic, partition, results[0].ID, begin)
		return err
	})
	if !found || err != nil {
		return out, false, err
	}
	l.logger.Info("record was answered before: its answer is published again", zap.String("topic", r.Topic),
		zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset))
	out = processors.Outbound{Topic: topic, Key: string(answer.Key), Value: answer.Value, Headers: goka.Headers{}}
	for _, h := range answer.Headers {
		out.Headers[h.Name] = h.Value
	}
	return out, true, nil
}

// warningOf returns the warnings about a topic. That another one can be read does not end them.
func (l *Lookup) warningOf(topic string) *retry.Warning {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.warnings[topic] == nil {
		l.warnings[topic] = retry.NewWarning(l.logger, nil, "cannot look for an earlier result, trying again", "earlier results can be looked for")
	}
	return l.warnings[topic]
}

// look calls f with the partition of a key until it returns no error. Topics that do not exist have nothing.
func (l *Lookup) look(ctx context.Context, topic string, key []byte, f func(partition int32) error) error {
	warning := l.warningOf(topic)
	err := retry.Until(ctx, func() error {
		partition, err := l.follower.Partition(topic, string(key))
		if err == nil {
			err = f(partition)
		}
		if errors.Is(err, processors.ErrNoTopic) {
			return nil
		}
		return err
	}, func(err error) {
		if !errors.Is(err, processors.ErrNotFollowing) { // not yet connected
			warning.Failed(err, zap.String("topic", topic))
		}
	})
	if err == nil {
		warning.Over(zap.String("topic", topic))
	} else {
		return fmt.Errorf("look for an earlier result on %s: %w", topic, err)
	}
	return nil
}
