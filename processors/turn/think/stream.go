package think

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Stream returns a model that calls m, publishes the pieces that m yields to {agent}-agent-events and returns them joined
// as its reply. They are a part of the stream of the turn, which processors/fold folds into one batch message: the turn writes
// the rest of it, which is the marks of the steps, the results of the tools, and the end. A step without Step.TurnID is
// answered, but has no events: its turn has no stream.
//
// Each call of m is an attempt at the step, numbered by the time of the call in milliseconds. The events of a call that
// failed or was interrupted have no effect once the step is answered: the response names the attempt whose events count
// (topics.HeaderEvents), and until then the greatest attempt counts. Think returns after the brokers have acknowledged the
// events.
//
// Events are published in the background: the pieces that m yields while the brokers acknowledge earlier ones become one
// event. If the brokers are unavailable, the events wait in memory. If an event is too large for a record, the turn writes the
// events of the step from its response.
//
// Create the topic with topics.WithEvents. Do not combine Stream with fold.Config.ThinkResponses, which answers the step, too.
// The caller owns the publisher and keeps it open until the worker's Run has returned.
func Stream(agent string, to processors.Publisher, m Streamer, opts ...StreamOption) (Model, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if to == nil || m == nil {
		return nil, fmt.Errorf("%w: Stream: no publisher or no model", ErrConfig)
	}
	s := &streamed{topic: catalog.AgentEvents, to: to, model: m, clock: clock.System(), logger: zap.NewNop()}
	for _, opt := range opts {
		opt(s)
	}
	if s.clock == nil || s.logger == nil {
		return nil, fmt.Errorf("%w: Stream: nil clock or logger", ErrConfig)
	}
	return s, nil
}

// StreamOption configures Stream.
type StreamOption func(*streamed)

// WithStreamClock sets the clock that numbers the attempts (default: the system clock).
func WithStreamClock(c processors.Clock) StreamOption { return func(s *streamed) { s.clock = c } }

// WithStreamLogger sets the logger (default: none). The content of conversations is not logged.
func WithStreamLogger(l *zap.Logger) StreamOption { return func(s *streamed) { s.logger = l } }

// streamed is a Model that publishes what a Streamer yields.
type streamed struct {
	topic  topics.Topic[topics.AgentEvent]
	to     processors.Publisher
	model  Streamer
	clock  processors.Clock
	logger *zap.Logger

	last     atomic.Int64 // the greatest attempt so far
	unwanted sync.Once    // of the warning about steps without events
}

// nextAttempt returns the number of a new call. It is greater than those of all earlier calls of this process, also within a
// millisecond.
func (s *streamed) nextAttempt() int64 {
	for {
		last := s.last.Load()
		next := max(s.clock.Now().UnixMilli(), last+1)
		if s.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

// Think implements Model. With an error it returns what the model used so far.
func (s *streamed) Think(ctx context.Context, step Step) (Reply, error) {
	var c collector
	var events *eventStream
	if step.TurnID != "" {
		events = s.open(ctx, step)
	} else {
		s.unwanted.Do(func() {
			s.logger.Warn("a step has no events: its turn has no stream, because it began with a worker that writes none",
				zap.String("topic", s.topic.Name()), zap.String("step", step.Key))
		})
	}
	err := s.consume(ctx, step, events, &c)
	reply := c.reply()
	if err != nil {
		reply = Reply{}.with(reply.usage())
	}
	if events != nil {
		if attempt, whole := events.end(ctx, err == nil); whole && err == nil {
			reply.events = string(topics.AppendEvents(nil, attempt, c.stop()))
		}
	}
	return reply, err
}

// consume reads the model's pieces to their end. A panic of the model is an error: the events must end all the same.
func (s *streamed) consume(ctx context.Context, step Step, events *eventStream, c *collector) (err error) {
	defer func() {
		if recover() != nil {
			err = errPanic // without the panic value, which may quote the conversation
		}
	}()
	calls := callsOf(step)
	for d, err := range s.model.Stream(ctx, step) {
		if err != nil {
			return err
		}
		d.Call = calls.read(d.Call)
		c.add(d)
		if events != nil {
			events.add(d)
		}
	}
	if c.reply().empty() {
		return ErrEmpty
	}
	return calls.err()
}
