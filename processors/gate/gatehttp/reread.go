package gatehttp

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors"
)

const (
	// rereadAfter is how often the index looks whether there is room again for what was left out. If reading it does not
	// help, it waits twice as long each time, at most rereadAtMost.
	rereadAfter  = time.Second
	rereadAtMost = time.Minute
	// maxRereadBytes and maxRereadRows bound the rows of a rereading. It applies at least one.
	maxRereadBytes = 16 << 20
	maxRereadRows  = 10_000
	// maxTouched bounds the sessions whose rows are written during a rereading. It begins again if there are more.
	maxTouched = 100_000
)

// reread reads what the table has left out, when there is room, from when the index is ready until ctx ends.
func (x *Index) reread(ctx context.Context) {
	select {
	case <-x.follows.Ready:
	case <-ctx.Done():
		return
	}
	wait := rereadAfter
	for clock.Sleep(ctx, x.config.Clock, wait) {
		switch tried, less := x.rereadOnce(ctx); {
		case tried && !less:
			wait = min(2*wait, rereadAtMost)
		case less:
			wait = rereadAfter
		}
	}
}

// rereadOnce reads the rows of a partition from the first one that was left out. tried is false if nothing was left out or
// there is no room. less reports whether less is left out after it.
func (x *Index) rereadOnce(ctx context.Context) (tried, less bool) {
	x.mu.Lock()
	again := x.table.beginRereading()
	x.mu.Unlock()
	if again == nil {
		return false, false
	}
	topic := x.rows.Topics[0]
	_, err := x.rows.Follower().ReplayRange(ctx, topic, again.partition, again.begin, again.end,
		func(_ context.Context, r processors.Inbound) bool {
			u := updateOf(r)
			x.mu.Lock()
			defer x.mu.Unlock()
			x.table.found(again, u)
			return x.table.rereading == again
		})
	x.mu.Lock()
	defer x.mu.Unlock()
	changes, less := x.table.endRereading(again, err == nil)
	x.show(changes)
	if err != nil && ctx.Err() == nil {
		x.config.Logger.Warn("gate door cannot read again the rows that it has left out", zap.String("topic", topic),
			zap.Int32("partition", again.partition), zap.Int64("offset", again.begin), zap.Error(err))
	}
	return true, less
}

// updateOf decodes a record of the table.
func updateOf(r processors.Inbound) update {
	u := update{session: string(r.Key), place: place{r.Partition, r.Offset}, size: len(r.Value)}
	if r.Value != nil {
		u.state, u.err = gaterow.Table.Unmarshal(r.Value)
		u.broken = u.err != nil
	}
	return u
}

// rereading is the search of a partition for the rows that were left out: the newest one of each session between two offsets.
type rereading struct {
	partition  int32
	begin, end int64
	rows       map[string]update
	size       int                 // of the rows
	rest       int64               // the offset of the first row that is left for the next rereading; -1 for none
	touched    map[string]struct{} // sessions whose rows were written since it began
}

// beginRereading returns what to read again; nil if nothing was left out or there is no room.
func (t *table) beginRereading() *rereading {
	if len(t.left) == 0 || t.full() {
		return nil
	}
	partition := slices.Min(slices.Collect(maps.Keys(t.left)))
	t.rereading = &rereading{
		partition: partition, begin: t.left[partition], end: t.next[partition],
		rest: -1, rows: map[string]update{}, touched: map[string]struct{}{},
	}
	return t.rereading
}

// found collects a row of a rereading if the table has left it out.
func (t *table) found(again *rereading, u update) {
	if before, ok := again.rows[u.session]; ok { // u is newer
		again.size -= before.size
		delete(again.rows, u.session)
	}
	switch e := t.sessions[u.session]; {
	case e != nil && (e.place.offset > u.place.offset || e.place == u.place && !e.partial):
		return
	case !u.broken && len(u.state.GetOpen())+len(u.state.GetGrants()) == 0:
		return
	case again.rest >= 0 || len(again.rows) > 0 && (again.size+u.size > maxRereadBytes || len(again.rows) == maxRereadRows):
		again.leave(u.place.offset)
		return
	}
	again.rows[u.session] = u
	again.size += u.size
}

// leave notes a row that is left for the next rereading.
func (r *rereading) leave(offset int64) {
	if r.rest < 0 || offset < r.rest {
		r.rest = offset
	}
}

// touch notes that a session's row was written, which makes what a rereading found of it old.
func (t *table) touch(session string) {
	if t.rereading == nil {
		return
	}
	if t.rereading.touched[session] = struct{}{}; len(t.rereading.touched) > maxTouched {
		t.rereading = nil
	}
}

// endRereading applies what a rereading found and returns the gates that changed. Nothing is applied if it is not whole. less
// reports whether less of the partition is left out than before.
func (t *table) endRereading(again *rereading, whole bool) (changes []change, less bool) {
	current := t.rereading == again
	t.rereading = nil
	if !current || !whole {
		return nil, false
	}
	delete(t.left, again.partition)
	if again.rest >= 0 {
		t.leave(place{again.partition, again.rest})
	}
	rows := slices.SortedFunc(maps.Values(again.rows), func(a, b update) int { return cmp.Compare(a.place.offset, b.place.offset) })
	for _, u := range rows {
		if _, old := again.touched[u.session]; !old {
			changes = append(changes, t.put(u)...)
		}
	}
	first, some := t.left[again.partition]
	return changes, !some || first > again.begin
}
