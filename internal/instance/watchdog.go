package instance

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errEndMoved says that the record at which a recovery was to end no longer exists: it was a tombstone that compaction
// removed after the end was probed. The next run probes again.
var errEndMoved = errors.New("instance: end of the table has moved during recovery")

// watchEvery is how long a recovery may make no progress before its end is probed again.
const watchEvery = 5 * time.Second

// watchRecovery checks the recovery of partitions until ctx ends, and fails the run if one makes no progress because
// its end has moved. Goka would wait indefinitely for the record before the end that it was given.
func (r *run) watchRecovery(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := map[int32]int64{}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for partition, at := range r.tables.progress() {
			was, seen := last[partition]
			last[partition] = at.offset
			if !seen || was != at.offset {
				continue
			}
			end, err := StableEnd(ctx, r.client, r.tables.group, partition, every, nil)
			if err == nil && end < at.end && end <= at.offset+1 {
				err := fmt.Errorf("%w: %s/%d from %d to %d", errEndMoved, r.tables.group, partition, at.end, end)
				r.failed(err)
				if g := r.currentGroup(); g != nil {
					g.Fail(err)
				}
			}
		}
	}
}

// progressOf is the progress of a recovery: the offset that was read, and the end.
type progressOf struct{ offset, end int64 }

// progress returns the progress of each partition that is being recovered and whose end is known.
func (t *tables) progress() map[int32]progressOf {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[int32]progressOf{}
	for p, r := range t.reading {
		offset, err := r.store.GetOffset(-1)
		if err == nil && r.end > 0 {
			all[p] = progressOf{offset: offset, end: r.end}
		}
	}
	return all
}
