package think

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Stream returns a model that calls m, publishes the pieces that m yields to {agent}-agent-events and returns them joined
// as its reply. processors/fold folds the events into a batch message, so reply and batch consist of the same pieces.
//
// Every step is a stream of its own: the turn_id of its events is Step.Key. One terminal record ends it: complete, with the
// model's stop reason and usage; failed, with the model's error; or cancelled, if the cause of the step's context is
// ErrTurnEnded. Think returns after the brokers have acknowledged the terminal record, so a reader has the whole stream
// before the think-response.
//
// The attempt of the events is the time of the call in milliseconds. If the model is called again for a step, the greater
// attempt replaces the events of the earlier call. A call that is interrupted because its worker stops, or that will be
// retried (Step.Retried), therefore writes no terminal record. If the model is not called again, the fold closes the stream
// as expired. If the process crashes between the terminal record and the think-response, the batch has the pieces of the
// first call and the think-response those of the second, whose events the fold dead-letters.
//
// Events are published in the background: the pieces that m yields while the brokers acknowledge earlier ones become one
// event. If the brokers are unavailable, the events wait in memory. An event that is too large for a record ends the
// stream as failed; the step continues.
//
// Create the topic with topics.WithEvents. Do not combine Stream with group.WithThinkResponses, which answers the step, too.
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
}

// Think implements Model. With an error it returns what the model used so far.
func (s *streamed) Think(ctx context.Context, step Step) (Reply, error) {
	events := s.open(ctx, step)
	var c collector
	err := s.consume(ctx, step, events, &c)
	reply, stop := c.reply(), c.stop()
	events.end(ctx, resultOf(ctx, step, reply, stop, err))
	if err != nil {
		reply = Reply{}.with(reply.usage())
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
		events.add(d)
	}
	if c.reply().empty() {
		return ErrEmpty
	}
	return calls.err()
}

// resultOf returns the terminal record of a call; nil if the stream stays open for the next call of the step.
func resultOf(ctx context.Context, step Step, r Reply, stop string, err error) *topics.AgentResult {
	result := topics.AgentResult{OK: true, StopReason: &stop, Usage: usageOf(r)}
	failed := func(reason error) *topics.AgentResult {
		text := truncated(reason.Error())
		result.OK, result.StopReason, result.Error = false, nil, &text
		return &result
	}
	switch {
	case err == nil:
		return &result
	case errors.Is(context.Cause(ctx), ErrTurnEnded):
		stop = "cancelled"
		return &result
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failed(errLate)
	case ctx.Err() != nil:
		return nil
	case step.Retried != nil && step.Retried(err):
		return nil
	default:
		return failed(err)
	}
}

// usageOf returns the usage of a reply as the agent's terminal record has it; nil if there is none.
func usageOf(r Reply) topics.Raw {
	if r.InputTokens == 0 && r.OutputTokens == 0 && r.Cost == nil {
		return nil
	}
	usage := strconv.AppendInt([]byte(`{"input":`), r.InputTokens, 10)
	usage = strconv.AppendInt(append(usage, `,"output":`...), r.OutputTokens, 10)
	usage = strconv.AppendInt(append(usage, `,"total":`...), r.InputTokens+r.OutputTokens, 10)
	if r.Cost != nil {
		usage = strconv.AppendFloat(append(usage, `,"cost":`...), *r.Cost, 'g', -1, 64)
	}
	return append(usage, '}')
}
