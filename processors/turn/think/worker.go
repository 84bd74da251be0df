package think

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/internal/ended"
	"github.com/turntable-streams/turntable/processors/turn/internal/limits"
	"github.com/turntable-streams/turntable/processors/turn/internal/overdue"
	"github.com/turntable-streams/turntable/processors/turn/internal/published"
	"github.com/turntable-streams/turntable/processors/turn/internal/settled"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by the errors of New and Run. They concern the configuration.
var ErrConfig = errors.New("think: bad configuration")

// Worker calls a model for the steps of an agent. Its methods are safe for concurrent use.
type Worker struct {
	topics topics.Catalog
	model  Model
	limits []Limit
	calls  overdue.Calls
	rules  rules
	steps  *settled.Results[stepKey]
	ended  *ended.Turns
}

type stepKey struct{ session, step string }

// New returns a worker for an agent's model. It does not connect to the brokers. The caller owns the publisher and must
// keep it open until Run has returned.
func New(agent string, to processors.Publisher, model Model, opts ...Option) (*Worker, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	r := rules{
		group: catalog.ThinkGroup(), concurrency: defaultConcurrency, window: defaultWindow,
		timeout: limits.Timeout{After: defaultTimeout}, retry: defaultRetry, drain: defaultDrain, remembered: settled.Defaults, clock: clock.System(), logger: zap.NewNop(),
	}
	for _, opt := range opts {
		opt(&r)
	}
	if to == nil {
		r.invalid("no publisher")
	}
	if model == nil {
		r.invalid("no model")
	}
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	if r.limiter == nil {
		r.limiter = worker.NewLimiterAt(r.clock)
	}
	all := r.limitsOf(agent)
	return &Worker{
		topics: catalog, model: model, limits: all, calls: r.calls(), rules: r,
		steps: settled.New[stepKey](to, r.remembered, r.clock, r.logger),
		ended: ended.New(),
	}, nil
}

// Run processes steps until ctx ends. Then it waits for running calls of the model (WithDrain) and returns nil. While the
// brokers are unavailable, Run retries. It also follows message-output, and ends the running call of a turn that has ended,
// for example because it was cancelled or timed out. opts are the connection options of processors.New.
func (w *Worker) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	opts = append([]processors.Option{processors.WithLogger(w.rules.logger)}, opts...)
	earlier, stop, err := published.Start(
		brokers, w.topics.MessageOutput.Name(), w.ended.Observe, w.rules.logger, opts...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	defer stop()
	steps, err := worker.New(w.rules.group, []string{w.topics.EnrichedMessageInput.Name()},
		func(ctx context.Context, r worker.Record) error {
			if !r.Repeated {
				return w.handle(ctx, r, nil)
			}
			return w.handle(ctx, r, earlier)
		},
		append([]worker.Option{
			// Steps wait for their limits in the handler, outside of the slots.
			worker.WithConcurrency(w.rules.concurrency), worker.WithWaiting(min(w.rules.window, waiting*w.rules.concurrency)),
			worker.WithReadAhead(w.rules.window), worker.WithGrace(w.rules.drain),
			worker.WithRetry(runtimePolicy(w.rules.retry)), worker.WithDeadLetter(w.giveUp),
		}, w.rules.runtime...)...)
	if err == nil {
		err = steps.Run(ctx, brokers, opts...)
	}
	if errors.Is(err, worker.ErrConfig) {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return err
}

// waiting is how many steps may wait for a limit for each call of the model that may run.
const waiting = 4

// runtimePolicy is the policy of the worker runtime for a policy of model calls: the handler has decided already which
// failures of the model are retried.
func runtimePolicy(p worker.RetryPolicy) worker.RetryPolicy {
	p.Retryable = nil
	return p
}

// giveUp ends a step that was interrupted as often as the broker delivers it.
func (w *Worker) giveUp(ctx context.Context, r worker.Record, reason error) error {
	_, in, _ := w.readStep(r.Inbound)
	return w.steps.Publish(ctx, w.failure(r.Inbound, reason), w.shorten(r.Inbound, in))
}

// Handle handles one record of enriched-message-input, for callers with a consumer of their own. It returns nil when the
// step is settled and its response or its failure is acknowledged. A repeat of a settled step publishes the same record
// again; a repeat waits while the model is still working on the step. If the model fails and is called again (WithRetry),
// Handle waits in between. Handle returns an error only if ctx ended or the publisher is closed; the record must then be
// redelivered.
func (w *Worker) Handle(ctx context.Context, r processors.Inbound) error { return w.retry(ctx, r) }

// handle handles a record once. It returns an errCalledAgain if the model failed and is to be called again. earlier is not
// nil for a record that may have been handled before, by this process or another.
func (w *Worker) handle(ctx context.Context, attempt worker.Record, earlier *published.Lookup) error {
	r := attempt.Inbound
	if r.Value == nil {
		return nil // a tombstone is no step
	}
	step, in, err := w.readStep(r)
	if err != nil {
		return w.steps.Publish(ctx, w.failure(r, err), w.shorten(r, in))
	}
	step.Retried = w.calledAgain(attempt, step)
	key := stepKey{step.SessionID, step.Key}
	return w.steps.Settle(ctx, key, w.shorten(r, in), func() (processors.Outbound, error) {
		if settled, err := earlier.Settled(ctx, r, w.results(step)...); settled || err != nil {
			return processors.Outbound{}, err
		}
		return w.settle(ctx, r, step, in)
	})
}

// results are the records that settle a step.
func (w *Worker) results(s Step) []published.Result {
	return []published.Result{
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
var ErrTurnEnded = ended.ErrTurn

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
func (w *Worker) HandleOutput(r processors.Inbound) { w.ended.Observe(r) }

// settle calls the model and returns the record of its response or failure, or an empty record if the turn has ended. Its
// error is that of ctx, which has ended, or an errCalledAgain.
func (w *Worker) settle(
	ctx context.Context, r processors.Inbound, s Step, in topics.EnrichedMessage,
) (processors.Outbound, error) {
	left := s.Deadline.Sub(w.rules.clock.Now())
	if left <= 0 {
		return w.failure(r, errLate), nil
	}
	watched, stop := w.ended.Watch(ctx, string(r.Header(topics.HeaderID)))
	defer stop()
	if watched.Err() != nil {
		return processors.Outbound{}, ctx.Err() // nil if the turn has ended: nobody waits for the reply
	}
	inner, cancel := context.WithTimeout(watched, left)
	defer cancel()
	reply, err := w.call(inner, s)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return processors.Outbound{}, ctx.Err() // the model's result may only reflect the end of ctx
	case watched.Err() != nil:
		w.logEnded(r, reply)
		return processors.Outbound{}, nil
	case errors.Is(err, errNotAdmitted):
		return w.failure(r, errNotAdmitted), nil
	case inner.Err() != nil:
		return w.failure(r, errLate), nil
	case s.Retried(err):
		return processors.Outbound{}, errCalledAgain{err}
	default:
		return w.failure(r, err), nil
	}
	t := w.topics.ThinkRequestResponse
	out, err := processors.OutboundOf(t, s.SessionID, respond(s, in, reply, w.rules.clock.Now()), s.Key+responseSuffix)
	if err == nil {
		err = t.Codec().Unmarshal(out.Value).Err // the input of a call may be invalid JSON
	}
	if err != nil {
		return w.failure(r, errResponse), nil
	}
	return out, nil
}

// logEnded reports what a call cost whose turn ended. A response would be dead-lettered, because no step waits for it.
func (w *Worker) logEnded(r processors.Inbound, partial Reply) {
	w.rules.logger.Info("model call cancelled: its turn has ended", zap.String("agent", w.topics.Agent),
		zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset),
		zap.Int64("input_tokens", partial.InputTokens), zap.Int64("output_tokens", partial.OutputTokens),
		zap.Float64p("cost", partial.Cost))
}
