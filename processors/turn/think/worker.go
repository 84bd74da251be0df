package think

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// Worker calls a model for the steps of an agent. Its methods are safe for concurrent use.
type Worker struct {
	topics topics.Catalog
	model  Model
	limits []Limit
	calls  responder.OverdueCalls
	rules  rules
	steps  *responder.Responder[stepKey]
	spent  *spent
}

type stepKey struct{ session, step string }

// New returns a worker for an agent's model. It does not connect to the brokers. The caller owns the publisher and must
// keep it open until Run has returned.
func New(agent string, to processors.Publisher, model Model, c Config) (*Worker, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	r := c.rules(catalog)
	if model == nil {
		r.Wrong("the model", "is nil")
	}
	steps, err := responder.New[stepKey](catalog, to, r.Settings)
	if err != nil {
		return nil, err
	}
	if r.Limiter == nil {
		r.Limiter = worker.NewLimiterAt(r.Clock)
	}
	all := r.limitsOf(agent)
	return &Worker{topics: catalog, model: model, limits: all, calls: r.calls(), rules: r, steps: steps, spent: newSpent()}, nil
}

// Run processes steps until ctx ends. Then it waits for running calls of the model (Config.Grace) and returns nil. While the
// brokers are unavailable, Run retries. It also follows message-output, and ends the running call of a turn that has ended,
// for example because it was cancelled or timed out. opts are the connection options of processors.New.
func (w *Worker) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	return w.steps.Run(ctx, brokers, responder.Source{
		Topic: w.topics.EnrichedMessageInput.Name(), Handle: w.handle, GiveUp: w.giveUp,
		Config: func(c *worker.Config) {
			if c.Waiting == 0 { // steps wait for their limits in the handler, outside of the slots
				c.Waiting = min(c.ReadAhead, waiting*c.Concurrency)
			}
			c.Retry = w.rules.RuntimeRetry()
		},
	}, opts...)
}

// waiting is how many steps may wait for a limit for each call of the model that may run.
const waiting = 4

// giveUp ends a step that was interrupted as often as the broker delivers it.
func (w *Worker) giveUp(ctx context.Context, r worker.Record, reason error) error {
	step, in, _ := w.readStep(r.Inbound)
	used := w.spent.take(stepKey{step.SessionID, step.Key})
	return w.steps.Publish(ctx, r.Inbound, w.failure(r.Inbound, reason, used.Cost), w.shorten(r.Inbound, in))
}

// Handle handles one record of enriched-message-input, for callers with a consumer of their own. It returns nil when the
// step is settled and its response or its failure is acknowledged. A repeat of a settled step publishes the same record
// again; a repeat waits while the model is still working on the step. If the model fails and is called again (Config.Retry),
// Handle waits in between. Handle returns an error only if ctx ended or the publisher is closed; the record must then be
// redelivered.
func (w *Worker) Handle(ctx context.Context, r processors.Inbound) error {
	return w.rules.HandleAlone(ctx, r, w.handle)
}

// handle handles a delivery. It returns a responder.CalledAgain if the model failed and is to be called again.
func (w *Worker) handle(ctx context.Context, d responder.Delivery) error {
	r := d.Inbound
	if r.Value == nil {
		return nil // a tombstone is no step
	}
	step, in, err := w.readStep(r)
	if err != nil {
		return w.steps.Publish(ctx, r, w.failure(r, err, nil), w.shorten(r, in))
	}
	step.Retried = w.rules.Retried(d.Record, step.Deadline)
	key := stepKey{step.SessionID, step.Key}
	return w.steps.Settle(ctx, d, key, w.results(step), w.shorten(r, in), func() (processors.Outbound, error) {
		return w.settle(ctx, r, step, in)
	})
}

// results are the records that settle a step.
func (w *Worker) results(s Step) []responder.Sought {
	return []responder.Sought{
		{Topic: w.topics.ThinkRequestResponse.Name(), ID: s.Key + responseSuffix},
		{Topic: w.topics.ThinkDLQ.Name(), ID: s.Key + failureSuffix},
	}
}

// What the turntable.id of a response and of a failure has after the key of the step.
const (
	responseSuffix = "/think"
	failureSuffix  = "/failure"
)

// ErrTurnEnded is the context.Cause of a model call whose turn ended before it did.
var ErrTurnEnded = responder.ErrTurnEnded

// The reasons of failures that do not use the text of the model's error.
var (
	errLate = errors.New("think: the model did not answer in time")
	// errNotAdmitted is the error of a step that waited for its limits until its deadline.
	errNotAdmitted = errors.New("think: the limits of the model did not admit the call in time")
	errPanic       = errors.New("think: the model panicked")
	errTooLarge    = errors.New("think: the response does not fit into a record")
	errResponse    = errors.New("think: the response cannot be encoded as a record")
)

// HandleOutput takes a record of message-output, for callers with a consumer of their own: it ends the running calls of the
// model for the record's turn, and steps of that turn that are handled later are skipped. Each process of a worker needs
// every record of message-output, so its consumer must not share a group with other processes. Run does this by itself.
func (w *Worker) HandleOutput(r processors.Inbound) { w.steps.Observe(r) }

// settle calls the model and returns the record of its response or failure, or an empty record if the turn has ended. Its
// error is that of ctx, which has ended, or a responder.CalledAgain.
func (w *Worker) settle(
	ctx context.Context, r processors.Inbound, s Step, in topics.EnrichedMessage,
) (processors.Outbound, error) {
	var reply Reply
	var err error
	end := w.steps.Call(ctx, string(r.Header(topics.HeaderID)), s.Deadline, func(ctx context.Context) error {
		reply, err = w.answer(ctx, s)
		return err
	})
	key := stepKey{s.SessionID, s.Key}
	used := w.spent.take(key).plus(reply.usage())
	switch {
	case end == responder.Stopped:
		w.spent.keep(key, used)
		return processors.Outbound{}, ctx.Err()
	case end == responder.Skipped:
		return processors.Outbound{}, nil
	case end == responder.TurnEnded:
		w.logEnded(r, used)
		return processors.Outbound{}, nil
	case end == responder.Late && errors.Is(err, errNotAdmitted):
		return w.failure(r, errNotAdmitted, used.Cost), nil
	case end == responder.Late:
		return w.failure(r, errLate, used.Cost), nil
	case end == responder.Failed && s.Retried(err):
		w.spent.keep(key, used)
		return processors.Outbound{}, responder.Again(err)
	case end == responder.Failed:
		return w.failure(r, err, used.Cost), nil
	}
	t := w.topics.ThinkRequestResponse
	out, err := processors.OutboundOf(t, s.SessionID, respond(s, in, reply.with(used), w.rules.Clock.Now()), s.Key+responseSuffix)
	if err == nil {
		err = t.Codec().Unmarshal(out.Value).Err // the input of a call may be invalid JSON
	}
	if err != nil {
		return w.failure(r, errResponse, used.Cost), nil
	}
	out.Headers[topics.HeaderEvents] = []byte(cmp.Or(reply.events, topics.NoEvents))
	return out, nil
}

// logEnded reports what a call cost whose turn ended. A response would be dead-lettered, because no step waits for it.
func (w *Worker) logEnded(r processors.Inbound, used Usage) {
	w.rules.Logger.Info("model call cancelled: its turn has ended", zap.String("agent", w.topics.Agent),
		zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset),
		zap.Int64("input_tokens", used.InputTokens), zap.Int64("output_tokens", used.OutputTokens),
		zap.Float64p("cost", used.Cost))
}
