package instance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/store"
)

// A local store that is not open misses changes of its changelog. Compaction removes a tombstone some time after it was
// written. A store that was closed for longer never reads the tombstone: the deleted row would still exist, and its
// deadline would fire. Each store therefore stores the time at which it was last known to be at the end of its changelog.
// If that is too long ago, the store is discarded and read again from the start of the changelog.

// errOutlived says that compaction may have removed tombstones that the store has not read.
var errOutlived = errors.New("instance: the local store was behind its topic for longer than the topic keeps tombstones")

// clockMargin is how far clocks may differ. If a stored time is further in the future, one of the clocks is or was wrong.
const clockMargin = time.Minute

// usableFor returns how long a store may be closed if its topic keeps tombstones for the given time. It is shorter by a
// tenth, and by clockMargin at least, to allow for clock differences and for the time that recovery takes. Zero or less:
// the store cannot be reused.
func usableFor(tombstones time.Duration) time.Duration {
	return tombstones - max(tombstones/10, clockMargin)
}

// outdated reports whether a store must be discarded. A store without a known age was written by an older build.
func outdated(asOf time.Time, known bool, now time.Time, usable time.Duration) bool {
	age := now.Sub(asOf)
	return !known || usable <= 0 || age > usable || age < -clockMargin
}

// ages are the ages of the stores of one run.
type ages struct {
	clock clock.Clock
	log   *zap.Logger
	// tombstones is TopicManager.Tombstones.
	tombstones func(topic string) (time.Duration, error)
	// recovered receives an element when a store is recovered.
	recovered chan struct{}

	asking sync.Mutex               // one request at a time
	kept   map[string]time.Duration // tombstones, by topic

	mu   sync.Mutex
	open map[*aged]struct{} // recovered and not closed
}

func newAges(c clock.Clock, log *zap.Logger, tombstones func(string) (time.Duration, error)) *ages {
	return &ages{
		clock: c, log: log, tombstones: tombstones, recovered: make(chan struct{}, 1),
		kept: map[string]time.Duration{}, open: map[*aged]struct{}{},
	}
}

// aged is a store that stores its age.
type aged struct {
	*store.Store
	ages      *ages
	topic     string
	partition int32
	kept      time.Duration // the topic's tombstones
	rebuilt   bool          // it was empty when it was opened
	closed    bool          // guarded by the mutex of the ages

	mu      sync.Mutex
	since   time.Time // when it was recovered, or last known to be at the end of its changelog
	checked bool      // since it was recovered
	ahead   *logEnd   // where the changelog ended, if the base had not reached it
}

// logEnd is the end of a changelog at a time.
type logEnd struct {
	at     time.Time
	offset int64
}

// build opens a store. If the store is outdated, build discards it and opens an empty one.
func (a *ages) build(topic string, partition int32, open func() (*store.Store, error)) (*aged, error) {
	kept, err := a.keptBy(topic)
	if err != nil {
		return nil, err
	}
	s, err := open()
	if err != nil {
		return nil, err
	}
	o := &aged{Store: s, ages: a, topic: topic, partition: partition, kept: kept}
	asOf, known, err := s.AsOf()
	if err == nil && !known {
		o.rebuilt, err = s.Empty()
	}
	now := a.clock.Now()
	if usable := usableFor(kept); err == nil && !o.rebuilt && outdated(asOf, known, now, usable) {
		fields := []zap.Field{zap.Duration("kept", kept), zap.Duration("usable", usable)}
		if known {
			fields = append(fields, zap.Time("as_of", asOf))
		}
		a.named(topic, partition).Info("the local store is too old: it is discarded and read again from the topic", fields...)
		o.Store, err = discard(s, open)
		o.rebuilt = true
	}
	if err == nil && o.rebuilt {
		_, err = o.SetAsOf(now, 0)
	}
	if err != nil {
		if o.Store != nil {
			err = errors.Join(err, o.Store.Close())
		}
		return nil, err
	}
	return o, nil
}

// discard closes a store, removes its directory if it has one, and opens it again.
func discard(s *store.Store, open func() (*store.Store, error)) (*store.Store, error) {
	if err := s.Close(); err != nil {
		return nil, err
	}
	if path := s.Path(); path != "" {
		if err := store.Remove(path); err != nil {
			return nil, err
		}
	}
	return open()
}

// keptBy returns how long a topic keeps its tombstones. It requests the configuration of each topic once.
func (a *ages) keptBy(topic string) (time.Duration, error) {
	a.asking.Lock()
	defer a.asking.Unlock()
	if kept, ok := a.kept[topic]; ok {
		return kept, nil
	}
	kept, err := a.tombstones(topic)
	switch {
	case errors.Is(err, ErrNoTopicConfig):
		a.log.Warn("the local stores of the topic are discarded when they are older than the assumed time",
			zap.String("topic", topic), zap.Duration("assumed", kept), zap.Error(err))
	case err != nil:
		return 0, fmt.Errorf("instance: how long %s keeps tombstones: %w", topic, err)
	case usableFor(kept) <= 0:
		a.log.Warn("the topic keeps tombstones for so short a time that its local stores are discarded at each start",
			zap.String("topic", topic), zap.Duration("kept", kept))
	}
	a.kept[topic] = kept
	return kept, nil
}

func (a *ages) named(topic string, partition int32) *zap.Logger {
	return a.log.With(zap.String("topic", topic), zap.Int32("partition", partition))
}

// MarkRecovered implements storage.Storage. It returns an error if the recovery has taken so long that tombstones may have
// been removed before they were read: the next run discards the store. A store that was read from the start is kept,
// since reading it again would take as long.
func (o *aged) MarkRecovered() error {
	if err := o.Store.MarkRecovered(); err != nil {
		return err
	}
	asOf, _, err := o.AsOf()
	if err != nil {
		return err
	}
	now := o.ages.clock.Now()
	if age := now.Sub(asOf); age > o.kept {
		if !o.rebuilt {
			return fmt.Errorf("%w: %s/%d: %s since %s, kept for %s: it is discarded and read again", errOutlived, o.topic,
				o.partition, age, asOf, o.kept)
		}
		o.ages.named(o.topic, o.partition).Warn("reading the table took longer than its topic keeps tombstones: "+
			"rows that were deleted meanwhile may be back", zap.Duration("took", age), zap.Duration("kept", o.kept))
	}
	o.mu.Lock()
	o.since = now
	o.mu.Unlock()
	o.ages.mu.Lock()
	if !o.closed { // Goka does not wait for MarkRecovered when the session ends
		o.ages.open[o] = struct{}{}
	}
	o.ages.mu.Unlock()
	select {
	case o.ages.recovered <- struct{}{}:
	default:
	}
	return nil
}

// Close implements storage.Storage.
func (o *aged) Close() error {
	o.ages.mu.Lock()
	o.closed = true
	delete(o.ages.open, o)
	o.ages.mu.Unlock()
	_ = o.settle(nil) // if it fails, the store only looks older than it is
	return o.Store.Close()
}

// settle stores the age if the base has reached end, or the remembered end of the changelog if end is nil. An end that is
// not reached is remembered, unless there is an earlier one.
func (o *aged) settle(end *logEnd) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if end == nil {
		end = o.ahead
	}
	if end == nil {
		return nil
	}
	reached, err := o.SetAsOf(end.at, end.offset)
	switch {
	case reached:
		o.since, o.ahead = end.at, nil
		o.ages.named(o.topic, o.partition).Debug("the local store is at the end of its topic", zap.Time("as_of", end.at))
	case o.ahead == nil:
		o.ahead = end
	}
	return err
}

// stores returns the recovered stores.
func (a *ages) stores() []*aged {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.open))
}
