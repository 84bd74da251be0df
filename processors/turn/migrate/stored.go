package migrate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/topics"
)

// stored returns an index of the sessions whose answers only FlightDeck's store has, and the ends of the store's changelog.
// The source deletes records after its retention, which is seven days by default, and the changelog keeps the latest record
// of every session. Such sessions are removed from x.
//
// Sessions that x has answers of are taken from the source, because the changelog may only have the step of an open turn, and
// what FlightDeck makes of camelCase records is empty.
func (m *migration) stored(ctx context.Context, x *index) (older *index, ends map[int32]int64, skipped int, err error) {
	older, ends = newIndex(), map[int32]int64{}
	names, err := m.client.Topics()
	if err != nil {
		return nil, nil, 0, fmt.Errorf("migrate: topics: %w", err)
	}
	store := m.catalog.FlightDeckStore()
	if !slices.Contains(names, store) {
		m.logger.Warn("import of histories: FlightDeck's store has no changelog; only the sessions that the topic of the "+
			"responses still has are imported", zap.String("changelog", store), zap.String("topic", m.source()))
		return older, ends, 0, nil
	}
	partitions, err := m.client.Partitions(store)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("migrate: partitions of %s: %w", store, err)
	}
	first := &scan{name: "first pass", topic: store, told: time.Now(), gone: older.remove}
	first.take = func(key string, at place, ms int64, r topics.ThinkResponse) bool {
		if s, known := x.sessions[key]; !known || len(s.places()) == 0 {
			older.add(key, at, ms, r)
		}
		return true
	}
	for _, partition := range partitions {
		if ends[partition], err = m.client.GetOffset(store, partition, sarama.OffsetNewest); err != nil {
			return nil, nil, 0, fmt.Errorf("migrate: end of %s/%d: %w", store, partition, err)
		}
		if err := m.scan(ctx, first, partition, 0, ends[partition]); err != nil {
			return nil, nil, 0, err
		}
	}
	for key, s := range older.sessions {
		if _, known := x.sessions[key]; known && len(s.places()) == 0 {
			delete(older.sessions, key)
		} else {
			delete(x.sessions, key)
		}
	}
	return older, ends, first.skipped, nil
}
