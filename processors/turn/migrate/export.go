package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// recordFrame is the space in a record for what is neither key nor value.
const recordFrame = 1024

// Export writes the sessions that were answered or ended since the import to the changelog of FlightDeck's history store:
// FlightDeck's processing application then continues them when it starts again. Without an import before, it writes all
// sessions. It may be repeated until the application has run. opts are those of Import.
//
// It also commits offsets of the application's group: past the records of tool-use-all-complete and session-end, which the
// turn has written and the application would process again. And it removes the reply routes that were used since from the
// application's store.
//
// It returns ErrActive while the group of the turn has members, ErrNoStore if FlightDeck's application has never run, and
// ErrPartitions if its store has another number of partitions.
func Export(ctx context.Context, brokers []string, catalog topics.Catalog, opts ...processors.Option) (result Result, err error) {
	m, err := newMigration(brokers, catalog, opts)
	if err != nil {
		return Result{}, err
	}
	err = m.connect(ctx, opts, func(ctx context.Context) error {
		names, err := m.client.Topics()
		if err != nil {
			return fmt.Errorf("migrate: topics: %w", err)
		}
		if !slices.Contains(names, catalog.FlightDeckStore()) {
			return fmt.Errorf("%w: %s; there is nothing to export to", ErrNoStore, catalog.FlightDeckStore())
		}
		return m.alone(ctx, func(ctx context.Context, member *sarama.ConsumerGroupMetadata) (err error) {
			result, err = m.exportAll(ctx, member)
			return err
		})
	})
	return result, err
}

func (m *migration) exportAll(ctx context.Context, member *sarama.ConsumerGroupMetadata) (result Result, err error) {
	w, err := m.writer(member)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := m.idle(); err != nil {
		return Result{}, err
	}
	partitions, err := m.partitions(m.catalog.FlightDeckStore())
	if err != nil {
		return Result{}, err
	}
	since, err := m.progress()
	if err != nil {
		return Result{}, err
	}
	ends, err := m.ends(partitions)
	if err != nil {
		return Result{}, err
	}
	x := newIndex()
	x.keepEnded = true
	first := &scan{
		name: "first pass of the export", topic: m.source(), told: time.Now(),
		take: func(key string, at place, ms int64, r topics.ThinkResponse) bool { x.add(key, at, ms, r); return true },
		gone: x.remove,
	}
	for _, partition := range partitions {
		if err := m.scan(ctx, first, partition, 0, ends[partition]); err != nil {
			return Result{}, err
		}
	}
	result.Skipped = first.skipped
	x.forgetBefore(since)
	if err := m.writeStore(ctx, w, since, x, ends, partitions, &result); err != nil {
		return Result{}, err
	}
	if err := m.forgetRoutes(ctx, w, since); err != nil {
		return Result{}, err
	}
	if len(since) == 0 { // no import: the next one must not run
		since = progress{}
		for partition, end := range ends {
			since[partition] = position{mark: mark{End: end}}
		}
	}
	if err := m.idle(); err != nil {
		return Result{}, err
	}
	if err := m.passBy(); err != nil {
		return Result{}, err
	}
	if err := w.commit(ctx, since.in(exported)); err != nil {
		return Result{}, err
	}
	m.keep(since.in(exported), member)
	m.logger.Info("histories exported", zap.Int("sessions", result.Sessions), zap.Int("skipped", result.Skipped))
	return result, nil
}

// forgetBefore forgets the sessions whose last answer or end is not newer than the import: FlightDeck's store has them.
func (x *index) forgetBefore(p progress) {
	for key, s := range x.sessions {
		if s.answer < p[s.partition].End {
			delete(x.sessions, key)
		}
	}
}

// writeStore writes the sessions of the index, and tombstones for those that ended.
func (m *migration) writeStore(ctx context.Context, w *writer, p progress, x *index, ends map[int32]int64, partitions []int32,
	result *Result,
) error {
	store, codec := m.catalog.FlightDeckStore(), m.catalog.ThinkRequestResponse.Codec()
	write := func(key string, value []byte, at int64) error {
		w.add(store, key, value, time.UnixMilli(at))
		result.Sessions++
		if !w.full() {
			return nil
		}
		return w.commit(ctx, p)
	}
	for key, s := range x.sessions {
		if s.ended {
			if err := write(key, nil, s.at); err != nil {
				return err
			}
		}
	}
	begins := x.remaining(nil)
	h := newHistories(x)
	var failed error
	second := &scan{name: "second pass of the export", topic: m.source(), told: time.Now(), wanted: h.wants}
	second.take = func(key string, at place, _ int64, r topics.ThinkResponse) bool {
		records, done := h.add(key, at, r)
		if !done {
			return true
		}
		var value []byte
		value, failed = codec.Marshal(latest(key, x.sessions[key], records))
		switch {
		case failed != nil:
		case len(value)+len(key) > m.conf.Producer.MaxMessageBytes-recordFrame:
			second.skip(m, at, "it does not fit into a record of the store")
			m.logger.Error("a history is too long for FlightDeck: it keeps the one from before the import", zap.String("key", key))
		default:
			failed = write(key, value, x.sessions[key].at)
		}
		return failed == nil
	}
	for _, partition := range partitions {
		begin, ok := begins[partition]
		if !ok {
			continue
		}
		if err := m.scan(ctx, second, partition, begin, ends[partition]); err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
	}
	result.Skipped += second.skipped
	return nil
}
