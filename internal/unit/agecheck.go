package unit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/recovery"
	"github.com/turntable-streams/turntable/internal/store"
)

// ageEvery is how often the age of each store is checked. A store that is closed in between is taken for older by that.
const ageEvery = time.Minute

// checkAges stores the ages of the open stores until ctx ends: for each once it is recovered, and then every so often.
func (r *run) checkAges(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		again := false
		select {
		case <-r.tables.ages.recovered:
		case <-tick.C:
			again = true
		case <-ctx.Done():
			return
		}
		for _, o := range r.tables.ages.stores() {
			if err := r.checkAge(ctx, o, again); err != nil && !errors.Is(err, store.ErrClosed) {
				r.broken(err)
			}
		}
	}
}

// checkAge stores the age of a store; again also where that was done since the store was recovered. It asks the broker,
// since a process that was suspended, or cut off, does not know that others have written meanwhile. The time is read
// before: only what the changelog had by then can be in the store. An error ends the attempt.
func (r *run) checkAge(ctx context.Context, o *aged, again bool) error {
	o.mu.Lock()
	checked := o.checked
	o.mu.Unlock()
	if checked && !again {
		return nil
	}
	now := o.ages.clock.Now()
	if err := o.settle(nil); err != nil {
		return err
	}
	if err := r.outlived(o, now); err != nil {
		return err
	}
	stored, err := o.GetOffset(-1)
	if err != nil {
		return err
	}
	end, err := recovery.CommittedEnd(ctx, r.client, o.topic, o.partition, stored+1)
	if err != nil {
		if ctx.Err() == nil {
			o.ages.named(o.topic, o.partition).Debug("the age of the local store is not known: it counts as older",
				zap.Error(err))
		}
		return nil
	}
	o.mu.Lock()
	o.checked = true
	o.mu.Unlock()
	return o.settle(&logEnd{at: now, offset: end})
}

// outlived is an error where a lookup table was behind for longer than its topic keeps tombstones, as after a process was
// suspended. Goka opens such a table once, for all generations; the next attempt discards its store. The group's own
// table and joined ones are opened again in each generation, and judged then.
func (r *run) outlived(o *aged, now time.Time) error {
	if !isTable(r.unit.cfg.Graph.LookupTables(), o.topic) || o.kept <= 10*ageEvery {
		return nil
	}
	o.mu.Lock()
	since := o.since
	o.mu.Unlock()
	if age := now.Sub(since); age > usableFor(o.kept) {
		return fmt.Errorf("%w: lookup table %s/%d: %s since %s, kept for %s: the unit restarts and reads it again",
			errOutlived, o.topic, o.partition, age, since, o.kept)
	}
	return nil
}
