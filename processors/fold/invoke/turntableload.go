package invoke

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/rows/invokerow"
	"github.com/turntable-streams/turntable/processors"
)

// errTableUnusable is wrapped by the reasons for which the topics are read instead of the table.
var errTableUnusable = errors.New("invoke: the table of turns cannot be used")

// loadTable adds the turns of the table to the index, and returns the offsets from which the topics must be read after that.
//
// No turn is missing. The group commits an offset of a topic after the rows of all records before it, so all rows of records
// before the offsets that are asked first are in the changelog that is read then. The records from those offsets on are read
// from the topics. A record that was sent through the group's loop topic is in neither place for a moment; the table is not
// used then.
func (p *Pipeline) loadTable(ctx context.Context) (processors.Offsets, error) {
	group := p.topics.TurnsGroup()
	covered, err := p.follower.Committed(string(group), p.indexed()...)
	if err != nil {
		return nil, fmt.Errorf("invoke: %w", err)
	}
	if err := p.checkLoop(ctx, group); err != nil {
		return nil, err
	}
	rows, err := p.readTable(ctx, string(goka.GroupTable(group)))
	if err != nil {
		return nil, err
	}
	ends, err := p.eventEnds(ctx)
	if err != nil {
		return nil, err
	}
	for session, row := range rows {
		p.hub.restore(session, row, covered[p.topics.AgentEvents.Name()], ends)
	}
	return covered, nil
}

// checkLoop returns an error if the loop topic of the group has records that the group has not handled. They were written by a
// producer with another partitioner, and their offsets in the first topic are committed already.
func (p *Pipeline) checkLoop(ctx context.Context, group goka.Group) error {
	loop := string(goka.GroupTable(group))
	loop = loop[:len(loop)-len("table")] + "loop"
	handled, err := p.follower.Committed(string(group), loop)
	if err != nil {
		return fmt.Errorf("invoke: %w", err)
	}
	partitions, err := p.follower.Partitions(loop)
	if errors.Is(err, processors.ErrNoTopic) {
		return fmt.Errorf("%w: %w", errTableUnusable, err)
	}
	for _, partition := range partitions {
		begin, waiting := handled[loop][partition], false
		_, err = p.follower.ReplayFrom(ctx, loop, partition, begin, func(context.Context, processors.Inbound) bool {
			waiting = true
			return false
		})
		if err != nil {
			break
		}
		if waiting {
			return fmt.Errorf("%w: the group has not handled %s/%d from offset %d on: a producer of the topics has another "+
				"partitioner", errTableUnusable, loop, partition, begin)
		}
	}
	if err != nil {
		return fmt.Errorf("invoke: %w", err)
	}
	return nil
}

// readTable returns the rows of the table, by session.
func (p *Pipeline) readTable(ctx context.Context, table string) (map[string]*invokerow.Row, error) {
	partitions, err := p.follower.Partitions(table)
	switch {
	case errors.Is(err, processors.ErrNoTopic):
		return nil, fmt.Errorf("%w: %w", errTableUnusable, err)
	case err != nil:
		return nil, fmt.Errorf("invoke: %w", err)
	}
	var mu sync.Mutex
	rows := map[string]*invokerow.Row{}
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.SetLimit(loadedAtOnce)
	for _, partition := range partitions {
		tasks.Go(func() error {
			values := map[string][]byte{}
			_, err := p.follower.ReplayFrom(ctx, table, partition, 0, func(_ context.Context, r processors.Inbound) bool {
				if r.Value == nil {
					delete(values, string(r.Key))
				} else {
					values[string(r.Key)] = r.Value
				}
				return true
			})
			if err != nil {
				return fmt.Errorf("invoke: read %s/%d: %w", table, partition, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for session, raw := range values {
				row, err := invokerow.Table.Unmarshal(raw)
				if err != nil {
					return fmt.Errorf("%w: %s/%d: %w", errTableUnusable, table, partition, err)
				}
				if kept := time.Duration(row.KeptMs) * time.Millisecond; kept < p.config.Lookback {
					return fmt.Errorf("%w: %s/%d: turns are kept for %s, the look-back is %s", errTableUnusable, table, partition,
						kept, p.config.Lookback)
				}
				rows[session] = row
			}
			return nil
		})
	}
	if err := tasks.Wait(); err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: %s is empty", errTableUnusable, table)
	}
	return rows, nil
}

// eventEnds returns the ends of the partitions of agent-events.
func (p *Pipeline) eventEnds(ctx context.Context) (map[int32]int64, error) {
	topic := p.topics.AgentEvents.Name()
	partitions, err := p.follower.Partitions(topic)
	if err != nil {
		return nil, fmt.Errorf("invoke: %w", err)
	}
	ends := map[int32]int64{}
	for _, partition := range partitions {
		if ends[partition], err = p.follower.ReplayFrom(ctx, topic, partition, math.MaxInt64, nil); err != nil {
			return nil, fmt.Errorf("invoke: %w", err)
		}
	}
	return ends, nil
}

// loadFast loads the index from the table and from the records after it. It returns false if the table cannot be used.
func (p *Pipeline) loadFast(ctx context.Context) (loaded bool, err error) {
	covered, err := p.loadTable(ctx)
	if errors.Is(err, errTableUnusable) {
		p.logger.Warn("invoke: the topics are read from the look-back on, which takes longer", zap.Error(err))
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, p.loadTopics(ctx, p.indexed(), covered)
}

// restore adds the turns of a row to the index. covered are the offsets of agent-events up to which the row is valid, ends
// those of the partitions' ends.
func (h *hub) restore(session string, row *invokerow.Row, covered, ends map[int32]int64) {
	behind := refreshOf(time.Duration(row.KeptMs) * time.Millisecond)
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.Now()
	for _, t := range row.Turns {
		for _, s := range sightingsOf(turnOf(session, t), behind, covered, ends) {
			h.index.add(s, now)
		}
	}
}

// sightingsOf returns sightings that add a turn of a row to an index, with all records that the turn can have before the
// covered offsets. Those between are read when the turn is.
func sightingsOf(t *indexedTurn, behind time.Duration, covered, ends map[int32]int64) []sighting {
	s := sighting{session: t.session, turn: t.turn, request: t.request, partition: t.partition, offset: t.last, ended: t.ended}
	s.at = t.touched // added before began, which may be too old to add a turn
	var list []sighting
	switch end, exists := ends[t.partition]; {
	case t.first < 0:
		s.turn, s.offset = "", 0
		first := s
		first.at = t.began
		list = append(list, s, first)
	case !exists || t.first >= end: // another topic of that name
		s.partition, s.offset, s.gone = -1, -1, true
		list = append(list, s)
	default:
		if upTo, ok := covered[t.partition]; ok && !t.ended {
			s.at = s.at.Add(behind)
			s.offset = max(s.offset, min(upTo-1, t.last+spread))
		}
		s.offset = min(s.offset, end-1)
		first := s
		first.at, first.offset, first.ended = t.began, t.first, false
		list = append(list, s, first)
	}
	if t.end != nil {
		list = append(list, sighting{session: t.session, turn: t.turn, at: t.touched, end: t.end})
	}
	if t.failed != nil {
		failed := sighting{session: t.session, request: *t.failed.RequestID, at: t.touched, failed: t.failed}
		list = append(list, failed)
	}
	return list
}
