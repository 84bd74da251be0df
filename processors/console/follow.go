package console

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/internal/tableindex"
	"github.com/turntable-streams/turntable/processors/memoir/latency"
	"github.com/turntable-streams/turntable/processors/operations"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// What changes are about, for the pages that show it.
const (
	aboutSessions   = "sessions"
	aboutGates      = "gates"
	aboutDeliveries = "deliveries"
	aboutLetters    = "letters"
	aboutCosts      = "costs"
	aboutCrews      = "crews"
)

const (
	// lookBack is how far before its start the console reads the records of turns, and lookBackRecords how many of a partition.
	lookBack        = time.Hour
	lookBackRecords = 20_000
	// freshEvery is how often the console checks that it has read what the brokers have.
	freshEvery = 5 * time.Second
	// forgetEvery is how often the console asks which dead letters were deleted by age.
	forgetEvery = time.Minute
)

// follower follows the topics of an agent.
type follower struct {
	catalog topics.Catalog
	index   *index
	flow    *flow
	lines   *timelines
	hints   *hints
	logger  *zap.Logger
	clock   processors.Clock
	tables  map[string]rowKind
	groups  map[string]goka.Group      // of dead-letter topics
	oldest  map[string]map[int32]int64 // of dead-letter topics: the offsets before which letters were dropped

	follows                  *tableindex.Index
	rows, dead, turns, money *tableindex.Source
	created                  map[string]bool               // the topics that the agent has
	latencies                atomic.Pointer[latency.Table] // nil if the agent has none

	mu      sync.Mutex
	current time.Time // when it was last known that everything is read
	failure error     // why it was not known at the last check, nil if it was
}

func newFollower(c topics.Catalog, config *Config, h *hints) *follower {
	f := &follower{
		catalog: c, index: newIndex(config), flow: newFlow(c), lines: newTimelines(config.SpanLimit), hints: h, logger: config.Logger,
		clock: config.Clock, tables: map[string]rowKind{}, groups: map[string]goka.Group{},
		created: map[string]bool{}, oldest: map[string]map[int32]int64{},
	}
	created := f.created
	for _, s := range c.Specs() {
		created[s.Name] = s.Created
	}
	for group, kind := range map[goka.Group]rowKind{c.Group(): turnRow, c.GateGroup(): gateRow, c.DeliveryGroup(): deliveryRow} {
		if table := string(goka.GroupTable(group)); created[table] {
			f.tables[table] = kind
		}
	}
	tables := slices.Sorted(maps.Keys(f.tables))
	if created[string(c.DeliveryRoutes())] {
		tables = append(tables, string(c.DeliveryRoutes()))
	}
	for _, g := range c.Groups() {
		if topic := operations.LetterTopic(g); created[topic] {
			f.groups[topic] = g
		}
	}
	f.rows = &tableindex.Source{Topics: tables, Handle: f.onRow}
	f.dead = &tableindex.Source{Topics: slices.Sorted(maps.Keys(f.groups)), Handle: f.onLetter}
	f.turns = &tableindex.Source{Topics: slices.Sorted(maps.Keys(f.flow.handle)), Handle: f.onTurn, New: true}
	sources := []*tableindex.Source{f.rows, f.dead, f.turns}
	if created[c.Spending.Name()] {
		f.money = &tableindex.Source{Topics: []string{c.Spending.Name()}, Handle: f.onSpending}
		sources = append(sources, f.money)
	}
	if created[c.CrewEvents.Name()] {
		sources = append(sources, &tableindex.Source{
			Topics: []string{c.CrewEvents.Name()}, Handle: func(processors.Inbound) { h.changed(aboutCrews) }, New: true, Optional: true,
		})
	}
	f.follows = tableindex.New(ErrConfig, errNotReady, sources...)
	return f
}

// onRow is called for each record of a table.
func (f *follower) onRow(r processors.Inbound) {
	kind, ofSession := f.tables[r.Topic]
	key, part, isPart := processors.TableKey(string(r.Key))
	switch {
	case !ofSession:
		f.onRoute(r)
	case isPart && kind == turnRow:
		f.onPart(key, part, r)
	case isPart:
	case kind == turnRow:
		v, err := viewOf(r, turn.TableCodec(), turn.Inspect)
		f.put(r, err, func() { f.index.putTurn(f.index.at(key, kind, r.Partition, offsetOf(r)), v) })
		f.hints.changed(aboutSessions)
	case kind == gateRow:
		v, err := viewOf(r, gate.TableCodec(), gate.Gates)
		f.put(r, err, func() { f.index.putGates(f.index.at(key, kind, r.Partition, offsetOf(r)), dereferenced(v)) })
		f.hints.changed(aboutGates)
	default:
		v, err := viewOf(r, delivery.TableCodec(), delivery.Deliveries)
		f.put(r, err, func() { f.index.putDeliveries(f.index.at(key, kind, r.Partition, offsetOf(r)), dereferenced(v)) })
		f.hints.changed(aboutDeliveries)
	}
}

// put changes the index, and notes whether the row can be decoded.
func (f *follower) put(r processors.Inbound, err error, change func()) {
	id := r.Topic + "\x00" + string(r.Key)
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	if delete(f.index.broken, id); err != nil {
		if len(f.index.broken) < f.index.config.ItemLimit {
			f.index.broken[id] = struct{}{}
		}
		f.logger.Error("console cannot read a row; what it says is not shown", zap.String("topic", r.Topic),
			zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset), zap.Error(err))
	}
	change()
}

// offsetOf is where a row is, -1 for one that was deleted.
func offsetOf(r processors.Inbound) int64 {
	if r.Value == nil {
		return -1
	}
	return r.Offset
}

// viewOf returns what a row shows, nil for a row that was deleted or cannot be decoded.
func viewOf[T any](r processors.Inbound, c goka.Codec, view func(string, any) (T, error)) (*T, error) {
	if r.Value == nil {
		return nil, nil
	}
	row, err := c.Decode(r.Value)
	if err != nil {
		return nil, err
	}
	v, err := view(string(r.Key), row)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// dereferenced returns nil for no row, and no empty list for one.
func dereferenced[T any](list *[]T) []T {
	switch {
	case list == nil:
		return nil
	case *list == nil:
		return []T{}
	}
	return *list
}

// onPart notes where a part of a session's row is.
func (f *follower) onPart(key string, part uint32, r processors.Inbound) {
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	s := f.index.sessions[key]
	switch {
	case r.Value == nil && s != nil:
		if delete(s.parts, part); len(s.parts) == 0 {
			s.parts = nil
		}
	case r.Value != nil:
		if s == nil { // the parts of a row are written before it
			s = f.index.at(key, turnRow, r.Partition, -1)
		}
		if s.parts == nil {
			s.parts = map[uint32]int64{}
		}
		s.parts[part] = r.Offset
	}
}

// onRoute keeps the rows of routes whose receivers fail.
func (f *follower) onRoute(r processors.Inbound) {
	var row any
	var err error
	if r.Value != nil {
		row, err = delivery.CircuitCodec().Decode(r.Value)
	}
	f.put(r, err, func() {
		delete(f.index.circuits, string(r.Key))
		if row != nil && f.index.room("routes", len(f.index.circuits)) {
			f.index.circuits[string(r.Key)] = row
		}
	})
	f.hints.changed(aboutDeliveries)
}

func (f *follower) onLetter(r processors.Inbound) {
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	if operations.IsMark(r) {
		f.index.letters.mark(r.Topic, r)
	} else {
		f.index.letters.add(operations.LetterOf(f.groups[r.Topic], r), f.index.config.ItemLimit)
	}
	f.hints.changed(aboutLetters)
}

func (f *follower) onSpending(r processors.Inbound) {
	v := f.catalog.Spending.Codec().Unmarshal(r.Value)
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	put := &v.Value
	if v.Tombstone() || v.Err != nil {
		put = nil
	}
	if !f.index.spending.put(string(r.Key), put, f.index.config.ItemLimit) {
		f.index.room("users and tenants", f.index.config.ItemLimit)
	}
	f.hints.changed(aboutCosts)
}

func (f *follower) onTurn(r processors.Inbound) {
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	f.flow.apply(f.lines, r)
}

// forgetLetters drops the dead letters and marks that their topics have lost by age, from time to time, until ctx ends.
func (f *follower) forgetLetters(ctx context.Context) {
	if !f.ready(ctx, f.dead) {
		return
	}
	for {
		for topic := range f.groups {
			if err := f.forgetLost(topic); err != nil {
				f.logger.Warn("console cannot ask which dead letters are left; it asks again", zap.String("topic", topic), zap.Error(err))
			}
		}
		if !clock.Sleep(ctx, f.clock, forgetEvery) {
			return
		}
	}
}

func (f *follower) forgetLost(topic string) error {
	partitions, err := f.dead.Follower().Partitions(topic)
	for _, p := range partitions {
		oldest, err := f.dead.Follower().OffsetAt(topic, p, time.Unix(0, 0))
		if err != nil {
			return err
		}
		if known := f.oldest[topic]; known == nil {
			f.oldest[topic] = map[int32]int64{p: 0}
		}
		if oldest > f.oldest[topic][p] {
			f.oldest[topic][p] = oldest
			f.index.mu.Lock()
			f.index.letters.forget(topic, p, oldest)
			f.index.mu.Unlock()
			f.hints.changed(aboutLetters)
		}
	}
	return err
}

// check notes from time to time whether everything is read, until ctx ends.
func (f *follower) check(ctx context.Context) {
	for {
		now := f.clock.Now()
		var err error
		for _, s := range []*tableindex.Source{f.rows, f.dead, f.money} {
			if s != nil && err == nil {
				err = s.CatchUp(ctx)
			}
		}
		if ctx.Err() != nil {
			return
		}
		f.mu.Lock()
		changed := (err == nil) != (f.failure == nil)
		if f.failure = err; err == nil {
			f.current = now
		}
		f.mu.Unlock()
		if changed {
			f.hints.changed(aboutSessions, aboutGates, aboutDeliveries, aboutLetters, aboutCosts)
		}
		if !clock.Sleep(ctx, f.clock, freshEvery) {
			return
		}
	}
}

// fresh returns when everything was read, and why it is not known since then.
func (f *follower) fresh() (time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current, f.failure
}
