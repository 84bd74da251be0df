package console

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/tableindex"
)

// readBack reads the records of turns that were written shortly before the start. What cannot be read is missing on the time axis,
// which says where it begins.
func (f *follower) readBack(ctx context.Context) {
	now := f.clock.Now()
	since := now.Add(-lookBack)
	if !f.ready(ctx, f.turns) {
		return
	}
	for _, topic := range f.topicsBack() {
		first, err := f.readTopic(ctx, f.turns.Follower(), topic, since, now.Add(lookBack))
		if err != nil {
			f.logger.Warn("console cannot read earlier records of turns", zap.String("topic", topic), zap.Error(err))
			since = now
		} else if first.After(since) {
			since = first
		}
	}
	f.index.mu.Lock()
	f.lines.since, f.lines.purged = since.UnixMilli(), nil
	f.index.mu.Unlock()
	f.hints.changed(aboutSessions)
}

// topicsBack returns the topics of turns in the order in which they are read back: that of purges first, so that what they have deleted
// is not shown again.
func (f *follower) topicsBack() []string {
	control := f.catalog.SessionControl.Name()
	list := slices.Clone(f.turns.Topics)
	slices.SortStableFunc(list, func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == control:
			return -1
		case b == control:
			return 1
		}
		return 0
	})
	return list
}

// ready waits until a source is read, and returns false if ctx ends first.
func (f *follower) ready(ctx context.Context, s *tableindex.Source) bool {
	for !tableindex.Closed(s.Follower().Ready()) {
		if !clock.Sleep(ctx, f.clock, time.Second/10) {
			return false
		}
	}
	return true
}

// readTopic reads the records since a time. first is the time since which all of them are read, zero for since. after is a time
// after all records.
func (f *follower) readTopic(ctx context.Context, from *processors.Follower, topic string, since, after time.Time) (first time.Time, err error) {
	partitions, err := from.Partitions(topic)
	for _, p := range partitions {
		begin, err := from.OffsetAt(topic, p, since)
		if err != nil {
			return first, err
		}
		end, err := from.OffsetAt(topic, p, after)
		if err != nil {
			return first, err
		}
		cut := end-begin > lookBackRecords
		if cut {
			begin = end - lookBackRecords
		}
		if _, err := from.ReplayFrom(ctx, topic, p, begin, func(_ context.Context, r processors.Inbound) bool {
			if cut && r.Timestamp.After(first) {
				first = r.Timestamp
			}
			cut = false
			f.onTurn(r)
			return r.Offset < end-1
		}); err != nil {
			return first, err
		}
	}
	return first, err
}
