package think

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/internal/settled"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by everything that New and Run refuse.
var ErrConfig = errors.New("think: bad configuration")

// Worker asks a model. Its methods are safe for concurrent use.
type Worker struct {
	topics topics.Catalog
	model  Model
	rules  rules
	steps  *settled.Results[stepKey]
}

type stepKey struct{ session, step string }

// New makes a worker of an agent's model. It contacts nobody. The publisher is the caller's; it is used until Run has
// returned.
func New(agent string, to turn.Publisher, model Model, opts ...Option) (*Worker, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	r := rules{
		group: agent + "-think-consumer", concurrency: defaultConcurrency, window: defaultWindow,
		timeout: defaultTimeout, remembered: settled.Defaults, clock: clock.System(), logger: zap.NewNop(),
	}
	for _, opt := range opts {
		opt(&r)
	}
	if to == nil {
		r.refuse("no publisher")
	}
	if model == nil {
		r.refuse("no model")
	}
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	return &Worker{
		topics: catalog, model: model, rules: r, steps: settled.New[stepKey](to, r.remembered, r.clock, r.logger),
	}, nil
}

// Run takes steps until ctx ends; then what was asked may be answered (WithDrain), and Run returns nil. Brokers that
// are away are waited for. The options are those of processors.New about connections.
func (w *Worker) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	err := processors.Consume(ctx, brokers, processors.Consumption{
		Group: w.rules.group, Topics: []string{w.topics.EnrichedMessageInput.Name()}, Handle: w.Handle,
		Concurrency: w.rules.concurrency, Window: w.rules.window, Drain: w.rules.drain,
	}, append([]processors.Option{processors.WithLogger(w.rules.logger)}, opts...)...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// Handle handles one record of enriched-message-input, for callers with a consumer of their own. It returns nil when the
// step is settled and its response or its failure is acknowledged. A repeat of a settled step publishes the same record
// again; a repeat of a step that is still with the model waits for it. An error says that Handle was stopped, by ctx or
// by a publisher that is closed; the record must be redelivered.
func (w *Worker) Handle(ctx context.Context, r processors.Inbound) error {
	if r.Value == nil {
		return nil // a tombstone asks nothing
	}
	step, in, err := w.readStep(r)
	if err != nil {
		return w.steps.Publish(ctx, w.failure(r, err), w.shorten(r, in))
	}
	key := stepKey{step.SessionID, step.Key}
	return w.steps.Settle(ctx, key, w.shorten(r, in), func() (processors.Outbound, error) {
		return w.settle(ctx, r, step, in)
	})
}

// Why a step failed that is not the model's fault, or not to be told in its words.
var (
	errLate     = errors.New("think: the model did not answer in time")
	errPanic    = errors.New("think: the model panicked")
	errTooLarge = errors.New("think: the response does not fit into a record")
	errResponse = errors.New("think: the response is no record")
)

// settle asks the model. Its error says that it was interrupted.
func (w *Worker) settle(
	ctx context.Context, r processors.Inbound, s Step, in topics.EnrichedMessage,
) (processors.Outbound, error) {
	left := s.Deadline.Sub(w.rules.clock.Now())
	if left <= 0 {
		return w.failure(r, errLate), nil
	}
	inner, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	reply, err := ask(inner, w.model, s)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return processors.Outbound{}, ctx.Err() // what the model says to that is not its answer
	case inner.Err() != nil:
		return w.failure(r, errLate), nil
	default:
		return w.failure(r, err), nil
	}
	t := w.topics.ThinkRequestResponse
	out, err := processors.OutboundOf(t, s.SessionID, respond(s, in, reply, w.rules.clock.Now()), s.Key+"/think")
	if err == nil {
		err = t.Codec().Unmarshal(out.Value).Err // a call's input may be no JSON
	}
	if err != nil {
		return w.failure(r, errResponse), nil
	}
	return out, nil
}

func ask(ctx context.Context, m Model, s Step) (reply Reply, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = errPanic // what it panicked with may quote the conversation
		}
	}()
	return m.Think(ctx, s)
}
