package updater

import (
	"context"
	"fmt"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// Worker calls an updater for the ended sessions of an agent. Its methods are safe for concurrent use.
type Worker struct {
	topics   topics.Catalog
	updater  Updater
	rules    rules
	memories *responder.Responder[snapshotKey]
}

type snapshotKey struct{ user, id string }

// New returns a worker for an agent's updater. It does not connect to the brokers. The caller owns the publisher and must
// keep it open until Run has returned.
func New(agent string, to processors.Publisher, u Updater, c Config) (*Worker, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	r := c.rules(catalog)
	if u == nil {
		r.Wrong("the updater", "is nil")
	}
	memories, err := responder.New[snapshotKey](catalog, to, r.Settings)
	if err != nil {
		return nil, err
	}
	return &Worker{topics: catalog, updater: u, rules: r, memories: memories}, nil
}

// Run handles snapshots until ctx ends. Then it waits for running calls (Config.Grace) and returns nil. While the brokers
// are unavailable, Run retries. opts are the connection options of processors.New.
func (w *Worker) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	return w.memories.Run(ctx, brokers, responder.Source{
		Topic: w.topics.MemoirContextSessionEnd.Name(), Handle: w.handle, GiveUp: w.giveUp,
		Config: func(c *worker.Config) { c.Retry = w.rules.RuntimeRetry() },
	}, opts...)
}

// Handle handles one record of memoir-context-session-end, for callers with a consumer of their own. It returns nil when the
// snapshot's memory or its failure is acknowledged; a repeat of a snapshot publishes the same record again. If the updater
// fails and is called again (Config.Retry), Handle waits in between. Handle returns an error only if ctx ended or the publisher
// is closed; the record must then be redelivered.
func (w *Worker) Handle(ctx context.Context, r processors.Inbound) error {
	return w.rules.HandleAlone(ctx, r, w.handle)
}

// handle handles a delivery. It returns a responder.CalledAgain if the updater failed and is to be called again.
func (w *Worker) handle(ctx context.Context, d responder.Delivery) error {
	r := d.Inbound
	if r.Value == nil {
		return nil // a tombstone is no snapshot
	}
	e, err := w.read(r)
	if err != nil {
		return w.memories.Publish(ctx, r, w.failure(r, err), w.shorten(r))
	}
	return w.memories.Settle(ctx, d, snapshotKey{string(r.Key), e.Key}, w.results(e), w.shorten(r),
		func() (processors.Outbound, error) { return w.settle(ctx, d.Record, e) })
}

// giveUp dead-letters a snapshot that was interrupted as often as the broker delivers it.
func (w *Worker) giveUp(ctx context.Context, r worker.Record, reason error) error {
	return w.memories.Publish(ctx, r.Inbound, w.failure(r.Inbound, reason), w.shorten(r.Inbound))
}

// results are the records that settle a snapshot.
func (w *Worker) results(e Ended) []responder.Sought {
	return []responder.Sought{
		{Topic: w.topics.MemoirContext.Name(), ID: e.Key + memorySuffix},
		{Topic: w.topics.MemoirDLQ.Name(), ID: e.Key + failureSuffix},
	}
}

// What the turntable.id of a memory and of a failure has after the key of the snapshot.
const (
	memorySuffix  = "/memory"
	failureSuffix = "/failure"
)
