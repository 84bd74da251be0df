package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/cut"
)

// Visit calls the graph's visitor of that name for every row of the partitions that this instance owns, and blocks until
// all are visited. Its effects are part of a cut, and no cut is made while it runs: use it only for tables that can be
// visited in less than the drain limit. One visit runs at a time. ctx is checked only before the visit begins; the end of
// the session ends the visit with an error.
func (inst *Instance) Visit(ctx context.Context, name string, meta any) error {
	r := inst.current()
	if r == nil {
		return ErrNotRunning
	}
	return r.visit(ctx, name, meta)
}

// visit runs a visitor as one unit of work: the cut waits for it. The mutex avoids a deadlock in Goka with two concurrent
// visits of which one is cancelled. A visit that has begun is not cancelled: Goka would return with its effects in flight,
// and a cut could be made between them. The end of the session ends the visit.
func (r *run) visit(ctx context.Context, name string, meta any) error {
	r.visiting.Lock()
	defer r.visiting.Unlock()
	g := r.currentGroup()
	if g == nil || r.instance.cfg.Graph.GroupTable() == nil {
		return ErrNotRunning
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s := g.Current()
	if s == nil || !s.Acquire(cut.Partition{}, 0, 0) {
		return ErrNotRunning
	}
	defer s.Release()
	if !r.processor.Recovered() { // Goka has no tables yet, or dereferences nil
		return ErrNotRunning
	}
	err := r.processor.VisitAll(context.WithoutCancel(ctx), name, meta)
	// Goka treats a failed visit as done. None of its effects may get into a cut that Release makes.
	cause := r.failure()
	if cause != nil || errors.Is(err, goka.ErrVisitAborted) {
		err = errors.Join(cause, err)
		s.Fail(err)
	}
	if err != nil {
		return fmt.Errorf("instance: group %s: visit %s: %w", r.instance.group, name, err)
	}
	return nil
}
