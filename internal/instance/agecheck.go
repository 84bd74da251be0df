package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/store"
)

// ageEvery is how often the age of each store is checked. A store that is closed between two checks looks older than it is
// by that time at most.
const ageEvery = time.Minute

// checkAges stores the age of each open store until ctx ends: when it is recovered, and then periodically.
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

// checkAge stores the age of a store; with again also if that was already done since the store was recovered. It asks the
// broker for the end of the changelog, since a process that was suspended or disconnected does not know what others have
// written meanwhile. It reads the time first: only what the changelog had by then is known to be in the store. An error
// ends the run.
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
	end, err := CommittedEnd(ctx, r.client, o.topic, o.partition, stored+1)
	if err != nil {
		if ctx.Err() == nil {
			o.ages.named(o.topic, o.partition).Debug("the local store could not be compared with its topic: its age is not updated",
				zap.Error(err))
		}
		return nil
	}
	o.mu.Lock()
	o.checked = true
	o.mu.Unlock()
	return o.settle(&logEnd{at: now, offset: end})
}

// outlived returns an error if a lookup table was behind for longer than its topic keeps tombstones, for example after the
// process was suspended. Goka opens a lookup table once, for all generations; the next run discards its store. The
// group's own table and joined tables are opened again in each generation and checked then.
func (r *run) outlived(o *aged, now time.Time) error {
	if !isTable(r.instance.cfg.Graph.LookupTables(), o.topic) || o.kept <= 10*ageEvery {
		return nil
	}
	o.mu.Lock()
	since := o.since
	o.mu.Unlock()
	if age := now.Sub(since); age > usableFor(o.kept) {
		return fmt.Errorf("%w: lookup table %s/%d: %s since %s, kept for %s: the instance restarts and reads it again",
			errOutlived, o.topic, o.partition, age, since, o.kept)
	}
	return nil
}
