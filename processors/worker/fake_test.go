package worker

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker/internal/source"
)

// fakeSource delivers the records that a test puts into it.
type fakeSource struct {
	deliveries chan fakeDelivery
	handling   sync.WaitGroup
}

type fakeDelivery struct {
	ctx     context.Context
	d       source.Delivery
	verdict chan source.Verdict
}

func (f *fakeSource) Run(ctx context.Context, handle source.Handle) error {
	defer f.handling.Wait()
	for {
		select {
		case n := <-f.deliveries:
			f.handling.Go(func() { n.verdict <- handle(n.ctx, n.d) })
		case <-ctx.Done():
			return nil
		}
	}
}

func (*fakeSource) Status() source.Status { return source.Status{Joined: true} }

// rig is a worker with a fake source.
type rig struct {
	t      *testing.T
	w      *Worker
	source *fakeSource
	logs   *observer.ObservedLogs
	stop   func() // stops the worker and waits for it
	ended  chan struct{}
	cancel context.CancelFunc
}

func newRig(t *testing.T, handle Handler, c Config) *rig {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	c.Group, c.Drop = "workers", c.DeadLetter == nil
	w, err := New([]string{"in"}, handle, c)
	require.NoError(t, err)
	r := &rig{t: t, w: w, source: &fakeSource{deliveries: make(chan fakeDelivery)}, logs: logs, ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		defer close(r.ended)
		_ = w.serve(ctx, r.source, zap.New(core))
	}()
	r.stop = func() { cancel(); <-r.ended }
	t.Cleanup(r.stop)
	return r
}

// deliver delivers a record and returns a channel with its verdict.
func (r *rig) deliver(ctx context.Context, d source.Delivery) <-chan source.Verdict {
	if d.Record.Topic == "" {
		d.Record = processors.Inbound{Topic: "in", Partition: 3, Offset: 7, Key: []byte("s-1"), Value: []byte("secret")}
	}
	d.Count = max(d.Count, 1)
	n := fakeDelivery{ctx, d, make(chan source.Verdict, 1)}
	r.source.deliveries <- n
	return n.verdict
}
